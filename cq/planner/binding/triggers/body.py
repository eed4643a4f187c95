"""CREATE TRIGGER: its body as the steps of a transaction.

Every trigger is bound over its own frame (cq/planner/plan/transactions.py): the columns of its stream, then those of
the rows that its statements name. `transactions.py` joins triggers that share tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from cq.errors import NOWHERE, CompileError, Diagnostic, Span, both, compile_error
from cq.errors import each as each_of
from cq.grammar import ast
from cq.lang.expressions import Case, Coalesce, Column, Expr, Literal, Or, columns_of
from cq.lang.types import BOOLEAN, VARCHAR, DataType
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.catalog import broken
from cq.planner.binding.conversion import settled
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.scope import Relation, Visible, projection, visible_columns
from cq.planner.binding.tables import DeclaredTable, default_of, is_null, named_columns, or_null, stored
from cq.planner.binding.triggers.arrays import SEVERAL, NamedRow, PlacedAccess, compared, each, elements, gather
from cq.planner.binding.triggers.correlated import in_order
from cq.planner.binding.triggers.inserts import insert
from cq.planner.binding.triggers.mistakes import (
    MOST_ROWS,
    always_null,
    key_changed,
    no_keyed_table,
    not_to_be_filled,
    of_text_keys,
    sink_without_a_key,
    too_many,
    without_a_key,
)
from cq.planner.binding.triggers.names import TriggerNames
from cq.planner.binding.triggers.outputs import Outputs, RowTarget
from cq.planner.binding.triggers.queries import (
    BY_A_VIEW,
    NO_TABLES,
    OF_A_VALUE,
    OF_ROWS,
    ROW_BY_ROW,
    SUM_OF_SEVERAL,
    ArraySource,
    given,
    no_members,
    no_row,
    plain,
    refuse_aggregates,
    refuse_in_when,
    source,
    there_of_array,
    written_out,
)
from cq.planner.binding.triggers.row_keys import (
    Several,
    each_element,
    each_key,
    keyed,
    no_key,
    of_delete,
    of_exists,
    of_select,
    of_update,
    of_value,
)
from cq.planner.binding.triggers.several_keys import Among, Key, among, row_by_row
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.transactions import (
    Access,
    Choose,
    Delete,
    Emit,
    Local,
    Program,
    Read,
    Reject,
    Step,
    Update,
    every,
    frame_starts,
    of_line,
)
from cq.records import dataclass, field, replace

NO_OLD = ("old", 'AFTER INSERT has no row "old": only "new", the row of the event')
BODY = Clause(
    "a trigger",
    over=BY_A_VIEW,
    advice="keep the aggregate in a table: UPDATE t SET n = n + 1 WHERE k = new.k; EXISTS (SELECT …) tests for a row",
)


@dataclass(frozen=True, slots=True)
class BoundTrigger:
    """A trigger over its own frame. tables: those it uses, by name; accesses refer to them by number.

    outputs of the program: none if the body selects nothing; then the events it accepts are its rows.
    targets: the streams and sinks that it inserts rows into.  warnings: of its statements.
    """

    program: Program
    accesses: tuple[Access | Local, ...]
    tables: tuple[str, ...]
    stream: LogicalNode
    relation: str
    span: Span
    targets: tuple[RowTarget, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


def bind_trigger(node: ast.CreateTrigger, stream: Relation, names: TriggerNames) -> BoundTrigger:
    """The trigger's program. CQ0411 for a row of a table that is not named by its key."""
    shown = [c for c in stream.columns if not c.hidden]
    rows = projection(stream.node, [c.expr for c in shown], [c.name for c in shown], node.relation_span)
    body = BodyBinder(node, rows, names)
    program = body.program()
    used, targets = tuple(body.used), tuple(body.targets.values())
    warnings = tuple(dict.fromkeys(body.warnings))  # a statement that names several rows is bound once for each
    return BoundTrigger(program, tuple(body.accesses), used, rows, node.relation, node.name_span, targets, warnings)


@dataclass(slots=True)
class TriggerCalls(SelectCalls):
    """Sub-queries in a trigger: values and existence of the row with a key."""

    body: BodyBinder = field(kw_only=True)

    def bind_query(self, node: ast.ScalarQuery | ast.InQuery | ast.Exists, binder: ExprBinder) -> Expr:
        if isinstance(node, ast.InQuery):
            raise no_members(node)
        return self.body.sub_query(node, binder)


@dataclass(slots=True)
class BodyBinder:
    """Binds one trigger. pending: reads needed before the statement being bound."""

    node: ast.CreateTrigger
    stream: LogicalNode
    names: TriggerNames
    accesses: list[Access | Local] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    pending: list[Step] = field(default_factory=list)
    outputs: Outputs = field(default_factory=Outputs)
    targets: dict[str, RowTarget] = field(default_factory=dict)
    warnings: list[Diagnostic] = field(default_factory=list)
    end: int = 0

    @property
    def declared(self) -> Mapping[str, DeclaredTable]:
        return self.names.tables

    def program(self) -> Program:
        self.end = len(self.stream.schema)
        when, steps = both(self.when, partial(self.steps, self.node.body))
        if self.outputs.fields is None:
            steps = (*steps, Emit(()))
        return Program(self.node.name, when, self.outputs.aligned(steps), self.outputs.settled())

    def when(self) -> Expr | None:
        """The condition of WHEN, if there is one."""
        if self.node.when is None:
            return None
        each_of(refuse_in_when, (n for n in ast.walk(self.node.when) if isinstance(n, ast.InQuery)))
        condition = self.binder(self.event()).condition(self.node.when, "the condition of WHEN")
        if self.taken():
            raise compile_error(
                "CQ0502", NO_TABLES, self.node.when.span,
                help="test it in the body: IF condition THEN … END IF",
            )  # fmt: skip
        return condition

    # ------------------------------------------------------------------------------------------------------- scopes

    def event(self) -> Relation:
        """The columns of the event, by its name, `new`, the stream's name, or none. All may be NULL: for triggers on
        several streams an event has only the columns of one."""
        names = [n for n in (self.node.row, "new", self.node.relation) if n is not None]
        columns = []
        for v in visible_columns(self.stream, None):
            expr = replace(v.expr, nullable=True)
            columns += [replace(v, expr=expr, qualifier=n) for n in dict.fromkeys(names)]
        title = f'the event of "{self.node.relation}"'
        return Relation(self.stream, tuple(columns), title, within="this trigger", absent=(NO_OLD,))

    def binder(self, relation: Relation) -> ExprBinder:
        return ExprBinder(relation, self.names.parameters, BODY, TriggerCalls({}, body=self))

    def gathering(self, relation: Relation) -> tuple[ExprBinder, list[AggregateCall]]:
        """A binder that collects aggregates, and the list of those it collected."""
        calls = TriggerCalls({}, body=self)
        return ExprBinder(relation, self.names.parameters, SEVERAL, calls), calls.aggregates

    def beside(self, table: str, alias: str | None, start: int, outer: Relation) -> Relation:
        """The columns of a table's row, which take precedence, beside those known outside."""
        fields = self.declared[table].table.fields
        own = []
        for n, f in enumerate(fields):
            own.append(Visible(f.name, alias or table, Column(f.type, True, start + 1 + n, f.name)))
        names = {f.name for f in fields}
        others = (replace(c, needs_qualifier=c.needs_qualifier or c.name in names) for c in outer.columns)
        kept = tuple(c for c in others if c.qualifier != (alias or table))
        return replace(outer, columns=(*own, *kept), title=f'table "{table}"')

    def table(self, name: str, span: Span, changed: bool = False) -> str:
        if self.names.is_broken(name):
            raise broken(name, span)
        if name in self.declared:
            return name
        if self.names.is_sink(name):
            raise sink_without_a_key(name, span)
        if self.gets_other_rows(name):
            is_made = name == self.node.name or self.names.is_made(name)
            raise without_a_key(name, span, self.node, is_made, changed)
        raise no_keyed_table(name, span, self.declared)

    def target(self, name: str, span: Span) -> RowTarget | None:
        """The stream or sink with that name, if triggers insert rows into it; else None."""
        found = self.names.target(name, span, self.node, self.stream)
        if found is not None:
            self.targets[name] = found
        elif self.gets_other_rows(name):
            raise not_to_be_filled(name, span)
        return found

    def gets_other_rows(self, name: str) -> bool:
        """Whether the name is a stream or view into which no trigger inserts."""
        if self.names.is_broken(name) or name in self.declared:
            return False
        return name == self.node.name or self.names.is_made(name) or self.names.is_relation(name)

    # ----------------------------------------------------------------------------------------------------- accesses

    def fresh(self, table: str) -> int:
        """A new access of the table, with its key still to be set."""
        if table not in self.used:
            self.used.append(table)
        self.accesses.append(Access(self.used.index(table), ()))
        start, self.end = self.end, self.end + 1 + len(self.declared[table].table.fields)
        return start

    def local(self, type_: DataType) -> Column:
        """A new local, as a column of the frame."""
        self.accesses.append(Local(type_))
        self.end += 1
        return Column(type_, True, self.end - 1)

    def of_event(self, number: int) -> bool:
        """Whether the key of an access depends on the event alone."""
        access = self.accesses[number]
        return isinstance(access, Access) and self.is_of_event(*access.key)

    def is_of_event(self, *values: Expr) -> bool:
        """Whether these values depend on the event alone."""
        return all(c < len(self.stream.schema) for c in columns_of(*values))

    def is_once(self, column: int) -> bool:
        """Whether a column of the frame belongs to an access whose key depends on the event alone."""
        number = max(n for n, at in enumerate(self.starts()) if at <= column)
        return self.of_event(number)

    def settle(self, start: int, table: str, key: tuple[Expr, ...], span: Span, several: Several) -> PlacedAccess:
        """Give this key to the last access made outside of sub-queries, and read it before the steps that need its row.

        Reuse an earlier access if it is certainly the same row. CQ0103 if the table has too many accesses, CQ0411 if
        the row would have to be read before its key is known.
        """
        number = next(n for n, at in enumerate(self.starts()) if at == start)
        access = Access(self.used.index(table), key)
        if number == len(self.accesses) - 1 and self.is_of_event(*key):
            for n, other in enumerate(self.accesses[:-1]):
                if other == access:
                    at = self.starts()[n]
                    self.accesses.pop()
                    self.end = start
                    self.pending.append(Read(n))
                    return PlacedAccess(n, at, start)
        named = sum(isinstance(a, Access) and a.table == access.table for a in self.accesses)
        if named > MOST_ROWS:
            raise too_many(f'this is row {MOST_ROWS + 1} of "{table}"', span, told=named > MOST_ROWS + 1)
        self.accesses[number] = access
        before, behind, late = in_order(self.pending, self.frame_columns(number), self.key_of, self.frame_columns)
        if late & columns_of(*key):
            raise no_key(self.declared[table].table, span, several)
        again = (Read(number),) if behind else ()  # the row read earlier may be this one
        self.pending = [*before, Read(number), *behind, *again]
        return PlacedAccess(number, start, start)

    def key_of(self, number: int) -> tuple[Expr, ...]:
        access = self.accesses[number]
        return access.key if isinstance(access, Access) else ()

    def frame_columns(self, number: int) -> range:
        """The columns of an access or a local in the frame."""
        starts = (*self.starts(), self.end)
        return range(starts[number], starts[number + 1])

    def starts(self) -> tuple[int, ...]:
        """The start of each access in the frame."""
        return frame_starts(len(self.stream.schema), [self.declared[n].table for n in self.used], self.accesses)

    def row(
        self,
        table: str,
        alias: str | None,
        where: ast.Expr | None,
        outer: Relation,
        span: Span,
        several: Several,
        *values: ast.Expr,
    ) -> NamedRow:
        """The row that a WHERE names, the rest of the condition, and the given values bound beside it. several: how to
        write the statement for several rows."""
        start = self.fresh(table)
        binder = self.binder(self.beside(table, alias, start, outer))
        made = [settled(binder.bind(v)) for v in values]
        condition = None if where is None else self.where(table, alias, where, binder)
        at = where.span if where is not None else span
        key, rest = keyed(self.declared[table].table, start, condition, at, several)
        placed = self.settle(start, table, key, at, several)
        rest = None if rest is None else placed.over(rest)
        return NamedRow(placed.access, placed.start, tuple(map(placed.over, made)), rest)

    def where(self, table: str, alias: str | None, node: ast.Expr, binder: ExprBinder) -> Expr:
        """The condition that names a row of a table."""
        try:
            return binder.condition(node, "the condition of WHERE")
        except CompileError as error:
            raise of_text_keys(error, self.key(table, alias), self.declared[table].table, node, binder) from None

    def ways(self, table: str, alias: str | None, where: ast.Expr | None) -> tuple[ast.Expr | None, ...]:
        """A WHERE for each row that this one names."""
        found = row_by_row(where, self.key(table, alias), MOST_ROWS)
        if isinstance(found, int):
            assert where is not None, "no condition names one row"
            raise too_many(f'this condition names {found} of "{table}"', where.span)
        return found

    def key(self, table: str, alias: str | None) -> Key:
        """The key of a table as given by a statement."""
        declared = self.declared[table].table
        return Key({declared.fields[c].name for c in declared.key}, {alias or table})

    def sub_query(self, node: ast.ScalarQuery | ast.Exists, binder: ExprBinder) -> Expr:
        """A value of the row with a key, NULL if there is none; or whether there is one."""
        exists = isinstance(node, ast.Exists)
        select = plain(node.query, OF_A_VALUE)
        several = source(select)
        if several is not None and exists:
            raise there_of_array(node.span)
        if several is not None:
            return self.gathered(select, several, binder.relation, node.span)
        table, alias = self.read(select, node.query.span)
        ways = self.ways(table, alias, select.where)
        if exists:
            rows = (self.row(table, alias, w, binder.relation, node.span, of_exists) for w in ways)
            found = tuple(row.exists for row in rows)
            return found[0] if len(found) == 1 else Or(BOOLEAN, False, found, span=node.span)
        items = tuple(i.expr for i in select.items if isinstance(i, ast.SelectItem))
        if len(items) != 1 or len(select.items) != 1:
            raise compile_error("CQ0502", "a scalar sub-query selects one column", node.span, help="name it")
        if len(ways) > 1:
            raise compile_error(
                "CQ0502", "a scalar sub-query reads one row, but this one names several", node.span,
                help=f"gather them: ({SUM_OF_SEVERAL})",
            )  # fmt: skip
        row = self.row(table, alias, select.where, binder.relation, node.span, of_value, *items)
        (value,) = row.values
        if row.condition is None and isinstance(value, Column) and value.index > row.start:
            return value
        return Case(value.type, True, ((row.there, value),), Literal(value.type, True, None), span=node.span)

    def gathered(self, select: ast.Select, of: ArraySource, outer: Relation, span: Span) -> Expr:
        """A value aggregated from the rows that elements of arrays name."""
        items = [i.expr for i in select.items if isinstance(i, ast.SelectItem)]
        if len(items) != 1 or len(select.items) != 1:
            raise compile_error("CQ0502", "a scalar sub-query selects one column", span, help="name it")
        (value,) = gather(self, select, of, items, outer, span)
        return value

    def selected(self, query: ast.Query, way: str) -> ast.Select:
        """A SELECT of items, FROM and WHERE, with its stars expanded. CQ0502, with this fix, for any other query."""
        select = plain(query, way)
        own = tuple(f.name for f in self.stream.schema.fields)
        columns = {name: own for name in (self.node.row, "new", self.node.relation) if name is not None}
        match select.relations:
            case ():
                columns[""] = own
            case (ast.TableRef(name=table, alias=alias),) if table in self.declared:
                columns[alias or table] = columns[""] = tuple(f.name for f in self.declared[table].table.fields)
        return written_out(select, columns)

    def read(self, select: ast.Select, span: Span) -> tuple[str, str | None]:
        """The table and alias of a SELECT. CQ0502 unless it reads just the row of a keyed table."""
        match select.relations:
            case (ast.TableRef(as_of=None, columns=()) as ref,):
                return self.table(ref.name, ref.name_span), ref.alias
        raise no_row(select, span)

    # --------------------------------------------------------------------------------------------------- statements

    def steps(self, body: Sequence[ast.TriggerStatement]) -> tuple[Step, ...]:
        """The steps of all statements; if some are wrong, the errors of each."""
        return tuple(step for own in each_of(self.line, body) for step in own)

    def line(self, statement: ast.TriggerStatement) -> tuple[Step, ...]:
        """The steps of a statement, with its line and the reads that it needs."""
        self.pending = []
        try:
            own = self.statement(statement)
        except CompileError:
            self.outputs.unknown |= isinstance(statement, ast.Query) and self.outputs.fields is None
            raise
        return of_line((*self.taken(), *own), statement.span.line)

    def taken(self) -> tuple[Step, ...]:
        """Take the pending reads."""
        reads, self.pending = tuple(self.pending), []
        return reads

    def statement(self, node: ast.TriggerStatement) -> tuple[Step, ...]:
        match node:
            case ast.Update():
                return self.update(node)
            case ast.Insert():
                return insert(self, node)
            case ast.Delete():
                return self.delete(node)
            case ast.If():
                return (self.choose(node.branches, node.otherwise),)
            case ast.Signal():
                return (self.signal(node),)
            case ast.Query():
                return self.select(node)

    def update(self, node: ast.Update) -> tuple[Step, ...]:
        match node.relations:
            case ():
                return self.each_row(node, partial(self.update_row, node, self.event()))
            case (ast.Unnest() as arrays,):
                found = elements(self, arrays, self.event())
                return each(self, found, lambda: self.each_row(node, partial(self.update_row, node, found.relation)))
        raise compile_error(
            "CQ0501", "UPDATE … FROM in a trigger is only supported for UNNEST", node.relations[0].span,
            help="read the other row in a sub-query: SET x = (SELECT y FROM t WHERE t.key = …)",
        )  # fmt: skip

    def delete(self, node: ast.Delete) -> tuple[Step, ...]:
        match node.relations:
            case ():
                members = among(node.where, self.key(self.table(node.table, node.table_span, changed=True), node.alias))
                if members is None:
                    return self.each_row(node, partial(self.delete_row, node, self.event()))
                found = elements(self, members.arrays, self.event())
                return each(self, found, lambda: self.delete_members(node, members, found.relation))
            case (ast.Unnest() as arrays,):
                found = elements(self, arrays, self.event())
                return each(self, found, lambda: self.each_row(node, partial(self.delete_row, node, found.relation)))
        raise compile_error(
            "CQ0501", "DELETE … USING in a trigger is only supported for UNNEST", node.relations[0].span,
            help="read the other row in a sub-query: WHERE k = (SELECT y FROM t WHERE t.key = …)",
        )  # fmt: skip

    def delete_members(self, node: ast.Delete, members: Among, elements: Relation) -> tuple[Step, ...]:
        outer, where = compared(self, members, elements)
        return self.each_row(replace(node, where=where), partial(self.delete_row, node, outer), alone=True)

    def each_row(
        self, node: ast.Update | ast.Delete, change: Callable[[str, ast.Expr | None], Step], alone: bool = False
    ) -> tuple[Step, ...]:
        """The change of each row that a statement names, with the reads that it needs. alone: no other row of the table
        may be read, since the row of the next element is changed after this one."""
        table = self.table(node.table, node.table_span, changed=True)
        ways = self.ways(table, node.alias, node.where)
        steps: list[Step] = []
        for where in ways:
            own = change(table, where)
            reads = self.taken()
            read = {s.access for s in every(reads) if isinstance(s, Read) and self.is_of(s.access, table)}
            if (alone or len(ways) > 1) and len(read) > 1:
                way = (each_element if alone else each_key)(self.declared[table].table)
                cause = f'a statement that names several rows of "{table}" cannot read other rows of it'
                raise compile_error("CQ0501", cause, node.span, help=way)
            steps += [*reads, own]
        return tuple(steps)

    def is_of(self, number: int, table: str) -> bool:
        """Whether an access is to the table."""
        access = self.accesses[number]
        return isinstance(access, Access) and self.used[access.table] == table

    def delete_row(self, node: ast.Delete, outer: Relation, table: str, where: ast.Expr | None) -> Step:
        row = self.row(table, node.alias, where, outer, node.span, of_delete)
        return Delete(row.access, row.condition)

    def update_row(self, node: ast.Update, outer: Relation, table: str, where: ast.Expr | None) -> Step:
        written = (or_null(x.value) for x in node.assignments)
        row = self.row(table, node.alias, where, outer, node.span, of_update, *written)
        columns, values = self.assigned(table, node.assignments, row.values)
        return Update(row.access, columns, values, row.condition)

    def assigned(
        self, table: str, assignments: Sequence[ast.Assignment], values: Sequence[Expr]
    ) -> tuple[tuple[int, ...], tuple[Expr, ...]]:
        """The columns and their new values. CQ0502 for a column of the key."""
        defaults, declared = self.declared[table], self.declared[table].table
        columns: list[int] = []
        binder = self.binder(self.event())
        made = []
        for a, value in zip(assignments, values, strict=True):
            span = a.column_span if a.column_span != NOWHERE else a.span
            (column,) = named_columns(declared.fields, f'table "{table}"', (a.column,), (span,))
            if column in declared.key:
                raise key_changed(table, a.column, span)
            if column in columns:
                raise compile_error("CQ0202", f'"{a.column}" is set twice', span, help="leave one of them out")
            columns.append(column)
            if isinstance(a.value, ast.DefaultValue):
                made.append(default_of(defaults, column, a.value.span))
                continue
            made.append(stored(binder, value, declared.fields[column], self.warnings))
            if is_null(made[-1]) and not declared.fields[column].nullable:
                raise always_null(table, declared.fields[column], a.value.span)
        return tuple(columns), tuple(made)

    def choose(self, branches: Sequence[ast.IfBranch], otherwise: Sequence[ast.TriggerStatement]) -> Step:
        first, *more = branches

        def tested() -> tuple[Expr, list[Step]]:
            condition = self.binder(self.event()).condition(first.condition, "the condition of IF")
            return condition, self.pending

        def other() -> tuple[Step, ...]:
            if not more:
                return self.steps(otherwise)
            self.pending = []
            inner = self.choose(more, otherwise)
            return (*self.taken(), inner)

        (condition, reads), (then, last) = both(tested, lambda: both(partial(self.steps, first.body), other))
        self.pending = reads
        return Choose(condition, then, last)

    def signal(self, node: ast.Signal) -> Step:
        """The message, or the state if that is missing or NULL."""
        state = Literal(VARCHAR, False, f"SQLSTATE {node.sqlstate}")
        if node.message is None:
            return Reject(state)
        binder = self.binder(self.event())
        message = binder.bind_cast(settled(binder.bind(node.message)), VARCHAR, node.message.span)
        return Reject(Coalesce(VARCHAR, False, (message, state), span=node.span) if message.nullable else message)

    def select(self, node: ast.Query) -> tuple[Step, ...]:
        """A SELECT: a row of the trigger's output, or one for each row of a table that it names."""
        select = self.selected(node, OF_ROWS)
        exprs = given(select)
        items = [i for i in select.items if isinstance(i, ast.SelectItem)]
        several = source(select)
        if several is not None:
            values = gather(self, select, several, exprs, self.event(), node.span, ROW_BY_ROW)
            return (Emit(self.outputs.row(self.node.name, values, items, node.span)),)
        if not select.relations:
            binder = self.binder(self.event())
            values = tuple(settled(binder.bind(e)) for e in exprs)
            condition = None if select.where is None else binder.condition(select.where, "the condition of WHERE")
            return (Emit(self.outputs.row(self.node.name, values, items, node.span), condition),)
        table, alias = self.read(select, node.span)
        ways = self.ways(table, alias, select.where)
        if len(ways) > 1:
            refuse_aggregates(select)
        steps: list[Step] = []
        for where in ways:
            row = self.row(table, alias, where, self.event(), node.span, of_select, *exprs)
            steps += [*self.taken(), Emit(self.outputs.row(self.node.name, row.values, items, node.span), row.there)]
        return tuple(steps)
