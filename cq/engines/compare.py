"""What `cq diff` does with two results: equal as ordered lists, or as multisets; DOUBLE by tolerance, all else exactly.

Rows are compared by a 64-bit word of their exact columns; rows with equal words are paired in the order of their
floating columns, and pairs within the tolerance are equal. Everything is vectorised: a million rows take a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as t

from cq.connectors.rowhash import row_words
from cq.connectors.sinks.cell_text import column_text
from cq.errors import CqError, DataError, Diagnostic, UsageError, printable
from cq.records import dataclass, field

SHOWN_ROWS = 20  # of either side, for people; all are counted
SMALL_GROUP = 64  # rows with equal exact columns that are matched one by one when sorting does not pair them
DEFAULT_TOLERANCE = 1e-9

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two results of one output relate. left_only, right_only: numbers of rows without a match.

    sample: the first of them, as (side, position, texts of the columns), matching rows side by side.
    """

    name: str
    columns: tuple[str, ...]
    left_rows: int
    right_rows: int
    left_only: int = 0
    right_only: int = 0
    sample: tuple[tuple[str, int, tuple[str, ...]], ...] = ()
    reason: str = ""

    @property
    def equal(self) -> bool:
        """Whether every row has a match, and the columns are the same."""
        return not (self.left_only or self.right_only or self.reason)


@dataclass(frozen=True, slots=True)
class Difference:
    """All outputs of a query on two engines. stopped: the data errors that ended both, if any."""

    left: str
    right: str
    outputs: tuple[Comparison, ...]
    errors: tuple[str, ...] = field(default=())  # the errors, if the engines stopped differently
    stopped: str = ""

    @property
    def equal(self) -> bool:
        """Whether all outputs are equal and both engines ended the same way."""
        return not self.errors and all(c.equal for c in self.outputs)

    def __bool__(self) -> bool:
        return not self.equal

    def raise_if_different(self) -> Difference:
        """Itself when equal; a DataError with the first differing rows otherwise."""
        if self.equal:
            return self
        raise DataError(Diagnostic("CQ0902", f"{self.left} and {self.right} differ\n{self}", severity="error"))

    def __str__(self) -> str:
        lines = [f"! {e}" for e in self.errors]
        if self.stopped:
            lines.append(self.stopped)
        for c in self.outputs:
            lines.append(describe(c, self.left, self.right))
        return "\n".join(lines)


def describe(c: Comparison, left: str, right: str) -> str:
    """One output: equal, or how many rows differ and the first of them by side."""
    name = printable(c.name)
    if c.equal:
        return f"{name}: equal, {c.left_rows:,} row{'' if c.left_rows == 1 else 's'}"
    head = f"{name}: {left} has {c.left_rows:,} rows, {right} {c.right_rows:,}"
    if c.reason:
        return f"{head}; {c.reason}"
    lines = [f"{head}; only in {left} {c.left_only:,}, only in {right} {c.right_only:,}"]
    width = max(len(left), len(right))
    cells = [(side, str(position), *(printable(x) for x in row)) for side, position, row in c.sample]
    table = [("", "row", *(printable(n) for n in c.columns)), *cells]
    widths = [max(len(r[i]) for r in table) for i in range(1, len(table[0]))]
    for side, *row in table:
        label = {"left": left, "right": right}.get(side, "")
        lines.append("  ".join([f"{label:{width}}", *(f"{x:{w}}" for x, w in zip(row, widths, strict=True))]).rstrip())
    return "\n".join(lines)


def compare(
    name: str, left: pa.Table, right: pa.Table, strict: bool = False, tolerance: float = DEFAULT_TOLERANCE
) -> Comparison:
    """Compare two results of one output. strict: rows must also be in the same order.

    tolerance: how far apart equal DOUBLEs may be, relative to the larger of them or 1; 0 distinguishes 0.0 from -0.0.
    """
    columns, rows = tuple(left.column_names), (left.num_rows, right.num_rows)
    if right.num_columns != left.num_columns:
        return Comparison(name, columns, *rows, reason=f"{left.num_columns} columns against {right.num_columns}")
    try:
        renamed = right.rename_columns(left.column_names)
        a, b = _one_batch(left), _one_batch(renamed.cast(left.schema.remove_metadata()))
    except (pa.ArrowException, ValueError) as e:
        return Comparison(name, columns, *rows, reason=f"their types differ: {str(e).splitlines()[0]}")
    floating = [i for i, f in enumerate(left.schema) if t.is_floating(f.type)]
    exact = [i for i in range(left.num_columns) if i not in floating]
    words = row_words(a.select(exact)), row_words(b.select(exact))
    doubles = _doubles(a, floating, tolerance == 0), _doubles(b, floating, tolerance == 0)
    unmatched = (_by_position if strict else _as_multisets)(words, doubles, tolerance)
    sample = _sample(a, b, *unmatched, exact)
    return Comparison(name, columns, *rows, len(unmatched[0]), len(unmatched[1]), sample)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


Words = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]
Doubles = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def _doubles(batch: pa.RecordBatch, columns: Sequence[int], signs: bool) -> npt.NDArray[np.float64]:
    """The floating columns as a matrix [column, row]; NULL is -infinity below a flag column that sets it apart.

    signs: another column says which values are below 0, -0.0 too.
    """
    out = []
    for i in columns:
        array = batch.column(i).cast(pa.float64())
        out.append(array.is_null().to_numpy(zero_copy_only=False).astype(np.float64))
        values = np.where(out[-1] == 1, -np.inf, array.fill_null(0).to_numpy(zero_copy_only=False))
        if signs:
            out.append((np.signbit(values) & ~np.isnan(values)).astype(np.float64))
        out.append(values)
    return np.array(out, np.float64).reshape(len(out), batch.num_rows)


def _near(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64], tolerance: float) -> npt.NDArray[np.bool_]:
    """Which rows of two matrices agree in every column."""
    if len(a) == 0:
        return np.ones(a.shape[1], np.bool_)
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.abs(a - b) <= tolerance * np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
        same = (a == b) | (close & np.isfinite(a) & np.isfinite(b)) | (np.isnan(a) & np.isnan(b))
    every: npt.NDArray[np.bool_] = same.all(axis=0)
    return every


def _by_position(words: Words, doubles: Doubles, tolerance: float) -> tuple[Rows, Rows]:
    """Rows that differ from the one at the same position, and those beyond the end of the shorter side."""
    shared = min(len(words[0]), len(words[1]))
    same = words[0][:shared] == words[1][:shared]
    same &= _near(doubles[0][:, :shared], doubles[1][:, :shared], tolerance)
    differing = np.flatnonzero(~same)
    return (
        np.concatenate((differing, np.arange(shared, len(words[0])))),
        np.concatenate((differing, np.arange(shared, len(words[1])))),
    )


def _as_multisets(words: Words, doubles: Doubles, tolerance: float) -> tuple[Rows, Rows]:
    """Rows without a match on the other side, by position."""
    orders = [np.lexsort((*doubles[k][::-1], words[k])) for k in (0, 1)]
    ordered = [words[k][orders[k]] for k in (0, 1)]
    keys = np.union1d(*words)
    bounds = [(np.searchsorted(o, keys), np.searchsorted(o, keys, side="right")) for o in ordered]
    counts = [stop - start for start, stop in bounds]
    equally_many = counts[0] == counts[1]
    ranks = [np.repeat(equally_many, counts[k]) for k in (0, 1)]  # rows whose group has the same size on both sides
    paired = orders[0][ranks[0]], orders[1][ranks[1]]
    near = _near(doubles[0][:, paired[0]], doubles[1][:, paired[1]], tolerance)
    group = np.repeat(np.arange(len(keys)), counts[0])[ranks[0]]
    doubtful = np.union1d(group[~near], np.flatnonzero(~equally_many))
    left_only: list[int] = []
    right_only: list[int] = []
    for g in doubtful.tolist():
        a = orders[0][bounds[0][0][g] : bounds[0][1][g]].tolist()
        b = orders[1][bounds[1][0][g] : bounds[1][1][g]].tolist()
        rest = _match(a, b, doubles, tolerance)
        left_only += rest[0]
        right_only += rest[1]
    return np.array(sorted(left_only), np.int64), np.array(sorted(right_only), np.int64)


def _match(a: list[int], b: list[int], doubles: Doubles, tolerance: float) -> tuple[list[int], list[int]]:
    """The rows of two groups with equal exact columns that remain after near rows are removed in pairs."""
    if not len(doubles[0]):
        shared = min(len(a), len(b))
        return a[shared:], b[shared:]
    if len(a) > SMALL_GROUP or len(b) > SMALL_GROUP:
        shared = min(len(a), len(b))
        near = _near(doubles[0][:, a[:shared]], doubles[1][:, b[:shared]], tolerance).tolist()
        return (
            [r for r, n in zip(a, near, strict=False) if not n] + a[shared:],
            [r for r, n in zip(b, near, strict=False) if not n] + b[shared:],
        )
    free = list(b)
    left = []
    for row in a:
        candidates = _near(doubles[0][:, [row] * len(free)], doubles[1][:, free], tolerance) if free else np.array([])
        found = np.flatnonzero(candidates)
        if len(found):
            free.pop(int(found[0]))
        else:
            left.append(row)
    return left, free


def _sample(
    a: pa.RecordBatch, b: pa.RecordBatch, left: Rows, right: Rows, exact: Sequence[int]
) -> tuple[tuple[str, int, tuple[str, ...]], ...]:
    """The first rows of each side, those with the same first exact columns side by side."""
    rows = [("left", p, _texts(a, p)) for p in left[:SHOWN_ROWS].tolist()]
    rows += [("right", p, _texts(b, p)) for p in right[:SHOWN_ROWS].tolist()]
    rows.sort(key=lambda r: (tuple(r[2][i] for i in exact), r[0], r[1]))
    return tuple(rows)


def _texts(batch: pa.RecordBatch, row: int) -> tuple[str, ...]:
    one = batch.slice(row, 1)
    return tuple(("NULL" if v is None else str(v)[:60]) for c in one.columns for v in column_text(c).to_pylist())


def tolerance_between(left: str, right: str, asked: float | None) -> float:
    """The requested tolerance; else 0, the same bits, unless one of the engines is Spark.

    CQ0208 for a tolerance that no two DOUBLEs are within, NaN included.
    """
    if asked is None:
        return DEFAULT_TOLERANCE if "spark" in (left, right) else 0.0
    if not asked >= 0:
        raise UsageError(Diagnostic("CQ0208", f"the tolerance must be a number of at least 0, not {asked!r}"))
    return asked


def compare_runs(
    left: tuple[str, Mapping[str, pa.Table], CqError | None],
    right: tuple[str, Mapping[str, pa.Table], CqError | None],
    strict: bool = False,
    tolerance: float = DEFAULT_TOLERANCE,
) -> Difference:
    """Compare two runs, each (engine, tables by output, the data error that stopped it).

    Spark's errors have no place, and Spark returns no rows before one: only the codes are compared, and with several
    outputs not even those, because Spark computes one after the other and so may meet another error first.
    Where others stop alike and there are several outputs, each is compared as far as both have it: the row or closing
    time that failed may have delivered part of an output, and how much depends on the engine.
    """
    (left_name, left_tables, left_error), (right_name, right_tables, right_error) = left, right
    spark, several = "spark" in (left_name, right_name), len(left_tables) > 1
    whole = left_error is None and right_error is None
    same = _same_cause(left_error, right_error)
    alike = same or (spark and several and left_error is not None and right_error is not None)
    outputs = []
    for name in left_tables if whole or not spark else ():
        a, b = left_tables[name], right_tables[name]
        if alike and several:
            both = min(a.num_rows, b.num_rows)
            a, b = a.slice(0, both), b.slice(0, both)
        outputs.append(compare(name, a, b, strict, tolerance))
    ends = () if whole else (f"{left_name} {_end_of(left_error)}", f"{right_name} {_end_of(right_error)}")
    if not alike:
        return Difference(left_name, right_name, tuple(outputs), errors=ends)
    stopped = f"both {_end_of(left_error)}" if same else "; ".join(ends)
    return Difference(left_name, right_name, tuple(outputs), stopped=stopped)


def _same_cause(left: CqError | None, right: CqError | None) -> bool:
    """Whether both runs stopped with the same code, and at the same place if both name one."""
    if left is None or right is None:
        return False
    places = {e.first.place for e in (left, right)} - {""}
    return left.code == right.code and len(places) < 2


def _end_of(error: CqError | None) -> str:
    if error is None:
        return "ran to the end"
    return " ".join(filter(None, ("stopped:", error.first.place, error.code, error.first.message)))
