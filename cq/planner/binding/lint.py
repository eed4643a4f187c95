"""Valid queries that probably do not say what was meant: warnings of `cq check`.

None of them stops a run. `cq.planner.binding.binder` has those that are also shown when a query runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cq.errors import NOWHERE, Diagnostic, Span
from cq.grammar import ast, inline
from cq.lang.expressions import Call, Cast, Column, Expr, Literal, walk
from cq.planner.binding.binder import BoundScript
from cq.planner.binding.fan_out import many_copies
from cq.planner.binding.late_streams import late_name
from cq.planner.binding.traits import one_row, origin
from cq.planner.operators import Filter, IntervalJoin
from cq.planner.operators.joined import Joined, UntimedJoin, apart
from cq.planner.operators.window import FIRST_KEY, Window, WindowKind
from cq.planner.plan.fold import folded
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode

_COMPARISONS = frozenset(["=", "<>", "<", "<=", ">", ">="])
_READ_IT = ("use it, or remove it",)


def lint(script: ast.Script, bound: BoundScript, given: Iterable[str] = ()) -> tuple[Diagnostic, ...]:
    """Warnings in order of place. given: names of the parameters that have a value."""
    nodes = _nodes(bound)
    found = [*_comparisons_with_null(nodes), *_idle_filters(nodes), *_growing(nodes, bound), *_products(nodes)]
    found += [*_windows_apart(nodes), *many_copies(nodes), *_lengths(script)]
    if bound.plan.outputs or bound.explains:
        found += [*_unread(script), *_unused_parameters(script, given)]
    return tuple(sorted(dict.fromkeys(found), key=lambda d: (d.span.line, d.span.column)))


def _nodes(bound: BoundScript) -> list[LogicalNode]:
    plans: list[LogicalPlan] = [bound.plan, *(e.plan for e in bound.explains)]
    return list({id(n): n for p in plans for n in p.nodes()}.values())


def _warning(code: str, message: str, span: Span, *help: str) -> Diagnostic:
    return Diagnostic(code, message, span, severity="warning", help=help)


def _comparisons_with_null(nodes: Iterable[LogicalNode]) -> Iterator[Diagnostic]:
    for node in nodes:
        for expr, _ in node.expressions():
            for e in walk(expr):
                if isinstance(e, Call) and e.function.name in _COMPARISONS and any(map(_is_null, e.args)):
                    way = "write x IS NOT NULL" if e.function.name == "<>" else "write x IS NULL"
                    yield _warning("CQ0308", "a comparison with NULL is never true", e.span, way)


def _is_null(e: Expr) -> bool:
    while isinstance(e, Cast):
        e = e.arg
    return isinstance(e, Literal) and e.value is None


def _idle_filters(nodes: Iterable[LogicalNode]) -> Iterator[Diagnostic]:
    for node in nodes:
        if isinstance(node, Filter):
            value = folded(node.predicate)
            plain = not any(isinstance(e, Call) and any(map(_is_null, e.args)) for e in walk(node.predicate))
            if isinstance(value, Literal) and not value.value and plain:
                yield _warning("CQ0308", "this condition is never true", node.predicate.span, "no rows are returned")


def _growing(nodes: Iterable[LogicalNode], bound: BoundScript) -> Iterator[Diagnostic]:
    if all(s.bounded for s in bound.sources):
        return
    for node in nodes:
        if not node.state.bounded:
            cause = f"{node.operator} keeps {node.state.text}, which grows with the input"
            yield _warning(
                "CQ0407", cause, node.span, f"on an unbounded stream this exhausts the memory: {node.state.way}"
            )


def _products(nodes: Iterable[LogicalNode]) -> Iterator[Diagnostic]:
    """Joins without a key, unless one side is a single row."""
    for node in nodes:
        if not isinstance(node, UntimedJoin) or node.left_keys or any(one_row(i, or_none=True) for i in node.inputs):
            continue
        way = "add an equality of the two sides: a.k = b.k"
        if node.residual is not None:
            told = "this join compares every row of one side with every row of the other"
            yield _warning("CQ0410", told, node.span, way)
        elif not node.kind.left_only:
            yield _warning("CQ0410", "this join is a cross product of its two sides", node.span, way)


def _windows_apart(nodes: Iterable[LogicalNode]) -> Iterator[Diagnostic]:
    """Joins by the bounds of windows with different sizes, slides or offsets."""
    for node in nodes:
        if not isinstance(node, Joined):
            continue
        for left, right in _equated(node):
            ours, theirs = origin(node.left, left), origin(node.right, right)
            if ours is None or theirs is None or max(ours.column, theirs.column) >= FIRST_KEY:
                continue
            kinds = {_on_time_line(ours.node.window_kind), _on_time_line(theirs.node.window_kind)}
            if len(kinds) > 1 and None not in kinds:
                cause = "the windows of the two sides differ in size, slide or offset: few of their bounds are equal"
                same = "put both sides into windows of the same size, slide and offset"
                limit = apart(node.left, node.right)
                by_time = (f"or join them by time: {limit}",) if limit else ()
                yield _warning("CQ0308", cause, node.span, same, *by_time)
                break


def _equated(node: Joined) -> Iterator[tuple[int, int]]:
    """The columns of the left and of the right side that are equal in all rows that match."""
    for left, right in zip(node.left_keys, node.right_keys, strict=True):
        if isinstance(left, Column) and isinstance(right, Column):
            yield left.index, right.index
    if not isinstance(node, IntervalJoin) or not node.kind.left_only:
        return  # a join by the ends alone may be meant: its rows show the bounds of both windows
    if node.lower_us == node.upper_us == node.right_time.shift_us - node.left_time.shift_us:
        yield node.left_time.column, node.right_time.column


def _on_time_line(kind: object) -> object:
    """How windows of a kind lie on the time line; None if that depends on another window."""
    if not isinstance(kind, Window):
        return kind
    if kind.kind is WindowKind.ATTACHED:
        return None
    grows = kind.kind is WindowKind.CUMULATE
    return grows, kind.size, kind.slide, kind.offset, kind.by_calendar, kind.shift_us


_OF_ANY_LENGTH = {"VARCHAR": ("texts", "LEFT(s, {})"), "VARBINARY": ("values", "SUBSTRING(s, 1, {})")}


def _lengths(script: ast.Script) -> Iterator[Diagnostic]:
    """The first VARCHAR or VARBINARY with a length, which other systems enforce."""
    types = (n for n in _within(script.statements) if isinstance(n, ast.SimpleType))
    found = [t for t in types if t.name in _OF_ANY_LENGTH and t.params]
    if found:
        first = min(found, key=lambda t: (t.span.line, t.span.column))
        what, shorten = _OF_ANY_LENGTH[first.name]
        cause = f"{first.name}({first.params[0]}) takes {what} of any length"
        shorter = f"shorten them: {shorten.format(first.params[0])}"
        yield _warning("CQ0310", cause, first.span, shorter, f"or in a table: CHECK (LENGTH(s) <= {first.params[0]})")


def _unread(script: ast.Script) -> Iterator[Diagnostic]:
    """Streams and tables that nobody reads and no trigger writes, sinks nobody writes, and WITH tables that their query
    does not use."""
    bodies = [n for s in script.statements if isinstance(s, ast.CreateTrigger) for n in _within(s.body)]
    read = {*_names_read(script.statements), *(n.target for n in bodies if isinstance(n, ast.Insert))}
    written = {n.target for n in _within(script.statements) if isinstance(n, ast.Insert)}
    for s in script.statements:
        if isinstance(s, ast.CreateRelation) and not {s.name, late_name(s)} & read:
            what = "table" if s.kind == "TABLE" else "stream"
            yield _warning("CQ0201", f'{what} "{s.name}" is never read', s.name_span, *_READ_IT)
        if isinstance(s, ast.CreateSink) and s.name not in written:
            help = f"write to it: INSERT INTO {inline.name(s.name)} SELECT …, or remove it"
            yield _warning("CQ0201", f'sink "{s.name}" is never written', s.name_span, help)
    for node in _within(script.statements):
        if isinstance(node, ast.Query) and node.ctes:
            here = list(_names_read((node,)))
            for cte in node.ctes:
                if cte.name not in here:
                    yield _warning("CQ0201", f'"{cte.name}" of WITH is never read', cte.name_span, *_READ_IT)


def _names_read(nodes: Iterable[object]) -> Iterator[str]:
    for node in _within(nodes):
        if isinstance(node, ast.TableRef):
            yield from () if node.is_path else (node.name,)
        elif isinstance(node, ast.TableArgument):
            yield from (node.source,) if isinstance(node.source, str) and not node.is_path else ()
        elif isinstance(node, ast.TableFunction):  # TUMBLE(s, …): a bare name is parsed as a column
            yield from (a.name for a in node.args if isinstance(a, ast.ColumnRef))
            named = (a.value for a in node.args if isinstance(a, ast.NamedArgument))
            yield from (value.name for value in named if isinstance(value, ast.ColumnRef))
        elif isinstance(node, ast.CreateTrigger):
            yield node.relation
        elif isinstance(node, ast.Update | ast.Delete):  # of a table whose rows affect the results
            yield node.table


def _unused_parameters(script: ast.Script, given: Iterable[str]) -> Iterator[Diagnostic]:
    used = {n.name for n in _within(script.statements) if isinstance(n, ast.Parameter)}
    for name in given:
        if name not in used:
            yield _warning(
                "CQ0206",
                f'the parameter "{name}" is set but not used',
                NOWHERE,
                f"write :{name} in the query, or do not set it",
            )


def _within(nodes: Iterable[object]) -> Iterator[ast.Node]:
    """The nodes and everything below them."""
    pending = list(nodes)
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            pending.extend(item)
        elif isinstance(item, ast.Node):
            yield item
            pending.extend(getattr(item, name) for name in ast.said_fields(type(item)))
