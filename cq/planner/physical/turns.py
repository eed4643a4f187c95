"""Turns: in which order rows of one event reach an operator, and where that is not the required order.

Rows travel depth first, so rows of one event can reach a union or a look-up by several paths, interleaved: a window's
result that both branches read, windows that close together. If the order of the paths is not the order of the inputs,
the operator's rows are gathered, and processed when everything before it in the plan has had its turn in the event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass


def gathered(plan: LogicalPlan, waits: bool) -> tuple[LogicalNode, ...]:
    """The operators whose rows have to be gathered, in plan order."""
    ways = _Ways(plan, waits)
    for node in ways.nodes:
        if len(node.inputs) > 1 and not ways.in_order(node):
            ways.gathered.append(node)
    return tuple(ways.gathered)


@dataclass(frozen=True, slots=True)
class _Hit:
    """Rows of one event reach an input. several: perhaps more than one, each travelling all its paths before the
    next."""

    port: int
    several: bool


class _Ways:
    """The paths of rows within one event, from where they start: a source row, a closing operator, the end."""

    def __init__(self, plan: LogicalPlan, waits: bool) -> None:
        self.nodes = plan.nodes()
        self.gathered: list[LogicalNode] = []
        self._waits = waits
        self._readers: dict[int, list[tuple[LogicalNode, int]]] = {}
        for node in self.nodes:
            for port, source in enumerate(node.inputs):
                self._readers.setdefault(id(source), []).append((node, port))

    def in_order(self, node: LogicalNode) -> bool:
        """Whether in every event the rows of the node's inputs come input by input anyway."""
        return all(
            _ascending([list(self._hits(o, o.source is None, node)) for o in origins]) for origins in self._events()
        )

    def _events(self) -> Iterator[list[LogicalNode]]:
        """For each kind of event, the operators that emit rows by themselves, in the order of their turns."""
        for node in self.nodes:
            if not node.inputs:
                yield [node, *self.gathered]
        yield [n for n in self.nodes if n.emits_when_due(self._waits) or n in self.gathered]
        yield [n for n in self.nodes if n.emits_at_end or n in self.gathered]

    def _hits(self, node: LogicalNode, several: bool, target: LogicalNode) -> Iterator[_Hit]:
        """How rows that `node` emits in one event reach the inputs of `target`, one after the other."""
        for reader, port in self._readers.get(id(node), ()):
            if reader is target:
                yield _Hit(port, several)
            elif not reader.holds_back(port) and reader not in self.gathered:
                yield from self._hits(reader, several or reader.fan_out != 1, target)


def _ascending(turns: Sequence[Sequence[_Hit]]) -> bool:
    """Whether the inputs come in order, and a turn with several rows reaches only one input."""
    last = -1
    for hits in turns:
        if len({h.port for h in hits}) > 1 and any(h.several for h in hits):
            return False
        for hit in hits:
            if hit.port < last:
                return False
            last = hit.port
    return True


def ties_show(plan: LogicalPlan, waiting: bool) -> bool:
    """Whether lanes would lose a visible order: that of groups, or waits, started by rows of one closing time or of the
    end.

    Such groups are ordered by their first rows, which all share one serial, and so are rows that are emitted at a later
    closing time; within one state the order of arrival tells them apart, across several nothing does. It is visible if
    the rows reach an output.
    """
    nodes = plan.nodes()
    shows = {id(o.node) for o in plan.outputs}
    for node in reversed(nodes):
        if id(node) in shows:
            shows.update(id(i) for port, i in enumerate(node.inputs) if not node.holds_back(port))
    due: set[int] = set()  # operators reached from a closing time
    for node in nodes:
        derived = any(id(i) in due for i in node.inputs)
        gathers = node.inputs and all(node.holds_back(port) for port in range(len(node.inputs)))
        if derived and id(node) in shows and (gathers or node.closes or node.emits_at_end):
            return True
        if waiting and node.begins_groups_when_due and id(node) in shows:
            return True
        if derived or node.emits_when_due(waiting) or node.emits_at_end:
            due.add(id(node))
    return False
