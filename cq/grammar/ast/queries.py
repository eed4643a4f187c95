"""Expressions, relations and queries. One file: an expression may hold a query, and a query is made of expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from cq.errors import NOWHERE, Span
from cq.grammar.ast.literals import (
    BinaryLiteral,
    BooleanLiteral,
    DefaultValue,
    EveryColumn,
    IntervalLiteral,
    NullLiteral,
    NumberLiteral,
    StringLiteral,
    TypedLiteral,
)
from cq.grammar.ast.nodes import Node, children, node
from cq.records import field

# ---------------------------------------------------------------------------------------------------------- types


@node
class SimpleType(Node):
    """A type by name. name: upper case, as written (`INT` stays INT) but DOUBLE PRECISION is DOUBLE, CHARACTER VARYING
    is VARCHAR, TIMESTAMP WITH LOCAL TIME ZONE is TIMESTAMP_LTZ.  params: `DECIMAL(12, 2)` has (12, 2)."""

    name: str
    params: tuple[int, ...] = ()


@node
class ArrayType(Node):
    """`BIGINT ARRAY`, `ARRAY<BIGINT>`, `BIGINT[]`."""

    element: TypeName


@node
class RowField(Node):
    """One field of a RowType."""

    name: str
    type: TypeName


@node
class RowType(Node):
    """`ROW(a BIGINT, b VARCHAR)`, `STRUCT<a BIGINT>`."""

    fields: tuple[RowField, ...]


TypeName: TypeAlias = SimpleType | ArrayType | RowType

# ---------------------------------------------------------------------------------------------------- expressions


@node
class Parameter(Node):
    """`:name`."""

    name: str


@node
class ColumnRef(Node):
    """`name`, `qualifier.name`, or `qualifier.path.name`. quoted: the name was written in quotes (a string was perhaps
    meant)."""

    name: str
    qualifier: str | None = None
    path: tuple[str, ...] = ()
    quoted: bool = field(default=False, compare=False, repr=False, kw_only=True)
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


UnaryOperator: TypeAlias = Literal["-", "+"]
BinaryOperator: TypeAlias = Literal[
    "+", "-", "*", "/", "%", "||", "=", "<>", "<", "<=", ">", ">=", "->", "->>",
    "IS DISTINCT FROM", "IS NOT DISTINCT FROM",
]  # fmt: skip


@node
class Unary(Node):
    """A sign before an operand."""

    op: UnaryOperator
    operand: Expr


@node
class Binary(Node):
    """Arithmetic, `||`, comparison and steps into JSON. op_span: the operator itself."""

    op: BinaryOperator
    left: Expr
    right: Expr
    op_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class Not(Node):
    """`NOT operand`."""

    operand: Expr


@node
class Logical(Node):
    """AND or OR of two or more operands, left to right; no operand is a Logical of the same op."""

    op: Literal["AND", "OR"]
    operands: tuple[Expr, ...]


@node
class IsTest(Node):
    """`operand IS [NOT] NULL | TRUE | FALSE | UNKNOWN`."""

    operand: Expr
    what: Literal["NULL", "TRUE", "FALSE", "UNKNOWN"]
    negated: bool = False


@node
class Between(Node):
    """`operand [NOT] BETWEEN low AND high`."""

    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False


@node
class InList(Node):
    """`operand [NOT] IN (items)`."""

    operand: Expr
    items: tuple[Expr, ...]
    negated: bool = False


@node
class InQuery(Node):
    """`operand [NOT] IN (query)`."""

    operand: Expr
    query: Query
    negated: bool = False


Fits = Literal["LIKE", "ILIKE", "RLIKE", "GLOB", "SIMILAR TO"]


@node
class Like(Node):
    """`operand [NOT] LIKE pattern [ESCAPE escape]`, and GLOB and SIMILAR TO; `RLIKE` for a regular expression."""

    op: Fits
    operand: Expr
    pattern: Expr
    escape: Expr | None = None
    negated: bool = False


@node
class Exists(Node):
    """`EXISTS (query)`.

    possible: for `(a, b) IN (SELECT …)`, the rows that equal it, or may, since a NULL is compared; if there are only
    rows of the latter kind, the condition is NULL.
    """

    query: Query
    possible: Query | None = None


@node
class ScalarQuery(Node):
    """A parenthesised query used as a value."""

    query: Query


@node
class Cast(Node):
    """CAST, `::`; with `safe` TRY_CAST."""

    operand: Expr
    type: TypeName
    safe: bool = False


@node
class AtTimeZone(Node):
    """`operand AT TIME ZONE zone`."""

    operand: Expr
    zone: Expr


@node
class When(Node):
    """`WHEN condition THEN result`."""

    condition: Expr
    result: Expr


@node
class Case(Node):
    """Searched when `operand` is None, else simple."""

    operand: Expr | None
    branches: tuple[When, ...]
    otherwise: Expr | None = None


@node
class Extract(Node):
    """`EXTRACT(part FROM operand)`; part in upper case, as written."""

    part: str
    operand: Expr
    part_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class NamedArgument(Node):
    """`name => value`, among the arguments of a Call or TableFunction."""

    name: str
    value: Argument
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class Call(Node):
    """A scalar, aggregate or window function.

    star: `COUNT(*)` (then no arguments).  within: of WITHIN GROUP (ORDER BY …).  over: a window, or one's name.
    """

    name: str
    args: tuple[Expr | NamedArgument, ...] = ()
    star: bool = False
    distinct: bool = False
    order_by: tuple[OrderItem, ...] = ()
    nulls: Literal["IGNORE", "RESPECT"] | None = None
    filter: Expr | None = None
    over: WindowSpec | str | None = None
    within: tuple[OrderItem, ...] = ()
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
    over_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class ArrayLiteral(Node):
    """`ARRAY[items]`."""

    items: tuple[Expr, ...]


@node
class Subscript(Node):
    """`operand[index]`."""

    operand: Expr
    index: Expr


Literals: TypeAlias = (
    NumberLiteral | StringLiteral | BinaryLiteral | BooleanLiteral | NullLiteral | TypedLiteral | IntervalLiteral
    | ArrayLiteral
)  # fmt: skip
Expr: TypeAlias = (
    Literals | Parameter | ColumnRef | Unary | Binary | Not | Logical | IsTest | Between | InList | InQuery | Like
    | Exists | ScalarQuery | Cast | AtTimeZone | Case | Extract | Call | Subscript | DefaultValue
    | EveryColumn
)  # fmt: skip

# -------------------------------------------------------------------------------------------------------- windows


@node
class OrderItem(Node):
    """nulls_first: None when the text does not say."""

    expr: Expr
    descending: bool = False
    nulls_first: bool | None = None


@node
class FrameBound(Node):
    """offset: there exactly when kind is PRECEDING or FOLLOWING."""

    kind: Literal["UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING"]
    offset: Expr | None = None


@node
class Frame(Node):
    """`unit BETWEEN start AND end EXCLUDE exclude`."""

    unit: Literal["ROWS", "RANGE", "GROUPS"]
    start: FrameBound
    end: FrameBound
    exclude: Literal["CURRENT ROW", "GROUP", "TIES", "NO OTHERS"] | None = None


@node
class WindowSpec(Node):
    """The text between the parentheses of OVER. base: a named window it refines."""

    partition_by: tuple[Expr, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    frame: Frame | None = None
    base: str | None = None


@node
class NamedWindow(Node):
    """`name AS (…)` in the WINDOW clause."""

    name: str
    spec: WindowSpec


# ------------------------------------------------------------------------------------------------------ relations


@node
class TableRef(Node):
    """A stream, table or view by name. as_of: the time of `FOR SYSTEM_TIME AS OF`.  is_path: the name is that of a
    file.  timed_by: the event time that `TIMESTAMP BY` names."""

    name: str
    alias: str | None = None
    columns: tuple[str, ...] = ()
    as_of: Expr | None = None
    is_path: bool = False
    timed_by: ColumnRef | None = None
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
    alias_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class DerivedTable(Node):
    """`[LATERAL] (query) [AS] alias [(columns)]`."""

    query: Query
    alias: str | None = None
    columns: tuple[str, ...] = ()
    lateral: bool = False
    alias_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class TableArgument(Node):
    """`TABLE s [PARTITION BY …]` among the arguments of a TableFunction.

    source: a name or a query.  is_path: the name is that of a file.
    """

    source: str | Query
    partition_by: tuple[Expr, ...] = ()
    is_path: bool = False
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class Descriptor(Node):
    """`DESCRIPTOR(ts)`."""

    columns: tuple[str, ...]


@node
class RowCount(Node):
    """`ROWS 100` as a window size or slide."""

    count: Expr


Argument: TypeAlias = Expr | TableArgument | Descriptor | RowCount


@node
class TableFunction(Node):
    """A function in FROM: TUMBLE, HOP, CUMULATE, SESSION or one of the user's."""

    name: str
    args: tuple[Argument | NamedArgument, ...] = ()
    alias: str | None = None
    columns: tuple[str, ...] = ()
    lateral: bool = False
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
    alias_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class Unnest(Node):
    """`UNNEST(arrays) [WITH ORDINALITY] [AS] alias [(columns)]`."""

    arrays: tuple[Expr, ...]
    ordinality: bool = False
    alias: str | None = None
    columns: tuple[str, ...] = ()
    lateral: bool = False
    alias_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class Join(Node):
    """Two relations side by side. on or using or (CROSS, NATURAL, and ASOF with `match` alone) neither.  match: the
    MATCH_CONDITION of an ASOF join.  natural: by the names that both sides have.  within: how much earlier and how much
    later the right row may be, from ksqlDB's WITHIN.  kind_span: of the words before JOIN.  using_span: of USING with
    its names."""

    kind: Literal["INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI"]
    left: Relation
    right: Relation
    on: Expr | None = None
    using: tuple[str, ...] = ()
    asof: bool = False
    match: Expr | None = None
    natural: bool = False
    within: tuple[IntervalLiteral, ...] = ()
    kind_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
    using_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


Relation: TypeAlias = TableRef | DerivedTable | TableFunction | Unnest | Join

# -------------------------------------------------------------------------------------------------------- queries


@node
class SelectItem(Node):
    """`expr [AS alias]` in a select list."""

    expr: Expr
    alias: str | None = None
    alias_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class Star(Node):
    """`*` or `qualifier.*` in a select list; without the columns of `exclude`, and with those of `replace` replaced."""

    qualifier: str | None = None
    exclude: tuple[ColumnRef, ...] = ()
    replace: tuple[SelectItem, ...] = ()


@node
class GroupKeys(Node):
    """`(keys)` in GROUPING SETS, ROLLUP or CUBE: none, or several that belong together."""

    keys: tuple[Expr, ...]


@node
class GroupingSets(Node):
    """`GROUPING SETS (items)`, `ROLLUP(items)`, `CUBE(items)` in GROUP BY."""

    kind: Literal["GROUPING SETS", "ROLLUP", "CUBE"]
    items: tuple[GroupItem, ...]


GroupItem: TypeAlias = Expr | GroupKeys | GroupingSets


@node
class Select(Node):
    """relations: the comma list of FROM, empty without FROM.  distinct is true for DISTINCT ON as well.  group_all:
    `GROUP BY ALL`."""

    items: tuple[SelectItem | Star, ...]
    relations: tuple[Relation, ...] = ()
    where: Expr | None = None
    group_by: tuple[GroupItem, ...] = ()
    having: Expr | None = None
    windows: tuple[NamedWindow, ...] = ()
    qualify: Expr | None = None
    distinct: bool = False
    distinct_on: tuple[Expr, ...] = ()
    group_all: bool = False


@node
class Values(Node):
    """`VALUES (…), (…)`: one tuple of expressions per row."""

    rows: tuple[ValuesRow, ...]


@node
class ValuesRow(Node):
    """`(values)` among VALUES."""

    values: tuple[Expr, ...]


@node
class SetOperation(Node):
    """Two queries joined by UNION, INTERSECT or EXCEPT, with ALL or without. by_name: of UNION, columns go by name."""

    op: Literal["UNION", "INTERSECT", "EXCEPT"]
    all: bool
    left: QueryBody
    right: QueryBody
    by_name: bool = False


@node
class Cte(Node):
    """`name [(columns)] AS (query)` in WITH."""

    name: str
    query: Query
    columns: tuple[str, ...] = ()
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class Emit(Node):
    """every: there exactly when mode is EVERY."""

    mode: Literal["FINAL", "CHANGES", "EVERY"]
    every: IntervalLiteral | None = None


@node
class Query(Node):
    """A whole query. A body that is itself a Query is a parenthesised one with clauses of its own."""

    body: QueryBody
    ctes: tuple[Cte, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None
    emit: Emit | None = None


QueryBody: TypeAlias = Select | Values | SetOperation | Query


def below(node: Node) -> Iterator[Node]:
    """The node and everything in it, except inside queries there."""
    todo = [node]
    while todo:
        at = todo.pop()
        yield at
        if not isinstance(at, Query):
            todo.extend(children(at))
