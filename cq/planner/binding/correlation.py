"""Correlated queries, which name columns of the outer query: which of their conditions do, and the rows that match.

Such conditions become join conditions. Where a value is wanted and not all of them are equalities, the sub-query is
joined with the distinct outer values that its conditions name, and grouped by these: one row for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from cq.errors import CompileError, Diagnostic, compile_error
from cq.grammar import ast, inline
from cq.planner.binding.joins.relations import stream_join
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import Relation, finds, relation_of, shifted
from cq.planner.binding.windows import with_windows
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass, replace

T = TypeVar("T")
KEYS = "$rows"  # the qualifier of the columns that a join with a sub-query compares; no query can write it


class Queries(Protocol):
    """Binds the queries inside a query: the names it knows."""

    @property
    def parameters(self) -> Mapping[str, ParameterValue]: ...

    def nested(self, query: ast.Query) -> LogicalNode: ...

    def with_ctes(self, query: ast.Query) -> Queries: ...

    def from_clause(self, select: ast.Select) -> tuple[Relation, ast.Expr | None]: ...

    def select_from(self, select: ast.Select, relation: Relation) -> LogicalNode: ...

    def passing(self, where: ast.Expr | None, relation: Relation) -> LogicalNode: ...

    def looked_at(self, relation: Relation, time: str | None) -> Relation: ...


def all_of(conditions: Sequence[ast.Expr]) -> ast.Expr | None:
    """The conditions joined by AND; None if there are none."""
    if len(conditions) > 1:
        return ast.Logical("AND", tuple(conditions), span=conditions[0].span.to(conditions[-1].span))
    return conditions[0] if conditions else None


def parts_of(condition: ast.Expr | None) -> list[ast.Expr]:
    """The operands of AND."""
    if condition is None:
        return []
    return list(condition.operands) if isinstance(condition, ast.Logical) and condition.op == "AND" else [condition]


@dataclass(frozen=True, slots=True)
class Inside:
    """A sub-query whose FROM is bound. about: the conditions of its WHERE that name columns of the outer query."""

    select: ast.Select
    relation: Relation
    rest: ast.Expr | None
    about: list[ast.Expr]
    queries: Queries


def correlated(query: ast.Query, outer: Relation, queries: Queries) -> Inside | None:
    """The sub-query, if its WHERE or its select list names columns of the outer query; else None."""
    select = query.body
    if not isinstance(select, ast.Select) or not select.relations:
        return None
    here = queries.with_ctes(query)
    relation, where = here.from_clause(select)
    parts = parts_of(where)
    about = [p for p in parts if any(is_outer(ref, relation, outer) for ref in references(p))]
    if not about and not any(is_outer(ref, relation, outer) for i in select.items for ref in references(i)):
        return None
    counted = query.limit or query.offset
    if counted is not None:
        raise compile_error(
            "CQ0502",
            "LIMIT and OFFSET of a correlated sub-query are not supported yet",
            counted.span,
            help=_numbered(query, select, relation, outer, about),
        )
    rest = all_of([p for p in parts if not any(p is a for a in about)])
    return Inside(select, with_windows(relation), rest, about, here)


def _numbered(
    query: ast.Query, select: ast.Select, relation: Relation, outer: Relation, about: Sequence[ast.Expr]
) -> str:
    """How to count the rows of each group that LIMIT and OFFSET leave, in the names of the query if it is short."""
    n = "row_n" if any(c.name == "n" for c in relation.columns) else "n"
    which = f"{n} {_counted(query)}"
    pairs = [equality(a, relation, outer) for a in about]
    (first, *more) = select.relations
    if more or not isinstance(first, ast.TableRef) or None in pairs or len(about) < len(parts_of(select.where)):
        inner = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY key ORDER BY x) AS {n} FROM t WHERE …"
        return f"read numbered rows without LIMIT: FROM ({inner}) AS t WHERE t.key = … AND {which}"
    keys = ", ".join(inline.expr(pair[0]) for pair in pairs if pair is not None)
    order = f" {inline.order_by(query.order_by)}" if query.order_by else ""
    over = f"ROW_NUMBER() OVER (PARTITION BY {keys}{order}) AS {n}"
    return (
        f"read numbered rows without LIMIT: FROM (SELECT *, {over} FROM {inline.relation(first)}) "
        f"AS {inline.name(first.alias or first.name)} "
        f"WHERE {inline.conjunction(about)} AND {which}"
    )


def _counted(query: ast.Query) -> str:
    """The numbers of the rows that LIMIT and OFFSET leave, as a condition behind the name of the number."""
    start, count = query.offset, query.limit
    skipped = int(start.text) if isinstance(start, ast.NumberLiteral) and start.text.isdigit() else 0
    if count is None:
        return f"> {skipped}"
    if not (isinstance(count, ast.NumberLiteral) and count.text.isdigit()):
        return f"<= {inline.expr(count)}"
    last = skipped + int(count.text)
    return f"= {last}" if last == skipped + 1 else f"BETWEEN {skipped + 1} AND {last}"


@contextmanager
def naming(query: ast.Query, outer: Relation) -> Iterator[None]:
    """Within it, an unknown name that is a column of the outer query is reported as that."""
    try:
        yield
    except CompileError as error:
        refs = {n.span: n for n in ast.walk(query) if isinstance(n, ast.ColumnRef) and finds(outer, n)}
        raise CompileError(
            *(
                _outer_name(refs[d.span], query) if d.code == "CQ0203" and d.span in refs else d
                for d in error.diagnostics
            )
        ) from None


def _outer_name(ref: ast.ColumnRef, query: ast.Query) -> Diagnostic:
    select = query.body
    own = () if not isinstance(select, ast.Select) else ast.below(replace(select, relations=()))
    if isinstance(select, ast.Select) and all(n is not ref for n in own):  # in a sub-query of this one
        return _name_further_out(ref)
    return Diagnostic(
        "CQ0502",
        f"{inline.expr(ref)} is a column of the outer query, which only WHERE of its own sub-queries can use",
        ref.span,
        help=(
            "compare it there with a column that the sub-query has in its FROM",
            "or join the two, and GROUP BY the columns of the outer query",
        ),
    )


def _name_further_out(ref: ast.ColumnRef) -> Diagnostic:
    """A column of the query around a query, named in a sub-query of that one."""
    return Diagnostic(
        "CQ0502",
        f"{inline.expr(ref)} is a column of a query two levels out: a sub-query can use those of the query around it",
        ref.span,
        help=("add its relation to FROM of the query between, and use the column of that one",),
    )


def with_nearest_names(query: ast.Query, outer: Relation, bind: Callable[[ast.Query], T]) -> T:
    """`bind(query)`; where sub-queries of the query name columns of `outer`, which is two levels out for them, that it
    equates with columns of its own, they name those.

    A row for which the two differ does not pass its WHERE, whatever the rest of it says.
    """
    while True:
        try:
            return bind(query)
        except CompileError as error:
            nearer = _with_nearer_names(query, outer, error)
            if nearer is None:
                raise
            query = nearer


def _with_nearer_names(query: ast.Query, outer: Relation, error: CompileError) -> ast.Query | None:
    """The query with the names that the error says are unknown replaced by equal ones; None if there are none."""
    select = query.body
    if not isinstance(select, ast.Select):
        return None
    spans = {d.span for d in error.diagnostics if d.code == "CQ0203"}
    own = {id(n) for n in ast.below(replace(select, relations=()))}
    refs = [n for n in ast.walk(query) if isinstance(n, ast.ColumnRef) and id(n) not in own and finds(outer, n)]
    unknown = [r for r in refs if r.span in spans]
    if not unknown:
        return None
    inner = {
        getattr(n, "alias", None) or getattr(n, "name", None) for n in ast.walk(query)
    }  # which may hide the outer ones
    alike = [r for r in refs if r in unknown and r.qualifier is not None and r.qualifier not in inner]
    equal = {r.span: e for r in (*unknown, *alike) if (e := _equated(r, select)) is not None}
    if not equal:
        return None

    def nearer(node: ast.Node) -> ast.Node | None:
        return (
            replace(equal[node.span], span=node.span)
            if isinstance(node, ast.ColumnRef) and node.span in equal
            else None
        )

    return ast.rewritten(query, nearer)


def _equated(ref: ast.ColumnRef, select: ast.Select) -> ast.ColumnRef | None:
    """A column that WHERE equates with this one."""
    for part in parts_of(select.where):
        if isinstance(part, ast.Binary) and part.op == "=":
            for one, other in ((part.left, part.right), (part.right, part.left)):
                if one == ref and isinstance(other, ast.ColumnRef):
                    return other
    return None


def references(node: ast.Node) -> Iterator[ast.ColumnRef]:
    return (n for n in ast.below(node) if isinstance(n, ast.ColumnRef))


def is_outer(ref: ast.ColumnRef, inner: Relation, outer: Relation) -> bool:
    """Whether a name means a column of the outer query: columns of the sub-query take precedence."""
    return not finds(inner, ref) and finds(outer, ref)


def around(outer: Relation, inner: Relation) -> Relation:
    """The scope of conditions in a sub-query: its own columns after those of the outer query, which they hide."""
    names = {c.name for c in inner.columns if not c.needs_qualifier}
    outside = tuple(
        replace(
            c,
            qualifier=None if c.qualifier in inner.qualifiers else c.qualifier,
            needs_qualifier=c.needs_qualifier or c.name in names,
        )
        for c in outer.columns
    )
    width = len(outer.node.schema)
    return Relation(outer.node, outside + shifted(inner.columns, width), f"{inner.title} or {outer.title}")


def equality(node: ast.Expr, inner: Relation, outer: Relation) -> tuple[ast.Expr, ast.Expr] | None:
    """The two sides of an equality between the sub-query and the outer query; None for other conditions."""
    if isinstance(node, ast.Binary) and node.op == "=":
        for mine, theirs in ((node.left, node.right), (node.right, node.left)):
            of_mine, of_theirs = list(references(mine)), list(references(theirs))
            if of_mine and all(finds(inner, r) for r in of_mine) and all(is_outer(r, inner, outer) for r in of_theirs):
                return mine, theirs
    return None


@dataclass(frozen=True, slots=True)
class Pairs:
    """The rows of a sub-query beside the outer values that they belong to.

    keys: the names of these values in `relation`, and what they are in the outer query.
    """

    relation: Relation
    keys: tuple[tuple[ast.ColumnRef, ast.ColumnRef], ...]


def pairs_of(inside: Inside, outer: Relation) -> Pairs:
    """The rows of the sub-query, once for each distinct combination of outer values that they match."""
    named: dict[ast.ColumnRef, ast.ColumnRef] = {}
    for ref in (r for a in inside.about for r in references(a) if is_outer(r, inside.relation, outer)):
        named.setdefault(ref, ast.ColumnRef(f"$key{len(named) + 1}", KEYS, span=ref.span))
    at, queries = inside.about[0].span, inside.queries
    values = tuple(ast.SelectItem(ref, key.name, span=ref.span) for ref, key in named.items())
    distinct = queries.select_from(ast.Select(values, distinct=True, span=at), outer)
    theirs = relation_of(distinct, KEYS, outer.title)
    mine = replace(inside.relation, node=queries.passing(inside.rest, inside.relation))
    on = all_of([with_names(a, named) for a in inside.about])
    (first, *_) = inside.select.relations
    join = ast.Join("INNER", first, first, on, span=at)
    return Pairs(stream_join(join, theirs, mine, queries.parameters), tuple((k, ref) for ref, k in named.items()))


def with_names(node: ast.Expr, names: Mapping[ast.ColumnRef, ast.ColumnRef]) -> ast.Expr:
    """The condition with its names replaced."""
    return ast.rewritten(node, lambda n: names.get(n) if isinstance(n, ast.ColumnRef) else None)
