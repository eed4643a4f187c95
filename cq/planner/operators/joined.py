"""What joins share: two inputs with keys of equal types, a residual condition, NULLs beside rows without a match."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from enum import Enum, auto
from typing import Any, ClassVar, TypeVar

from cq.grammar import inline
from cq.lang.expressions import Call, Column, Expr, columns_of, format_expr, remap, walk
from cq.lang.schema import Field, TimeAttribute
from cq.lang.value_text import write_duration
from cq.planner.operators.pruning import narrowed, unless_same
from cq.planner.plan.calls import Change
from cq.planner.plan.costs import JOIN_NS, key_ns
from cq.planner.plan.node import Indices, Inputs, LogicalNode, OpClass, Pruned, Pulled, Text, topological
from cq.planner.plan.source import SourceDef, sources_of
from cq.records import dataclass, field, replace

T = TypeVar("T")
SOME = "INTERVAL '5' SECOND"  # in examples: how far apart times may be
FARTHEST_US = 1 << 60  # no limit: beyond any difference of two times; its sum with a time stays within 64 bits
NEW_TIME = "ts"  # in examples: an event time that is not declared yet
_COMPARES = frozenset(["=", "<", "<=", ">", ">="])


def in_reach(distance_us: int) -> int:
    """The distance, or FARTHEST_US in its direction if it exceeds that."""
    return max(-FARTHEST_US, min(distance_us, FARTHEST_US))


class JoinKind(Enum):
    """Which rows leave a join."""

    INNER = auto()  # pairs
    LEFT = auto()  # pairs, and left rows without a match, beside NULLs
    FULL = auto()  # pairs, and rows of either side without a match, beside NULLs
    SEMI = auto()  # left rows with a match: alone, each once
    ANTI = auto()  # left rows without a match: alone

    @property
    def left_unmatched(self) -> bool:
        """Whether left rows without a match leave."""
        return self in {JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI}

    @property
    def right_unmatched(self) -> bool:
        """Whether right rows without a match leave."""
        return self is JoinKind.FULL

    @property
    def left_only(self) -> bool:
        """Whether left rows leave alone."""
        return self in {JoinKind.SEMI, JoinKind.ANTI}

    def describe(self, condition: str) -> str:
        """The kind and what follows it in a description, for people."""
        return f"{_KIND_WORDS[self]} {condition}".strip()


_KIND_WORDS = {
    JoinKind.INNER: "",
    JoinKind.LEFT: "left outer",
    JoinKind.FULL: "full outer",
    JoinKind.SEMI: "left rows with a match",
    JoinKind.ANTI: "left rows without a match",
}


@dataclass(frozen=True, slots=True)
class Joined(LogicalNode):
    """Output columns: those of the left input, then those of the right one unless left rows leave alone.

    kinds: those that the operator can be.  left_input, right_input: the places of the inputs.
    """

    left: LogicalNode
    right: LogicalNode
    left_keys: tuple[Expr, ...]
    right_keys: tuple[Expr, ...]
    residual: Expr | None
    kind: JoinKind

    kinds: ClassVar[frozenset[JoinKind]]
    left_input: ClassVar[int]
    right_input: ClassVar[int]
    op_class = OpClass.PARTITIONED
    source = None
    fails_itself = False
    merges_exactly = False
    groups = None
    merge_pays = False
    closes_one_pane = False
    begins_groups_when_due = False
    late_alone = False
    vouched = ()

    def columns(self) -> tuple[Field, ...]:
        """The output columns; nullable for an input if rows of the other one leave without a match."""
        assert self.kind in self.kinds, f"a {self.kind.name} join that is no {self.operator}"
        assert all(a.type == b.type for a, b in zip(self.left_keys, self.right_keys, strict=True)), "keys of two types"
        if self.kind.left_only:
            return self.left.schema.fields
        left = [replace(f, nullable=True) if self.kind.right_unmatched else f for f in self.left.schema.fields]
        right = [replace(f, nullable=True) if self.kind.left_unmatched else f for f in self.right.schema.fields]
        return (*left, *right)

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return self._by_input(self.left, self.right)

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        return replace(self, left=inputs[self.left_input], right=inputs[self.right_input])

    @property
    def input_keys(self) -> tuple[tuple[Expr, ...], ...] | None:
        return self._by_input(self.left_keys, self.right_keys)

    def _by_input(self, left: T, right: T) -> tuple[T, T]:
        """A pair of things for the two inputs, in the order of `inputs`."""
        return (left, right) if self.left_input == 0 else (right, left)

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        for e in self.left_keys:
            yield e, (self.left_input,)
        for e in self.right_keys:
            yield e, (self.right_input,)
        if self.residual is not None:
            yield self.residual, (self.left_input, self.right_input)

    def map_expressions(self, change: Change) -> LogicalNode:
        return replace(
            self,
            left_keys=tuple(change(e) for e in self.left_keys),
            right_keys=tuple(change(e) for e in self.right_keys),
            residual=change(self.residual) if self.residual is not None else None,
        )

    def times_read(self) -> tuple[set[int], set[int]]:
        """The time columns that it reads in the left and right input."""
        raise NotImplementedError

    def times_moved(self, left: Indices, right: Indices) -> dict[str, Any]:
        """The fields that name these columns, after pruning."""
        raise NotImplementedError

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        width = len(self.left.schema)
        mine = needed | (columns_of(self.residual) if self.residual is not None else set())
        left, right = self.times_read()
        left |= {c for c in mine if c < width} | columns_of(*self.left_keys)
        right |= {c - width for c in mine if c >= width} | columns_of(*self.right_keys)
        return self._by_input(left, right)

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        below = [narrowed(i, columns) for i, columns in zip(inputs, read, strict=True)]
        left, right = below[self.left_input], below[self.right_input]
        width, new_width = len(self.left.schema), len(left.node.schema)
        indices = {**left.indices, **{width + c: new_width + p for c, p in right.indices.items()}}
        new = replace(
            self,
            left=left.node,
            right=right.node,
            left_keys=tuple(remap(k, left.indices) for k in self.left_keys),
            right_keys=tuple(remap(k, right.indices) for k in self.right_keys),
            residual=remap(self.residual, indices) if self.residual is not None else None,
            **self.times_moved(left.indices, right.indices),
        )
        shown = {c: p for c, p in indices.items() if c < len(self.schema)}  # left rows may leave alone
        return Pruned(unless_same(self, new), shown)

    def condition(self, text: Text) -> tuple[object, ...]:
        """The residual condition and the pairs of keys, for `parameters`."""
        left, right = (self.left_input,), (self.right_input,)
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        keys = (f"{text(left, a)}={text(right, b)}" for a, b in pairs)
        return (text((*left, *right), self.residual) if self.residual is not None else "", *keys)

    def either(self, column: int, text: Text) -> str:
        """The meaning of an output column that either row may cause, for `meaning`."""
        width = len(self.left.schema)
        port, index = (self.left_input, column) if column < width else (self.right_input, column - width)
        field = self.inputs[port].schema.fields[index]
        return f"{port}:{text((port,), Column(field.type, field.nullable, index))}"

    def names_of_sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the columns of both sides, for people: `left.k` and `right.k` if both have a k."""
        left, right = self.left.schema.names, self.right.schema.names
        both = {*left} & {*right}
        return (
            tuple(f"left.{n}" if n in both else n for n in left),
            tuple(f"right.{n}" if n in both else n for n in right),
        )

    def other_time(self) -> OtherTime | None:
        """A time that it compares although it is not the event time of its row."""
        return other_time(self.left, self.right, [] if self.residual is None else [self.residual])

    def describe_condition(self, *between: str) -> str:
        """The pairs of keys, what is between them, and the residual condition, for people: `equal k, l` if both sides
        have columns with these names."""
        left, right = self.names_of_sides()
        pairs = [(format_expr(a, left), format_expr(b, right)) for a, b in self._pairs()]
        bare = [(a.removeprefix("left."), b.removeprefix("right.")) for a, b in pairs]
        same = [a for a, b in bare if a == b]
        on = [f"equal {', '.join(same)}"] if same else []
        on += [f"{a} = {b}" for (a, b), (c, d) in zip(pairs, bare, strict=True) if c != d]
        on += between
        if self.residual is not None:
            on.append(format_expr(self.residual, (*left, *right)))
        return " AND ".join(on)

    def _pairs(self) -> Iterator[tuple[Expr, Expr]]:
        return zip(self.left_keys, self.right_keys, strict=True)


@dataclass(frozen=True, slots=True)
class OtherTime:
    """A time that a condition on two rows compares although it is not the event time of its row. on_right: the side
    it is of.  times: the event times of that side."""

    name: str
    on_right: bool
    times: tuple[str, ...]

    def way(self, whose: str = "") -> str:
        """What to compare, for people. whose: the name of the side."""
        side = whose or ("the right rows" if self.on_right else "the left rows")
        times = " or ".join(self.times)
        return f"the event time of {side} is {times}, not {self.name}: limit how far apart event times are"


def other_time(left: LogicalNode, right: LogicalNode, conditions: Sequence[Expr]) -> OtherTime | None:
    """The first other time that these conditions, over left then right columns, compare with a time of the other side;
    None if there is none."""
    width = len(left.schema)
    for part in (e for condition in conditions for e in walk(condition)):
        columns = columns_of(part)
        if not (isinstance(part, Call) and part.function.name in _COMPARES and min(columns, default=width) < width):
            continue
        if max(columns) < width or not all(i.type.is_timestamp for a in part.args for i in walk(a) if _is_column(i)):
            continue
        for index in sorted(columns):
            side, own = (right, index - width) if index >= width else (left, index)
            if side.schema.times and side.schema.time_of(own) is None:
                names = side.schema.names
                return OtherTime(names[own], side is right, tuple(names[t.column] for t in side.schema.times))
    return None


def _is_column(e: Expr) -> bool:
    return isinstance(e, Column)


def between(left: str, right: str) -> str:
    """A condition that limits how far apart two times are."""
    return f"{right} BETWEEN {left} AND {left} + {SOME}"


def apart(left: LogicalNode, right: LogicalNode) -> str:
    """A condition that limits how far apart the event times of two sides are, if they are named a and b; empty if a
    side has no event time."""
    mine, theirs = _event_time(left), _event_time(right)
    return between(f"a.{mine}", f"b.{theirs}") if mine and theirs else ""


def _event_time(side: LogicalNode) -> str:
    """The event time of a side as a query writes it, even if the side does not select it; empty if it has none."""
    nodes = topological((side,))
    known = next((n for n in reversed(nodes) if n.schema.times), None)
    selected = not any(n.keeps_state for n in nodes) and all(s.event_time is not None for s in sources_of(nodes))
    if known is None or not (known is side or selected):
        return ""
    return inline.name(known.schema.names[known.schema.times[0].column])


def _time_to_declare(fields: Sequence[Field]) -> tuple[str, bool]:
    """The column that is probably the event time, as a query writes it, and whether there is one."""
    found = next((f.name for f in fields if f.type.is_timestamp), None)
    return inline.name(NEW_TIME if found is None else found), found is not None


def _watermark(source: SourceDef) -> str:
    """What to add to the declaration of a stream without an event time."""
    name, there = _time_to_declare(source.fields)
    return f"WATERMARK FOR {name}" if there else f"{name} TIMESTAMP, WATERMARK FOR {name}"


def later(time: str, by_us: int) -> str:
    """A time this much later than another, or earlier, for people."""
    return f"{time} {'+' if by_us > 0 else '-'} {write_duration(abs(by_us))}" if by_us else time


def held(time: TimeAttribute, own: TimeAttribute, behind_us: int) -> TimeAttribute:
    """A time of a row that may wait until the watermark is this far past the row's own time.

    Another time of the row is behind that by at most its lag plus how far the own time is ahead: see TimeAttribute,
    whose law holds for sources and windows, and here for the output.
    """
    if time.column == own.column:
        return replace(time, lag_us=max(time.lag_us, behind_us))
    return replace(time, lag_us=time.lag_us + own.ahead_us + max(behind_us, 0))


def comes_before(first: LogicalNode, then: LogicalNode) -> bool:
    """Whether all rows of one node come before any row of another, because its sources have ended by then.

    Sources without a WATERMARK come one after the other by position, and before those that have one.
    """
    last = max((s.position for s in sources_of(topological((first,)))), default=0)
    looked_up = _right_first((first, then))
    return _comes_first(first, looked_up) and _awaits(then, looked_up, lambda s: _after(s, last + 1))


def place_before(first: LogicalNode, then: LogicalNode) -> SourceDef | None:
    """The source before which the last one of `first` must come so that its rows come before those of the other node;
    None if it comes before it."""
    last, mine = sources_of(topological((first,)))[-1].position, _positions(first)
    looked_up = _right_first((first, then))
    earlier = [s for s in sources_of(topological((then,))) if s.event_time is None and s.position < last]

    def enough(place: SourceDef) -> bool:
        """Whether it is enough to come before this source."""
        return _awaits(then, looked_up, lambda s: s.position not in mine and _after(s, place.position))

    return next(filter(enough, reversed([s for s in earlier if s.position not in mine])), None)


def may_come_before(first: LogicalNode, then: LogicalNode, untimed: bool = False) -> bool:
    """Whether all rows of one node can come before any row of another, given suitable positions of their sources.

    untimed: if its sources had no WATERMARK.
    """
    looked_up: set[int] = set()  # with such positions; the joins that a join reads come before it
    for n in topological((first, then)):
        if isinstance(n, UntimedJoin) and _may_come_before(n.right, n.left, looked_up, untimed=False):
            looked_up.add(id(n))
    return _may_come_before(first, then, looked_up, untimed)


def _may_come_before(first: LogicalNode, then: LogicalNode, looked_up: Collection[int], untimed: bool) -> bool:
    mine = _positions(first)
    return _comes_first(first, looked_up, untimed) and _awaits(then, looked_up, lambda s: s.position not in mine)


def _positions(node: LogicalNode) -> set[int]:
    """The positions of its sources."""
    return {s.position for s in sources_of(topological((node,)))}


def _right_first(nodes: Sequence[LogicalNode]) -> set[int]:
    """The joins, by id, of which the right side comes first."""
    return {id(n) for n in topological(nodes) if isinstance(n, UntimedJoin) and n.right_first}


def _after(source: SourceDef, position: int) -> bool:
    """Whether the rows of a source come after those of all sources without a WATERMARK before this position."""
    return source.event_time is not None or source.position >= position


def _comes_first(node: LogicalNode, looked_up: Collection[int], untimed: bool = False) -> bool:
    """Whether the last row of the node comes with the last one of its sources, which end and have no WATERMARK.

    looked_up: the joins, by id, of which the right side comes first.  untimed: if its sources had no WATERMARK.
    """
    nodes = topological((node,))
    sources = sources_of(nodes)
    timed = any(s.event_time is not None or s.idle_us is not None for s in sources)
    if not sources or not all(s.bounded for s in sources) or (timed and not untimed):
        return False
    return not any(n.closes or (n.emits_at_end and not _waits_for_none(n, looked_up)) for n in nodes)


def _waits_for_none(node: LogicalNode, looked_up: Collection[int]) -> bool:
    """Whether a join has no rows at the end because its right side comes first."""
    return isinstance(node, UntimedJoin) and id(node) in looked_up and not replace(node, right_first=True).emits_at_end


def _awaits(node: LogicalNode, looked_up: Collection[int], later: Callable[[SourceDef], bool]) -> bool:
    """Whether every row of the node comes with, or after, a row of a source that is `later`.

    What a join emits comes with the later of two rows, or at the end, so one such side is enough; but where the right
    side comes first, it comes with the left row.
    """
    found: dict[int, bool] = {}
    for n in topological((node,)):
        sides = [found[id(i)] for i in n.inputs]
        if n.source is not None:
            found[id(n)] = later(n.source)
        elif not isinstance(n, UntimedJoin):
            found[id(n)] = all(sides)
        else:
            found[id(n)] = sides[n.left_input] if id(n) in looked_up else any(sides)
    return found[id(node)]


@dataclass(frozen=True, slots=True)
class UntimedJoin(Joined):
    """What joins share that match rows however far apart they come: they do not use event time.

    right_first: all right rows come before any left row, so a left row meets all its matches when it comes. The binder
    sets this when the positions of all sources are known.
    """

    right_first: bool = field(default=False, kw_only=True)

    left_input = 0  # within one event left rows come first
    right_input = 1
    closes = False
    waits_on = (None, None)  # rows are matched as they arrive
    uses_time = False

    @property
    def inputs_end(self) -> bool:
        return self.left.bounded and self.right.bounded

    @property
    def revises(self) -> bool:
        if not self.kind.left_unmatched:
            return False
        return self.kind.right_unmatched or not (self.right_first or may_come_before(self.right, self.left))

    def way_to_keep_less(self, before: str = "") -> str:
        """How to make it a join that keeps fewer rows, for people. before: what comes before the limit in the query."""
        other = self.other_time()
        if other is not None:
            return other.way()
        limit = apart(self.left, self.right)
        if limit:
            return f"limit how far apart the times are: {before}{limit}"
        sides = [(n, _event_time(n)) for n in (self.left, self.right)]
        sources = sources_of(topological(n for n, time in sides if not time))
        if any(s.event_time is not None for s in sources):  # an operator gives it up
            return "join rows that have event times, and limit how far apart they are"
        streams = " and ".join(f"{inline.name(s.name)} ({_watermark(s)})" for s in sources)
        mine, theirs = (time or _time_to_declare(n.schema.fields)[0] for n, time in sides)
        limit = between(f"a.{mine}", f"b.{theirs}")
        return f"declare the event time of {streams}, then limit how far apart the times are: {before}{limit}"

    def pull(self, expr: Expr) -> Pulled | None:
        """Nothing: a row has two causes, and either may be the later one."""
        return None

    def times_read(self) -> tuple[set[int], set[int]]:
        return set(), set()

    def times_moved(self, left: Indices, right: Indices) -> dict[str, Any]:
        return {}

    def holds_back(self, port: int) -> bool:
        return self.right_first and port == self.right_input

    @property
    def cost_ns(self) -> int:
        return JOIN_NS + key_ns(self.left_keys)

    def check(self) -> None:
        assert not self.right_first or comes_before(self.right, self.left), "left rows before right ones"
        assert self.inputs_end or not self.emits_at_end, "rows that wait for an end that never comes"

    def meaning(self, column: int, text: Text) -> str:
        return self.either(column, text)
