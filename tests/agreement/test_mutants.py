"""Bugs planted where code is generated, and in panes, tables and buffers, are seen by the cases of tests/slt.

All run interpreted, so a mutant costs seconds. Bugs in admission, sending and lanes stand in test_engine_mutants.py, in
logs, ranks, sessions and sums of panes in test_container_mutants.py, in allocation and wide arithmetic in
test_native_mutants.py.
"""

from __future__ import annotations

import pytest
from mutate import Mutant, in_turn


def seen_by(file: str, module: str, old: str, new: str, *more: tuple[str, str]) -> Mutant:
    """A mutant that cases of one file of tests/slt should see."""
    return Mutant(f"cq.{module}", old, new, ("test_slt.py",), f"interpreted and {file}:", more)


WINDOW, PROBE, BUFFER = "codegen.operators.window", "codegen.state.hash_tables", "codegen.waiting_rows"
WINDOW_JOINS = "codegen.window_joins"
JOIN, LOG, MATCHING = "codegen.operators.interval_join", "runtime.containers.log", "codegen.matching"
BY_KEY, SEMI = "codegen.operators.join", "codegen.operators.semi_join"
NOT_NULL = 'flow.scope.when(expr("not N", N=null))'
PASSES = "flow.scope.when(passes)"
ASOF = "codegen.operators.asof_join"
ASSIGN = "codegen.operators.assign_windows"
SKETCHES = "runtime.containers.sketches"
ACCUMULATORS = "codegen.state.accumulators"
SESSION, INTERVALS = "codegen.sessions", "runtime.containers.intervals"
KEPT = "runtime.containers.interval_rows"
SLIDING = "runtime.containers.sliding"
SORT, TRIGGER = "codegen.operators.sort", "codegen.operators.trigger"


def in_lists(old: str, new: str) -> Mutant:
    """A mutant of lists that the cases of aggregates should see."""
    return seen_by("aggregates", "runtime.containers.lists", old, new)


def in_codes(module: str, old: str, new: str) -> Mutant:
    """A mutant of texts that come as codes that their comparison with texts should see."""
    return Mutant(f"cq.{module}", old, new, ("test_coded_texts.py",), "interpreted")


MUTANTS = {
    "a code of another dictionary is known": in_codes(
        "runtime.containers.known_codes",
        "!= dictionary:\n        return 0\n",
        "== 0:\n        return 0\n",
    ),
    "codes are known when entries have moved": in_codes(
        "runtime.containers.tables", "    table_forget(table)\n    if table_settles", "    if table_settles"
    ),
    "codes are known when a window has closed": in_codes(
        "runtime.containers.tables",
        "    table_forget(table)\n    if ld_i64(table, TABLE_INDEX) != 0:\n        _empty_index",
        "    if ld_i64(table, TABLE_INDEX) != 0:\n        _empty_index",
    ),
    "a code is a number of a row": in_codes("codegen.scan", '"C != 0", C=codes', '"C == 1", C=codes'),
    "the text under NULL is a key": in_codes(PROBE, '"HAS and not N"', '"HAS or N"'),
    "a dictionary with other texts keeps its number": in_codes(
        "runtime.flow.arrow", "last is not None and last[0].equals(texts)", "last is not None"
    ),
    "a pane is longer than what a window may cut": seen_by(
        "windows",
        "runtime.containers.panes",
        "    st_i64(panes, PANES_HI, _time_of(panes, step + pane))",
        "    st_i64(panes, PANES_HI, _time_of(panes, step + pane) + 1)",
    ),
    "a row at a pane's end is the pane's": seen_by("windows", WINDOW, '"T < LO or T >= HI"', '"T < LO or T > HI"'),
    "the earliest end is taken for the latest": seen_by(
        "windows",
        "runtime.containers.panes",
        "    if end < ld_i64(panes, PANES_NEXT_END):\n        st_i64(panes, PANES_NEXT_END, end)\n    return record",
        "    st_i64(panes, PANES_NEXT_END, end)\n    return record",
    ),
    "a window's pane at its end counts": seen_by(
        "windows", SLIDING, "_first(panes, place) < instant:", "_first(panes, place) <= instant:"
    ),
    "the first arrival is that of the last pane": seen_by(
        "windows", "codegen.state.groups", '"F < ld_i64(E, W)", F=first', '"F > ld_i64(E, W)", F=first'
    ),
    "merged groups are not put in order of arrival": seen_by(
        "windows", WINDOW, '"table_sort_births(T) == 0", T=table', '"T == 0", T=table'
    ),
    "a closing window that stopped goes on one group later": seen_by(
        "windows",
        WINDOW,
        '                writer.code("st_i64(P, W, G)", P=state, W=panes.PANES_CURSOR, G=group)',
        '                writer.code("st_i64(P, W, G + 1)", P=state, W=panes.PANES_CURSOR, G=group)',
    ),
    "a pane of the next window is of the one that closes": seen_by(
        "window_rows", WINDOW, '"ld_i64(R, W) < instant"', '"ld_i64(R, W) <= instant"'
    ),
    "a window that grows starts anew": seen_by("window_rows", WINDOW, '"panes_grows(P)"', '"panes_closed(P)"'),
    "of windows that grow every other one leaves": seen_by(
        "window_rows",
        "runtime.containers.panes",
        "ld_i64(panes, PANES_NEXT_END), ld_i64(panes, PANES_SLIDE)))",
        "ld_i64(panes, PANES_NEXT_END), 2 * ld_i64(panes, PANES_SLIDE)))",
    ),
    "a month begins when that of the calendar does": seen_by(
        "calendar_windows",
        "runtime.containers.panes",
        "    at = time_us - ld_i64(panes, PANES_SHIFT_US)",
        "    at = time_us",
    ),
    "a pane of months is kept for one window more": seen_by(
        "calendar_windows",
        "runtime.containers.panes",
        "        kept = _later(panes, end, slide - size)",
        "        kept = _later(panes, end, slide - size - 1)",
    ),
    "rows are in the months of the calendar whatever the offset": seen_by(
        "calendar_windows", ASSIGN, '"months_of_time(T - S)"', '"months_of_time(T)"'
    ),
    "the start of a year is counted from January": seen_by(
        "calendar_windows",
        WINDOW,
        '"E - PANE - floormod(E - PANE - AT, SIZE)"',
        '"E - PANE - floormod(E - PANE, SIZE)"',
    ),
    "the last of many constants is in no list": seen_by(
        "rows",
        "runtime.values.arrays",
        "    if low < count and element_order(",
        "    if low < count - 1 and element_order(",
    ),
    "many constants are searched as they are written": seen_by(
        "rows",
        "codegen.expressions.arrays",
        "sorted((e for e in elements if e is not None), key=cmp_to_key(order))",
        "e for e in elements if e is not None",
    ),
    "a zone changes a microsecond late": seen_by(
        "time_zones", "runtime.values.zones", "ZONE_TIMES + middle) <= time_us:", "ZONE_TIMES + middle) < time_us:"
    ),
    "a local time is taken by the changes of UTC": seen_by(
        "time_zones", "codegen.expressions.zone_tables", "zone.local if by_local_time else zone.utc", "zone.utc"
    ),
    "a distance behind UTC is taken for one ahead": seen_by(
        "instants", "runtime.values.instants", "distance = -distance", "distance = distance"
    ),
    "a row at the end of a window is in it": seen_by("window_rows", ASSIGN, '"T - LAST < SIZE"', '"T - LAST <= SIZE"'),
    "so is one at the end of an overlapping window": seen_by(
        "window_rows", ASSIGN, '"floordiv(SIZE - 1 - T + LAST, SLIDE)"', '"floordiv(SIZE - T + LAST, SLIDE)"'
    ),
    "a row at the end of a window is in that of the row before": seen_by(
        "window_rows", ASSIGN, '"not ult(wsub(T, L), P)"', '"not ult(wsub(T, L), P + 1)"'
    ),
    "a row that comes too late for its window is in that of the row before": seen_by(
        "window_rows", ASSIGN, '"not ult(wsub(T, L), P)"', '"T - L >= P"'
    ),
    "the window that began last is forgotten": seen_by("window_rows", ASSIGN, '"B + 1", B=before', '"B", B=before'),
    "the first of the windows that grow is left out": seen_by(
        "window_rows", ASSIGN, '"LAST + (N + 1) * SLIDE"', '"LAST + (N + 2) * SLIDE"'
    ),
    "rows that are late are put into windows": seen_by(
        "window_rows", ASSIGN, "with flow.on_time(node):", "with nullcontext():"
    ),
    "groups of rows in windows wait for the end of the input": seen_by(
        "window_rows", ASSIGN, "    flow.stage.grids.append(", "    list[object]().append("
    ),
    "a distance equal to the gap ends a session": seen_by(
        "sessions", SESSION, "S <= TO and E >= SINCE", "S <= TO and E > SINCE"
    ),
    "a row at the gap before a session is not in it": seen_by("sessions", SESSION, '"S <= TO and', '"S < TO and'),
    "a row meets one session of its key only": seen_by(
        "sessions", SESSION, "L == 0 or T >= S and (L < AFTER or T <= E)", "L >= 0 or T >= S and (L < AFTER or T <= E)"
    ),
    "a row at the end of a session meets none behind it": seen_by(
        "sessions", SESSION, "(L < AFTER or T <= E)", "(L < AFTER or T >= E)"
    ),
    "the second session a row touches stays apart": seen_by(
        "sessions", SESSION, 'with scope.when(expr("L != 0", L=later)):', 'with scope.when(expr("L < 0", L=later)):'
    ),
    "two sessions end where the earlier one did": seen_by(
        "sessions", SESSION, 'code("st_i64(E, W, ld_i64(L, W))", E=e, L=other, W=LAST)', "pass"
    ),
    "a joined session has arrived when its earlier part did": seen_by(
        "sessions", SESSION, '"st_i64(E, W, min(ld_i64(E, W), ld_i64(L, W)))"', '"st_i64(E, W, ld_i64(E, W))"'
    ),
    "rows of a session that is joined come behind all others": seen_by(
        "sessions", KEPT, "    stay = _bytes_before(items, used, ld_i64(other, KEPT_ARRIVAL))", "    stay = used"
    ),
    "of two rows of joined sessions the later one comes first": seen_by(
        "sessions", KEPT, "ld_i64(right, KEPT_ARRIVAL) < ld_i64(left, KEPT_ARRIVAL)", "right < right_end"
    ),
    "a session has left when one of its rows has": seen_by(
        "sessions",
        "codegen.operators.session_rows",
        'expr("B == ld_i64(L, W)", B=left, L=rows, W=lists.LIST_USED)',
        'expr("B <= ld_i64(L, W)", B=left, L=rows, W=lists.LIST_USED)',
    ),
    "a session that was joined is there for other rows": seen_by(
        "sessions", SESSION, 'code("st_i64(L, W, NEVER)", L=other, W=START, NEVER=abi.NEVER)', "pass"
    ),
    "a session does not start earlier for an earlier row": seen_by(
        "sessions", SESSION, '"st_i64(E, W, min(ld_i64(E, W), T))"', '"st_i64(E, W, ld_i64(E, W))"'
    ),
    "a session ends where its last row by arrival does": seen_by(
        "sessions", SESSION, '"st_i64(E, W, max(ld_i64(E, W), T))"', '"st_i64(E, W, T)"'
    ),
    "a session ends before it leaves": seen_by("sessions", SESSION, '((0, "end")', '((1, "end")'),
    "sessions that are due are looked for again when a port was full": seen_by(
        "sessions",
        SESSION,
        '"N == 0 and intervals_due(P, instant) == 0"',
        '"N >= 0 and intervals_due(P, instant) == 0"',
    ),
    "a text of two that are joined is the first": seen_by(
        "sessions",
        ACCUMULATORS,
        "self.swap(scope, e, other)\n            else:\n                self.add(scope, e, (outlives",
        "pass\n            else:\n                self.add(scope, e, (outlives",
    ),
    "a text by position of two that are joined is the first": seen_by(
        "aggregates",
        ACCUMULATORS,
        "self.swap(scope, e, other)\n            else:\n                self.add(scope, e, [outlives",
        "pass\n            else:\n                self.add(scope, e, [outlives",
    ),
    "points of two panes have their means by the first": seen_by(
        "aggregates",
        ACCUMULATORS,
        '"M + A * S", M=self.at_float(e, n), A=away',
        '"M + 0.0 * A * S", M=self.at_float(e, n), A=away',
    ),
    "points of two panes lie about one mean": seen_by(
        "aggregates", ACCUMULATORS, '"P + Q + A * B * W"', '"P + Q + 0.0 * A * B * W"'
    ),
    "the points of a first pane without any stay none": seen_by(
        "aggregates",
        ACCUMULATORS,
        "            for n in range(self.words):\n                self.put(scope, e, self.at(other, n), n)\n"
        '        with scope.when(expr("T != 0 and M != 0", T=theirs, M=mine)):\n'
        '            many = scope.let(expr("M + T", M=mine, T=theirs), "many")\n            share',
        '            pass\n        with scope.when(expr("T != 0 and M != 0", T=theirs, M=mine)):\n'
        '            many = scope.let(expr("M + T", M=mine, T=theirs), "many")\n            share',
    ),
    "the first row is that of the last pane": seen_by(
        "aggregates", ACCUMULATORS, '"V < A", V=values', '"V > A", V=values'
    ),
    "the last row is that of the first pane": seen_by("aggregates", ACCUMULATORS, '"V >= A"', '"V <= A"'),
    "of equal extremes the last is taken": seen_by(
        "aggregates", ACCUMULATORS, '"BETTER or EQUAL and V < A"', '"BETTER or EQUAL and V > A"'
    ),
    "a separator precedes the first text": seen_by(
        "aggregates",
        "codegen.state.list_accumulators",
        "        with scope.when(self.is_there(e)):",
        '        with scope.when(expr("1 == 1")):',
    ),
    "values of a second pane are forgotten": in_lists("    size = ld_i64(other, LIST_USED)", "    size = 0"),
    "a value behind those in order stays there": in_lists(
        "            _put_in_place(items, n)", "            max(items, n)"
    ),
    "a run of values ends one early": in_lists("start + 2 * width, count))", "start + 2 * width, count - 1))"),
    "values are in order in the other room": in_lists("    if source != items:", "    if source == 0:"),
    "of several most frequent values it is the greatest": in_lists(
        "        if n + 1 - first > most:", "        if n + 1 - first >= most:"
    ),
    "negative doubles are in order of their bits": in_lists("pick(bits < 0, SIGN_FREE, 0)", "pick(bits < 0, 0, 0)"),
    "registers of a second pane are forgotten": seen_by(
        "aggregates", SKETCHES, "max_i64(ld_u8(mine, n), ld_u8(theirs, n))", "ld_u8(mine, n)"
    ),
    "a value seen before is another one": seen_by(
        "aggregates", SKETCHES, "number = shr_u(mixed, 64 - REGISTER_BITS)", "number = (rank + ld_u8(slot, 0)) & 4095"
    ),
    "a list that grows forgets its values": in_lists(
        "    if used > 0:\n        copy(", "    if used > 99:\n        copy("
    ),
    "arrivals of rows that were picked keep the numbers of another plan": Mutant(
        "cq.runtime.containers.table_saving",
        "if left & 1 == 1 and ld_i64(entry, word) != NEVER:",
        "if left & 1 == 2 and ld_i64(entry, word) != NEVER:",
        ("test_snapshot.py",),
        "by_position_goes_on",
    ),
    "two rows of one event arrive together": seen_by(
        "sessions", "codegen.arrivals", "    if not _several_an_event(node.input):", "    if node.input:"
    ),
    "the time of a window's row is its end": seen_by("windows", WINDOW, 'expr("E - 1", E=end)', 'expr("E - 0", E=end)'),
    "a kernel that stopped goes on one row later": seen_by(
        "unnest",
        "codegen.stage",
        'writer.code("st_i64(state, W, following + 1)", W=abi.STATE_ROW)',
        'writer.code("st_i64(state, W, following + 2)", W=abi.STATE_ROW)',
    ),
    "an instant at the watermark is not served": seen_by(
        "temporal_join", "codegen.stage", '"if instant > watermark or', '"if instant >= watermark or'
    ),
    "long strings are one key when their beginnings are": seen_by(
        "windows",
        PROBE,
        'expr("hash_bytes(A, L)", A=address, L=length)',
        'expr("hash_bytes(A, SHORT)", A=address, SHORT=INLINE_STRING_BYTES)',
        ("string_is(TABLE, E, W0, A) == 1", "string_is(TABLE, E, W0, A) >= 0"),
    ),
    "NULL is 0 as a key": seen_by(
        "windows",
        PROBE,
        '        words.append(_Word(null_word, scope.let(null_bits(values, keys.fields, null_word), "key_nulls")))',
        "        words.append(_Word(null_word, ast.Constant(0)))",
    ),
    "-0.0 and 0.0 are two keys": seen_by("windows", PROBE, "f64_bits(X + 0.0)", "f64_bits(X)"),
    "the carry of a sum is lost": seen_by(
        "windows", "codegen.state.accumulators", '"add128_hi(HI, LO, X)"', '"wadd(HI, X >> 63)"'
    ),
    "an aggregate counts NULL": seen_by(
        "windows",
        "codegen.state.aggregates",
        '                with scope.when(expr("not N", N=null)):\n                    put(',
        '                with scope.when(expr("True or N", N=null)):\n                    put(',
    ),
    "FILTER lets through what is NULL": seen_by(
        "windows",
        "codegen.state.aggregates",
        "conditions.append(is_true(emit(scope, row, accumulator.filter)))",
        "conditions.append(emit(scope, row, accumulator.filter).it)",
    ),
    "a value is distinct once a pane, whatever its group": seen_by(
        "windows",
        WINDOW,
        '"ld_i64(E, W)", E=entry.address, W=layout.number_word',
        '"0 * ld_i64(E, W)", E=entry.address, W=layout.number_word',
    ),
    "LAG has one row less to look back": seen_by(
        "over", "codegen.operators.over", '"S >= N", S=seen', '"S > N", S=seen'
    ),
    "LAG gives a string that was overwritten": seen_by(
        "over", "codegen.operators.over", "        copied = outlives(scope, old)", "        copied = old"
    ),
    "rows wait although their time has come": seen_by("over", BUFFER, '"T <= R", T=at', '"T < R", T=at'),
    "a row whose key is NULL matches": seen_by(
        "temporal_join", MATCHING, NOT_NULL, NOT_NULL.replace("not N", "True or N")
    ),
    "a row whose key is NULL is within an interval": seen_by(
        "interval_join", MATCHING, NOT_NULL, NOT_NULL.replace("not N", "True or N")
    ),
    "a look-up tests no further condition": seen_by("temporal_join", MATCHING, PASSES, 'flow.scope.when(expr("True"))'),
    "a left row that leaves at once also waits": seen_by(
        "subqueries", SEMI, 'expr("K == 1 and M == 0", K=kept, M=matched)', 'expr("K == 1", K=kept, M=matched)'
    ),
    "a left row without a key waits for a match": seen_by(
        "subqueries", SEMI, 'expr("K == 1 and M == 0", K=kept, M=matched)', 'expr("M == 0", K=kept, M=matched)'
    ),
    "a left row looks at the first right row only": seen_by(
        "subqueries",
        SEMI,
        "        with where_passes(flow, node.residual, row_of(scope, [*values, *theirs])):\n"
        "            writer.set(matched, 1)\n            writer.set(reference, 0)",
        "        with where_passes(flow, node.residual, row_of(scope, [*values, *theirs])):\n"
        "            writer.set(matched, 1)\n        writer.set(reference, 0)",
    ),
    "a left row looks on when it has a match": seen_by(
        "subqueries", SEMI, "            writer.set(reference, 0)", "            pass"
    ),
    "a left row leaves with every right row that matches it": seen_by(
        "subqueries", SEMI, "            left.unlist(flow, node, here)\n", ""
    ),
    "the first right row of a key lets nothing go": seen_by(
        "subqueries",
        SEMI,
        "                names.probe(table, known, flow.serial, lambda e: None)\n"
        "                if not node.right_first:\n"
        "                    left.first_record(flow, node, known, reference)",
        "                names.probe(table, known, flow.serial, lambda e: None)",
    ),
    "the key of a right row is not kept": seen_by(
        "subqueries", SEMI, "                names.probe(table, known, flow.serial, lambda e: None)\n", ""
    ),
    "an anti join lets go what matches": seen_by(
        "subqueries", SEMI, "            if node.kind is JoinKind.SEMI:", "            if True:"
    ),
    "a pair is tested by no further condition": seen_by(
        "interval_join", MATCHING, PASSES, 'flow.scope.when(expr("True"))'
    ),
    "a bound does not belong to its interval": seen_by(
        "interval_join", JOIN, '"X >= T + LOWER and', '"X > T + LOWER and'
    ),
    "a row of an outer join that finds a match waits for the end": seen_by(
        "joins", BY_KEY, "writer.set(matched, 1)", "writer.set(matched, 0)"
    ),
    "a row of an outer join that is found still waits for the end": seen_by(
        "joins", BY_KEY, '"st_i64(R, W, 0)", R=record', '"st_i64(R, W, 1)", R=record'
    ),
    "a row that may match later is not kept": seen_by(
        "joins",
        BY_KEY,
        'writer.set(kept, 1 if ended is None else expr("1 - E", E=ended))',
        "writer.set(reference, 0)",
    ),
    "a side has ended when another one has": seen_by(
        "joins",
        "codegen.ended_inputs",
        '"pick(ld_i64(batch, W) & MASK == MASK, 1, 0)"',
        '"pick(ld_i64(batch, W) != 0, 1, 0)"',
    ),
    "rows without a match are not kept for the end": seen_by("joins", BY_KEY, '"E == 0 or M == 0"', '"E == 0"'),
    "rows of the two sides that wait for the end are numbered apart": seen_by(
        "joins", BY_KEY, '"log_number_after(L, M)"', '"log_number_after(L, L)"'
    ),
    "of two sides the row that came last leaves first": seen_by(
        "joins", LOG, "return log if serial < after else other", "return log if serial > after else other"
    ),
    "a window of a join begins where another one is at hand": seen_by(
        "window_join", WINDOW_JOINS, '"D != ld_i64(R, W)"', '"D < ld_i64(R, W)"'
    ),
    "a row that is met in its window leaves alone as well": seen_by(
        "window_join", WINDOW_JOINS, '"st_i64(P, W, SIZE)"', '"st_i64(P, W, SIZE - SIZE)"'
    ),
    "a row of a window that has met another one waits": seen_by(
        "window_join", WINDOW_JOINS, '"st_i64(P, W, M)"', '"st_i64(P, W, 0 * M)"', ('"M == 0"', '"M >= 0"')
    ),
    "a key of doubles says which zero the row has": seen_by(
        "window_join", WINDOW_JOINS, "not e.type.is_float", "e.type is not None"
    ),
    "the last row of a run is not met": seen_by(
        "window_join", WINDOW_JOINS, '"A + ROWS * SIZE"', '"A + max(ROWS - 1, 0) * SIZE"'
    ),
    "windows are one that are not over together": seen_by(
        "window_join",
        "planner.operators.interval_join",
        "self.lower_us == self.upper_us == self.left_time.lag_us",
        "self.lower_us == self.upper_us or self.left_time.lag_us",
    ),
    "an interval is one microsecond too long": seen_by("interval_join", JOIN, "X <= T + UPPER", "X <= T + UPPER + 1"),
    "a left row that has a match leaves alone as well": seen_by(
        "interval_join",
        JOIN,
        'writer.code("st_i64(R, W, 0)", R=record, W=words.RECORD_PROOF)',
        'writer.code("st_i64(R, W, 1)", R=record, W=words.RECORD_PROOF)',
    ),
    "a left row that found a match waits for a proof": seen_by("interval_join", JOIN, '"1 - M"', '"1 - 0 * M"'),
    "a left row that no match can come for stays": seen_by(
        "interval_join", JOIN, '"pick(X > OVER, 1, 0)"', '"pick(X + 9000000 > OVER, 1, 0)"'
    ),
    "a kept row is one microsecond later": seen_by(
        "interval_join", JOIN, "time.shift_us + expiry_us + 1)", "time.shift_us + expiry_us)"
    ),
    "rows of one source are not kept for the other side of a join": seen_by(
        "interval_join", "planner.operators.interval_join", "sources[0].isdisjoint(sources[1])", "len(sources) == 2"
    ),
    "rows are not kept for what comes at closing times": seen_by(
        "interval_join", "planner.operators.interval_join", "not any(n.keeps_state for n in others)", "len(others) > 0"
    ),
    "rows are not kept for others of their time": seen_by(
        "interval_join", BUFFER, '"max(O, ld_i64(M, F))"', '"max(O, ld_i64(M, F) + 1)"'
    ),
    "an instant is over before its rows have come": seen_by("interval_join", BUFFER, '"min(W, I - 1)"', '"min(W, I)"'),
    "a row overtakes what a full port has stopped": seen_by(
        "interval_join", "codegen.scan", '"ld_i64(state, W) != NEVER", W=', '"ld_i64(state, W) == NEVER - NEVER", W='
    ),
    "ASOF looks back not quite as far as it may": seen_by("asof_forms", ASOF, '"R - L >= N"', '"R - L > N"'),
    "ASOF looks ahead not quite as far as it may": seen_by("asof", ASOF, "R - L <= N", "R - L < N"),
    "a right row that may be found is forgotten": seen_by(
        "asof", ASOF, "log_forget(L, instant)", "log_forget(L, instant + 2000000)"
    ),
    "left rows leave before their instant": seen_by(
        "interval_join", LOG, "if ld_i64(first, ITEM_TIME) <= instant else 0", "if instant <= NEVER else 0"
    ),
    "left rows of one instant leave the last one first": seen_by(
        "interval_join", LOG, "LOG_PROOFS), expiry, arrival, reference)", "LOG_PROOFS), expiry, -arrival, reference)"
    ),
    "of the rows of a key the last one is seen first": seen_by(
        "interval_join",
        LOG,
        "log_record(log_chunk(log, last), last, size), RECORD_NEXT, reference)\n"
        "        if latest > expiry:\n"
        "            st_i64(log, LOG_LEAD, max_i64(ld_i64(log, LOG_LEAD), latest - expiry))\n"
        "    st_i64(record, RECORD_BEFORE, last)\n",
        "log_record(log_chunk(log, first), first, size), RECORD_BEFORE, reference)\n"
        "        st_i64(record, RECORD_NEXT, first)\n        first = reference\n    st_i64(record, RECORD_BEFORE, 0)\n",
        ("shl(reference, 32) | first)", "shl(reference if last == 0 else last, 32) | first)"),
    ),
    "a search ends at the first row that is too late": seen_by(
        "interval_join", JOIN, '"X - LEAD > T + UPPER"', '"X > T + UPPER"'
    ),
    "negative numbers are sorted by their bits": seen_by(
        "sort", SORT, '"pick(W < 0, W ^ MOST, W)"', '"pick(W < 0, W, W)"'
    ),
    "NULLs stand where they stand by default": seen_by(
        "sort", SORT, "(0, 1) if key.nulls_first else (1, 0)", "(1, 0) if key.descending else (0, 1)"
    ),
    "rows that another key decides about are dropped": seen_by(
        "sort", "runtime.containers.ranks", "== 1:  # then an equal row", "!= 0:  # then an equal row"
    ),
    "rows whose first word is that of the worst are dropped": seen_by("sort", SORT, '"W <= ld_i64', '"W < ld_i64'),
    "what leaves is put in order anew when a port was full": seen_by(
        "sort", SORT, '"LEFT == 0 and ranks_due(R, I) == 0"', '"LEFT >= 0 and ranks_due(R, I) == 0"'
    ),
    "both branches of a union take turns": seen_by(
        "sources",
        "planner.physical.turns",
        "        if len({h.port for h in hits}) > 1 and any(h.several for h in hits):",
        "        if not hits and last > 9:",
        ("            if hit.port < last:", "            if hit.port < -1:"),
    ),
    "the last empty piece is lost": seen_by(
        "unnest",
        "codegen.operators.unnest",
        'writer.while_(expr("A <= L", A=at, L=text.parts[1])), scope',
        'writer.while_(expr("A < L", A=at, L=text.parts[1])), scope',
        ('writer.while_(expr("A <= L and C < MOST"', 'writer.while_(expr("A < L and C < MOST"'),
    ),
    "late rows are on time": seen_by(
        "windows",
        "codegen.flow",
        'with self.scope.when(expr("L != 0", L=late)):',
        'with self.scope.when(expr("L == 9", L=late)):',
    ),
    "OR takes NULL for an answer": seen_by(
        "rows",
        "codegen.expressions.emit",
        'undecided = expr("not R or N" if stop else "R or N", R=result, N=null)',
        'undecided = expr("not R and not N" if stop else "R or N", R=result, N=null)',
    ),
    "an error says the row after": seen_by(
        "errors",
        "codegen.scan",
        'return Event(serial, position, expr("-1"), number,',
        'return Event(serial, position, expr("-1"), expr("i + 1"),',
    ),
    "two accesses of one row do not meet": seen_by(
        "triggers", "codegen.accessed_rows", 'expr("L == 1", L=other.live)', 'expr("L == 2", L=other.live)'
    ),
    "a row taken over is written twice": seen_by(
        "triggers", "codegen.accessed_rows", "writer.set(other.dirty, 0)", "writer.set(other.dirty, 1)"
    ),
    "what a table demands is not asked of an update": seen_by(
        "triggers", TRIGGER, "self.demand(at, new, step.columns, at.table.conditions_on(step.columns))", "pass"
    ),
    "a CHECK of several columns is tested only where all are set": seen_by(
        "triggers",
        "planner.plan.transactions",
        "if columns_of(c.expr) & changed)",
        "if columns_of(c.expr) <= changed)",
    ),
    "what comes behind a loop over arrays cannot reject": seen_by(
        "triggers", "codegen.accessed_rows", "found[each.local] = behind or whole", "found[each.local] = whole"
    ),
    "what an INSERT does where it finds its key cannot reject": seen_by(
        "triggers",
        "codegen.accessed_rows",
        "behind = behind or any(inside) or node.may_reject(step)",
        "behind = behind or any(inside) * (not isinstance(step, Insert)) or node.may_reject(step)",
    ),
    "an array with a NULL is whole": seen_by(
        "triggers", "codegen.zipped_arrays", 'expr("N or A", N=nulls', 'expr("N", N=nulls'
    ),
    "of what a loop changes the last column is not put back": seen_by(
        "triggers",
        TRIGGER,
        "self.tables[table], layout, fields, times, by_key",
        "self.tables[table], layout, fields[:-1], times, by_key",
    ),
    "what loops have made stays after a rejection": seen_by(
        "triggers", "codegen.state.undo", "delete_row(scope, self.table, self.layout, key)", "pass"
    ),
    "a row is written where it stood before a loop has moved it": seen_by(
        "triggers",
        TRIGGER,
        "self.flow.writer.set(at.entry, KeyedLayout.of(at.table).keys.find(local, at.key))",
        "pass",
    ),
    "what loops change is put back first to last": seen_by(
        "triggers", TRIGGER, "in reversed(self.undos.values())", "in self.undos.values()"
    ),
    "texts that differ in the middle are the same": seen_by(
        "rows", "runtime.values.text", "| (ld_u8(a, middle) ^ ld_u8(b, middle))", "| 0"
    ),
    "a rejected event is committed": seen_by(
        "triggers",
        TRIGGER,
        "O=self.outcome, DONE=ACCEPTED)):\n            self.write_rows()",
        "O=self.outcome, DONE=REJECTED)):\n            self.write_rows()",
    ),
    "texts of rows are not copied": seen_by("triggers", TRIGGER, "outlives(self.scope, values[c])", "values[c]"),
    "a deleted row stays": seen_by(
        "triggers",
        "codegen.state.keyed_rows",
        'scope.writer.code("table_delete(T, E)", T=table.table, E=entry)',
        "pass",
    ),
}


@pytest.mark.mutants
@pytest.mark.parametrize("name", in_turn(MUTANTS))
def test_a_planted_bug_is_noticed(name: str, pytestconfig: pytest.Config) -> None:
    MUTANTS[name].demand_seen(name, pytestconfig.getoption("--update"))
