"""Bugs planted where code is generated, and in panes, tables and buffers, are seen by the cases of tests/slt.

All run interpreted, so a mutant costs seconds. Bugs in admission, sending and lanes stand in test_engine_mutants.py, in
allocation and wide arithmetic in test_native_mutants.py.
"""

from __future__ import annotations

import pytest
from mutate import Mutant


def seen_by(file: str, module: str, old: str, new: str, *more: tuple[str, str]) -> Mutant:
    """A mutant that cases of one file of tests/slt should see."""
    return Mutant(f"cq.{module}", old, new, ("test_slt.py",), f"interpreted and {file}", more)


WINDOW, PROBE, BUFFER = "codegen.operators.window", "codegen.state.hash_tables", "codegen.waiting"

MUTANTS = {
    "a pane is longer than what a window may cut": seen_by(
        "windows",
        "runtime.containers.panes",
        "    st_i64(panes, PANES_HI, start + pane)",
        "    st_i64(panes, PANES_HI, start + pane + 1)",
    ),
    "a row at a pane's end is the pane's": seen_by("windows", WINDOW, '"T < LO or T >= HI"', '"T < LO or T > HI"'),
    "the earliest end is taken for the latest": seen_by(
        "windows",
        "runtime.containers.panes",
        "    if end < ld_i64(panes, PANES_NEXT_END):\n        st_i64(panes, PANES_NEXT_END, end)\n    return record",
        "    st_i64(panes, PANES_NEXT_END, end)\n    return record",
    ),
    "a window's pane at its end counts": seen_by(
        "windows", WINDOW, '"F >= start and F < instant"', '"F >= start and F <= instant"'
    ),
    "the first arrival is that of the last pane": seen_by(
        "windows", WINDOW, '"F < ld_i64(E, W)", F=first, E=found', '"F > ld_i64(E, W)", F=first, E=found'
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
    "the time of a window's row is its end": seen_by(
        "windows", WINDOW, 'scope.let(expr("instant - 1"))', 'scope.let(expr("instant - 0"))'
    ),
    "a kernel that stopped goes on one row later": seen_by(
        "unnest",
        "codegen.stage",
        'writer.code("st_i64(state, W, following + 1)", W=abi.STATE_ROW)',
        'writer.code("st_i64(state, W, following + 2)", W=abi.STATE_ROW)',
    ),
    "an instant at the watermark is not served": seen_by(
        "temporal", "codegen.stage", '"if instant > watermark or', '"if instant >= watermark or'
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
        "windows", "codegen.state.aggregates", '"add128_hi(HI, LO, X)"', '"wadd(HI, X >> 63)"'
    ),
    "an aggregate counts NULL": seen_by(
        "windows",
        "codegen.state.aggregates",
        '                with scope.when(expr("not N", N=value.null)):\n                    put(present)',
        '                with scope.when(expr("True or N", N=value.null)):\n                    put(present)',
    ),
    "FILTER lets through what is NULL": seen_by(
        "windows",
        "codegen.state.aggregates",
        "conditions.append(is_true(emit(scope, row, part.filter)))",
        "conditions.append(emit(scope, row, part.filter).it)",
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
        "over", "codegen.operators.over", "        copied = _outlives(flow, old)", "        copied = old"
    ),
    "rows wait although their time has come": seen_by(
        "over", BUFFER, '"T <= ld_i64(state, W)"', '"T < ld_i64(state, W)"'
    ),
    "rows that wait leave in order of arrival": seen_by(
        "over",
        "runtime.containers.waiting",
        "        if ld_i64(above, RECORD_TIME) <= time_us:\n            break",
        "        if place > 0:\n            break",
    ),
    "a row whose key is NULL matches": seen_by(
        "temporal",
        "codegen.operators.temporal_join",
        '        with scope.when(expr("not N", N=null)):\n            flow.writer.set(entry, layout.keys.find',
        '        with scope.when(expr("True or N", N=null)):\n            flow.writer.set(entry, layout.keys.find',
        (
            '    if null is not None:\n        with scope.when(expr("not N", N=null)):\n            _write',
            '    if null is not None:\n        with scope.when(expr("True or N", N=null)):\n            _write',
        ),
    ),
    "a look-up tests no further condition": seen_by(
        "temporal",
        "codegen.operators.temporal_join",
        "            with scope.when(is_true(emit(scope, candidate, node.residual))):",
        '            with scope.when(expr("True")):',
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
        'event = Event(serial, position, expr("-1"), row_number,',
        'event = Event(serial, position, expr("-1"), expr("i + 1"),',
    ),
}


@pytest.mark.mutants
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_noticed(name: str) -> None:
    caught, said = MUTANTS[name].verdict()
    assert caught, said
