"""Tables of medians, spreads and ratios against the bars, from the record of a run.

Everything is computed from the JSON, so docs/benchmarks.md can be regenerated without measuring.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.case import Case
from benchmarks.cases import CASES
from benchmarks.end_to_end import IN_PYTHON, WHOLE
from benchmarks.measure import Race, Turn
from benchmarks.sliding import RATIO

KERNEL_MEAN_BAR = 0.9
ENGINE_BAR = 0.8
CONTROL_BAR, NEVER_BELOW = 0.85, 0.95
SPREAD_FROM_NS = 25  # kernels that take longer per row must scale like the control
DECODE_BAR = 0.85
SLIDING_BAR = 1.3  # times the cost of the same panes in windows that do not overlap
WORDS_BAR, FROM_MEMORY_BAR = 60.0, 60.0  # millions a second
WARM_BAR_S, COLD_BAR_S, IMPORT_BAR_S = 0.3, 2.5, 0.3
CHECK_BAR_S, FIRST_QUERY_BAR_S = 0.15, 0.25
PEAK_BAR = 1.2

Record = dict[str, Any]


class Table:
    """Rows of text under a heading."""

    def __init__(self, title: str, about: str, columns: Sequence[str]) -> None:
        self.title, self.about, self.columns = title, about, columns
        self.rows: list[list[str]] = []
        self.missed: list[str] = []

    def add(self, name: str, *cells: str, met: bool | None = None) -> None:
        """One row; `met` is its last cell."""
        shown = {None: "", True: "yes", False: "**no**"}[met]
        self.rows.append([name, *cells, shown])
        if met is False:
            self.missed.append(name)

    def markdown(self) -> str:
        """The table as Markdown."""
        head = ["", *self.columns, "met"]
        lines = [f"## {self.title}", "", self.about, "", _row(head), _row(["---"] + ["--:"] * (len(head) - 1))]
        return "\n".join([*lines, *(_row(r) for r in self.rows)]) + "\n"

    def text(self) -> str:
        """The table for a terminal."""
        head = ["", *self.columns, "met"]
        widths = [max(len(r[n]) for r in [head, *self.rows]) for n in range(len(head))]
        lines = [
            "  ".join(
                cell.ljust(w) if n == 0 else cell.rjust(w) for n, (cell, w) in enumerate(zip(r, widths, strict=True))
            )
            for r in [head, *self.rows]
        ]
        return "\n".join([self.title, *lines]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def race_of(record: Record) -> Race:
    """A race from its record."""
    turns = {
        name: [Turn(w, c) for w, c in zip(t["wall_s"], t["cpu_s"], strict=True)] for name, t in record["turns"].items()
    }
    return Race(record["units"], turns)


def record_of(race: Race) -> Record:
    """The record of a race."""
    turns = {name: {"wall_s": race.wall_s(name), "cpu_s": race.cpu_s(name)} for name in race.turns}
    return {"units": race.units, "turns": turns}


def tables(found: Record) -> list[Table]:
    """Every table for which there are figures."""
    memory = {name: race_of(r) for name, r in found.get("memory", {}).items()}
    parquet = {name: race_of(r) for name, r in found.get("parquet", {}).items()}
    made: list[Table] = []
    if memory:
        made += [_kernels(memory), _engine(memory), _scaling(memory), _peers(memory), _sliding(memory)]
        made.append(_absolute(memory))
    if parquet:
        made.append(_files(parquet))
    if "startup" in found:
        made.append(_startup(found["startup"]))
    if "peak" in found:
        made.append(_peak(found["peak"]))
    if "python" in found:
        made.append(_python({name: race_of(r) for name, r in found["python"].items()}))
    if "whole" in found:
        made.append(_whole(found["whole"]))
    return [t for t in made if t.rows]


def _rate(race: Race, name: str) -> str:
    """Median (lowest to highest), millions a second by the wall clock."""
    if name not in race.turns:
        return "-"
    low, high = race.spread(name)
    return f"{_short(race.rate(name))} ({_short(low)}–{_short(high)})"


def _short(rate: float) -> str:
    return f"{rate:.1f}" if rate < 20 else f"{rate:.0f}"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def _kernels(memory: dict[str, Race]) -> Table:
    table = Table(
        "Kernels and the same loops in C++",
        "Millions a CPU second of one thread. The kernel is called over tickets cut beforehand; the loop is "
        "`benchmarks/loops.cpp`, compiled with `g++ -O3 -march=native`. Ratio: kernel over C++, by CPU seconds.",
        ("kernel", "C++", "ratio", "bar"),
    )
    ratios = []
    for name, race in memory.items():
        ratio, bar = race.faster("kernel", "c++", "cpu"), CASES[name].loop_bar
        cells = [_short(race.cpu_rate(n)) if n in race.turns else "-" for n in ("kernel", "c++")]
        met = None if ratio is None else ratio >= bar
        table.add(CASES[name].title, *cells, _times(ratio), "" if ratio is None else f"≥ {bar}", met=met)
        ratios += [ratio] if ratio is not None else []
    if len(ratios) > 1:
        mean = math.exp(sum(math.log(r) for r in ratios) / len(ratios))
        table.add("geometric mean", "", "", f"{mean:.2f}", f"≥ {KERNEL_MEAN_BAR}", met=mean >= KERNEL_MEAN_BAR)
    return table


def _engine(memory: dict[str, Race]) -> Table:
    table = Table(
        "The engine and its kernel",
        "From Arrow memory to record batches, one worker (`-j 1`: a worker and a feeder; `-j 0`: one thread), against "
        "the bare kernel. Millions a second by the wall clock; ratios by wall and by CPU seconds of all threads.",
        ("kernel", "-j 0", "-j 1", "-j 1 / kernel", "by CPU", "bar"),
    )
    for name, race in memory.items():
        ratio = race.faster("-j 1", "kernel")
        rates = (_rate(race, n) for n in ("kernel", "-j 0", "-j 1"))
        cpu = _times(race.faster("-j 1", "kernel", "cpu"))
        met = ratio is not None and ratio >= ENGINE_BAR
        table.add(CASES[name].title, *rates, _times(ratio), cpu, f"≥ {ENGINE_BAR}", met=met)
    return table


def must_spread(case: Case, race: Race) -> bool:
    """Whether two workers must match the control: stateless, mergeable with many rows per group, or a slow kernel."""
    return case.spread or 1e3 / race.cpu_rate("kernel") >= SPREAD_FROM_NS


def _scaling(memory: dict[str, Race]) -> Table:
    table = Table(
        "Two workers and one",
        "The control is two independent engines of one thread, each on half of the input, at the same time: what two "
        "cores give on this machine at this moment; none where half of the rows are not half of the work. Speed-ups "
        "over `-j 1` by the wall clock; CPU: CPU seconds of `-j 1` over those of `-j 2`.",
        ("-j 1", "-j 2", "-j 2 / -j 1", "control / -j 1", "-j 2 / control", "CPU", "bar"),
    )
    for name, race in memory.items():
        gain, control = race.faster("-j 2", "-j 1"), race.faster("halves", "-j 1")
        share = race.faster("-j 2", "halves")
        if gain is None:
            continue
        spread = share is not None and must_spread(CASES[name], race)
        bar = f"≥ {NEVER_BELOW} of -j 1" + f", ≥ {CONTROL_BAR} of the control" * spread
        met = gain >= NEVER_BELOW and (not spread or share is None or share >= CONTROL_BAR)
        efficiency = _times(race.faster("-j 2", "-j 1", "cpu"))
        cells = (_times(gain), _times(control), _times(share), efficiency, bar)
        table.add(CASES[name].title, _rate(race, "-j 1"), _rate(race, "-j 2"), *cells, met=met)
    return table


def _peers(memory: dict[str, Race]) -> Table:
    table = Table(
        "DuckDB and polars, from the same Arrow memory",
        "Two threads each; cq gives its rows in order and, for running aggregates, as they come, the others give a "
        "finished table in any order. cq is the engine with `-j 2`; `cq.sql` is `cq.sql(…).run()`, which also compiles "
        "the query and keeps its output. *Two loops* is twice the rate of the loop in C++: what two threads of it "
        "would give if each had half of the work and nothing to hand over. Millions a second by the wall clock.",
        ("cq", "cq.sql", "DuckDB", "polars", "cq / DuckDB", "by CPU", "two loops / DuckDB", "cq / polars", "bar"),
    )
    for name, race in memory.items():
        case = CASES[name]
        if not case.duckdb:
            continue
        ratio = race.faster("-j 2", "duckdb") or 0.0
        rates = (_rate(race, n) for n in ("-j 2", "api", "duckdb", "polars"))
        by_cpu, polars = race.faster("-j 2", "duckdb", "cpu"), race.faster("-j 2", "polars")
        loops = f"{2 * race.cpu_rate('c++') / race.rate('duckdb'):.1f}" if "c++" in race.turns else "-"
        cells = (*rates, f"{ratio:.1f}", _times(by_cpu), loops, _times(polars), f"≥ {case.peer_bar:g}")
        table.add(case.title, *cells, met=ratio >= case.peer_bar)
    return table


def _sliding(memory: dict[str, Race]) -> Table:
    """The cost of overlap: two cases over the same rows, each with its own rounds."""
    table = Table(
        "Windows many times as long as their slide",
        "CPU seconds of the kernel and wall seconds of `-j 2` over those of windows of one slide, which have the same "
        "panes and as many result rows: ratios of the medians.",
        ("one slide, CPU", "many, CPU", "ratio", "-j 2, ratio", "bar"),
    )
    once, many = (memory.get(f"sliding_{ratio}") for ratio in (1, RATIO))
    if once is not None and many is not None:
        first, second = (median(race.cpu_s("kernel")) for race in (once, many))
        wall = median(many.wall_s("-j 2")) / median(once.wall_s("-j 2"))
        cells = (f"{first:.3f}", f"{second:.3f}", f"{second / first:.2f}", f"{wall:.2f}", f"≤ {SLIDING_BAR}")
        table.add(CASES[f"sliding_{RATIO}"].title, *cells, met=second / first <= SLIDING_BAR)
    return table


def _absolute(memory: dict[str, Race]) -> Table:
    table = Table(
        "Absolute figures",
        "Millions a second: kernels by CPU seconds of one thread, the rest by the wall clock.",
        ("measured", "bar"),
    )
    for name, race in memory.items():
        case = CASES[name]
        if case.kernel_bar is not None:
            rate = race.cpu_rate("kernel")
            table.add(f"{case.title}: kernel", _short(rate), f"≥ {case.kernel_bar:g}", met=rate >= case.kernel_bar)
            rate = race.rate("-j 1")
            label = f"{case.title}: from memory, `-j 1`"
            table.add(label, _short(rate), f"≥ {FROM_MEMORY_BAR:g}", met=rate >= FROM_MEMORY_BAR)
        if case.unit == "words":
            rate = race.rate("-j 2")
            table.add(f"{case.title}: words, `-j 2`", _short(rate), f"≥ {WORDS_BAR:g}", met=rate >= WORDS_BAR)
    return table


def _files(parquet: dict[str, Race]) -> Table:
    table = Table(
        "From one Parquet file",
        "The whole of `cq run -j 2` but starting it: opening, decoding, checking, computing. "
        "Decoding alone is `pyarrow.parquet.read_table` of the same columns with two threads. Millions a second, wall.",
        ("cq", "pyarrow decoding", "DuckDB", "polars", "cq / decoding", "cq / DuckDB", "cq / polars", "bar"),
    )
    for name, race in parquet.items():
        case = CASES[name]
        decoding, duck = race.faster("cq", "pyarrow") or 0.0, race.faster("cq", "duckdb") or 0.0
        bar = f"≥ {DECODE_BAR} of decoding" if case.stateless else f"≥ {case.file_bar} of DuckDB"
        met = decoding >= DECODE_BAR if case.stateless else duck >= case.file_bar
        rates = (_rate(race, n) for n in ("cq", "pyarrow", "duckdb", "polars"))
        ratios = (_times(decoding), _times(duck), _times(race.faster("cq", "polars")))
        table.add(case.title, *rates, *ratios, bar, met=met)
    return table


def _startup(found: Record) -> Table:
    table = Table(
        "Starting up",
        "Processes from beginning to end, interpreter included: `cq run` of a tumbling aggregate on a CSV file of "
        "1,000 rows. Cold: the query was never compiled, the runtime library was. All cold: nothing was. The first "
        "query is a filter of 1,000 rows in memory, in a program that has imported pyarrow. Seconds.",
        ("wall", "CPU", "bar"),
    )
    bars = {"import cq": IMPORT_BAR_S, "warm": WARM_BAR_S, "cold": COLD_BAR_S}
    bars |= {"check": CHECK_BAR_S, "first query": FIRST_QUERY_BAR_S}
    names = {
        "python": "`python -c pass`",
        "import cq": "`python -c 'import cq'`",
        "import pyarrow": "`python -c 'import pyarrow'`",
        "check": "`cq check`",
        "first query": "`import cq` and a first query, beside `import pyarrow`",
    }
    for name, times in found.items():
        wall = times["wall_s"]
        bar = bars.get(name)
        shown = f"{median(wall):.2f} ({min(wall):.2f}–{max(wall):.2f})"
        met = None if bar is None else median(wall) <= bar
        label = names.get(name, f"`cq run`, {name}")
        table.add(label, shown, f"{median(times['cpu_s']):.2f}", f"≤ {bar}" if bar else "", met=met)
    return table


def _peak(found: Record) -> Table:
    table = Table(
        "Peak memory",
        f"Of the whole process of `cq run -j 2`, at {found['rows']:,} rows and at ten times as many. MiB.",
        ("1×", "10×", "ratio", "bar"),
    )
    for name, (small, large) in found["bytes"].items():
        ratio = large / small
        cells = (f"{small / 2**20:.0f}", f"{large / 2**20:.0f}", f"{ratio:.2f}", f"≤ {PEAK_BAR}")
        table.add(name, *cells, met=ratio <= PEAK_BAR)
    return table


def _python(races: dict[str, Race]) -> Table:
    table = Table(
        "End to end in Python, and DuckDB",
        "`cq.sql(text, t=rows).run().to_arrow()` and DuckDB's `sql(text).to_arrow_table()`, two threads each; rows are "
        "an Arrow table or a Parquet file. Everything is within the clock but the first compilation of cq's code. "
        "Millions of rows a second, wall.",
        ("rows", "cq", "DuckDB", "cq / DuckDB", "by CPU", "bar"),
    )
    for case in IN_PYTHON:
        for kind in ("memory", "Parquet"):
            race = races.get(f"{case.name}, {kind}")
            if race is not None:
                ratio = race.faster("cq", "duckdb") or 0.0
                cells = (
                    _rate(race, "cq"),
                    _rate(race, "duckdb"),
                    _times(ratio),
                    _times(race.faster("cq", "duckdb", "cpu")),
                )
                label = f"{case.title}, from {'a file' if kind == 'Parquet' else kind}"
                table.add(label, f"{race.units:,}", *cells, f"≥ {case.bar:g}", met=ratio >= case.bar)
    return table


def _whole(found: Record) -> Table:
    table = Table(
        "Whole processes, and DuckDB's",
        "`cq run -j 2` and a program in Python with DuckDB and two threads, from the interpreter's start to the last "
        "byte; GROUP BY from memory: two programs that read the table first. Seconds, wall; peaks in MiB; ratios are "
        "medians of those within rounds.",
        ("cq", "DuckDB", "cq / DuckDB", "by CPU", "bar", "peak", "DuckDB's", "ratio", "bar "),
    )
    for case in WHOLE:
        if case.name in found:
            cq, duck = found[case.name]["cq"], found[case.name]["duckdb"]
            wall, cpu, peak = (
                median(a / b for a, b in zip(cq[n], duck[n], strict=True)) for n in ("wall_s", "cpu_s", "peak")
            )
            shown = [f"{median(t['wall_s']):.2f} ({min(t['wall_s']):.2f}–{max(t['wall_s']):.2f})" for t in (cq, duck)]
            sizes = [f"{median(t['peak']) / 2**20:.0f}" for t in (cq, duck)]
            memory = case.memory_bar
            bars = f"≤ {case.time_bar:g}", "" if memory is None else f"≤ {memory:g}"
            met = wall <= case.time_bar and (memory is None or peak <= memory)
            table.add(case.title, *shown, _times(wall), _times(cpu), bars[0], *sizes, _times(peak), bars[1], met=met)
    return table


def _version(shown: str) -> str:
    """The number in a program's version text: `12.2.0` in `g++ (Debian 12.2.0-14) 12.2.0`."""
    return shown.rsplit(" ", 1)[-1]


def heading(found: Record) -> str:
    """What was measured, where, and how."""
    machine, load = found["machine"], found["load"]
    lines = [
        "# Benchmarks",
        "",
        f"Made by `{found['command']}` (see `benchmarks/README.md`) from `docs/benchmarks.json`, which has every turn.",
        "",
        f"* machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB; {machine['system']}",
        f"* commit: {found['commit']}, {found['date']}",
        "* software: " + ", ".join(f"{k} {_version(v)}" for k, v in found["software"].items()),
        f"* rounds: {found['rounds']}; in every round each contender runs once, in rotated order; figures are medians, "
        "in brackets the lowest and the highest; ratios are medians of the ratios within rounds",
        f"* load average over the last minute: {load[0]:.1f} before, {load[1]:.1f} after"
        + ("; the machine was shared, so rates are low and ratios tell more" if load[0] > 1 else ""),
        "",
    ]
    return "\n".join(lines)
