"""What queries read from triggers and tables, until the whole file is known: one operator for all that share tables.

The first query that reads a trigger does not know what later ones look up in its tables, and an unread view needs
nothing. So a query is bound over a stand-in with the same columns; when the plan is complete, the operator of each
group is built for what is read from it, and its rows replace the stand-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from cq.errors import CompileError, compile_error
from cq.grammar import inline
from cq.planner.binding.triggers.body import BoundTrigger
from cq.planner.binding.triggers.changes import changes_of, with_changes
from cq.planner.binding.triggers.joint import Joint
from cq.planner.binding.triggers.outputs import RowTarget
from cq.planner.operators import Project
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode, topological
from cq.planner.plan.transactions import KeyedTable
from cq.records import dataclass, field, replace

Rows: TypeAlias = Callable[[Joint], Project]
"""The parts of the operator that are read."""


@dataclass(slots=True, eq=False)
class TableGroup:
    """Triggers that share tables, directly or through others.

    targets: what they insert rows into.  looked_up: whether queries use look-ups in these tables.  look_ups: those
    bound so far.
    """

    triggers: tuple[BoundTrigger, ...]
    tables: dict[str, KeyedTable]
    targets: tuple[RowTarget, ...]
    looked_up: bool
    look_ups: list[BoundTrigger] = field(default_factory=list)

    def joint(self, look_ups: Sequence[BoundTrigger], contents: bool, changes: Sequence[str]) -> Joint:
        """The operator for these look-ups. changes: the tables whose changes are read."""
        triggers = (*self.triggers, *look_ups)
        emitting = tuple(with_changes(t, self.tables, changes) for t in triggers)
        known = [*self.targets, *(changes_of(self.tables[n]) for n in changes)]
        return replace(Joint.of(emitting, self.tables, known, contents, self.looked_up), triggers=triggers)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Rows that queries read. stands: their stand-in, over an operator with only the triggers and this look-up.

    changes: the table whose changes they are.
    """

    group: TableGroup
    look_up: BoundTrigger | None
    contents: bool
    changes: str | None
    rows: Rows
    stands: Project


@dataclass(slots=True)
class Joints:
    """Everything that the queries of a file read from triggers and tables, by the id of the stand-in."""

    asked: dict[int, Asked] = field(default_factory=dict)

    def ask(
        self,
        group: TableGroup,
        rows: Rows,
        look_up: BoundTrigger | None = None,
        *,
        contents: bool = False,
        changes: str | None = None,
    ) -> LogicalNode:
        """The stand-in for these rows."""
        look_ups = () if look_up is None else (look_up,)
        stands = rows(group.joint(look_ups, contents, () if changes is None else (changes,)))
        self.asked[id(stands)] = Asked(group, look_up, contents, changes, rows, stands)
        group.look_ups += look_ups
        return stands

    def leads(self, node: LogicalNode, group: TableGroup) -> bool:
        """Whether the rows of the node are derived from those of the group's operator."""
        return any(asked.group is group for asked in self.made_of(node))

    def made_of(self, node: LogicalNode) -> list[Asked]:
        """Everything read from triggers and tables to make the rows of the node."""
        found: dict[int, Asked] = {}
        todo = [node]
        while todo:
            for n in topological([todo.pop()]):
                if id(n) in self.asked and id(n) not in found:
                    found[id(n)] = self.asked[id(n)]
                    todo += [t.stream for t in found[id(n)].group.look_ups]
        return [*found.values()]

    def look_ups_in(self, node: LogicalNode) -> Iterator[BoundTrigger]:
        """The look-ups whose rows the node reads."""
        for n in topological([node]):
            found = self.asked.get(id(n))
            if found is not None and found.look_up is not None:
                yield found.look_up

    def settled(
        self, plan: LogicalPlan, called: Sequence[tuple[LogicalNode, str]]
    ) -> tuple[LogicalPlan, list[tuple[LogicalNode, str]]]:
        """The plan with operators in place of the stand-ins, and the names that the text gives its rows."""
        if not self.asked:
            return plan, list(called)
        settling = _Settling([self.asked[id(n)] for n in plan.nodes() if id(n) in self.asked], self.asked)
        outputs = tuple(replace(o, node=settling.node(o.node)) for o in plan.outputs)
        return LogicalPlan(outputs), [(settling.done.get(id(n), n), name) for n, name in called]


@dataclass(slots=True)
class _Settling:
    """One plan. read: what it reads.  done: the replacement of each node, by id."""

    read: list[Asked]
    asked: dict[int, Asked]
    joints: dict[tuple[int, bool], Joint] = field(default_factory=dict)
    done: dict[int, LogicalNode] = field(default_factory=dict)

    def node(self, root: LogicalNode) -> LogicalNode:
        for n in topological([root]):
            if id(n) not in self.done:
                found = self.asked.get(id(n))
                inputs = [self.done[id(i)] for i in n.inputs]
                same = all(a is b for a, b in zip(inputs, n.inputs, strict=True))
                self.done[id(n)] = self.rows(found) if found else n if same else n.with_inputs(inputs)
        return self.done[id(root)]

    def rows(self, asked: Asked) -> LogicalNode:
        """The rows, with the columns and times of their stand-in. CQ0502 if other rows remove the times."""
        made = asked.rows(self.joint(asked))
        if made.schema.times != asked.stands.schema.times:
            raise _no_common_time(asked, self.parting(asked))
        return made

    def parting(self, asked: Asked) -> BoundTrigger:
        """The first look-up beside which the rows lose the times of their stand-in."""
        look_ups = self.look_ups(asked)
        for look_up in look_ups:
            both = [t for t in look_ups if t is look_up or t is asked.look_up]
            if asked.rows(self.joint_of(asked, both)).schema.times != asked.stands.schema.times:
                return look_up
        raise AssertionError("times are lost beside no look-up")

    def joint(self, asked: Asked) -> Joint:
        """The operator of a group, for everything that the plan reads from it."""
        key = (id(asked.group), asked.contents)
        if key not in self.joints:
            self.joints[key] = self.joint_of(asked, self.look_ups(asked))
        return self.joints[key]

    def look_ups(self, asked: Asked) -> list[BoundTrigger]:
        """The look-ups of its operator, in the order of the text."""
        return [a.look_up for a in self.beside(asked) if a.look_up is not None]

    def beside(self, asked: Asked) -> list[Asked]:
        """Everything that the plan reads from its operator."""
        return [a for a in self.read if a.group is asked.group and a.contents == asked.contents]

    def joint_of(self, asked: Asked, look_ups: Sequence[BoundTrigger]) -> Joint:
        """The operator of a group with these look-ups."""
        group = asked.group
        changes = list(dict.fromkeys(a.changes for a in self.beside(asked) if a.changes is not None))
        settled = replace(group, triggers=tuple(map(self.over, group.triggers)))
        joint = settled.joint([self.over(t) for t in look_ups], asked.contents, changes)
        return replace(joint, triggers=(*group.triggers, *look_ups))

    def over(self, trigger: BoundTrigger) -> BoundTrigger:
        """The trigger on the replacement of its stream."""
        return replace(trigger, stream=self.node(trigger.stream))


def _no_common_time(asked: Asked, look_up: BoundTrigger) -> CompileError:
    """CQ0502 for a look-up whose rows remove the event time from what is read beside it."""
    name = look_up.tables[0]
    others = "events of its triggers" if asked.look_up is None else f"rows of {asked.look_up.relation}"
    found = f"CREATE TRIGGER l AFTER INSERT ON s SELECT new.k, (SELECT x FROM {inline.name(name)} WHERE key = new.k)"
    ways = (f"look it up in a trigger: {found}", "define it above the queries, and read FROM l")
    if asked.look_up is not None and all(t.program.strict for t in asked.group.triggers):
        ways = (f"look both up in triggers: {found}", "define them above the queries, and read FROM them")
    return compile_error(
        "CQ0502",
        f'rows of {look_up.relation} look up "{name}", but have no event time in common with {others}',
        look_up.span,
        help=ways,
    )
