"""One random query over random rows, native against the reference; a mismatch is shrunk and reported as an slt case."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

from cases import Prepared, Row, Way, spread_out, watched
from random_functions import prepared
from random_queries import random_query
from random_rows import random_inputs
from random_statements import Query, View, pruned
from slt_format import write_row

from cq.errors import CompileError
from cq.records import dataclass, replace
from cq.ways import HEURISTICS

Inputs = Mapping[str, Sequence[Row]]
BATCHES = (1, 2, 3, 7, 64, 4096)
CUTS = ((), (1,), (3,), (2, 1, 5), (17,))
EMIT_REFUSED = {"CQ0501", "CQ0502"}  # what the native engine cannot do, reported with a place
SHRINK_RUNS = 400


class Refused(Exception):
    """The native engine refuses this query."""


@dataclass(frozen=True)
class Trial:
    """One run: a query over rows, given in pieces of the sizes `cuts`, in one way.

    spread: in as many stages as possible (`cases.spread_out`).
    """

    seed: int
    query: Query
    inputs: Inputs
    cuts: tuple[int, ...]
    way: Way
    spread: bool = False

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.way}, cuts {self.cuts}{', spread out' if self.spread else ''}"


@dataclass
class Plan:
    """A random query, bound once, and compiled once for each kind of run."""

    seed: int
    query: Query
    prepared: Prepared

    @staticmethod
    def of(seed: int) -> Plan:
        query = random_query(seed)
        return Plan(seed, query, prepared(query.text()))

    def trial(self, number: int, interpreted: bool) -> Trial:
        """The `number`th trial of the plan."""
        rng = random.Random(f"trial {self.seed} {number}")
        inputs = random_inputs(self.query, self.seed * 1000 + number)
        spread = self.seed % 3 == 0
        threads = (3 if spread else 0) if interpreted else rng.choice([0, 0, 1, 2, 3])
        way = Way(threads, rng.choice(BATCHES), rng.choice(sorted(HEURISTICS)), interpreted)
        return Trial(self.seed, self.query, inputs, rng.choice(CUTS), way, spread)


def difference(prepared: Prepared, trial: Trial) -> str:
    """How native and reference differ over the trial's rows; empty when they agree."""
    prepared.give(trial.inputs, trial.cuts)
    wanted = prepared.reference()
    try:
        with watched(str(trial)), spread_out() if trial.spread else nullcontext():
            got = prepared.native(trial.way)
    except CompileError as e:
        if e.code in EMIT_REFUSED:
            raise Refused(e.code) from None
        raise
    return "" if prepared.agree(got, trial.way, wanted) else got.difference(wanted)


def tried(trial: Trial) -> str:
    """The difference of a rebuilt trial; an exception counts, except that the query has become impossible."""
    try:
        made = prepared(trial.query.text())
    except CompileError:
        return ""
    try:
        return difference(made, trial)
    except Refused:
        return ""
    except Exception as e:
        return f"{type(e).__name__}: {str(e)[:300]}"


def told(trial: Trial, said: str) -> str:
    """The mismatch for people: seed, the shrunken query and rows, and its slt case."""
    small = shrunk(trial)
    return f"{trial}\n{said}\nshrunk: {tried(small) or '(gone: it depends on the schedule)'}\n\n{as_slt(small)}"


def shrunk(trial: Trial) -> Trial:
    """A smaller trial that still differs: fewer outputs, rows, columns and conditions, whole pieces, one thread."""
    runs = SHRINK_RUNS
    changed = True

    def fails(candidate: Trial) -> bool:
        nonlocal runs
        runs -= 1
        return runs > 0 and bool(tried(candidate))

    if not fails(trial):
        return trial
    while changed and runs > 0:
        changed = False
        for step in (_simpler_runs, _fewer_rows, _fewer_outputs, _fewer_parts):
            for candidate in step(trial):
                if fails(candidate):
                    trial, changed = candidate, True
                    break
    return trial


def _simpler_runs(trial: Trial) -> list[Trial]:
    out = [replace(trial, cuts=())] if trial.cuts else []
    if trial.way.threads:
        out.append(replace(trial, way=replace(trial.way, threads=0)))
    if trial.way.batch_rows != 4096:
        out.append(replace(trial, way=replace(trial.way, batch_rows=4096)))
    return out


def _fewer_rows(trial: Trial) -> list[Trial]:
    out = []
    for name, rows in trial.inputs.items():
        size = len(rows)
        while size >= 1:
            for start in range(0, len(rows), size):
                left = [*rows[:start], *rows[start + size :]]
                out.append(replace(trial, inputs={**trial.inputs, name: left}))
            size //= 2
    return out


def _fewer_outputs(trial: Trial) -> list[Trial]:
    outputs = trial.query.outputs
    if len(outputs) == 1:
        views = trial.query.views[:-1]
        return [_with(trial, replace(trial.query, outputs=((v.name, None),))) for v in reversed(views)]
    return [_with(trial, replace(trial.query, outputs=(o,))) for o in outputs]


def _fewer_parts(trial: Trial) -> list[Trial]:
    """Without one select item, condition, key or union branch of one view."""
    out: list[Trial] = []
    for number, view in enumerate(trial.query.views):

        def put(selects: tuple[object, ...], number: int = number, view: object = view) -> None:
            out.append(_with_view(trial, number, replace(view, selects=selects)))  # type: ignore[type-var]

        if view.tail:
            out.append(_with_view(trial, number, replace(view, tail="")))
        for i, select in enumerate(view.selects):
            others = (*view.selects[:i], *view.selects[i + 1 :])
            if others:
                sets = view.sets and (*view.sets[: max(i - 1, 0)], *view.sets[max(i, 1) :])
                out.append(_with_view(trial, number, replace(view, selects=others, sets=sets)))
            edit: Callable[[object], None] = lambda s, i=i, v=view: put((*v.selects[:i], s, *v.selects[i + 1 :]))  # noqa: E731
            if select.where:
                edit(replace(select, where=""))
            if select.having:
                edit(replace(select, having=""))
            if select.qualify:
                edit(replace(select, qualify=""))
            if select.first:
                edit(replace(select, first=""))
            if len(view.selects) == 1:
                for k in range(len(select.items)):
                    edit(replace(select, items=(*select.items[:k], *select.items[k + 1 :])))
                for key in select.group:
                    kept = tuple(g for g in select.group if g != key)
                    edit(replace(select, group=kept, items=tuple(i for i in select.items if i[0] != key)))
    return out


def _with_view(trial: Trial, number: int, view: View) -> Trial:
    views = trial.query.views
    return _with(trial, replace(trial.query, views=(*views[:number], view, *views[number + 1 :])))


def _with(trial: Trial, query: Query) -> Trial:
    query = pruned(query)
    return replace(trial, query=query, inputs={s.name: trial.inputs[s.name] for s in query.streams})


def as_slt(trial: Trial) -> str:
    """The trial as a case of tests/slt, with the reference's result."""
    made = prepared(trial.query.text())
    made.give(trial.inputs)
    outcome = made.reference()
    lines = [f"case SAY WHAT HOLDS (random seed {trial.seed})"]
    for stream in trial.query.streams:
        text = stream.text(trial.query.unit).removeprefix("CREATE STREAM ").rstrip(";\n")
        head, _, options = text.rpartition(" WITH (connector = 'memory'")
        rest = options.removeprefix(", ").removesuffix(")")
        lines.append(f"stream {head}" + (f" WITH ({rest})" if rest else ""))
        lines += [write_row(r, made.fields[stream.name]) for r in trial.inputs[stream.name]]
    lines.append("query")
    lines += [v.text().rstrip() for v in trial.query.views]
    lines += trial.query.text().removeprefix(trial.query.head()).splitlines()
    for output in made.compiled.outputs:
        lines.append(f"rows {output.name}" if output.name != "result" else "rows")
        lines += [write_row(r, output.node.schema.fields) for r in outcome.rows[output.name]]
    lines.append(f"error {outcome.error}" if outcome.error else f"late {outcome.late}")
    return "\n".join(lines)
