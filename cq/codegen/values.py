"""What generated code computes with: SQL values in locals, and the scope that makes them.

A `Val` names the locals that hold a value. Its null is a bool local, or None if the value is never NULL; while it is
NULL the other parts hold something harmless of the right type. A `Scope` writes one function: it knows where the row
comes from, which values the enclosing blocks have computed, and how to stop with an error.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial

from cq.codegen.writer import Fill, Writer, expr
from cq.errors import Span
from cq.lang.expressions import Expr
from cq.lang.functions.user import UserFunction
from cq.lang.types import DataType, Kind, Physical, content_of
from cq.records import dataclass, field
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.pipeline import Site


@dataclass(frozen=True, slots=True)
class Coded:
    """A text as a code of a dictionary: locals with the code, the dictionary's number, and how many texts it has.

    dictionary: 0 if the batch has texts without codes.
    """

    code: ast.expr
    dictionary: ast.expr
    texts: ast.expr


@dataclass(frozen=True, slots=True)
class Val:
    """A SQL value in generated code.

    parts: one local (BOOLEAN: a bool; REAL, DOUBLE: a float; others: an int) or two: for VARCHAR address and length,
    for a DECIMAL of more than 18 digits low word and high word.
    key: for a VARCHAR, its two words as a key of a table, if they are known already.
    coded: for a VARCHAR column of a source, its code; any code if the value is NULL.
    """

    type: DataType
    parts: tuple[ast.expr, ...]
    null: ast.expr | None = None
    key: tuple[ast.expr, ast.expr] | None = None
    coded: Coded | None = None

    @property
    def it(self) -> ast.expr:
        """The only part of a value that has one."""
        (only,) = self.parts
        return only


def default_parts(type_: DataType) -> tuple[ast.expr, ...]:
    """The parts of a NULL."""
    match type_.physical:
        case Physical.F64:
            return (ast.Constant(0.0),)
        case Physical.BYTES | Physical.I128:
            return (ast.Constant(0), ast.Constant(0))
        case _:
            return (ast.Constant(False if type_.kind is Kind.BOOLEAN else 0),)


def null_of(type_: DataType) -> Val:
    """NULL of a type."""
    return Val(type_, default_parts(type_), ast.Constant(True))


def words_of_value(value: int) -> tuple[int, int]:
    """The low and the high word of an integer of 128 bits."""
    return (value + 2**63) % 2**64 - 2**63, value >> 64


def high_low(value: Val) -> tuple[ast.expr, ast.expr]:
    """The high and the low word of a DECIMAL or an integer of either width."""
    if value.type.physical is Physical.I128:
        low, high = value.parts
        return high, low
    return expr("A >> 63", A=value.it), value.it


def value_words(value: Val) -> list[ast.expr]:
    """The words of a value that is not a text, for storing it: for a double its bits."""
    if value.type.is_float:
        return [expr("f64_bits(X)", X=value.it)]
    if value.type.kind is Kind.BOOLEAN:
        return [expr("pick(X, 1, 0)", X=value.it)]
    return list(value.parts)


def kept_parts(at: ast.expr, word: int, type_: DataType) -> list[ast.expr]:
    """The parts of a value whose words are in memory from this one on."""
    match type_.physical:
        case Physical.F64:
            return [expr("ld_f64(A, W)", A=at, W=word)]
        case Physical.I64:
            template = "ld_i64(A, W) != 0" if type_.kind is Kind.BOOLEAN else "ld_i64(A, W)"
            return [expr(template, A=at, W=word)]
        case _:
            return [expr("ld_i64(A, W)", A=at, W=word + half) for half in (0, 1)]


def any_null(values: Sequence[Val]) -> ast.expr | None:
    """TRUE when one of the values is NULL; None when none can be."""
    nulls = [v.null for v in values if v.null is not None]
    return None if not nulls else nulls[0] if len(nulls) == 1 else ast.BoolOp(ast.Or(), nulls)


def is_true(value: Val) -> ast.expr:
    """Whether a BOOLEAN is TRUE, as opposed to FALSE or NULL."""
    return value.it if value.null is None else expr("not N and IT", N=value.null, IT=value.it)


@dataclass(slots=True)
class Constants:
    """The bytes a kernel reads its literals from: words first, then the bytes of strings."""

    words: list[int] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    user_functions: dict[UserFunction, int] = field(default_factory=dict)
    _place: dict[object, int] = field(default_factory=dict)

    def word(self, bits: int) -> int:
        """Index of a word with this value."""
        if bits not in self._place:
            self._place[bits] = len(self.words)
            self.words.append(bits)
        return self._place[bits]

    def text(self, value: str | bytes) -> int:
        """Index of two words: the offset of the string's bytes from the table's start, and their length."""
        key = ("text", value)
        if key not in self._place:
            self._place[key] = len(self.words)
            content = content_of(value)
            self.words += [-1 - len(self.texts), len(content)]
            self.texts.append(content)
        return self._place[key]

    def table(self, name: str, content: bytes) -> int:
        """Index of a word: the offset of these bytes, the same for a name, from the table's start."""
        key = ("table", name)
        if key not in self._place:
            self._place[key] = len(self.words)
            self.words.append(-1 - len(self.texts))
            self.texts.append(content)
        return self._place[key]

    def user_function(self, function: UserFunction) -> int:
        """Index of the word that will hold the address of a user function (`UserCall`)."""
        if function not in self.user_functions:
            self.user_functions[function] = len(self.words)
            self.words.append(0)
        return self.user_functions[function]

    def pack(self) -> bytes:
        """The table; readable some bytes past the last string."""
        start = len(self.words) * 8
        offsets = []
        for text in self.texts:
            offsets.append(start)
            start += len(text)
        places = {place for key, place in self._place.items() if isinstance(key, tuple)}
        numbered = (offsets[-1 - w] if i in places else w for i, w in enumerate(self.words))
        head = b"".join((w & (2**64 - 1)).to_bytes(8, "little") for w in numbered)
        return head + b"".join(self.texts) + bytes(32)


@dataclass(slots=True)
class Sites:
    """The places of the query where data errors can happen, by number."""

    sites: list[Site] = field(default_factory=list)

    def number(self, text: str, span: Span, asked: bool = False, shown: DataType | None = None) -> int:
        site = Site(text, span.line, span.column, span.end_line, span.end_column, asked, shown)
        if site not in self.sites:
            self.sites.append(site)
        return self.sites.index(site)


Fail = Callable[[ErrorCode, int], None]
"""Writes what a function does when it stops with an error: (code, site)."""


@dataclass(slots=True)
class Scope:
    """One function being written: the writer, the current row, known values, and the way out on an error."""

    writer: Writer
    constants: Constants
    sites: Sites
    fail_with: Fail
    known: list[dict[object, Val]] = field(default_factory=lambda: [{}])
    prologue: dict[object, Val] = field(default_factory=dict)

    guard: ast.expr | None = None  # code that runs before its condition fails only if the condition holds
    in_lanes: bool = False  # a worker calls the function for one state after the other

    def fail(self, code: ErrorCode, text: str, span: Span, asked: bool = False, shown: Val | None = None) -> None:
        """Write the exit with an error at this place of the query.

        asked: as in `Site`.  shown: the value, not NULL, whose text stands for {} in the message.
        """
        site = self.sites.number(text, span, asked, shown.type if shown is not None else None)
        with self.writer.if_(self.guard) if self.guard is not None else nullcontext():
            if shown is not None:
                self._keep_failed(shown)
            self.fail_with(code, site)

    def _keep_failed(self, value: Val) -> None:
        """Write the value that fails to the state."""
        if value.type.physical is Physical.BYTES:
            address, length = value.parts
            self.writer.code("keep_failed_text(state, A, L)", A=address, L=length)
            return
        for word, part in zip((abi.STATE_ERROR_VALUE, abi.STATE_ERROR_VALUE_HIGH), value_words(value), strict=False):
            self.writer.code("st_i64(state, W, V)", W=word, V=part)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Values computed inside are unknown afterwards: for code that runs only sometimes."""
        self.known.append({})
        yield
        self.known.pop()

    @contextmanager
    def when(self, condition: Fill) -> Iterator[None]:
        """Inside, write code that runs if the condition holds."""
        with self.writer.if_(condition), self.block():
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Inside, write code that runs if the last condition did not hold."""
        with self.writer.otherwise(), self.block():
            yield

    def at_hand(self, key: object) -> Val | None:
        """A value computed before on every path to here."""
        return next((level[key] for level in reversed(self.known) if key in level), None)

    def remember(self, key: object, value: Val) -> Val:
        self.known[-1][key] = value
        return value

    def let(self, value: ast.expr, hint: str = "v") -> ast.expr:
        """The value in a local; names and constants stay as they are."""
        if isinstance(value, ast.Name | ast.Constant):
            return value
        return ast.Name(self.writer.let(value, hint), ast.Load())

    def variables(self, type_: DataType, nullable: bool, hint: str = "v") -> Val:
        """Fresh locals for a value of this type, set to NULL's parts (and to NULL, if it can be)."""
        parts = []
        for part in default_parts(type_):
            parts.append(ast.Name(self.writer.let(part, hint), ast.Load()))
        null = ast.Name(self.writer.let(ast.Constant(True), f"{hint}_null"), ast.Load()) if nullable else None
        return Val(type_, tuple(parts), null)

    def assign(self, target: Val, value: Val) -> None:
        """Copy a value into variables made by `variables`."""
        for to, part in zip(target.parts, value.parts, strict=True):
            assert isinstance(to, ast.Name)
            self.writer.set(to.id, part)
        if target.null is not None:
            assert isinstance(target.null, ast.Name)
            self.writer.set(target.null.id, value.null if value.null is not None else False)
        else:
            assert value.null is None or target.null is not None, "a NULL in a variable that cannot hold it"


@dataclass(slots=True)
class Row:
    """The columns of the current row: computed on first use, once on every path.

    given: expressions over them whose values are known too.
    """

    scope: Scope
    make: list[Callable[[], Val]]
    given: Mapping[Expr, Callable[[], Val]] = field(default_factory=dict)

    def column(self, index: int) -> Val:
        key = (id(self), index)
        found = self.scope.at_hand(key)
        return found if found is not None else self.scope.remember(key, self.make[index]())

    def with_added(self, width: int, added: Sequence[Val]) -> Row:
        """The first `width` columns of this row, followed by more."""
        own = (partial(self.column, i) for i in range(width))
        return Row(self.scope, [*own, *(partial(added.__getitem__, i) for i in range(len(added)))])
