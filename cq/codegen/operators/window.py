"""window: add rows to the groups of their pane; at a closing time, merge the window's panes and emit its groups."""

from __future__ import annotations

import ast
from collections.abc import Callable

from cq.codegen.arrivals import arrival_of
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import CLOSER_ARGUMENTS, Flow, closes, closing, consumes, due_on_grid, function, row_of
from cq.codegen.prefetch import prefetch, prefetch_ends, prefetch_members
from cq.codegen.stage_draft import Closer, DueWord, StageDraft
from cq.codegen.state.accumulators import Accumulator, Entry
from cq.codegen.state.entry_moves import Held, holds
from cq.codegen.state.groups import GroupLayout, group_layout, held_groups, merge_group
from cq.codegen.state.hash_tables import Births, Keys, TableLocals, load_fields
from cq.codegen.state.list_accumulators import OrderedArguments
from cq.codegen.state.pane_tables import PaneAtHand
from cq.codegen.state.prefetched_entries import prefetch_entry
from cq.codegen.values import Row, Val
from cq.codegen.writer import Fill, expr
from cq.lang.types import BIGINT, Physical
from cq.planner.operators import Aggregate, Window, WindowAggregate, WindowKind
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass
from cq.runtime.containers import disjoint_panes, slides, sliding
from cq.runtime.containers import pane_words as panes
from cq.runtime.containers.table_words import ENTRY_FIRST, TABLE_COUNT, TABLE_INDEX, TABLE_MASK
from cq.runtime.layout import abi
from cq.runtime.layout.pipeline import Grid, Slot
from cq.runtime.layout.words import Word, beside


def layout_of(node: WindowAggregate) -> GroupLayout:
    return group_layout(node.keys, node.aggregates)


def _slot(stage: StageDraft, node: WindowAggregate, layout: GroupLayout) -> Slot:
    w = node.window
    # the container's ends are closing times: `lag_us` later, as are all its times
    size = w.pane if w.kind is WindowKind.CUMULATE else w.size  # the closing function makes windows of them
    pane = (0, 0, 0, 0, 0, 0)
    if w.kind is not WindowKind.ATTACHED:
        pane = (w.pane, w.offset, size, w.slide, int(w.by_calendar), w.shift_us + node.lag_us)
    return stage.slot(
        node, "panes",
        lambda offset: Slot(
            "panes", offset, "panes", node.identity, shapes=layout.shapes, parameters=pane
        ),
    )  # fmt: skip


@holds("window")
def held_window(node: LogicalNode) -> tuple[Held, ...]:
    """The groups of open panes, which several workers may have filled separately."""
    assert isinstance(node, WindowAggregate)
    return (held_groups("panes", layout_of(node), node.merges_exactly and node.merge_pays),)


@consumes("window", copies_text=False)
def consume_window(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Find the row's pane and group, and add to it."""
    assert isinstance(node, WindowAggregate)
    with flow.on_time(node):
        layout = layout_of(node)
        slot = _slot(flow.stage, node, layout)
        add = _attached if node.window.kind is WindowKind.ATTACHED else _on_grid
        add(flow, node, row, layout, slot)


def pane_at_hand(flow: Flow, slot: Slot, **marks: int) -> PaneAtHand:
    """The pane of the last row, whichever way it came. marks: as in `PaneAtHand.declare`."""
    if slot.offset not in flow.panes:
        pane = flow.panes[slot.offset] = PaneAtHand.declare(flow.scope, slot.shapes, marks)
        flow.stale.append(pane.forget)
    return flow.panes[slot.offset]


def _attached(flow: Flow, node: WindowAggregate, row: Row, layout: GroupLayout, slot: Slot) -> None:
    """Add to the window that the row already belongs to."""
    writer, pane = flow.writer, pane_at_hand(flow, slot, pane_end=abi.NEVER, pane_start=0)
    last_end, last_start = pane.marks
    state = writer.word("state", slot.offset, "panes")
    end = row.column(node.window.time.column).it
    start = row.column(node.window.start_column).it
    if node.lag_us:
        end = flow.scope.let(expr("T + L", T=end, L=node.lag_us), "closes")
    with flow.scope.when(expr("END != E or START != S", END=end, E=last_end, START=start, S=last_start)):
        record = writer.let(expr("panes_attach(P, END, START)", P=state, END=end, START=start), "record")
        with flow.scope.when(expr("R == 0", R=record)):
            flow.no_memory("open windows")
        writer.set(last_end, end)
        writer.set(last_start, start)
        pane.use(record)
    add_row(flow, node, layout, pane, row, arrival_of(flow, node))


def _on_grid(flow: Flow, node: WindowAggregate, row: Row, layout: GroupLayout, slot: Slot) -> None:
    """Add to the pane of the row's time, or to none between windows."""
    writer, pane = flow.writer, pane_at_hand(flow, slot, pane_lo=0, pane_hi=0, pane=0)
    lo, hi, record = pane.marks
    state = writer.word("state", slot.offset, "panes")
    time = row.column(node.window.time.column).it
    shift_us = node.window.time.shift_us + node.lag_us
    if shift_us:
        time = flow.scope.let(expr("T + S", T=time, S=shift_us), "t")
    with flow.scope.when(expr("T < LO or T >= HI", T=time, LO=lo, HI=hi)):
        writer.set(record, expr("panes_find(P, T)", P=state, T=time))
        with flow.scope.when(expr("R == 0", R=record)):
            flow.no_memory("open panes")
        writer.set(lo, expr("ld_i64(P, W)", P=state, W=panes.PANES_LO))
        writer.set(hi, expr("ld_i64(P, W)", P=state, W=panes.PANES_HI))
        with flow.scope.when(expr("R != -1", R=record)):
            pane.use(record)
    arrival = arrival_of(flow, node)
    if node.window.slide > node.window.size:
        with flow.scope.when(expr("R != -1", R=record)):
            add_row(flow, node, layout, pane, row, arrival)
    else:
        add_row(flow, node, layout, pane, row, arrival)


def add_row(
    flow: Flow, node: WindowAggregate | Aggregate, layout: GroupLayout, pane: PaneAtHand, row: Row, arrival: ast.expr
) -> None:
    """Find or make the row's group and add the row to every aggregate. arrival: orders groups by first row."""
    scope, local = flow.scope, pane.groups
    distinct = [p for p in layout.accumulators.all if p.distinct]
    if distinct:
        sets = [(keys, held, p.args[0]) for keys, held, p in zip(layout.sets, pane.sets, distinct, strict=True)]
        prefetch_members(flow, node.input, layout.keys, local, node.keys, layout.number_word, sets)
    else:
        prefetch(flow, node.input, layout.keys, local, node.keys, changed=True)
    ends = [word for kept in layout.accumulators.all for word in kept.lists]
    prefetch_ends(flow, node.input, layout.keys, local, node.keys, ends)
    key_values = [emit(scope, row, k) for k in node.keys]
    found = layout.keys.recall(local, key_values, arrival, lambda e: _start(flow, layout, local, e))
    entry = Entry(found, local.address)

    def once(accumulator: Accumulator, value: Val, then: Callable[[], None]) -> None:
        index = distinct.index(accumulator)
        number = Val(BIGINT, (scope.let(expr("ld_i64(E, W)", E=entry.address, W=layout.number_word), "number"),))
        layout.sets[index].probe(pane.sets[index], [number, value], flow.serial, lambda e: then())

    layout.accumulators.add(scope, entry, row, arrival, once)


def _start(flow: Flow, layout: GroupLayout, local: TableLocals, entry: ast.expr) -> None:
    """Initialise a new group: no rows yet, and the next number of its pane."""
    if layout.number_word >= 0:
        number = expr("ld_i64(T, W) - 1", T=local.table, W=TABLE_COUNT)
        flow.writer.code("st_i64(E, W, N)", E=entry, W=layout.number_word, N=number)
    layout.accumulators.start(flow.scope, Entry(entry, local.address))


def grid_of_ends(window: Window, lag_us: int) -> Grid:
    """The times at which its windows close."""
    if window.by_calendar:
        return Grid(window.slide, window.offset + window.size, True, window.shift_us + lag_us)
    return Grid(window.slide, window.offset + window.size + lag_us)


@due_on_grid("window")
def due_window(stage: StageDraft, node: LogicalNode) -> tuple[DueWord, ...]:
    """The first window to close."""
    assert isinstance(node, WindowAggregate)
    return (DueWord(_slot(stage, node, layout_of(node)), panes.PANES_NEXT_END),)


@closes("window")
def close_window(stage: StageDraft, node: LogicalNode) -> None:
    """A function that emits the groups of the window that is due; it resumes where a full port stopped it."""
    assert isinstance(node, WindowAggregate)
    layout = layout_of(node)
    slot = _slot(stage, node, layout)
    if node.window.kind is not WindowKind.ATTACHED:
        stage.grids.append(grid_of_ends(node.window, node.lag_us))
    name = f"close_{slot.offset}"
    (due,) = due_window(stage, node)
    stage.closers.append(Closer(name, due.next_end, stage.order[id(node)]))
    event = closing(stage, node, ast.Name("instant", ast.Load()), ast.Name("start", ast.Load()))
    with function(stage, name, CLOSER_ARGUMENTS, node, event) as flow:
        state = flow.writer.word("state", slot.offset, "panes")
        flow.writer.code("if ld_i64(P, NEXT) != instant:\n    return 0", P=state, NEXT=panes.PANES_NEXT_END)
        if node.window.kind is WindowKind.CUMULATE:
            _close_growing(flow, node, layout, state)
            return
        if stage.planned.collects:
            fold(flow, layout, state, may_share_groups)
        if node.window.kind is WindowKind.ATTACHED:
            _close_attached(flow, node, layout, state)
        else:
            _close_on_grid(flow, node, layout, state)


def _close_on_grid(flow: Flow, node: WindowAggregate, layout: GroupLayout, state: str) -> None:
    writer = flow.writer
    if node.window.by_calendar:
        writer.code(
            "start = time_of_months(months_of_time(instant - CLOSES) - SIZE) + SHIFT",
            CLOSES=node.window.shift_us + node.lag_us, SIZE=node.window.size, SHIFT=node.window.shift_us,
        )  # fmt: skip
    else:
        size = Word(node.window.size + node.lag_us, "WINDOW_US")
        writer.code("start = instant - SIZE", SIZE=size)
    if node.window.size == node.window.pane:
        record = writer.let(expr("ld_i64(ld_i64(P, W), 0)", P=state, W=panes.PANES_LIST), "record")
        table = writer.let(expr("ld_i64(R, W)", R=record, W=panes.PANE_TABLES), "table")
    else:
        table = _merged(flow, node, layout, state)
    _emit_groups(flow, node, layout, state, table)
    writer.code("panes_closed(P)", P=state)
    flow.leave(ast.Constant(abi.DONE))


def _close_growing(flow: Flow, node: WindowAggregate, layout: GroupLayout, state: str) -> None:
    """Merge the panes that have ended, for good: the window's pane, and those of its start that end later."""
    writer, window = flow.writer, node.window
    ends = expr("instant - CLOSES", CLOSES=window.shift_us + node.lag_us)
    end = writer.let(expr("months_of_time(T)", T=ends) if window.by_calendar else ends, "last")
    aligned = "E - PANE - floormod(E - PANE - AT, SIZE)"
    begin = writer.let(expr(aligned, E=end, PANE=window.pane, AT=window.offset, SIZE=window.size), "first")
    start = "time_of_months(B) + S" if window.by_calendar else "B"
    writer.code("start = T", T=expr(start, B=begin, S=window.shift_us))
    fold(flow, layout, state, _has_ended)
    record = writer.let(expr("ld_i64(ld_i64(P, W), 0)", P=state, W=panes.PANES_LIST), "record")
    table = writer.let(expr("ld_i64(R, W)", R=record, W=panes.PANE_TABLES), "table")
    _emit_groups(flow, node, layout, state, table)
    with writer.if_(expr("E == B + SIZE", E=end, B=begin, SIZE=window.size)):
        writer.code("panes_closed(P)", P=state)
    with writer.otherwise():
        writer.code("panes_grows(P)", P=state)
    flow.leave(ast.Constant(abi.DONE))


def _merged(flow: Flow, node: WindowAggregate, layout: GroupLayout, state: str) -> str:
    """The scratch table with the window's panes merged left to right; done once per window, not at every resume.

    `panes_step` decides what is merged into what, panes or sums of panes.
    """
    writer, scope = flow.writer, flow.scope
    table = writer.let(expr("ld_i64(P, W)", P=state, W=panes.PANES_SCRATCH), "table")
    target = TableLocals.declare(scope, layout.shape.entry_words)
    with scope.when(expr("ld_i64(P, W) < 0", P=state, W=panes.PANES_CURSOR)):
        with scope.when(expr("panes_begin(P) == 0", P=state)):
            flow.no_memory("merging panes")
        writer.set(table, expr("panes_scratch(P)", P=state))
        with scope.when(expr("T == 0", T=table)):
            flow.no_memory("merging panes")
        begin = expr("start + L", L=node.lag_us) if node.lag_us else expr("start")
        step = writer.let(ast.Constant(sliding.ADD), "step")
        with writer.while_(expr("S == ADD", S=step, ADD=sliding.ADD)), scope.block():
            writer.set(
                step, expr("panes_step(P, B, instant, EXACT)", P=state, B=begin, EXACT=int(_slides(node, layout)))
            )
            with scope.when(expr("S == NO", S=step, NO=sliding.NO_MEMORY)):
                flow.no_memory("merging panes")
            with scope.when(expr("S == ADD", S=step, ADD=sliding.ADD)):
                sums = writer.let(expr("ld_i64(P, W)", P=state, W=panes.PANES_SLIDES), "sums")
                target.use(expr("ld_i64(S, W)", S=sums, W=slides.SLIDES_INTO))
                _merge_table(flow, layout, target, expr("ld_i64(S, W)", S=sums, W=slides.SLIDES_SOURCE))
        with scope.when(expr("table_sort_births(T) == 0", T=table)):
            flow.no_memory("ordering groups")
    return table


def _slides(node: WindowAggregate, layout: GroupLayout) -> bool:
    """Whether panes can be added in any grouping, and a group is a few words: sums hold it many times."""
    kept = any(isinstance(accumulator, OrderedArguments) for accumulator in layout.accumulators.all)
    return node.merges_exactly and not layout.sets and not kept


def may_share_groups(state: str, into: str, record: str, place: str) -> ast.expr:
    """Whether several workers have filled one pane without splitting its keys among them."""
    return expr(
        "ld_i64(A, W) == ld_i64(B, W) and panes_apart(P, N - 1) == 0",
        A=into, B=record, W=panes.PANE_FIRST, P=state, N=place,
    )  # fmt: skip


def _has_ended(state: str, into: str, record: str, place: str) -> ast.expr:
    return expr("ld_i64(R, W) < instant", R=record, W=panes.PANE_FIRST)


def fold(flow: Flow, layout: GroupLayout, state: str, alike: Callable[[str, str, str, str], ast.expr]) -> None:
    """Merge a pane and those after it that are alike, left to right, with the groups in first-arrival order."""
    writer, scope = flow.writer, flow.scope
    records = writer.let(expr("ld_i64(P, W)", P=state, W=panes.PANES_LIST), "records")
    place = writer.let(ast.Constant(1), "place_")
    target = TableLocals.declare(scope, layout.shape.entry_words)
    with writer.while_(expr("N < ld_i64(P, W)", N=place, P=state, W=panes.PANES_COUNT)), scope.block():
        into = writer.let(expr("ld_i64(R, N - 1)", R=records, N=place), "into")
        record = writer.let(expr("ld_i64(R, N)", R=records, N=place), "record")
        with scope.when(alike(state, into, record, place)):
            target.use(expr("ld_i64(R, W)", R=into, W=panes.PANE_TABLES))
            _merge_pane(flow, layout, target, record)
            with scope.when(expr("table_sort_births(T) == 0", T=target.table)):
                flow.no_memory("ordering groups")
            writer.code("panes_remove(P, N)", P=state, N=place)
        with scope.otherwise():
            writer.set(place, expr("N + 1", N=place))


def _merge_pane(flow: Flow, layout: GroupLayout, target: TableLocals, record: str) -> None:
    """Add every group of a pane to the target, in first-arrival order."""
    _merge_table(flow, layout, target, expr("ld_i64(R, W)", R=record, W=panes.PANE_TABLES))


def _merge_table(flow: Flow, layout: GroupLayout, target: TableLocals, groups: ast.expr) -> None:
    """Add every group of a table to the target, in order of birth.

    Its slot is looked into first: groups that came in the same order, or were copied, are in the same slots.
    """
    writer, scope = flow.writer, flow.scope
    source = writer.let(groups, "source")
    births = Births.of(writer, source)
    in_slots = writer.let(expr("ld_i64(S, W)", S=source, W=TABLE_MASK), "in_slots")
    with scope.when(expr("ld_i64(S, W) != 0", S=source, W=TABLE_INDEX)):
        writer.set(in_slots, expr("-1"))
    group = writer.fresh("group")

    def entry_of(number: Fill) -> Entry:
        return Entry(scope.let(births.entry(number), "from_"), ast.Name(source, ast.Load()))

    early = writer.fresh("group")
    with writer.for_(early, 0, expr("min(2 * N, LAST)", N=GROUPS_AHEAD, LAST=births.count)), scope.block():
        writer.code("prefetch(E)", E=entry_of(early).address)
    with writer.for_(group, 0, births.count), scope.block():
        _fetch_ahead(flow, layout, target, entry_of, group, births.count)
        from_entry = entry_of(group)
        values = _load_keys(flow, layout.keys, from_entry)
        first = scope.let(expr("ld_i64(E, W)", E=from_entry.address, W=ENTRY_FIRST), "first")
        slot = expr("T + F - S", T=target.entries, F=from_entry.address, S=births.entries)
        likely = expr("pick(M == N and I == 0, SLOT, 0)", M=target.mask, N=in_slots, I=target.index, SLOT=slot)
        found = layout.keys.probe(target, values, first, lambda e: _start(flow, layout, target, e), likely)
        merge_group(scope, layout, Entry(found, target.address), from_entry)


# Prefetch distance of a merge, CPU ns per row of a hopping count: 4 6.57, 8 6.27, 12 6.27, 16 6.45 (AMD EPYC). On an
# Intel processor, before groups were fetched to be written: 4 7.7, 8 8.0, 16 8.15, 32 8.45, none 9.15.
GROUPS_AHEAD = Word(8, "GROUPS_AHEAD")


def _fetch_ahead(
    flow: Flow, layout: GroupLayout, target: TableLocals, entry_of: Callable[[Fill], Entry], group: str, count: str
) -> None:
    """Prefetch a later group's entry, and the entry that a nearer one, whose key is here by now, is merged into.

    The first pays in small tables too: with many panes most are in no cache.
    """
    writer, scope = flow.writer, flow.scope
    later = entry_of(expr("min(G + 2 * N, LAST - 1)", G=group, N=GROUPS_AHEAD, LAST=count))
    writer.code("prefetch(E)", E=later.address)
    if any(f.type.physical is Physical.BYTES for f in layout.keys.fields):
        return
    with scope.when(target.is_large()):
        soon = entry_of(expr("min(G + N, LAST - 1)", G=group, N=GROUPS_AHEAD, LAST=count))
        prefetch_entry(layout.keys, target, lambda: _load_keys(flow, layout.keys, soon), None, changed=True)


def _load_keys(flow: Flow, keys: Keys, entry: Entry) -> list[Val]:
    return load_fields(flow.scope, keys.fields, entry.address, entry.table)


@dataclass(frozen=True, slots=True)
class EmittedGroups:
    """Groups that are emitted together, by first arrival. entry: writes code that finds the group with a number."""

    count: str
    entry: Callable[[str], Entry]


def groups_in_order(flow: Flow, state: str, table: str, first: str, apart: bool) -> EmittedGroups:
    """The groups of the table; if apart, also those of the panes beside it. first: the number to begin with."""
    writer, scope = flow.writer, flow.scope
    births = Births.of(writer, table)
    if not apart:
        return EmittedGroups(
            births.count, lambda group: Entry(scope.let(births.entry(group), "entry"), ast.Name(table, ast.Load()))
        )
    found = writer.let(expr("groups_apart(P, F)", P=state, F=first), "apart")
    with scope.when(expr("N < 0", N=found)):
        flow.no_memory("ordering groups")
    count = writer.let(expr("max(A, N)", A=found, N=births.count), "groups")
    rounds = writer.let(expr("ld_i64(P, W)", P=state, W=panes.PANES_ROUNDS), "rounds")
    owner = writer.let(ast.Name(table, ast.Load()), "owner")

    def entry_of(group: str) -> Entry:
        entry = writer.let(ast.Constant(0), "entry")
        with writer.if_(expr("A == 0", A=found)):
            writer.set(entry, births.entry(group))
        with writer.otherwise():
            writer.code("if G & (ROUND - 1) == 0:\n    panes_round(P)", G=group, ROUND=disjoint_panes.ROUND, P=state)
            for name, which in (
                (entry, disjoint_panes.ROUNDS_ORDER),
                (owner, beside(disjoint_panes.ROUNDS_ORDER, 1, "OWNER")),
            ):
                place = expr("R + (G & (ROUND - 1)) * 16", R=rounds, G=group, ROUND=disjoint_panes.ROUND)
                writer.set(name, expr("ld_i64(AT, W)", AT=place, W=which))
        return Entry(ast.Name(entry, ast.Load()), ast.Name(owner, ast.Load()))

    return EmittedGroups(count, entry_of)


def _emit_groups(flow: Flow, node: WindowAggregate, layout: GroupLayout, state: str, table: str) -> None:
    """Emit every group from the cursor on; at a full port, save the cursor and return MORE."""
    writer, scope = flow.writer, flow.scope
    cursor = writer.let(expr("max(ld_i64(P, W), 0)", P=state, W=panes.PANES_CURSOR), "from_")

    def stop_when_full(group: str) -> None:
        for port in flow.ports.values():
            with scope.when(expr("R >= ld_i64(P, W)", R=port.rows, P=port.place, W=abi.PORT_LIMIT)):
                writer.code("st_i64(P, W, G)", P=state, W=panes.PANES_CURSOR, G=group)
                flow.leave(ast.Constant(abi.MORE))

    groups = groups_in_order(flow, state, table, cursor, flow.stage.planned.collects and node.closes_one_pane)
    _each_group(flow, node, layout, groups, ast.Name(cursor, ast.Load()), stop_when_full)


def _each_group(
    flow: Flow,
    node: WindowAggregate,
    layout: GroupLayout,
    groups: EmittedGroups,
    first: ast.expr,
    before: Callable[[str], None],
) -> None:
    """Deliver the groups from number `first` on. before(group): writes the code that precedes each."""
    writer, scope = flow.writer, flow.scope
    group = writer.fresh("group")
    with writer.for_(group, first, groups.count), scope.block():
        before(group)
        entry = groups.entry(group)
        writer.code("arrival = ld_i64(E, W)", E=entry.address, W=ENTRY_FIRST)
        end = scope.let(expr("instant - L", L=node.lag_us), "end") if node.lag_us else expr("instant")
        times = [expr("start"), end, scope.let(expr("E - 1", E=end), "time")]
        bounds = (Val(type_, (t,)) for type_, t in zip(node.schema.types, times, strict=False))
        values = [*bounds, *_load_keys(flow, layout.keys, entry)]
        with flow.of_group(node.key_names, layout.keys, entry.address, entry.table, node.lag_us):
            values += layout.accumulators.values(scope, entry)
            flow.deliver(node, row_of(scope, values))


def _close_attached(flow: Flow, node: WindowAggregate, layout: GroupLayout, state: str) -> None:
    """Close every window that ends now, by start; each is one record."""
    writer = flow.writer
    with writer.while_(expr("ld_i64(P, W) == instant", P=state, W=panes.PANES_NEXT_END)), flow.scope.block():
        record = writer.let(expr("ld_i64(ld_i64(P, W), 0)", P=state, W=panes.PANES_LIST), "record")
        writer.code("start = ld_i64(R, W)", R=record, W=panes.PANE_SECOND)
        table = writer.let(expr("ld_i64(R, W)", R=record, W=panes.PANE_TABLES), "table")
        _emit_groups(flow, node, layout, state, table)
        writer.code("panes_closed(P)", P=state)
    flow.leave(ast.Constant(abi.DONE))
