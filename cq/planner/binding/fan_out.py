"""How many copies of a row a query makes by reading the same rows repeatedly: UNION ALL of a view with itself.

Forty views, each doubling the rows of the one before, are forty lines of text and 2^40 rows per input row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from cq.errors import Diagnostic, Span, compile_error
from cq.planner.plan.node import LogicalNode, topological

WARNED_COPIES = 1_000  # copies per row: more branches than anybody writes by hand
MOST_COPIES = 1_000_000  # copies per row: at a core's 20 M rows a second, 20 input rows a second
WAY_OUT = "each UNION ALL of a view with itself doubles its rows: read the view once, or group its rows first"

Copies = dict[int, Counter[int]]
"""By `id(node)`, how many copies of one row of each origin the node gives. Origins are streams and groupings."""


def copies(nodes: Iterable[LogicalNode], at_least: bool) -> Copies:
    """The number of copies made by each node, inputs first. at_least: ignoring nodes where a condition may drop
    rows."""
    found: Copies = {}
    for node in nodes:
        reached = [i for port, i in enumerate(node.inputs) if not node.holds_back(port)]
        if not reached:  # a grouping gives one row per group, not per row
            made = Counter({id(node): 1})
        elif at_least and node.may_drop:
            made = Counter()
        else:
            made = sum((found[id(i)] for i in reached), Counter())
        found[id(node)] = made
    return found


def check_copies(node: LogicalNode, span: Span) -> None:
    """Refuse a query that certainly makes more than MOST_COPIES rows of one."""
    most = max((n for made in copies(topological([node]), at_least=True).values() for n in made.values()), default=0)
    if most > MOST_COPIES:
        text = f"one row becomes {most:,} rows here, more than the limit of {MOST_COPIES:,}"
        raise compile_error("CQ0103", text, span, help=WAY_OUT)


def many_copies(nodes: Iterable[LogicalNode]) -> Iterator[Diagnostic]:
    """A warning for the first node that may make more than WARNED_COPIES rows of one."""
    listed = list(nodes)
    found = copies(listed, at_least=False)
    for node in listed:
        most = max(found[id(node)].values(), default=0)
        if most > WARNED_COPIES:
            text = f"one row may become {most:,} rows here"
            yield Diagnostic("CQ0103", text, node.span, severity="warning", help=(WAY_OUT,))
            return
