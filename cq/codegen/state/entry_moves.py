"""Moving the contents of a container into another one of the same shape, entry by entry: the writers, by container.

An operator declares with `@holds` what its slots hold; cq/codegen/move_functions.py makes functions from that.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from cq.codegen.state.hash_tables import Births, EntryField, Keys, load_fields
from cq.codegen.values import Scope, Val
from cq.codegen.writer import Writer, expr
from cq.entries import enter
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass, field
from cq.runtime.containers import frames, intervals, log_words, multimap_words, ranks_words, runs_words
from cq.runtime.containers import pane_words as panes
from cq.runtime.containers.table_words import TABLE_COUNT
from cq.runtime.flow.split_words import PARTITION_MASK
from cq.runtime.layout.abi import ROUTING_LANE, ROUTING_ROUTE


@dataclass(slots=True)
class Mover:
    """A function being written: from the container `source` to `target`.

    lane_of: writes the hash of a node's key, which determines the lane, from its values; None without lanes.
    rooms: temporary memory of the function.
    """

    scope: Scope
    lane_of: Callable[[Sequence[Val]], ast.expr] | None
    rooms: list[str] = field(default_factory=list)

    @property
    def writer(self) -> Writer:
        return self.scope.writer

    def needs(self, done: ast.expr) -> None:
        """Write that the function ends, out of memory, if this is 0."""
        with self.scope.when(expr("D == 0", D=done)):
            self.leave()

    def leave(self) -> None:
        """Write that the function ends, out of memory."""
        for room in self.rooms:
            self.writer.code("release(R)", R=room)
        self.writer.code("return 0")

    @contextmanager
    def room(self, words: ast.expr, hint: str) -> Iterator[str]:
        """Inside, the function has this many words, all 0; they are released however it goes on or ends."""
        room = self.writer.let(expr("zalloc(N * 8)", N=words), hint)
        self.needs(ast.Name(room, ast.Load()))
        self.rooms.append(room)
        yield room
        self.rooms.remove(room)
        self.writer.code("release(R)", R=room)

    def each_entry(self, table: str, take: Callable[[ast.expr], object], key: Sequence[EntryField]) -> None:
        """Write a loop over the entries of a table whose key belongs to the lane, by birth."""
        births = Births.of(self.writer, table)
        number = self.writer.fresh("n")
        with self.writer.for_(number, 0, births.count), self.scope.block():
            entry = self.scope.let(births.entry(number), "entry")
            self.if_mine(lambda: load_fields(self.scope, key, entry, ast.Name(table, ast.Load())), lambda: take(entry))

    def if_mine(self, key: Callable[[], Sequence[Val]], then: Callable[[], object]) -> None:
        """Write code that runs if this key belongs to the lane."""
        if self.lane_of is None:
            then()
            return
        hash32 = self.scope.let(self.lane_of(key()), "hash")
        route = expr("ld_u8(ld_i64(routing, R), H & MASK)", R=ROUTING_ROUTE, H=hash32, MASK=PARTITION_MASK)
        with self.scope.when(expr("R == ld_i64(routing, L)", R=route, L=ROUTING_LANE)):
            then()


@dataclass(frozen=True, slots=True)
class Held:
    """What the slot `name` of an operator holds, and what writes code to move it. The mover is in the function."""

    name: str
    move: Callable[[Mover], None]


Holds = Callable[[LogicalNode], tuple[Held, ...]]
HOLDS: dict[str, Holds] = {}


def holds(operator: str) -> Callable[[Holds], Holds]:
    """Register what the slots of an operator hold; its node says which rows wait for the watermark."""

    def register(function: Holds) -> Holds:
        enter(HOLDS, operator, function, "@holds")
        return function

    return register


def entries(name: str, keys: Keys) -> Held:
    """A table."""

    def move(mover: Mover) -> None:
        _move_entries(mover, expr("source"), expr("target"), keys)

    return Held(name, move)


def interval_entries(name: str, keys: Keys) -> Held:
    """Keyed intervals."""

    def move(mover: Mover) -> None:
        source, target = (expr("ld_i64(A, W)", A=a, W=intervals.INTERVALS_TABLE) for a in ("source", "target"))
        _move_entries(mover, source, target, keys)

    return Held(name, move)


def _move_entries(mover: Mover, source: ast.expr, target: ast.expr, keys: Keys) -> None:
    table, other = mover.writer.let(target, "table"), mover.writer.let(source, "other")
    mover.each_entry(
        other, lambda e: mover.needs(expr("table_take(T, O, E)", T=table, O=other, E=e)), keys.fields
    )  # fmt: skip


def log_entries(name: str, keys: Keys) -> Held:
    """A keyed log."""

    def move(mover: Mover) -> None:
        table = mover.writer.let(expr("ld_i64(source, W)", W=log_words.LOG_TABLE), "table")
        mover.each_entry(table, lambda e: mover.needs(expr("log_take(target, source, E)", E=e)), keys.fields)

    return Held(name, move)


def multimap_entries(name: str, keys: Keys) -> Held:
    """A multimap."""

    def move(mover: Mover) -> None:
        table = mover.writer.let(expr("ld_i64(source, W)", W=multimap_words.MULTIMAP_TABLE), "table")
        mover.each_entry(table, lambda e: mover.needs(expr("multimap_take(target, source, E)", E=e)), keys.fields)

    return Held(name, move)


def window_runs(name: str, keys: Keys) -> Held:
    """Windows of runs."""

    def move(mover: Mover) -> None:
        writer, place = mover.writer, mover.writer.fresh("place")
        windows = writer.let(expr("ld_i64(source, W)", W=runs_words.RUNS_PANES), "windows")
        with writer.for_(place, 0, expr("ld_i64(P, W)", P=windows, W=panes.PANES_COUNT)), mover.scope.block():
            record = writer.let(expr("ld_i64(ld_i64(P, W), N)", P=windows, W=panes.PANES_LIST, N=place), "record")
            table = writer.let(expr("ld_i64(R, W)", R=record, W=panes.PANE_TABLES), "table")
            mover.needs(expr("runs_take_window(target, source, N)", N=place))
            with mover.room(expr("ld_i64(T, W) + 1", T=table, W=TABLE_COUNT), "numbers") as numbers:
                taken = "runs_take(target, T, E, N)"
                mover.each_entry(
                    table, lambda e: mover.needs(expr(taken, T=table, E=e, N=numbers)), keys.fields
                )  # fmt: skip
                mover.needs(expr("runs_take_waits(target, R, N)", R=record, N=numbers))

    return Held(name, move)


def frame_rows(name: str, keys: Keys) -> Held:
    """Rows of frames."""

    def move(mover: Mover) -> None:
        table = mover.writer.let(expr("ld_i64(source, W)", W=frames.FRAMES_TABLE), "table")
        mover.each_entry(table, lambda e: mover.needs(expr("frames_take(target, source, E)", E=e)), keys.fields)

    return Held(name, move)


def ranked_rows(name: str, keys: Keys) -> Held:
    """Rows by rank."""

    def move(mover: Mover) -> None:
        table = mover.writer.let(expr("ld_i64(source, W)", W=ranks_words.RANKS_TABLE), "table")
        mover.each_entry(table, lambda e: mover.needs(expr("ranks_take(target, source, E)", E=e)), keys.fields)

    return Held(name, move)
