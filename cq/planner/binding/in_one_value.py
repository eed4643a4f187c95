"""`x IN (SELECT MAX(y) FROM b WHERE b.k = a.k)`: IN of a sub-query that has one row, of which it looks at one value."""

from __future__ import annotations

from cq.grammar import ast
from cq.planner.binding.functions.names import is_aggregate


def in_one_value(node: ast.InQuery) -> ast.Expr | None:
    """The comparison with the one value, if the sub-query aggregates the rows that match the row around it; else None.

    Aggregates without GROUP BY have one row. A sub-query that does not depend on the row around it stays a semi join.
    """
    query, select = node.query, node.query.body
    if not isinstance(select, ast.Select) or query != ast.Query(select) or len(select.items) != 1:
        return None
    item = select.items[0]
    if select != ast.Select(select.items, select.relations, select.where) or isinstance(item, ast.Star):
        return None
    if not any(map(is_aggregate, ast.below(item))) or not _names_others(select):
        return None
    value = ast.ScalarQuery(query, span=query.span)
    return ast.Binary("<>" if node.negated else "=", node.operand, value, span=node.span, op_span=node.span)


def _names_others(select: ast.Select) -> bool:
    """Whether WHERE names, by their relation, columns that are not in FROM."""
    own = {getattr(n, "alias", None) or getattr(n, "name", None) for r in select.relations for n in ast.below(r)}
    refs = (n for n in ast.below(select.where) if isinstance(n, ast.ColumnRef)) if select.where is not None else ()
    return any(ref.qualifier is not None and ref.qualifier not in own for ref in refs)
