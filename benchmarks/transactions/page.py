"""docs/benchmarks-transactions.md and its pictures, computed from the JSON alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.measure import Race
from benchmarks.report import race_of
from benchmarks.transactions.applications import GS, OB, SL, TITLES, TP
from benchmarks.transactions.parts import COMPARED, SWEPT
from benchmarks.transactions.pictures import chart

Record = dict[str, Any]
LOCK_BAR = 0.8  # share of its own rate without locks, on one worker: a lower baseline would not be one
LATENCY_BAR_US = 630.0
SWEEPS = {
    "skew": ("Skew", "theta of the keys; Grep and Sum, writes only"),
    "reads": ("Reads", "share of requests that read; Grep and Sum, theta 0"),
    "several": ("Transactions over several partitions", "share of them; Grep and Sum, 8 partitions, each over 6"),
    "length": ("Partitions of a transaction", "how many; Grep and Sum, half of the transactions over several"),
    "aborts": ("Rejections", "share of reports that are rejected; Toll Processing"),
    "hot": ("Hot keys", "accounts; Streaming Ledger"),
}


def page(found: Mapping[str, Record]) -> str:
    """The page, with the parts there are."""
    parts = [HEAD, *_applications(found), *_sweeps(found), *_intervals(found), *_breakdown(found), *_latencies(found)]
    parts += [_statements(found), _measured(found), END]
    return "\n".join(p for p in parts if p)


def pictures(found: Mapping[str, Record]) -> dict[str, str]:
    """Pictures by file name."""
    made = {}
    for name, (title, along) in SWEEPS.items():
        if name in found:
            places, lines = _lines(found[name])
            made[f"transactions_{name}.svg"] = chart(title, along, "M events a CPU second", places, lines)
    return made


def _lines(part: Record) -> tuple[list[str], dict[str, list[float]]]:
    races = [race_of(p) for p in part["points"]]
    return [f"{p['at']:g}" for p in part["points"]], {s: [r.cpu_rate(s) for r in races] for s in SWEPT}


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], side: str = "--:") -> str:
    lines = [head, ["---", *[side] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _rate(race: Race, name: str) -> str:
    low, high = race.spread(name)
    return f"{race.rate(name):.2f} ({low:.2f}–{high:.2f})"


def _applications(found: Mapping[str, Record]) -> Iterator[str]:
    for name in (GS, SL, OB, TP):
        if name not in found:
            continue
        race = race_of(found[name])
        workers = sorted({int(n.split()[1]) for n in race.turns})
        head = ["scheme", *(f"{w} worker{'s' if w > 1 else ''}" for w in workers)]
        head += [*(f"CPU, {w}" for w in workers), "of no locks", "met"]
        rows = []
        for scheme in COMPARED:
            cells = [_rate(race, f"{scheme} {w}") for w in workers]
            cells += [f"{race.cpu_rate(f'{scheme} {w}'):.2f}" for w in workers]
            ratio = race.faster(f"{scheme} 1", "nolock 1", "cpu")
            bar = scheme not in {"serial", "chains", "nolock"} and ratio is not None
            met = ("yes" if ratio >= LOCK_BAR else "**no**") if bar and ratio is not None else ""
            rows.append([f"`{scheme}`", *cells, "-" if ratio is None else f"{ratio:.2f}", met])
        yield f"## {TITLES[name]}\n\n{race.units:,} events.\n\n{_table(head, rows)}"


def _sweeps(found: Mapping[str, Record]) -> Iterator[str]:
    for name, (title, along) in SWEEPS.items():
        if name in found:
            places, lines = _lines(found[name])
            rows = [[f"`{s}`", *(f"{v:.2f}" for v in values)] for s, values in lines.items()]
            yield f"## {title}\n\n{along[0].upper()}{along[1:]}. Millions of events a CPU second.\n"
            yield _table(["", *places], rows)
            yield f"![{title}](pictures/transactions_{name}.svg)\n"


def _intervals(found: Mapping[str, Record]) -> Iterator[str]:
    if "interval" not in found:
        return
    points = found["interval"]["points"]
    places = sorted({p["at"] for p in points})
    rows = []
    for name in TITLES:
        for scheme in ("chains", "lock"):
            rates = [f"{race_of(p).cpu_rate(scheme):.2f}" for p in points if p["application"] == name]
            rows.append([f"{TITLES[name]}, `{scheme}`", *rates])
    yield "## Events of a punctuation\n\nMillions of events a CPU second, by `punctuation_interval`.\n"
    yield _table(["", *(f"{p:,}" for p in places)], rows)


def _breakdown(found: Mapping[str, Record]) -> Iterator[str]:
    if "breakdown" not in found:
        return
    yield (
        f"## Where the time goes\n\nShares of the time of {found['breakdown']['workers']} workers. *Useful* is what "
        "the serial loop takes for the same transactions; *sync* is waiting for a turn, for a phase to end, for "
        "events, and for the processor where others have it; *lock* is waiting for rows; *others* is collecting, "
        "finding and copying rows, and handing on results.\n"
    )
    rows = [
        [f"{TITLES[r['application']]}, `{r['scheme']}`", *(f"{r[p]:.0%}" for p in ("useful", "sync", "lock", "others"))]
        for r in found["breakdown"]["runs"]
    ]
    yield _table(["", "useful", "sync", "lock", "others"], rows)


def _of_rounds(values: Sequence[float]) -> str:
    return f"{median(values):.0f} ({min(values):.0f}–{max(values):.0f})"


def _latencies(found: Mapping[str, Record]) -> Iterator[str]:
    if "latency" not in found:
        return
    bare = found["latency"]["bare"]
    rows = [["a loop over an array, which waits for nobody", *(_of_rounds(bare[p]) for p in ("p50_us", "p99_us")), ""]]
    for r in found["latency"]["runs"]:
        met = "yes" if median(r["p99_us"]) <= LATENCY_BAR_US else "**no**"
        name = f"{TITLES[r['application']]}, `{r['scheme']}`, {r['workers']}"
        rows.append([name, *(_of_rounds(r[p]) for p in ("p50_us", "p99_us")), met])
    yield (
        f"## Latency\n\nMicroseconds from handing over {found['latency']['interval']} events to the last of their "
        "results, one such ticket at a time, from Python: it includes waking the workers and the caller. Percentiles "
        f"of {found['latency']['runs'][0]['tickets']:,} tickets: the median of the rounds, with the lowest and the "
        "highest. Bar: 630 µs for the median of the 99th of a hundred, of a machine that has nothing else to do: see "
        "the load below.\n"
    )
    yield _table(["application, scheme, workers", "p50", "p99", "met"], rows)


# -- what the paper says ---------------------------------------------------------------------------------------------


def _statements(found: Mapping[str, Record]) -> str:
    races = {name: race_of(found[name]) for name in (GS, SL, OB, TP) if name in found}
    rows: list[list[str]] = []
    if races:
        first = next(iter(races.values()))
        most = max(int(n.split()[1]) for n in first.turns)
        rows += [_first(races, most), _third(races, most)]
    for name, number, said in (
        ("several", "T6", "PAT falls as more transactions span partitions; chains do not, and are above it at 0"),
        ("length", "T6", "PAT falls as transactions span more partitions; chains do not"),
        ("reads", "T7", "reads change nothing for locks; chains fall a little"),
        ("skew", "T8", "skew changes nothing for chains; locks fall"),
    ):
        if name in found:
            _, lines = _lines(found[name])
            ends = "; ".join(f"`{s}` {v[0]:.2f} → {v[-1]:.2f}" for s, v in lines.items() if s != "nolock")
            rows.append([number, said, ends])
    if "interval" in found:
        rows.append(_tenth(found["interval"]))
    if not rows:
        return ""
    about = (
        "Statements of TStream (Zhang et al., ICDE 2020), whose machine has forty cores, beside what is seen here. "
        "Figures are millions of events a CPU second unless the wall clock is named.\n"
    )
    return f"## What the paper says\n\n{about}\n" + _table(["", "the paper", "here"], rows, "---")


def _first(races: Mapping[str, Race], most: int) -> list[str]:
    told = []
    for name, race in races.items():
        best = max(
            (s for s in COMPARED if s not in {"serial", "chains", "nolock"}), key=lambda s: race.rate(f"{s} {most}")
        )
        wall, cpu = (race.faster(f"chains {most}", f"{best} {most}", by) or 0.0 for by in ("wall", "cpu"))
        told.append(f"{TITLES[name]} {wall:.2f} (by CPU {cpu:.2f}) of `{best}`")
    said = "chains over the next best: GS 3.8, SL 1.7, OB 3.3 (PAT), TP 4.8 (LOCK)"
    about = f"{most} workers, by the wall clock, the median of the ratios within the rounds: "
    return ["T1", said, about + "; ".join(told)]


def _third(races: Mapping[str, Race], most: int) -> list[str]:
    told = []
    for name, race in races.items():
        order = sorted(("pat", "lock", "mvlk"), key=lambda s: -race.rate(f"{s} {most}"))
        told.append(f"{TITLES[name]}: " + " > ".join(f"`{s}`" for s in order))
    return ["T3", "PAT above LOCK and MVLK, but below LOCK in Toll Processing", "; ".join(told)]


def _tenth(part: Record) -> list[str]:
    told = []
    for name in TITLES:
        rates = [race_of(p).cpu_rate("chains") for p in part["points"] if p["application"] == name]
        if rates:
            told.append(f"{TITLES[name]} {rates[0]:.2f} → {max(rates):.2f} at best → {rates[-1]:.2f}")
    return ["T10", "more events together give higher rates, most of all Toll Processing", "; ".join(told)]


def _measured(found: Mapping[str, Record]) -> str:
    """The circumstances of every part."""
    rows = []
    for name, part in found.items():
        c = part["circumstances"]
        load = f"{c['load'][0]:.1f} → {c['load'][1]:.1f}"
        rows.append([f"`{name}`", c["commit"], c["date"], str(c["rounds"]), load, str(c["nice"])])
    machine = next(iter(found.values()))["circumstances"]["machine"]
    about = (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}. "
        "`python -m benchmarks.transactions PART … --write-docs` measures parts anew and writes this page. *Load* is "
        f"how many threads wanted a core before and after: where more than {machine['cores']} do, a rate by the wall "
        "clock means little, and one a CPU second still does. *Nice* is the priority of the run: below 0 all other "
        "work had to wait, and the wall clock says more than the load suggests."
    )
    return f"## How it was measured\n\n{about}\n\n" + _table(["part", "commit", "date", "rounds", "load", "nice"], rows)


def summary(found: Mapping[str, Record]) -> str:
    """What a terminal shows: the rates of the parts."""
    lines = []
    for name, part in found.items():
        for point in part.get("points", [part]):
            if "turns" in point:
                race = race_of(point)
                for scheme in race.turns:
                    wall = median(race.wall_s(scheme))
                    lines.append(
                        f"{name} {point.get('at', '')} {scheme}: {race.units / wall / 1e6:.2f} M/s, "
                        f"{race.cpu_rate(scheme):.2f} M a CPU second"
                    )
        lines += [f"{name} {run}" for run in part.get("runs", [])]
    return "\n".join(lines)


HEAD = """# Transactions, measured

Written by `python -m benchmarks.transactions`; how a race is run is said in
[benchmarks/README.md](../benchmarks/README.md). Rates are millions of events a second from Arrow memory to record
batches: the median of the rounds, with the lowest and the highest; *CPU* columns are millions a CPU second of all
threads. *Of no locks* is the rate a CPU second of a scheme on one worker over that of `nolock`, which does the same but
for turns, locks and waiting; *met* says whether a baseline reaches the bar, 0.8, on that one
worker. What the schemes are is said in
[Transactions](transactions.md#how-transactions-run).
"""

END = """## What to take from it

On few cores the serial loop is the fastest: a transaction of these applications takes less time than it takes to
collect what it names. Of the schemes that spread transactions, chains find what a transaction waits for once for a
whole ticket, the others for each transaction in its turn. The distance between them is smaller than in the paper: the
baselines share the collected accesses and the evaluated bodies of chains and take a turn for sixteen events at a time,
and two cores contend less than forty.

Where all transactions want the same few rows the paper is not confirmed: locks overtake chains. Sixteen events in a row
are one worker's, so a hot row seldom changes hands, while in chains shares wait for each other in turn: with four
accounts, a visit to one does one and a half transactions
([where all want the same rows](decisions/transactions.md#chains)). PAT does not fall with transactions over several
partitions either, as two workers have two.

Rates grow with the events of a punctuation up to some thousand, as its phases have a cost of their own; with more, the
rows that a punctuation names leave the cache. The default is 500 all the same: most of the rate is there, and no event
waits for more than 499 others ([Latency](#latency)).
"""
