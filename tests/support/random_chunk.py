"""Random trials in chunks: a range of seeds, how many trials each plan gets, and what was found.

A chunk ends with counts that add up; mismatches are reported as slt cases (tests/support/random_trial.py).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable

from mutated_text import said_of
from random_shared import shared_query, shared_tables, third_opinion
from random_trial import Plan, Refused, as_slt, difference, told

from cq.errors import CompileError
from cq.records import dataclass, field, replace


@dataclass
class Found:
    """The results of a chunk: counts by name, the distinct generated modules, and every mismatch as text."""

    counts: Counter[str] = field(default_factory=Counter)
    modules: set[str] = field(default_factory=set)
    mismatches: list[str] = field(default_factory=list)

    def add(self, other: Found) -> None:
        self.counts.update(other.counts)
        self.modules |= other.modules
        self.mismatches += other.mismatches


def run_chunk(seeds: Iterable[int], trials: int, interpreted: bool) -> Found:
    """`trials` trials of the plan of every seed: compiled, or their generated code interpreted."""
    kind = "interpreted" if interpreted else "compiled"
    found = Found()
    for seed in seeds:
        plan = Plan.of(seed)
        found.counts[f"{kind} plans"] += 1
        if _trials(found, plan, trials, interpreted):
            found.modules.add(_module_hash(plan, interpreted))
    return found


def _trials(found: Found, plan: Plan, trials: int, interpreted: bool) -> bool:
    """Whether the native engine accepts the plan; it then had all its trials, or failed one."""
    kind = "interpreted" if interpreted else "compiled"
    for number in range(trials):
        trial = plan.trial(number, interpreted)
        said = _said(lambda trial=trial: difference(plan.prepared, trial))  # type: ignore[misc]
        if said is None:
            found.counts["refused"] += 1
            return False
        found.counts[f"{kind} cases"] += 1
        if said:
            found.mismatches.append(told(trial, said))
            break
    return True


def _said(run: Callable[[], str]) -> str | None:
    """The difference, or the exception, in words; None if the engine refuses the plan."""
    try:
        return run()
    except Refused:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:500]}"


def _module_hash(plan: Plan, interpreted: bool) -> str:
    """A hash that distinguishes compiled plans: of their generated source and their constants."""
    pipelines = plan.prepared.compiled.for_workers(0 if interpreted else 2).after("emit")
    stages = [stage for pipeline in pipelines for stage in pipeline.stages]
    return hashlib.sha256(repr([(s.module, s.constants) for s in stages]).encode()).hexdigest()


def duckdb_chunk(seeds: Iterable[int], trials: int) -> Found:
    """`trials` trials of the shared query of every seed on DuckDB: the same rows as the reference, in any order."""
    import duckdb

    found = Found()
    with duckdb.connect() as base:
        for seed in seeds:
            query = shared_query(seed)
            for number in range(trials):
                tables = shared_tables(query, seed * 1000 + number)
                said = _said(lambda q=query, t=tables: third_opinion(base, q, t))  # type: ignore[misc]
                found.counts["refused by duckdb" if said is None else "duckdb cases"] += 1
                if said:
                    given = {name: table.to_pylist() for name, table in tables.items()}
                    found.mismatches.append(f"seed {seed}, rows {number}: {said}\n{query.text()}\n{given}")
                    break
    return found


def mutants_chunk(seeds: Iterable[int]) -> Found:
    """The mutant of every seed, compiled, and if accepted run on the reference and interpreted."""
    found = Found()
    for seed in seeds:
        came, said = said_of(seed)
        found.counts[f"mutants {came}"] += 1
        if said:
            found.mismatches.append(said)
    return found


def spark_chunk(seeds: Iterable[int]) -> Found:
    """One trial of the plan of every seed on Spark: the reference's rows as a multiset, DOUBLE within 1e-9; or an error
    that the reference also finds in one of the outputs.

    Rows without an event time are left out: such a run ends before Spark has anything to do. Spark may not compute
    unread values, and goes on where the reference stops at them: it then has at least the earlier rows.
    """
    from cq.engines.compare import compare, compare_runs
    from cq.engines.query import collect

    found = Found()
    for seed in seeds:
        plan = Plan.of(seed)
        trial = plan.trial(0, interpreted=True)
        trial = replace(trial, inputs={n: [r for r in rows if r[-1] is not None] for n, rows in trial.inputs.items()})
        plan.prepared.give(trial.inputs)
        try:
            spark = collect(plan.prepared.compiled, "spark")
        except CompileError:
            found.counts["refused by spark"] += 1
            continue
        reference = collect(plan.prepared.compiled, "reference")
        sides = [(n, r.tables, r.error) for n, r in (("reference", reference), ("spark", spark))]
        difference_ = compare_runs(sides[0], sides[1])
        found.counts["spark cases"] += 1
        if reference.error is not None and spark.error is None:
            pairs = [compare(name, rows, spark.tables[name]) for name, rows in reference.tables.items()]
            if not any(c.left_only or c.reason for c in pairs):
                found.counts["went on on Spark"] += 1
                continue
        known = spark.error is None or spark.error.code in plan.prepared.errors_of_outputs()
        if not (difference_.equal and known):
            found.mismatches.append(f"seed {seed} on Spark\n{difference_}\n\n{as_slt(trial)}")
    return found
