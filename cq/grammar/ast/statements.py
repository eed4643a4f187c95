"""Statements, their parts, and the whole file."""

from __future__ import annotations

from typing import Literal, TypeAlias

from cq.errors import NOWHERE, Span
from cq.grammar.ast.literals import IntervalLiteral
from cq.grammar.ast.nodes import Node, node
from cq.grammar.ast.queries import Call, Expr, Literals, Parameter, Query, Relation, TypeName, Unary
from cq.records import field


@node
class Option(Node):
    """`key = value` in WITH. A bare word as value (`format = csv`) is a StringLiteral."""

    key: str
    value: OptionValue
    key_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


OptionValue: TypeAlias = Literals | Unary | Parameter | Call


@node
class ColumnDef(Node):
    """A column of CREATE. computed: `day AS expr`; then the type may be None."""

    name: str
    type: TypeName | None
    computed: Expr | None = None
    not_null: bool = False
    primary_key: bool = False
    default: Expr | None = None
    checks: tuple[Check, ...] = ()
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class Watermark(Node):
    """`WATERMARK FOR column [AS bound] [IDLE TIMEOUT idle]`. bound None: no delay."""

    column: str
    bound: Expr | None = None
    idle: IntervalLiteral | None = None
    column_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class PrimaryKey(Node):
    """`PRIMARY KEY (a, b)` as a separate element."""

    columns: tuple[str, ...]


@node
class Check(Node):
    """`[CONSTRAINT name] CHECK (condition)`, of a column or as a separate element."""

    condition: Expr
    name: str | None = None


TableElement: TypeAlias = ColumnDef | Watermark | PrimaryKey | Check


@node
class CreateRelation(Node):
    """CREATE STREAM, TABLE or SOURCE. elements: in the order written; empty when the schema is left out."""

    kind: Literal["STREAM", "TABLE", "SOURCE"]
    name: str
    elements: tuple[TableElement, ...] = ()
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    @property
    def columns(self) -> tuple[ColumnDef, ...]:
        return tuple(e for e in self.elements if isinstance(e, ColumnDef))

    @property
    def watermarks(self) -> tuple[Watermark, ...]:
        return tuple(e for e in self.elements if isinstance(e, Watermark))


@node
class CreateSink(Node):
    """elements: declared columns and key, empty when the schema comes from what is inserted."""

    name: str
    elements: tuple[TableElement, ...] = ()
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class CreateView(Node):
    """A named query."""

    name: str
    query: Query
    columns: tuple[str, ...] = ()
    if_not_exists: bool = False
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class CreateTrigger(Node):
    """`AFTER INSERT ON relation`. row: the name REFERENCING NEW ROW gives the event; `new` always works."""

    name: str
    relation: str
    body: tuple[TriggerStatement, ...]
    row: str | None = None
    when: Expr | None = None
    if_not_exists: bool = False
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
    relation_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class Assignment(Node):
    """`column = value` in SET."""

    column: str
    value: Expr
    column_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class OnConflict(Node):
    """`ON CONFLICT [(columns)] DO UPDATE SET assignments [WHERE …]`; without assignments DO NOTHING."""

    columns: tuple[str, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    where: Expr | None = None


@node
class Insert(Node):
    """`INSERT INTO target [(columns)] query`; a separate statement or part of a trigger. VALUES is a query."""

    target: str
    query: Query
    columns: tuple[str, ...] = ()
    conflict: OnConflict | None = None
    target_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
    column_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False, kw_only=True)

    def column_places(self) -> tuple[Span, ...]:
        """Where each of its columns is named; the whole statement if that is unknown."""
        return self.column_spans or (self.span,) * len(self.columns)


@node
class Update(Node):
    """`UPDATE table [AS alias] SET … [FROM relations] [WHERE …]`."""

    table: str
    assignments: tuple[Assignment, ...]
    relations: tuple[Relation, ...] = ()
    where: Expr | None = None
    alias: str | None = None
    table_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class Delete(Node):
    """`DELETE FROM table [AS alias] [USING relations] [WHERE …]`."""

    table: str
    relations: tuple[Relation, ...] = ()
    where: Expr | None = None
    alias: str | None = None
    table_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class IfBranch(Node):
    """`condition THEN body`."""

    condition: Expr
    body: tuple[TriggerStatement, ...]


@node
class If(Node):
    """branches: IF and each ELSIF.  otherwise: the body of ELSE."""

    branches: tuple[IfBranch, ...]
    otherwise: tuple[TriggerStatement, ...] = ()


@node
class Signal(Node):
    """Reject the event: `SIGNAL SQLSTATE 'sqlstate' [SET MESSAGE_TEXT = message]`."""

    sqlstate: str
    message: Expr | None = None


@node
class SetOption(Node):
    """`SET name = value`. A bare word as value is a StringLiteral."""

    name: str
    value: OptionValue
    name_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@node
class Explain(Node):
    """stage: None when the text does not name one."""

    statement: Insert | Query
    stage: Literal["LOGICAL", "STAGES", "PLACEMENT", "CODE", "CHANGELOG"] | None = None


TriggerStatement: TypeAlias = Update | Insert | Delete | If | Signal | Query
Statement: TypeAlias = (
    CreateRelation | CreateSink | CreateView | CreateTrigger | Insert | SetOption | Explain | Query
)  # fmt: skip


@node
class Comment(Node):
    """A comment as written, with its `--` or `/* */`. alone: no code precedes it on its line."""

    text: str
    alone: bool


@node
class Script(Node):
    """A whole file. description: the first comment block as plain text.  comments: all of them, in order; they are
    ignored in comparisons."""

    statements: tuple[Statement, ...]
    description: str = field(default="", compare=False)
    comments: tuple[Comment, ...] = field(default=(), compare=False)
