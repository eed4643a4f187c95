"""Every case of tests/slt means the same on the reference, on every native configuration, and on Spark."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pytest
from cases import WAYS, Outcome, Prepared, Way, watched
from declared import held_to_their_word
from slt_coverage import all_cases, cases_of_operators
from slt_format import SltCase, read_row, write_row
from spark_fixture import spark  # noqa: F401

from cq.engines.compare import compare_runs
from cq.engines.query import collect
from cq.errors import CompileError
from cq.records import replace

CASES = all_cases()
IDS = [f"{c.file.removesuffix('.slt')}: {c.name}" for c in CASES]
RUNNING = [n for n, c in enumerate(CASES) if not c.error or c.error.startswith("CQ07")]
FORMS = {"asof_forms.slt"}  # other ways to write what cases of another file compile
CORNERS = {n for n, c in enumerate(CASES) if c.file.startswith("corners/")}  # those DuckDB has an opinion on
ONE_WAY = {"first_queries.slt", "wild.slt", *FORMS}  # their operators have cases of their own


def in_turn(cases: Iterable[int], most: int) -> set[int]:
    """One in `most` of the cases of each file, of every file another one; at least one."""
    by_file: dict[str, list[int]] = {}
    for n in cases:
        by_file.setdefault(CASES[n].file, []).append(n)
    return {n for i, here in enumerate(by_file.values()) for n in here[i % min(most, len(here)) :: most]}


def in_the_gate(most: int) -> set[int]:
    """One in `most` of the cases of each file, and a fourth of that of all the corners."""
    corners = [n for n in RUNNING if n in CORNERS]
    return {*corners[most :: 4 * most]} | in_turn((n for n in RUNNING if n not in CORNERS), most)


def long_unless(gate: set[int], optimised: Iterable[int] = ()) -> list[Any]:
    marks = {n: [pytest.mark.long] * (n not in gate) + [pytest.mark.optimised] * (n in optimised) for n in RUNNING}
    return [pytest.param(n, marks=marks[n]) for n in RUNNING if CASES[n].file not in FORMS]


TO_COMPILE = in_the_gate(10)
COMPILED = long_unless(TO_COMPILE, in_turn(TO_COMPILE, 5))
ON_SPARK = long_unless(in_the_gate(16))
LEFT_OUT = CORNERS - in_turn((n for n in RUNNING if n in CORNERS), 4)
INTERPRETED = [pytest.param(n, marks=[pytest.mark.long] * (n in LEFT_OUT)) for n in RUNNING]

CUTS = {1: (1,), 3: (2, 1), 4096: ()}  # batch rows -> sizes of the record batches that are handed in


@lru_cache(maxsize=4)  # the tests of one case follow each other (conftest.py)
def prepared(case_id: int) -> Prepared:
    return Prepared(CASES[case_id].text)


@lru_cache(maxsize=4)
def on_the_reference(case_id: int) -> Outcome:
    made = prepared(case_id)
    give(made, CASES[case_id])
    with held_to_their_word():
        return made.reference()


def give(made: Prepared, case: SltCase, cuts: tuple[int, ...] = ()) -> None:
    made.give({n: [read_row(line, made.fields[n]) for line in case.data[n]] for n in made.fields}, cuts)


def expected(case: SltCase, made: Prepared) -> dict[str, list[str]]:
    """The rows of every output as canonical lines; an output that is not mentioned has none."""
    names = {o.name for o in made.compiled.outputs}
    assert set(case.rows) <= names, f"there are outputs {names}"
    return {
        o.name: [write_row(read_row(line, o.node.schema.fields), o.node.schema.fields) for line in case.rows[o.name]]
        if o.name in case.rows
        else []
        for o in made.compiled.outputs
    }


def shown(outcome: Outcome, made: Prepared) -> dict[str, list[str]]:
    fields = {o.name: o.node.schema.fields for o in made.compiled.outputs}
    return {name: [write_row(r, fields[name]) for r in rows] for name, rows in outcome.rows.items()}


@pytest.mark.parametrize("case_id", range(len(CASES)), ids=IDS)
def test_the_reference_gives_the_expected_rows(case_id: int) -> None:
    case = CASES[case_id]
    if case.error and not case.error.startswith("CQ07"):
        with pytest.raises(CompileError) as caught:
            Prepared(case.text)
        assert case.error in {d.code for d in caught.value.diagnostics}
        return
    made, outcome = prepared(case_id), on_the_reference(case_id)
    assert shown(outcome, made) == expected(case, made), outcome.message
    assert outcome.error.startswith(case.error) if case.error else not outcome.error, outcome.message
    assert case.error or outcome.late in {None, case.late}


@pytest.mark.parametrize("case_id", INTERPRETED, ids=lambda n: IDS[n])
def test_generated_code_interpreted_gives_the_same(case_id: int) -> None:
    agree(case_id, ways(case_id, interpreted=True))


@pytest.mark.parametrize("case_id", COMPILED, ids=lambda n: IDS[n])
def test_compiled_it_gives_the_same_whatever_the_threads_and_batches(case_id: int) -> None:
    agree(case_id, ways(case_id, interpreted=False))


def ways(case_id: int, interpreted: bool) -> list[Way]:
    """All of them; of cases that show no operator the last. Interpreted, each in turn of corners and of every other
    case."""
    found = [w for w in WAYS if w.interpreted == interpreted]
    if interpreted and (case_id in CORNERS or case_id % 2):
        return [found[case_id % len(found)]]
    return found[-1:] if CASES[case_id].file in ONE_WAY else found


def agree(case_id: int, ways: list[Way]) -> None:
    made, wanted = prepared(case_id), on_the_reference(case_id)
    for way in ways:
        give(made, CASES[case_id], CUTS[way.batch_rows])
        with watched(f"{IDS[case_id]}, {way}"):
            got = made.native(way)
        assert made.agree(got, way, wanted), f"{way}: {got.difference(wanted)}"


@pytest.mark.long
def test_there_are_cases_enough_and_sixty_of_every_operator() -> None:
    assert len(CASES) >= 1500
    plans = [Prepared(CASES[n].text).compiled.plan for n in RUNNING]
    assert not {name: count for name, count in cases_of_operators(plans).items() if count < 60}


def test_of_failing_runs_only_what_the_failing_event_leaves_may_differ() -> None:
    made = Prepared("CREATE STREAM s (v BIGINT); SELECT 10 / v AS q FROM s; SELECT v FROM s; SELECT v + 1 AS w FROM s;")
    made.give({"s": [(5,), (2,), (0,), (1,)]})
    wanted, way = made.reference(), Way()
    native = made.native(way)
    assert native.error == "CQ0706 <s>:3" and made.agree(native, way, wanted)
    for name, rows in native.rows.items():
        for other in (rows[:1], (*rows[:1], (7,)), (*rows[:2], (7,), (7,))):
            assert not made.agree(replace(native, rows={**native.rows, name: other}), way, wanted), (name, other)
    assert not made.agree(replace(native, error="CQ0706 <s>:4"), way, wanted)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("case_id", ON_SPARK, ids=lambda n: IDS[n])
def test_spark_gives_the_same_rows(case_id: int) -> None:
    """As a multiset, DOUBLE within 1e-9; of a run that fails the code."""
    if CASES[case_id].no_spark:
        pytest.skip(CASES[case_id].no_spark)
    made = prepared(case_id)
    give(made, CASES[case_id])
    found = [(engine, collect(made.compiled, engine)) for engine in ("reference", "spark")]
    difference = compare_runs(*((engine, run.tables, run.error) for engine, run in found))
    assert difference.equal, str(difference)
    counted = [run.summary.rejected_events for _, run in found if run.error is None]
    assert None in counted or counted[:-1] == counted[1:]
