"""Columns of a result that have one name: they are numbered, and whoever wrote the query is told."""

from __future__ import annotations

from collections.abc import Sequence

from cq.errors import Diagnostic, Span
from cq.grammar import ast, inline
from cq.planner.binding.scope import listing
from cq.planner.operators import Project
from cq.planner.plan.node import LogicalNode

ALIAS = "give one of them an alias"
BY_NAME = "write the columns instead of *, and give those that are there twice an alias"


def repeated_names(query: ast.Query, node: LogicalNode, names: Sequence[str]) -> list[Diagnostic]:
    """A warning (CQ0409) for each item of the select list with columns that get other names. names: those."""
    found: dict[Span, list[tuple[str, str]]] = {}
    for old, new, span in zip(node.schema.names, names, _places(query, node), strict=True):
        if old != new:
            found.setdefault(span, []).append((old, new))
    stars = {star.span for star in _stars(query)}
    warnings = []
    for span, renamed in found.items():
        ways = (BY_NAME, *_left_out(query, [old for old, _ in renamed])) if span in stars else (ALIAS,)
        text = _said(renamed, "the second" if span in stars else "this one")
        warnings.append(Diagnostic("CQ0409", text, span, severity="warning", help=ways))
    return warnings


def _said(renamed: Sequence[tuple[str, str]], which: str) -> str:
    """renamed: (the name that is there twice, the one that a column gets)."""
    if len(renamed) == 1:
        return f'two columns of the result are named "{renamed[0][0]}": {which} becomes "{renamed[0][1]}"'
    return f"columns of the result have the names of others: they become {listing(new for _, new in renamed)}"


def _stars(query: ast.Query) -> list[ast.Star]:
    items = query.body.items if isinstance(query.body, ast.Select) else ()
    return [item for item in items if isinstance(item, ast.Star)]


def _places(query: ast.Query, node: LogicalNode) -> Sequence[Span]:
    """Where each column is written. Columns that nothing computes are those of stars, of which the last repeats."""
    if isinstance(node, Project):
        return [e.span for e in node.exprs]
    stars = _stars(query)
    return [stars[-1].span if stars else query.span] * len(node.schema)


def _left_out(query: ast.Query, names: Sequence[str]) -> tuple[str, ...]:
    """The stars of two relations that are joined, the second without the columns that the first one has."""
    match query.body:
        case ast.Select(
            items=(ast.Star(qualifier=None, exclude=(), replace=()),),
            relations=(ast.Join(left=left, right=right, using=(), natural=False),),
        ):
            first, second = inline.qualifier(left), inline.qualifier(right)
            if first and second:
                excluded = ", ".join(inline.name(n) for n in names)
                return (f"or leave them out: {first}.*, {second}.* EXCLUDE ({excluded})",)
    return ()
