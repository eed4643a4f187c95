"""Bound scalar expressions: typed trees over column positions. After the binder there are no names.

Every node knows its type and whether it can be NULL. Evaluation is strict and left to right, except for `And`, `Or`,
`Case` and `Coalesce`, which evaluate only the arguments they need: an error in an unneeded argument does not happen.
Spans say where in the query an expression is; equality ignores them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cq.errors import NOWHERE, Span
from cq.lang.types import BOOLEAN, DataType, Kind
from cq.lang.value_text import write_date, write_duration, write_instant, write_time, write_timestamp
from cq.records import dataclass, field, replace

if TYPE_CHECKING:
    from cq.lang.functions import Scalar, Signature

Value = Any  # bool | int | float | str | bytes | tuple | None, as cq.lang.types.DataType says


@dataclass(frozen=True, slots=True)
class Expr:
    """Base of all bound expressions."""

    type: DataType
    nullable: bool
    span: Span = field(default=NOWHERE, compare=False, kw_only=True)

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()

    def with_children(self, children: Sequence[Expr]) -> Expr:
        """The same node with other children."""
        assert not children
        return self


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """The value in position `index` of the input row. `name` is for people only."""

    index: int
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expr):
    """A constant. `value` is as in `DataType`; NULL is None. Equal constants have equal bits: 0.0 is not -0.0."""

    value: Value

    def _bits(self) -> object:
        return self.type, self.nullable, _bits(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._bits() == other._bits()

    def __hash__(self) -> int:
        return hash(self._bits())


def _bits(value: Value) -> Value:
    """The value by which constants are compared."""
    if isinstance(value, tuple):
        return tuple(map(_bits, value))
    return struct.pack("<d", value) if isinstance(value, float) else value


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A scalar function of the registry, resolved to one entry; the arguments already have its parameter types."""

    function: Scalar
    args: tuple[Expr, ...]

    @property
    def signature(self) -> Signature:
        """The types for which it was resolved."""
        from cq.lang.functions import Signature

        return Signature(tuple(a.type for a in self.args), self.type)

    @property
    def fails_itself(self) -> bool:
        """Whether it may end in a data error although its arguments have values."""
        constants = tuple(a.value if isinstance(a, Literal) else None for a in self.args)
        return self.function.can_fail(self.signature, constants)

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args

    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, args=tuple(children))


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """`arg` as `type`. A value that cannot be converted is a data error, or NULL when `try_`."""

    arg: Expr
    try_: bool = False

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)

    def with_children(self, children: Sequence[Expr]) -> Expr:
        (arg,) = children
        return replace(self, arg=arg)


@dataclass(frozen=True, slots=True)
class And(Expr):
    """Three-valued conjunction of two or more conditions, left to right, stopping at the first FALSE."""

    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args

    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, args=tuple(children))


@dataclass(frozen=True, slots=True)
class Or(Expr):
    """Three-valued disjunction of two or more conditions, left to right, stopping at the first TRUE."""

    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args

    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, args=tuple(children))


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    """TRUE when `arg` is NULL. Never NULL itself; NaN is not NULL."""

    arg: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)

    def with_children(self, children: Sequence[Expr]) -> Expr:
        (arg,) = children
        return replace(self, arg=arg)


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """The value beside the first condition that is TRUE, else `default`. Conditions are BOOLEAN; values have `type`."""

    branches: tuple[tuple[Expr, Expr], ...]
    default: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (*(e for branch in self.branches for e in branch), self.default)

    def with_children(self, children: Sequence[Expr]) -> Expr:
        *pairs, default = children
        return replace(self, branches=tuple(zip(pairs[::2], pairs[1::2], strict=True)), default=default)


@dataclass(frozen=True, slots=True)
class Coalesce(Expr):
    """The first argument that is not NULL; all have `type`."""

    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args

    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, args=tuple(children))


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node of the tree, parents first."""
    todo = [expr]
    while todo:
        e = todo.pop()
        yield e
        todo.extend(reversed(e.children))


def columns_of(*exprs: Expr) -> set[int]:
    """The input positions that the expressions read."""
    return {e.index for expr in exprs for e in walk(expr) if isinstance(e, Column)}


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`expr` rebuilt from the leaves up with `change` applied to every node. The parser limits the depth."""
    children = tuple(transform(c, change) for c in expr.children)
    return change(expr.with_children(children) if children and children != expr.children else expr)


def substitute(expr: Expr, exprs: Sequence[Expr]) -> Expr:
    """`expr` with every column replaced by the expression at its position: its meaning below a projection."""
    return transform(expr, lambda e: exprs[e.index] if isinstance(e, Column) else e)


def remap(expr: Expr, positions: Mapping[int, int]) -> Expr:
    """`expr` with columns moved to new positions."""
    return transform(expr, lambda e: replace(e, index=positions[e.index]) if isinstance(e, Column) else e)


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The conditions that must all be TRUE."""
    return tuple(c for a in expr.args for c in conjuncts(a)) if isinstance(expr, And) else (expr,)


def conjunction(conditions: Sequence[Expr]) -> Expr:
    """One condition that is TRUE when all are; TRUE for none."""
    match conditions:
        case []:
            return Literal(BOOLEAN, False, True)
        case [only]:
            return only
        case _:
            return And(BOOLEAN, any(c.nullable for c in conditions), tuple(conditions))


def can_fail(expr: Expr) -> bool:
    """Whether evaluating `expr` may end in a data error (overflow, division by zero, a bad cast)."""
    return any(
        (isinstance(e, Call) and e.fails_itself)
        or (isinstance(e, Cast) and not e.try_ and cast_can_fail(e.arg.type, e.type))
        for e in walk(expr)
    )


def cast_can_fail(source: DataType, target: DataType) -> bool:
    """Whether some value of `source` has no counterpart in `target`."""
    if source.element is not None and target.element is not None:
        return cast_can_fail(source.element, target.element)
    if Kind.BINARY in {source.kind, target.kind}:
        return (source.kind, target.kind) == (Kind.BINARY, Kind.VARCHAR)  # bytes that are not UTF-8
    if source == target or source.kind is Kind.NULL or target.kind is Kind.VARCHAR:
        return False
    if Kind.TIMESTAMP_LTZ in {source.kind, target.kind}:
        return source.kind is not target.kind  # a local time, or its instant, may exceed 64 bits
    if source.is_integer and target.is_integer:
        order = [Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT]
        return order.index(source.kind) > order.index(target.kind)
    if target.is_float and source.is_numeric:
        return False
    if {source.kind, target.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        return source.kind is Kind.DATE  # a far date has no microsecond count in 64 bits
    if source.kind is not Kind.VARCHAR and Kind.TIME in {source.kind, target.kind}:
        return False
    return not (target.kind is Kind.BOOLEAN and source.is_numeric)


def format_literal(value: Value, type_: DataType) -> str:
    """A constant as a person writes it in SQL."""
    if value is None:
        return "NULL"
    match type_.kind:
        case Kind.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case Kind.BINARY:
            return f"X'{value.hex().upper()}'"
        case Kind.VARCHAR:
            return "'" + str(value).replace("'", "''") + "'"
        case Kind.DECIMAL:
            digits = str(abs(value)).rjust(type_.scale + 1, "0")
            sign = "-" if value < 0 else ""
            return sign + (f"{digits[: -type_.scale]}.{digits[-type_.scale :]}" if type_.scale else digits)
        case Kind.INTERVAL:
            return f"INTERVAL '{value}' MICROSECOND"
        case Kind.INTERVAL_MONTH:
            return f"INTERVAL '{value}' MONTH"
        case Kind.DATE | Kind.TIME | Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ:
            return f"{type_} '{value}'"
        case Kind.ARRAY:
            assert type_.element is not None
            return f"ARRAY[{', '.join(format_literal(v, type_.element) for v in value)}]"
        case _:
            return repr(value)


def _writer(type_: DataType) -> Callable[[Any], str] | None:
    if type_.kind is Kind.TIMESTAMP_LTZ:
        return lambda value: write_instant(value, type_.zone)
    return _TIMES.get(type_.kind)


_TIMES = {
    Kind.DATE: write_date,
    Kind.TIME: write_time,
    Kind.TIMESTAMP: write_timestamp,
    Kind.INTERVAL: write_duration,
}


def format_expr(expr: Expr, names: Sequence[str] = ()) -> str:
    """`expr` as one line of SQL-like text; columns by `names`, or `$3` without a name."""

    def show(e: Expr) -> str:
        match e:
            case Column(index=i, name=n):
                return names[i] if i < len(names) else (n or f"${i}")
            case Literal(value=v, type=t):
                write = _writer(t) if v is not None else None
                return f"{t} '{write(v)}'" if write is not None else format_literal(v, t)
            case Call(function=f, args=args):
                shown = [show(a) for a in args]
                if not f.name.isidentifier() and len(args) == 2:
                    return f"({shown[0]} {f.name} {shown[1]})"
                return f"{f.name}({', '.join(shown)})"
            case Cast(arg=a, type=t, try_=soft):
                return f"{'TRY_' if soft else ''}CAST({show(a)} AS {t})"
            case And(args=args):
                return "(" + " AND ".join(show(a) for a in args) + ")"
            case Or(args=args):
                return "(" + " OR ".join(show(a) for a in args) + ")"
            case IsNull(arg=a):
                return f"({show(a)} IS NULL)"
            case Coalesce(args=args):
                return f"COALESCE({', '.join(show(a) for a in args)})"
            case Case(branches=branches, default=d):
                whens = " ".join(f"WHEN {show(c)} THEN {show(v)}" for c, v in branches)
                return f"CASE {whens} ELSE {show(d)} END"
            case _:
                raise AssertionError(f"an expression of unknown kind: {type(e).__name__}")

    return show(expr)
