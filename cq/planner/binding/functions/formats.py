"""FORMAT, PRINTF and FORMAT_STRING: texts with fields, bound as the concatenation of their pieces.

The format is a constant, so each field is checked and typed as the query is bound. NULL anywhere makes NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cq.errors import CompileError, Span, compile_error
from cq.grammar import ast
from cq.lang.expressions import Expr, Literal
from cq.lang.types import VARCHAR, Kind, decimal
from cq.planner.binding.functions.shorthands import ShorthandBinder, shorthand
from cq.planner.binding.literals import integer_literal
from cq.records import dataclass, replace

PERCENT = re.compile(
    r"%(?:(?P<place>\d+)\$)?(?P<flags>[-0,+]*)(?P<width>\d+)?(?:\.(?P<digits>\d+))?(?P<kind>[a-zA-Z%])"
)
BRACES = re.compile(
    r"\{\{|\}\}|\{(?P<place>\d+)?(?::(?P<align>[<>])?(?P<plus>\+)?(?P<zero>0)?(?P<width>\d+)?(?P<comma>,)?"
    r"(?:\.(?P<digits>\d+))?(?P<kind>[sdxXf])?)?\}"
)
KINDS = "%s a value, %d an integer, %x and %X in hexadecimal, %f and %.2f a number, %c a character, %% a %"
MOST_WIDTH = 1000  # characters of a field; more is a mistake, and would make a long text for every row
MOST_DIGITS = 18  # digits after the point
FRACTION = 6  # default digits of %f, as in C


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One field: which argument it shows, counted from 0, and how.

    kind: a letter of printf; "" for the value's own form.  left: None by default: numbers are right-aligned.
    """

    place: int
    kind: str
    width: int = 0
    digits: int | None = None
    left: bool | None = False
    zeros: bool = False
    grouped: bool = False
    plus: bool = False


@shorthand("format_string", "printf", "sprintf")
def _format_string(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """FORMAT_STRING('%05d %s %.2f', x, y, z): the text with the values in its fields; NULL if any value is NULL."""
    form, *values = binder.positional(node, 1)
    return _Writer(binder, node, values).text(_pieces_of_percent(_constant(node, form), node, form.span))


@shorthand("format")
def _format(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """FORMAT('{} of {:.2f}', x, y), FORMAT(x, 2): FORMAT_STRING with fields in {} or %; for a number, FORMAT_NUMBER."""
    form, *values = binder.positional(node, 1)
    if form.type.is_numeric:
        return _number(binder, node, [form, *values])
    text = _constant(node, form)
    pieces = _pieces_of_braces if "{" in text else _pieces_of_percent
    return _Writer(binder, node, values).text(pieces(text, node, form.span))


@shorthand("format_number")
def _format_number(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """FORMAT_NUMBER(x, digits): FORMAT_STRING('%,.2f', x) with `digits` decimal places, a constant."""
    return _number(binder, node, binder.exactly(node, 2))


def _number(binder: ShorthandBinder, node: ast.Call, args: Sequence[Expr]) -> Expr:
    digits = args[1].value if len(args) == 2 and isinstance(args[1], Literal) else None
    if not isinstance(digits, int) or not 0 <= digits <= MOST_DIGITS:
        way = f"write {node.name.upper()}(x, 2); times are written by DATE_FORMAT(ts, 'yyyy-MM-dd')"
        cause = f"{node.name.upper()} of a number takes the number of digits, 0 to {MOST_DIGITS}, as a constant"
        raise compile_error("CQ0302", cause, node.span, help=way)
    return _Writer(binder, node, args[:1]).text([Placeholder(0, "f", digits=digits, grouped=True)])


def _constant(node: ast.Call, form: Expr) -> str:
    if not isinstance(form, Literal) or not isinstance(form.value, str):
        raise compile_error(
            "CQ0302", f"{node.name.upper()} needs a constant format", form.span,
            help=f"write {node.name.upper()}('%d: %s', n, x), or CONCAT(n, ': ', x)",
        )  # fmt: skip
    return form.value


# -- reading ----------------------------------------------------------------------------------------------------------


def _pieces_of_percent(text: str, node: ast.Call, span: Span) -> Iterator[str | Placeholder]:
    """Literal texts and fields, in order. CQ0302 for an invalid field."""
    at, place = 0, 0
    while (found := text.find("%", at)) >= 0:
        yield text[at:found]
        match = PERCENT.match(text, found)
        if match is None or match["kind"] not in "sdxXfcn%":
            raise _no_field(node, span, text[found : found + 4], KINDS)
        at = match.end()
        if match["kind"] in "%n":
            yield "%" if match["kind"] == "%" else "\n"
            continue
        flags = match["flags"]
        shown = int(match["place"]) - 1 if match["place"] else place
        place += match["place"] is None
        digits = int(match["digits"]) if match["digits"] else None
        yield Placeholder(
            shown,
            match["kind"],
            int(match["width"] or 0),
            digits,
            "-" in flags,
            "0" in flags,
            "," in flags,
            "+" in flags,
        )
    yield text[at:]


def _pieces_of_braces(text: str, node: ast.Call, span: Span) -> Iterator[str | Placeholder]:
    """Literal texts and fields, in order. CQ0302 for an invalid field."""
    at, place = 0, 0
    while (brace := re.compile(r"[{}]").search(text, at)) is not None:
        yield text[at : brace.start()]
        match = BRACES.match(text, brace.start())
        if match is None:
            way = "write {} or {0} for a value, {:5d}, {:05d}, {:,}, {:.2f}, {:<10}, {:>10}, and {{ for a brace"
            raise _no_field(node, span, text[brace.start() : brace.start() + 6], way)
        at = match.end()
        if match[0] in {"{{", "}}"}:
            yield match[0][0]
            continue
        shown = int(match["place"]) if match["place"] else place
        place += match["place"] is None
        kind = match["kind"] or ("f" if match["digits"] else "d" if match["comma"] else "")
        digits = int(match["digits"]) if match["digits"] else None
        left = match["align"] == "<" if match["align"] or kind not in {"", "s"} else None
        width, zeros = int(match["width"] or 0), match["zero"] is not None
        yield Placeholder(
            shown, kind, width, digits, left, zeros, match["comma"] is not None, match["plus"] is not None
        )
    yield text[at:]


def _no_field(node: ast.Call, span: Span, shown: str, way: str) -> CompileError:
    return compile_error("CQ0302", f"`{shown}` is not a field of {node.name.upper()}", span, help=way)


# -- writing ----------------------------------------------------------------------------------------------------------


class _Writer:
    """Builds the text of a call's fields."""

    def __init__(self, binder: ShorthandBinder, node: ast.Call, values: Sequence[Expr]) -> None:
        self.binder = binder
        self.node = node
        self.values = values

    def text(self, pieces: Iterator[str | Placeholder] | list[Placeholder]) -> Expr:
        """The pieces concatenated. CQ0302 if the values do not match the fields."""
        made, shown = [], set()
        for piece in pieces:
            if isinstance(piece, str):
                if piece:
                    made.append(self._literal(piece))
                continue
            if piece.place >= len(self.values):
                raise self._refused(
                    f"the format has a field {piece.place + 1}, but there are {len(self.values)} values"
                )
            shown.add(piece.place)
            made.append(self._field(piece, self.values[piece.place]))
        if len(shown) < len(self.values):
            raise self._refused(f"{len(self.values)} values are given, but the format shows {len(shown)} of them")
        return made[0] if len(made) == 1 else self._call("concat", *made) if made else self._literal("")

    def _field(self, field: Placeholder, value: Expr) -> Expr:
        if field.width > MOST_WIDTH or (field.digits or 0) > MOST_DIGITS:
            raise self._refused(
                f"a field has at most {MOST_WIDTH} characters, and {MOST_DIGITS} digits after the point"
            )
        match field.kind:
            case "d" | "f":
                return self._padded(field, *self._number(field, value))
            case "x" | "X":
                self._demand(field, value.type.is_integer, value, "an integer")
                digits = self._call("hex", value)
                return self._padded(field, None, digits if field.kind == "X" else self._call("lower", digits))
            case "c":
                self._demand(field, value.type.is_integer, value, "an integer")
                return self._padded(field, None, self._call("chr", value))
        if field.left is None:
            field = replace(field, left=not value.type.is_numeric)
        if not field.kind and value.type.is_numeric:
            return self._padded(field, *self._number(field, value))
        text = self.binder.bind_cast(value, VARCHAR, value.span)
        if field.digits is not None:
            text = self._call("left", text, self._whole(field.digits))
        return self._padded(field, None, text)

    def _number(self, field: Placeholder, value: Expr) -> tuple[Expr, Expr]:
        """The sign, and the digits after it; a number that rounds to 0 has none."""
        if field.kind == "f":
            self._demand(field, value.type.is_numeric, value, "a number")
            digits = FRACTION if field.digits is None else field.digits
            value = self.binder.bind_cast(value, decimal(38, digits), value.span)
        else:
            whole = value.type.is_integer or (value.type.kind is Kind.DECIMAL and value.type.scale == 0)
            self._demand(field, whole or not field.kind, value, "an integer")
        text = self.binder.bind_cast(value, VARCHAR, value.span)
        negative = self._call("starts_with", text, self._literal("-"))
        sign = self.binder.conditional(
            [negative], [self._literal("-"), self._literal("+" if field.plus else "")], self.node.span
        )
        digits_only = self._call("ltrim", text, self._literal("-"))
        return sign, self._grouped(digits_only) if field.grouped else digits_only

    def _grouped(self, digits: Expr) -> Expr:
        """Add commas between thousands, from the end: the digits are reversed, and reversed back."""
        point = self._literal(".")
        turned = self._call("reverse", self._call("split_part", digits, point, self._whole(1)))
        parted = self._call("regexp_replace", turned, self._literal(r"(\d{3})"), self._literal(r"\1,"))
        whole = self._call("reverse", self._call("rtrim", parted, self._literal(",")))
        fraction = self._call("regexp_extract", digits, self._literal(r"\..*"), self._whole(0))
        return self._call("concat", whole, fraction)

    def _padded(self, field: Placeholder, sign: Expr | None, text: Expr) -> Expr:
        signed = text if sign is None else self._call("concat", sign, text)
        if not field.width:
            return signed
        missing = self._call("-", self._whole(field.width), self._call("length", signed))
        if field.left:
            return self._call("concat", signed, self._call("space", missing))
        if field.zeros and field.kind not in {"s", "c"}:
            zeros = self._call("repeat", self._literal("0"), missing)
            return self._call("concat", *([] if sign is None else [sign]), zeros, text)
        return self._call("concat", self._call("space", missing), signed)

    def _demand(self, field: Placeholder, fits: bool, value: Expr, what: str) -> None:
        if not fits:
            raise compile_error(
                "CQ0302", f"a field with {field.kind} takes {what}, not {value.type}", value.span,
                label=str(value.type),
                help="show any value with %s or {}, a number with %.2f or {:.2f}; or CAST(x AS BIGINT)",
            )  # fmt: skip

    def _refused(self, cause: str) -> CompileError:
        way = f"give a value for each field: {self.node.name.upper()}('%d: %s', n, x)"
        return compile_error("CQ0302", cause, self.node.span, help=way)

    def _literal(self, text: str) -> Expr:
        return Literal(VARCHAR, False, text, span=self.node.span)

    def _whole(self, number: int) -> Expr:
        return integer_literal(number, self.node.span)

    def _call(self, name: str, *args: Expr) -> Expr:
        return self.binder.call(name, args, self.node.span, [self.node] * len(args), self.node.name_span)
