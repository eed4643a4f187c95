"""One query over rows in memory, run in every way; all results have one comparable form.

`Prepared(text)` binds; `give` sets what the streams read; `reference()` and `native(way)` return Outcomes to compare.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from small_containers import small_containers

from cq.compiler.passes import Compiled, compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.connectors.physical_rows import batch_of, rows_of
from cq.connectors.sinks.writers import MemorySink, result_schema
from cq.engines import native
from cq.engines.protocol import RunOptions
from cq.engines.query import run_query
from cq.errors import DataError
from cq.lang import error_places
from cq.lang.aggregates.user import UserFold
from cq.lang.functions.user import UserFunction
from cq.lang.schema import Field
from cq.planner.physical import chain, choose
from cq.planner.physical.turns import gathered
from cq.planner.plan.logical import LogicalPlan, connected
from cq.planner.plan.node import rows_may_wait
from cq.records import dataclass, field
from cq.reference.engine import run as reference_run
from cq.runtime.engine.engine import Engine
from cq.runtime.engine.ways import partial
from cq.runtime.layout.pipeline import Pipeline

Row = tuple[Any, ...]
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class Way:
    """How the native engine runs: compiled, with this many workers, or with its generated code interpreted.

    If interpreted, the plan for that many workers runs inline.
    """

    threads: int = 0
    batch_rows: int = 4096
    heuristic: str = "ct"
    interpreted: bool = False

    def __str__(self) -> str:
        kind = (
            f"interpreted, as for {self.threads}" if self.interpreted else f"threads {self.threads}, {self.heuristic}"
        )
        return f"{kind}, batch rows {self.batch_rows}"


WAYS = tuple(Way(t, b) for t in (0, 1, 2, 4) for b in (1, 3, 4096)) + tuple(
    Way(0, b, interpreted=True) for b in (1, 3, 4096)
)


@contextmanager
def spread_out() -> Iterator[None]:
    """Inside, plans are cut into as many stages as possible, and rows are routed, whatever that costs."""
    with (
        patch.multiple(choose, ROUTED_FROM_NS=0, CALLS_APART=0, CALLS_COMPARED_APART=0),
        patch.object(chain, "GAIN", 0.0),
    ):
        yield


@dataclass(frozen=True)
class Outcome:
    """The result of a run: rows of every output, in order; late rows; code and place of the error that ended it; how
    many events each trigger rejected.

    Two outcomes are equal when every bit of every row is: 0.0 is not -0.0, and NaN is NaN.
    """

    rows: Mapping[str, tuple[Row, ...]]
    late: int | None
    error: str = ""
    message: str = field(default="", compare=False)
    rejected: Mapping[str, int] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outcome) and self.seen() == other.seen()

    def seen(self) -> tuple[str, str, str, str]:
        """Everything compared; late rows and rejected events only count in runs that ended well."""
        late = "" if self.error or self.late is None else str(self.late)
        rejected = str(sorted(self.rejected.items())) if self.rejected and not self.error else ""
        return repr(dict(self.rows)), self.error, late, rejected

    def difference(self, other: Outcome) -> str:
        """The first difference, for people; empty when there is none."""
        if self.error != other.error:
            return f"error {self.error or 'none'} {self.message}, not {other.error or 'none'} {other.message}"
        for name, rows in self.rows.items():
            others = other.rows[name]
            for i, (a, b) in enumerate(zip(rows, others, strict=False)):
                if repr(a) != repr(b):
                    return f"{name}[{i}]: {a}, not {b}"
            if len(rows) != len(others):
                return f"{name}: {len(rows)} rows, not {len(others)}"
        if self.seen()[2] != other.seen()[2]:
            return f"{self.late} late rows, not {other.late}"
        return f"rejected {self.rejected}, not {other.rejected}" if self.seen() != other.seen() else ""


class Prepared:
    """A query text, bound; `give` sets what its streams read, and may be called again.

    functions: user-defined ones that it calls.
    """

    def __init__(self, text: str, functions: Sequence[UserFunction | UserFold] = ()) -> None:
        self._given: dict[str, pa.Table] = {}
        inputs = Inputs(FileAccess(Path.cwd()), self._given)
        self.compiled: Compiled = compile(text, inputs=inputs, functions=functions)
        self.fields: dict[str, tuple[Field, ...]] = {s.name: s.fields for s in self.compiled.streams}

    def give(self, inputs: Mapping[str, Rows], cuts: Sequence[int] = ()) -> None:
        """Set the rows of every stream, in record batches of the sizes `cuts`, repeated; as one batch without them."""
        for name, fields in self.fields.items():
            # NOT NULL is up to the query: the table itself may hold anything
            loose = [Field(f.name, f.type, True) for f in fields]
            batch = batch_of(list(inputs.get(name, ())), loose)
            self._given[name] = pa.Table.from_batches(list(_slices(batch, cuts)), batch.schema)

    def give_tables(self, tables: Mapping[str, pa.Table]) -> None:
        """Set the rows of every stream, unchanged."""
        self._given.update(tables)

    def reference(self) -> Outcome:
        return self.run("reference", RunOptions())

    def native(self, way: Way) -> Outcome:
        """Run in this way; panes of workers are always merged, and containers of interpreted natives begin small."""

        def begin(pipeline: Pipeline, **options: Any) -> Engine:
            if way.interpreted:
                options["threads"] = 0
            return Engine(pipeline, **{**options, "heuristic": way.heuristic}, interpreted=way.interpreted)

        with (
            patch.object(native, "Engine", begin),
            patch.object(partial, "ROWS_A_GROUP", 0),  # panes are always merged
            small_containers() if way.interpreted else nullcontext(),
        ):
            return self.run("native", RunOptions(way.threads, way.batch_rows))

    def run(self, engine: str, options: RunOptions) -> Outcome:
        sinks = {o.name: MemorySink(result_schema(o.node.schema.fields)) for o in self.compiled.outputs}
        late, rejected, error, message = None, None, "", ""
        try:
            done = run_query(self.compiled, sinks, engine, options)
            late, rejected = done.late_rows, done.rejected_events
        except DataError as e:
            error, message = f"{e.code} {e.first.place}", e.first.message
        if any(all(o.limit is not None for o in part.outputs) for part in connected(self.compiled.plan)):
            late = rejected = None  # how many rows are read before the last limit of a part is reached is undefined
        rows = {}
        for output in self.compiled.outputs:
            types = [f.type for f in output.node.schema.fields]
            batches = sinks[output.name].table().to_batches()
            rows[output.name] = tuple(r for b in batches for r in rows_of(b, types))
        return Outcome(rows, late, error, message, rejected)

    def agree(self, native: Outcome, way: Way, reference: Outcome) -> bool:
        """Whether they are equal, or differ only in what a failing event may change (tests/README.md, What is
        compared)."""
        if native == reference:
            return True
        rewritten = self.compiled.after("rewrite")
        loose = len(self.compiled.outputs) > 1 or gathered(rewritten, rows_may_wait(rewritten.nodes()))
        if not loose or not reference.error or _place(native.error) not in self._places(reference):
            return False
        earlier = self._rows_of_earlier_events()
        for name, rows in reference.rows.items():
            others = native.rows[name]
            both = min(len(rows), len(others))
            if both < earlier[name] or repr(rows[:both]) != repr(others[:both]):
                return False
        return native == self.native(Way(interpreted=way.interpreted))

    def _places(self, reference: Outcome) -> set[str]:
        """Where a run may end: where the reference does, or would in the same event with only one of the outputs."""
        inputs, place = self._inputs(), _place(reference.error)
        at_a_row = not place.startswith(("window ", "closing ", "group ", error_places.END))
        whole = reference_run(self.compiled.plan, inputs)
        found = {place}
        for output in self.compiled.outputs:
            alone = reference_run(LogicalPlan((output,)), inputs)
            if not (alone.error and whole.error and alone.failed_at and whole.failed_at):
                continue
            other, here = alone.error.first.place, whole.error.first.place
            if not at_a_row and alone.failed_at[1] == whole.failed_at[1]:
                found.add(other)
            elif _row(other) == _row(here):
                found.add(_row(place) + other.removeprefix(_row(other)))
        return found

    def _rows_of_earlier_events(self) -> dict[str, int]:
        """How many rows of each output come from events before the failing one; all if no operator has failed."""
        result = reference_run(self.compiled.plan, self._inputs())
        return {
            name: sum((d.position.serial, d.position.instant) != result.failed_at for d in rows)
            for name, rows in result.outputs.items()
        }

    def errors_of_outputs(self) -> set[str]:
        """The code with which each output ends when it is computed alone."""
        inputs = self._inputs()
        results = [reference_run(LogicalPlan((o,)), inputs) for o in self.compiled.outputs]
        return {r.error.code for r in results if r.error is not None}

    def _inputs(self) -> dict[str, list[Row]]:
        out = {}
        for name, fields in self.fields.items():
            types = [f.type for f in fields]
            out[name] = [r for b in self._given[name].to_batches() for r in rows_of(b, types)]
        return out

    def given(self) -> dict[str, pa.Table]:
        """The tables that the streams currently read."""
        return dict(self._given)


def _place(error: str) -> str:
    return error.partition(" ")[2]


def _row(place: str) -> str:
    """The place of a row without that of the row it met."""
    return place.partition(", joined with ")[0]


def _slices(batch: pa.RecordBatch, cuts: Sequence[int]) -> Iterator[pa.RecordBatch]:
    if not cuts:
        yield batch
        return
    start = turn = 0
    while start < batch.num_rows:
        size = cuts[turn % len(cuts)]
        yield batch.slice(start, size)
        start, turn = start + size, turn + 1


@contextmanager
def watched(label: str, seconds: float = 120) -> Iterator[None]:
    """Report whoever hangs: after this many seconds the process prints `label` and ends."""

    def end() -> None:
        print(f"stands still for {seconds:g} s: {label}", file=sys.stderr, flush=True)
        os._exit(3)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
