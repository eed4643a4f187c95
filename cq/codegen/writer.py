"""Writes the source of a stage: Python statements as an `ast`, from templates of ours.

A template is a literal in this package. Upper-case names in it are holes; they are filled with `ast` expressions, ints,
or names this writer made. No part of a query ever passes through a template: literals and strings reach a kernel
through its constants, identifiers are made here (`fresh`), and the finished module is checked as it is printed
(printing.py). Marks (`line`) become comments with the query's line numbers. The text contains everything there is to
know of the code, and alone decides which object code fits it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from functools import lru_cache
from typing import Any

from cq.codegen.nesting import flat
from cq.codegen.printing import LINE_MARK, NAME, Printer
from cq.records import dataclass, field
from cq.runtime.layout.words import Word

Fill = ast.expr | int | float | bool | str  # a str is a name of ours

_HOLE = re.compile(r"[A-Z][A-Z0-9_]*")

Maker = Callable[[Mapping[str, Fill]], Any]  # makes a part of a copy of a template from the fills of its holes


@lru_cache(maxsize=4096)
def _template(text: str) -> tuple[Maker, ...]:
    """Closures that make the statements of a template: a visitor of its nodes takes four times as long."""
    return tuple(_maker_of(statement) for statement in ast.parse(text).body)


def _maker(part: object) -> Maker | None:
    """Makes copies of this part of a template; None if all copies share it, because nothing changes it."""
    if isinstance(part, ast.Name) and _HOLE.fullmatch(part.id):
        return _hole(part.id, part.ctx)
    if isinstance(part, list):
        return _list_of(part)
    return _maker_of(part) if isinstance(part, ast.stmt) or (isinstance(part, ast.AST) and _has_holes(part)) else None


def _has_holes(part: ast.AST) -> bool:
    return any(isinstance(node, ast.Name) and _HOLE.fullmatch(node.id) for node in ast.walk(part))


def _hole(name: str, context: ast.expr_context) -> Maker:
    def fill(fills: Mapping[str, Fill]) -> ast.expr:
        made = as_expr(fills[name])
        if isinstance(made, ast.Name) and type(made.ctx) is not type(context):
            return ast.Name(made.id, context)
        return made

    return fill


def _list_of(parts: list[Any]) -> Maker:
    """Makes a new list for every copy: more may be written into a block."""
    makers = [(i, make) for i, part in enumerate(parts) if (make := _maker(part)) is not None]

    def filled(fills: Mapping[str, Fill]) -> list[Any]:
        made = parts.copy()
        for i, make in makers:
            made[i] = make(fills)
        return made

    return filled


def _maker_of(node: ast.AST) -> Maker:
    """Makes copies of a node."""
    values = _list_of([getattr(node, name) for name in node._fields])
    if isinstance(node, ast.stmt):
        statement = type(node)
        return lambda fills: statement(*values(fills), lineno=0)
    kind = type(node)
    return lambda fills: kind(*values(fills))


def as_expr(fill: Fill) -> ast.expr:
    """The fill of a hole as an expression. A str must be a name as `fresh` makes them."""
    if isinstance(fill, ast.expr):
        return fill
    if isinstance(fill, str):
        return _name(fill)
    if isinstance(fill, IntEnum):
        return ast.Constant(Word(fill, fill.name))
    if isinstance(fill, int) and not isinstance(fill, bool | Word) and fill < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-fill)) if fill > -(2**63) else _lowest()
    return ast.Constant(fill)


@lru_cache(maxsize=4096)
def _name(name: str) -> ast.expr:
    assert NAME.fullmatch(name), f"not a name of ours: {name!r}"
    return ast.Name(name, ast.Load())


def _lowest() -> ast.expr:
    """-2^63: its positive counterpart is not an i64."""
    return ast.BinOp(ast.UnaryOp(ast.USub(), ast.Constant(2**63 - 1)), ast.Sub(), ast.Constant(1))


def expr(template: str, **fills: Fill) -> ast.expr:
    """One expression from a template."""
    (make,) = _template(template)
    made = make(fills)
    assert isinstance(made, ast.Expr)
    return made.value


def word_at(structures: Fill, number: int, size: int, word: int) -> ast.expr:
    """A word of the structure with this number in an array of structures of `size` words."""
    if number == 0:
        return expr("ld_i64(S, W)", S=structures, W=word)
    return expr("ld_i64(S, N * SIZE + W)", S=structures, N=number, SIZE=size, W=word)


@dataclass(slots=True)
class Writer:
    """Collects the functions of one module. `names` counts identifiers, so equal input gives equal text."""

    functions: list[ast.FunctionDef] = field(default_factory=list)
    signatures: dict[str, str] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)
    _blocks: list[list[ast.stmt]] = field(default_factory=list)
    _prologue: list[ast.stmt] = field(default_factory=list)
    _read: dict[tuple[str, int], str] = field(default_factory=dict)
    _count: int = 0

    def fresh(self, hint: str = "v") -> str:
        """A name not used before: the hint, a word of ours, and a number."""
        self._count += 1
        return f"{hint}{self._count}"

    @contextmanager
    def function(self, name: str, arguments: Iterable[str]) -> Iterator[None]:
        """Code written inside becomes a function of i64s that returns an i64."""
        names = list(arguments)
        body: list[ast.stmt] = []
        assert not self._blocks, "a function inside a function"
        prologue: list[ast.stmt] = []
        self._prologue = prologue
        self._read = {}
        self._blocks.append(body)
        yield
        self._blocks.pop()
        body = flat([*prologue, *body], lambda: self.fresh("nest"))
        spec = ast.arguments(
            posonlyargs=[], args=[ast.arg(a) for a in names], kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        self.functions.append(ast.FunctionDef(name, spec, body, decorator_list=[], lineno=0))
        self.signatures[name] = f"i64({', '.join(['i64'] * len(names))})"

    def adopt(self, definition: ast.FunctionDef, signature: str) -> None:
        """Add a function written elsewhere: the body of a registry entry. It is checked with the rest."""
        self.functions.append(definition)
        self.signatures[definition.name] = signature

    def code(self, template: str, **fills: Fill) -> None:
        """Append the statements of a template to the current block."""
        self._blocks[-1].extend(make(fills) for make in _template(template))

    def let(self, value: ast.expr, hint: str = "v") -> str:
        """Append an assignment of `value` to a fresh name; return the name."""
        name = self.fresh(hint)
        self._blocks[-1].append(ast.Assign([ast.Name(name, ast.Store())], value, lineno=0))
        return name

    def hoist(self, value: ast.expr, hint: str = "v") -> str:
        """Assign `value` to a fresh name at the start of the current function; return the name."""
        name = self.fresh(hint)
        self._prologue.append(ast.Assign([ast.Name(name, ast.Store())], value, lineno=0))
        return name

    def word(self, argument: str, word: int, hint: str) -> str:
        """A word of the memory that an argument of the current function points to, read once at the start.

        Returns the name, the same for every request for the word; it is never assigned again.
        """
        known = (argument, int(word))
        if known not in self._read:
            self._read[known] = self.hoist(expr("ld_i64(A, W)", A=argument, W=word), hint)
        return self._read[known]

    def preset(self, name: str) -> None:
        """Set a name of the current function to 0 until it is assigned."""
        self._prologue.append(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(0), lineno=0))

    def set(self, name: str, value: Fill) -> None:
        """Append an assignment to an existing name."""
        self._blocks[-1].append(ast.Assign([ast.Name(name, ast.Store())], as_expr(value), lineno=0))

    @contextmanager
    def _block(self, body: list[ast.stmt]) -> Iterator[None]:
        self._blocks.append(body)
        yield
        self._blocks.pop()
        if not body:
            body.append(ast.Pass())

    def here(self) -> list[ast.stmt]:
        """The current block, for `into`."""
        return self._blocks[-1]

    @contextmanager
    def into(self, block: list[ast.stmt]) -> Iterator[None]:
        """Code written inside goes to the end of an earlier block of the current function."""
        with self._block(block):
            yield

    @contextmanager
    def if_(self, condition: Fill) -> Iterator[None]:
        """Code written inside runs if `condition` holds."""
        statement = ast.If(as_expr(condition), [], [])
        self._blocks[-1].append(statement)
        with self._block(statement.body):
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Code written inside runs if the condition of the last `if_` does not hold."""
        statement = self._blocks[-1][-1]
        assert isinstance(statement, ast.If) and not statement.orelse
        with self._block(statement.orelse):
            yield

    @contextmanager
    def while_(self, condition: Fill) -> Iterator[None]:
        """Code written inside repeats while `condition` holds."""
        statement = ast.While(as_expr(condition), [], [])
        self._blocks[-1].append(statement)
        with self._block(statement.body):
            yield

    @contextmanager
    def for_(self, name: str, first: Fill, last: Fill) -> Iterator[None]:
        """Code written inside runs for `name` = first .. last - 1."""
        steps = ast.Call(ast.Name("range", ast.Load()), [as_expr(first), as_expr(last)], [])
        statement = ast.For(ast.Name(name, ast.Store()), steps, [], [], lineno=0)
        self._blocks[-1].append(statement)
        with self._block(statement.body):
            yield

    def line(self, number: int, what: str) -> None:
        """Mark the code that follows with this line of the query, if there is one; `what` is a word of ours."""
        if not number:
            return
        assert NAME.fullmatch(what), what
        if what not in self.marks:
            self.marks.append(what)
        self.code(f"{LINE_MARK}(NUMBER, WHAT)", NUMBER=number, WHAT=self.marks.index(what))

    def finish(self, globals_: Iterable[str]) -> str:
        """The module's source, checked: only `globals_`, own functions, own locals and named constants are named."""
        for function in self.functions:
            _drop_idle(function.body)
        return Printer({*globals_, "range", "int", "float", "bool"}, self.marks).module(self.functions)


def _drop_idle(body: list[ast.stmt]) -> None:
    """Remove empty sides of an `if`, and an `if` whose only side was empty, unless its condition calls."""
    for statement in body:
        for inner in (getattr(statement, "body", None), getattr(statement, "orelse", None)):
            if inner:
                _drop_idle(inner)
        if isinstance(statement, ast.If) and _is_idle(statement.orelse):
            statement.orelse.clear()
    body[:] = [s for s in body if not _does_nothing(s)] or [ast.Pass()]


def _is_idle(body: list[ast.stmt]) -> bool:
    return len(body) == 1 and isinstance(body[0], ast.Pass)


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If) and _is_idle(statement.body) and not statement.orelse:
        return not any(isinstance(n, ast.Call) for n in ast.walk(statement.test))
    return isinstance(statement, ast.Pass)
