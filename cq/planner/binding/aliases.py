"""The names of the items of a select list, for later items and for the clauses that may use them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from cq.errors import CompileError, Span, compile_error
from cq.grammar import ast
from cq.lang.aggregates import ALIASES, all_aggregates
from cq.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Aliases:
    """The names of a select list. indices: the items of each name, in order.  end: items from this index on are not
    visible."""

    items: Sequence[ast.SelectItem | ast.Star] = ()
    indices: Mapping[str, Sequence[int]] = field(default_factory=dict)
    end: int = 0

    def until(self, end: int) -> Aliases:
        """The same names as visible to the item at that index: those before it."""
        return replace(self, end=end)

    def seen(self, name: str) -> int:
        """How many of the items with this name are visible: the first ones."""
        return bisect_left(self.indices.get(name, ()), self.end)

    def is_hidden(self, name: str) -> bool:
        """Whether items have this name, but none of them is visible."""
        return name in self.indices and not self.seen(name)

    def elsewhere(self, name: str) -> str:
        """The clause that tests the value of a name which is known only behind WHERE; "" where there is none."""
        calls = [n for i in self.indices[name] for n in ast.walk(self.value(i)) if isinstance(n, ast.Call)]
        if any(call.over is not None for call in calls):
            return "write the condition in QUALIFY, after WHERE and GROUP BY"
        return (
            "write the condition in HAVING, after GROUP BY"
            if any(c.name in all_aggregates() or c.name in ALIASES for c in calls)
            else ""
        )

    def value(self, index: int) -> ast.Expr:
        """The value of the item at that index of the select list."""
        item = self.items[index]
        assert isinstance(item, ast.SelectItem), "a star has no alias"
        return item.expr


def aliases_of(items: Sequence[ast.SelectItem | ast.Star]) -> Aliases:
    """The aliases of a select list, all of them visible."""
    indices: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        if isinstance(item, ast.SelectItem) and item.alias:
            indices.setdefault(item.alias, []).append(index)
    return Aliases(items, indices, len(items))


def ambiguous(name: str, count: int, span: Span) -> CompileError:
    """CQ0204: several items of a select list have the name but not the same value."""
    return compile_error(
        "CQ0204",
        f'the alias "{name}" is ambiguous',
        span,
        label=f"{count} items of the select list have this name",
        help="give each of them an alias of its own",
    )
