"""Groups in panes: the layout of their entries, merging one into another, and moving them to another state."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial

from cq.codegen.state.accumulators import Entry
from cq.codegen.state.aggregates import Accumulators
from cq.codegen.state.entry_moves import Held, Mover
from cq.codegen.state.hash_tables import Births, Keys, TableLocals, load_fields, string_words
from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr
from cq.lang.expressions import Expr
from cq.lang.types import BIGINT
from cq.planner.plan.calls import AggregateCall
from cq.records import dataclass
from cq.runtime.containers import pane_words as panes
from cq.runtime.containers.table_words import ENTRY_FIRST, ENTRY_KEYS, TABLE_COUNT
from cq.runtime.layout.pipeline import TableShape
from cq.runtime.layout.words import Word, beside


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """The layout of a group's entry. number_word: its number in the pane, for DISTINCT sets, or -1."""

    keys: Keys
    number_word: int
    accumulators: Accumulators
    shape: TableShape
    sets: tuple[Keys, ...]  # one for each distinct accumulator: (group number, argument)

    @property
    def shapes(self) -> tuple[TableShape, ...]:
        return (
            self.shape,
            *(TableShape(k.next_word, k.next_word - ENTRY_FIRST, string_words(k.fields)) for k in self.sets),
        )


def group_layout(keys: Sequence[Expr], calls: Sequence[AggregateCall]) -> GroupLayout:
    """The entry of a group: keys, its number if there are DISTINCT sets, the accumulators of the aggregates."""
    key = Keys.of([(k.type, k.nullable) for k in keys], name="GROUP_KEY")
    counted = any(c.distinct for c in calls)
    accumulators = Accumulators.of(calls, key.next_word + counted)
    strings = (*string_words(key.fields), *accumulators.strings)
    shape = TableShape(accumulators.next_word, key.next_word - ENTRY_KEYS, strings, accumulators.arrivals)
    sets = tuple(
        Keys.of([(BIGINT, False), (p.args[0].type, False)], ordered=False, name="MEMBER")
        for p in accumulators.all
        if p.distinct
    )
    return GroupLayout(key, Word(key.next_word, "GROUP_NUMBER") if counted else -1, accumulators, shape, sets)


def merge_group(scope: Scope, layout: GroupLayout, found: Entry, other: Entry) -> None:
    """Merge a group's entry into another of the same group; the result is as old as the older of them."""
    first = scope.let(expr("ld_i64(E, W)", E=other.address, W=ENTRY_FIRST), "first")
    with scope.when(expr("F < ld_i64(E, W)", F=first, E=found.address, W=ENTRY_FIRST)):
        scope.writer.code("st_i64(E, W, F)", E=found.address, W=ENTRY_FIRST, F=first)
    layout.accumulators.merge(scope, found, other)


def held_groups(name: str, layout: GroupLayout, merges: bool) -> Held:
    """Panes of groups. merges: panes that were filled separately are merged into one."""
    return Held(name, partial(_move_panes, layout=layout, merges=merges))


def _move_panes(mover: Mover, layout: GroupLayout, merges: bool) -> None:
    assert not (merges and layout.sets), "sets of distinct values filled apart"
    writer, scope = mover.writer, mover.scope
    target = TableLocals.declare(scope, layout.shape.entry_words)
    place = writer.fresh("place")
    with writer.for_(place, 0, expr("ld_i64(source, W)", W=panes.PANES_COUNT)), scope.block():
        record = writer.let(expr("ld_i64(ld_i64(source, W), N)", W=panes.PANES_LIST, N=place), "record")
        into = writer.let(expr("panes_take(target, source, N)", N=place), "into")
        mover.needs(ast.Name(into, ast.Load()))
        groups = writer.let(expr("ld_i64(R, W)", R=record, W=panes.PANE_TABLES), "groups")
        target.use(expr("ld_i64(R, W)", R=into, W=panes.PANE_TABLES))
        if merges:
            mover.each_entry(groups, lambda e: _count_group(mover, layout, target, groups, e), layout.keys.fields)
        elif not layout.sets:
            mover.each_entry(groups, lambda e: _take_group(mover, target, groups, e), layout.keys.fields)
        else:
            _move_numbered(mover, layout, target, groups, record, into)


def _take_group(mover: Mover, target: TableLocals, groups: str, entry: ast.expr) -> ast.expr:
    """Copy a group that the target does not have."""
    made = mover.writer.let(expr("table_take(T, S, E)", T=target.table, S=groups, E=entry), "made")
    mover.needs(ast.Name(made, ast.Load()))
    return ast.Name(made, ast.Load())


def _count_group(mover: Mover, layout: GroupLayout, target: TableLocals, groups: str, entry: ast.expr) -> None:
    """Merge a group that the target may have already."""
    writer, scope = mover.writer, mover.scope
    mine = Entry(entry, ast.Name(groups, ast.Load()))
    found = writer.let(layout.keys.find(target, load_fields(scope, layout.keys.fields, mine.address, mine.table)), "at")
    with scope.when(expr("E == 0", E=found)):
        _take_group(mover, target, groups, entry)
        target.reload()
    with scope.otherwise():
        merge_group(scope, layout, Entry(ast.Name(found, ast.Load()), target.address), mine)


def _move_numbered(mover: Mover, layout: GroupLayout, target: TableLocals, groups: str, record: str, into: str) -> None:
    """Give groups with DISTINCT sets new numbers, and move the members of their sets accordingly."""
    writer, scope = mover.writer, mover.scope
    with mover.room(expr("ld_i64(G, W) + 1", G=groups, W=TABLE_COUNT), "numbers") as numbers:
        _take_numbered(mover, layout, target, groups, numbers)
        for index, keys in enumerate(layout.sets):
            word = beside(panes.PANE_TABLES, 1 + index, f"SET{index}")
            source = writer.let(expr("ld_i64(R, W)", R=record, W=word), "members")
            members = TableLocals.declare(scope, keys.next_word)
            members.use(expr("ld_i64(R, W)", R=into, W=word))
            _move_members(scope, keys, source, members, numbers)


def _take_numbered(mover: Mover, layout: GroupLayout, target: TableLocals, groups: str, numbers: str) -> None:
    """Copy groups, with the next numbers of the target; at the old number of each, `numbers` has 1 + the new one."""
    writer, scope = mover.writer, mover.scope

    def take(entry: ast.expr) -> None:
        old = scope.let(expr("ld_i64(E, W)", E=entry, W=layout.number_word), "old")
        made = _take_group(mover, target, groups, entry)
        count = scope.let(expr("ld_i64(T, W)", T=target.table, W=TABLE_COUNT), "count")
        writer.code("st_i64(E, W, C - 1)", E=made, W=layout.number_word, C=count)
        writer.code("st_i64(N, O, C)", N=numbers, O=old, C=count)

    mover.each_entry(groups, take, layout.keys.fields)


def _move_members(scope: Scope, keys: Keys, source: str, members: TableLocals, numbers: str) -> None:
    """Copy the members of a set whose groups were copied."""
    writer = scope.writer
    births = Births.of(writer, source)
    member = writer.fresh("member")
    with writer.for_(member, 0, births.count), scope.block():
        entry = scope.let(births.entry(member), "entry")
        number, value = load_fields(scope, keys.fields, entry, ast.Name(source, ast.Load()))
        new = scope.let(expr("ld_i64(N, O)", N=numbers, O=number.it), "new")
        with scope.when(expr("N != 0", N=new)):
            renumbered = Val(BIGINT, (scope.let(expr("N - 1", N=new), "number"),))
            keys.probe(members, [renumbered, value], ast.Constant(0), lambda e: None)
