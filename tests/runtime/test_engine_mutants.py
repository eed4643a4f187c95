"""Bugs planted in admission, sending, splitting and merging are seen by the engine's own tests, interpreted."""

from __future__ import annotations

import pytest
from mutate import Mutant, in_turn

MIXED = "cq.runtime.flow.mixed"
MERGE = ("test_admission.py",)
ENGINE = ("test_engine.py",)
SAFE = "interpreted and not compiled"

PARTIALS = ("test_partials.py",)
SCHEDULES = "of_one_worker and 4-tumble"

BRANCHES = ("test_chains.py",)
BRANCHED = "branches_interpreted"

STAGE, WORKERS = "cq.runtime.engine.stage", ("test_engine_workers.py",)
WAKE_UPS = ("test_wake_ups.py",)
PARCEL, DEPOTS = "cq.runtime.flow.parcel", ("test_depot_schedules.py",)

SHARED = "cq.runtime.engine.ways.shared"
MOVES, PROBES = ("test_engine_schedules.py",), "shared_probes"

MUTANTS = {
    "tickets are shared before a side of the join is complete": Mutant(
        SHARED,
        "    return 1 if ld_i64(item, BATCH_ENDED) & complete == complete else 0\n",
        "    return 1 if ld_i64(item, BATCH_ENDED) >= 0 else complete\n",
        MOVES,
        PROBES,
    ),
    "tickets are shared before their turn is known": Mutant(
        SHARED,
        "    reorder_begin(ld_i64(stage, STAGE_REORDER), ticket)\n    at_store_rel(shared + SHARED_BEGUN * 8, 1)\n",
        "    at_store_rel(shared + SHARED_BEGUN * 8, 1)\n    reorder_begin(ld_i64(stage, STAGE_REORDER), ticket)\n",
        MOVES,
        PROBES,
    ),
    "that tickets are shared is told before the last rows are kept": Mutant(
        SHARED,
        "    at_store_rel(shared + SHARED_BEGUN * 8, 1)\n",
        "    st_i64(shared, SHARED_BEGUN, 1)\n",
        MOVES,
        PROBES,
    ),
    "rows that waited for company stay behind when tickets are shared": Mutant(
        SHARED,
        "    if holds_rows(stage, owner) == 1:\n",
        "    if holds_rows(stage, owner) == 2:\n",
        MOVES,
        PROBES,
    ),
    "the ticket that is shared first stays with the loop, too": Mutant(
        SHARED,
        "    st_i64(owner, TASK_ITEM, 0)\n",
        "",
        ("test_shared_joins.py",),
        "paused and interpreted",
    ),
    "workers that share tickets share a cursor": Mutant(
        "cq.runtime.engine.plant",
        "        views.append(plant.host.place(bytes(8 * spec.state_words)))\n",
        "        views.append(state)\n",
        MOVES,
        PROBES,
    ),
    "a row takes its turn as if there were no other branch": Mutant(
        "cq.codegen.flow", "            self.turn = behind\n", "            self.turn += 0\n", BRANCHES, BRANCHED
    ),
    "a branch is handed the rows of the first": Mutant(
        "cq.runtime.flow.split",
        "        _share_segment(split, lane, segment, branch)\n",
        "        _share_segment(split, lane, segment, 0)\n",
        BRANCHES,
        BRANCHED,
    ),
    "branches share the lanes of the first": Mutant(
        "cq.runtime.engine.ways.lanes", "bytes(each * branch + n % each", "bytes(n % each", BRANCHES, BRANCHED
    ),
    "a row that comes together with others is told by its columns alone": Mutant(
        "cq.planner.physical.crossing_rows",
        "Literal(BOOLEAN, False, n == number)",
        "Literal(BOOLEAN, False, True)",
        BRANCHES,
        BRANCHED,
    ),
    "a task is idle before its ticket has left": Mutant(
        "cq.runtime.engine.ways.any_worker",
        "                reorder_next(buffer)\n                pool_put(ld_i64(task, TASK_HOME), task)\n",
        "                pool_put(ld_i64(task, TASK_HOME), task)\n                reorder_next(buffer)\n",
        ("test_engine_workers.py",),
        "is_idle_again",
    ),
    "a split is idle before its ticket has left": Mutant(
        "cq.runtime.engine.ways.lanes",
        "                reorder_next(buffer)\n                pool_put(ld_i64(split, SPLIT_HOME), split)\n",
        "                pool_put(ld_i64(split, SPLIT_HOME), split)\n                reorder_next(buffer)\n",
        WORKERS,
        "is_idle_again",
    ),
    "the signal moves before results are unheard of": Mutant(
        STAGE,
        "    at_add(engine + ENGINE_SIGNAL * 8, 1)\n    if",
        "    if",
        WORKERS,
        "is_told_of_every_result",
        (
            (
                "    at_store(engine + ENGINE_UNHEARD * 8, 0)  # first",
                "    at_add(engine + ENGINE_SIGNAL * 8, 1)\n    at_store(engine + ENGINE_UNHEARD * 8, 0)  # second",
            ),
        ),
    ),
    "nobody is woken when tickets are shared": Mutant(
        SHARED, "    wake_workers(engine, ld_i64(engine, ENGINE_WORKERS))", "    pass", WAKE_UPS, "shared"
    ),
    "nobody is woken when a ticket is dealt": Mutant(
        "cq.runtime.engine.ways.deals",
        "    wake_workers(ld_i64(stage, STAGE_ENGINE), ld_i64(partials, PARTIALS_COUNT) - 1)\n",
        "",
        WAKE_UPS,
        "dealt",
    ),
    "nobody is woken when parts are collected": Mutant(
        "cq.runtime.engine.ways.loop",
        "        wake_workers(engine, ld_i64(engine, ENGINE_WORKERS))\n",
        "",
        WAKE_UPS,
        "collected",
    ),
    "nobody is woken when rows are spread over lanes": Mutant(
        "cq.runtime.engine.ways.lanes",
        "                wake_workers(ld_i64(stage, STAGE_ENGINE), 1)\n",
        "",
        WAKE_UPS,
        "spread",
    ),
    "nobody is woken when several tickets are admitted": Mutant(
        "cq.runtime.engine.worker", "        wake_workers(engine, made - 1)\n", "        pass\n", WAKE_UPS, "admitted"
    ),
    "workers are woken before the rows are in the ring": Mutant(
        STAGE,
        "        _push(ld_i64(following, STAGE_INPUT), parcel)\n        wake_workers(engine, 1)\n",
        "        wake_workers(engine, 1)\n        _push(ld_i64(following, STAGE_INPUT), parcel)\n",
        WORKERS,
        "falls_asleep",
    ),
    "workers are woken before the failure is in the ring": Mutant(
        STAGE,
        """        _push(ld_i64(following, STAGE_INPUT), item)
        wake_workers(ld_i64(stage, STAGE_ENGINE), 1)
""",
        """        wake_workers(ld_i64(stage, STAGE_ENGINE), 1)
        _push(ld_i64(following, STAGE_INPUT), item)
""",
        WORKERS,
        "falls_asleep",
    ),
    "the signal moves before the run is over": Mutant(
        STAGE,
        """    at_cas(engine + ENGINE_OUTCOME * 8, RUNNING, outcome)
    signal_feeder(engine)
""",
        """    signal_feeder(engine)
    at_cas(engine + ENGINE_OUTCOME * 8, RUNNING, outcome)
""",
        WORKERS,
        "told_that_the_run_is_over",
    ),
    "the run is over before its last row is in a ring": Mutant(
        STAGE,
        """    _push(ld_i64(sink, SINK_RING), parcel_compact(parcel))
    announce_results(engine, ring_size(ld_i64(sink, SINK_RING)))
    if left >= 0 and left == rows:
        conclude_if_satisfied(engine)
""",
        """    if left >= 0 and left == rows:
        conclude_if_satisfied(engine)
    _push(ld_i64(sink, SINK_RING), parcel_compact(parcel))
    announce_results(engine, ring_size(ld_i64(sink, SINK_RING)))
""",
        WORKERS,
        "finds_its_last_row",
    ),
    "sources are looked at when others may admit": Mutant(
        "cq.runtime.engine.worker",
        """        short = _runs_short(admission)  # before another worker is at it
    at_store(admission + ADMISSION_BUSY * 8, 0)
    if taken > 0:
""",
        """        short = 0
    at_store(admission + ADMISSION_BUSY * 8, 0)
    if taken > 0:
        short = _runs_short(admission)
""",
        WORKERS,
        "before_another_one_admits",
    ),
    "what was taken is counted when others may admit": Mutant(
        "cq.runtime.engine.worker",
        """    taken = ld_i64(admission, ADMISSION_LOANS) - loans
    short = 0
    if taken > 0:
        short = _runs_short(admission)  # before another worker is at it
    at_store(admission + ADMISSION_BUSY * 8, 0)
""",
        """    short = _runs_short(admission)
    at_store(admission + ADMISSION_BUSY * 8, 0)
    taken = ld_i64(admission, ADMISSION_LOANS) - loans
""",
        WORKERS,
        "before_another_one_admits",
    ),
    "a depot is emptied before it is closed": Mutant(
        PARCEL,
        "    at_store(depot + DEPOT_CLOSED * 8, 1)\n    _empty(depot)\n",
        "    _empty(depot)\n    at_store(depot + DEPOT_CLOSED * 8, 1)\n",
        DEPOTS,
    ),
    "an engine leaves its depot before it has emptied it": Mutant(
        PARCEL,
        "    at_store(depot + DEPOT_CLOSED * 8, 1)\n    _empty(depot)\n    _leave(depot)\n",
        "    at_store(depot + DEPOT_CLOSED * 8, 1)\n    _leave(depot)\n    _empty(depot)\n",
        DEPOTS,
    ),
    "a parcel is cleared when it is on the free list": Mutant(
        PARCEL,
        """    parcel_clear(parcel)
    at_add(depot + DEPOT_USERS * 8, 1)  # this call looks at the depot after the parcel may be gone
    if free_list_put(depot + DEPOT_FREE * 8, IDLE_PARCELS, parcel) == 0:
""",
        """    at_add(depot + DEPOT_USERS * 8, 1)
    put = free_list_put(depot + DEPOT_FREE * 8, IDLE_PARCELS, parcel)
    parcel_clear(parcel)
    if put == 0:
""",
        DEPOTS,
    ),
    "who returns a parcel uses the depot when the parcel is on the free list": Mutant(
        PARCEL,
        """    at_add(depot + DEPOT_USERS * 8, 1)  # this call looks at the depot after the parcel may be gone
    if free_list_put(depot + DEPOT_FREE * 8, IDLE_PARCELS, parcel) == 0:
""",
        """    put = free_list_put(depot + DEPOT_FREE * 8, IDLE_PARCELS, parcel)
    at_add(depot + DEPOT_USERS * 8, 1)
    if put == 0:
""",
        DEPOTS,
    ),
    "who returns a parcel looks for a closed depot before it puts it": Mutant(
        PARCEL,
        """    if free_list_put(depot + DEPOT_FREE * 8, IDLE_PARCELS, parcel) == 0:
        parcel_free(parcel)
    elif at_load(depot + DEPOT_CLOSED * 8) == 1:
""",
        """    closed = at_load(depot + DEPOT_CLOSED * 8)
    if free_list_put(depot + DEPOT_FREE * 8, IDLE_PARCELS, parcel) == 0:
        parcel_free(parcel)
    elif closed == 1:
""",
        DEPOTS,
    ),
    "bytes are counted in a depot that may be gone": Mutant(
        PARCEL,
        "    at_add(depot + DEPOT_BYTES * 8, -ld_i64(parcel, PARCEL_BYTES))\n    release(parcel)\n    _leave(depot)\n",
        "    _leave(depot)\n    at_add(depot + DEPOT_BYTES * 8, -ld_i64(parcel, PARCEL_BYTES))\n    release(parcel)\n",
        DEPOTS,
    ),
    "a part in use is collected": Mutant(
        "cq.runtime.engine.ways.parts",
        "at_cas(part + PART_LOCK * 8, BUSY, MARKED):\n            return MARKED",
        "at_cas(part + PART_LOCK * 8, BUSY, MARKED):\n            return HELD",
        PARTIALS,
        SCHEDULES,
    ),
    "a part is taken without looking": Mutant(
        "cq.runtime.engine.ways.parts",
        "    if at_load(part + PART_LOCK * 8) != FREE or left_to_owner(partials, worker) == 1:\n        return 0\n",
        "    at_store(part + PART_LOCK * 8, FREE)\n",
        PARTIALS,
        "of_one_worker and hop",
    ),
    "a part stays held once it is collected": Mutant(
        "cq.runtime.engine.ways.parts",
        "            elif lock == HELD:\n                at_store(part + PART_LOCK * 8, FREE)\n",
        "",
        PARTIALS,
        "stays_held",
    ),
    "panes are collected but no window of theirs closes": Mutant(
        "cq.runtime.containers.panes",
        "min(ld_i64(target, PANES_NEXT_END), _due(target, start))",
        "max(ld_i64(target, PANES_NEXT_END), _due(target, start))",
        PARTIALS,
        SCHEDULES,
    ),
    "panes that end at the watermark stay where they are": Mutant(
        "cq.runtime.containers.panes",
        "ld_i64(panes, PANES_PANE)) > watermark",
        "ld_i64(panes, PANES_PANE)) >= watermark",
        PARTIALS,
        "never_end_give and groups",
    ),
    "a part is collected once for all closing times": Mutant(
        "cq.runtime.engine.ways.parts",
        "PARTIALS_PARTS + number * PART_WORDS + PART_COLLECTED, 0)",
        "PARTIALS_PARTS + number * PART_WORDS + PART_COLLECTED, 1)",
        PARTIALS,
        SCHEDULES,
    ),
    "parts of workers that are no more are forgotten": Mutant(
        "cq.runtime.engine.snapshot",
        "        for number, parts in enumerate(saved):\n",
        "        for number, parts in enumerate(saved[: plant.workers]):\n",
        ("test_snapshot.py",),
        "no_more",
    ),
    "rows of one arrival number are moved as they lie": Mutant(
        "cq.runtime.engine.state_moves",
        "np.lexsort((listed[:, ARRIVAL_TIE], listed[:, ARRIVAL_NUMBER]))",
        "np.lexsort((listed[:, ARRIVAL_NUMBER],))",
        ("test_snapshot.py",),
        "pieces and interpreted",
    ),
    "only the last stage has closing times": Mutant(
        "cq.codegen.operators.window",
        "    if node.window.kind is not WindowKind.ATTACHED:\n        stage.grids",
        "    if node.window.kind is not WindowKind.ATTACHED and stage.final:\n        stage.grids",
        ("test_other_plans.py",),
        "windows and rows",
    ),
    "groups of merged panes stay as they came": Mutant(
        "cq.codegen.operators.window",
        """            with scope.when(expr("table_sort_births(T) == 0", T=target.table)):
                flow.no_memory("ordering groups")
            writer.code("panes_remove""",
        """            writer.code("panes_remove""",
        PARTIALS,
        SCHEDULES,
    ),
    "ties go to the later source": Mutant(
        "cq.runtime.flow.admission",
        "            elif key < best_key:  # a tie stays with the source that comes first\n"
        "                limit = best_key\n",
        "            elif key <= best_key:\n                limit = best_key + 1\n",
        MERGE,
        SAFE,
    ),
    "a run goes on to the equal time of a source before it": Mutant(
        "cq.runtime.flow.admission",
        "                limit = best_key\n",
        "                limit = best_key + 1\n",
        MERGE,
        SAFE,
    ),
    "ties of mixed rows go to the later source": Mutant(
        MIXED, "            if one_key <= two_key:", "            if one_key < two_key:", MERGE, SAFE
    ),
    "a late row is mixed": Mutant(MIXED, "if one_time < one_max - one_delay or reached", "if reached", MERGE, SAFE),
    "a late row of the second source is mixed": Mutant(
        MIXED, "if two_time < two_max - two_delay or reached", "if reached", MERGE, SAFE
    ),
    "a mixed row passes a closing time": Mutant(
        MIXED, "or reached >= boundary or one_key", "or reached > boundary or one_key", MERGE, SAFE
    ),
    "mixed rows move the watermark as far as their own source": Mutant(
        MIXED, "min_i64(two_key - two_delay, one_max - one_delay)", "two_key - two_delay", MERGE, SAFE
    ),
    "long runs are mixed": Mutant(MIXED, " and alone < LONG_ROWS", "", MERGE, SAFE),
    "a row is late against its own watermark": Mutant(
        "cq.runtime.flow.admission",
        "    kind = SEGMENT_ROWS\n    if instant < ld_i64(source, SOURCE_WATERMARK):",
        "    kind = SEGMENT_ROWS\n    if instant <= ld_i64(source, SOURCE_WATERMARK):",
        MERGE,
        SAFE,
    ),
    "a closing time is passed one instant late": Mutant(
        "cq.runtime.flow.admission",
        "    if unmarked == 1 or minimum >= ld_i64(admission, ADMISSION_BOUNDARY):",
        "    if unmarked == 1 or minimum > ld_i64(admission, ADMISSION_BOUNDARY):",
        MERGE,
        SAFE,
    ),
    "the row before the last of a block is not looked at": Mutant(
        "cq.runtime.flow.admission",
        "    for row in range(1, BLOCK_ROWS):\n        falls",
        "    for row in range(1, BLOCK_ROWS - 1):\n        falls",
        MERGE,
        SAFE,
    ),
    "the end of a source moves no watermark": Mutant(
        "cq.runtime.flow.admission",
        "            if ld_i64(source, SOURCE_TIMED) == 1 and minimum < NEVER:",
        "            if ld_i64(source, SOURCE_TIMED) == 2 and minimum < NEVER:",
        MERGE,
        SAFE,
    ),
    "the end of a source tells no row of the watermark": Mutant(
        "cq.runtime.flow.admission",
        "_advance(admission, ticket, minimum, ld_i64(admission, ADMISSION_MARKED))",
        "_advance(admission, ticket, minimum, 0)",
        MERGE,
        SAFE,
    ),
    "the watermark of a row is its source's": Mutant(
        "cq.runtime.flow.watermarks",
        "max_i64(watermark, min_i64(maximum - delay, others))",
        "max_i64(watermark, maximum - delay)",
        MERGE,
        SAFE,
    ),
    "what waits in a lane leaves with its next row": Mutant(
        "cq.codegen.stage",
        "first = marks_reach(marks, first, serial, instant)",
        "first = serial",
        ("test_engine_schedules.py",),
        "wait",
    ),
    "a lane without rows in a ticket learns nothing of its watermark": Mutant(
        "cq.runtime.flow.split",
        "    if marks == 0 or ld_i64(item, BATCH_ROWS) == 0:",
        "    if marks != 0:",
        ("test_engine_schedules.py",),
        "wait",
    ),
    "the second of two stages learns of the watermark from rows only": Mutant(
        "cq.codegen.stage",
        'expr("taken > 0 and kind <= LATE"',
        'expr("taken < 0 and kind <= LATE"',
        ("test_waiting.py",),
        "native-2-chain",
    ),
    "rows before a failure are lost": Mutant(
        "cq.runtime.engine.ways.loop",
        "        if holds_rows(stage, task) == 0 or send_emitted(stage, task, 0) == 0:\n",
        "        if holds_rows(stage, task) >= 0:\n",
        ENGINE,
        SAFE,
    ),
    "a limit lets one row more through": Mutant(
        STAGE,
        "        rows = parcel_truncate(parcel, left)\n",
        "        rows = parcel_truncate(parcel, left + 1)\n",
        ENGINE,
        SAFE,
    ),
    "a lane's share starts at the row after its first": Mutant(
        "cq.runtime.flow.split",
        "    st_i64(target, SEGMENT_LO, lo)\n",
        "    st_i64(target, SEGMENT_LO, lo + (1 if hi > lo + 1 else 0))\n",
        ENGINE,
        SAFE,
    ),
    "the rows of a segment that is one lane's take no places": Mutant(
        "cq.runtime.flow.split",
        "        st_i64(places, lane, place + hi - lo)\n",
        "        st_i64(places, lane, place)\n",
        ENGINE,
        SAFE,
    ),
    "what comes of the end is put in the order of serials alone": Mutant(
        "cq.runtime.flow.merged_lanes",
        " or high >= ld_i64(item, BATCH_FIRST) + ld_i64(item, BATCH_ROWS)\n",
        "\n",
        ENGINE,
        SAFE,
    ),
    "closing times go only to lanes with rows": Mutant(
        "cq.runtime.flow.split", "share = 1 if events > 0 or", "share = 1 if events > 1000 or", ENGINE, SAFE
    ),
    "lanes are merged by their number": Mutant(
        "cq.runtime.flow.merged_lanes",
        "                if best < 0 or position_before(at, best_at) == 1:",
        "                if best < 0:",
        ENGINE,
        SAFE,
    ),
    "rows of other lanes behind a failure are sent": Mutant(
        "cq.runtime.flow.merged_lanes", "        _cut(lanes, split, failed, scratch)\n", "        pass\n", ENGINE, SAFE
    ),
    "a parcel is used again with the bits of its last rows": Mutant(
        "cq.runtime.flow.parcel",
        "            fill(ld_i64(out, OUT_VALIDITY), 0, used)\n",
        "            fill(ld_i64(out, OUT_VALIDITY), 0, 0)\n",
        ("test_parcel.py",),
        "interpreted",
    ),
}


@pytest.mark.mutants
@pytest.mark.parametrize("name", in_turn(MUTANTS))
def test_a_planted_bug_is_seen(name: str, pytestconfig: pytest.Config) -> None:
    MUTANTS[name].demand_seen(name, pytestconfig.getoption("--update"))
