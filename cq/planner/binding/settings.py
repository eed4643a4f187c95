"""Settings of a run, as SET, `-s NAME=VALUE` and the Python interface take them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cq.errors import Diagnostic, UsageError, did_you_mean
from cq.lang.zones import NO_ZONE, BadZone, zone_name
from cq.records import dataclass
from cq.ways import EVENTS_TOGETHER, HEURISTICS, PLACEMENTS, SCHEMES, Sharing

Setting = int | str
"""The value of a setting: a number, or the word itself."""

DEFAULT_MEMORY_SHARE = 0.8  # of what the process may use: tables double while they grow, and rows are in flight
DEFAULT_MEMORY = f"{DEFAULT_MEMORY_SHARE * 100:.0f} % of the memory available to the process"

SETTINGS: dict[str, str] = {
    "parallelism": "number of workers; 0 runs the query in the calling thread. Default: one per usable processor, "
    "less one if a generator is read",
    "batch_rows": "number of rows in a batch",
    "memory_limit": "memory for the state of the query, such as '2GB' or '512MiB'; 'none' for no limit. "
    f"Default: {DEFAULT_MEMORY}",
    "heuristic": "which stage a worker serves next: 'ct' the slowest, 'lp' the last, 'et' the one with the most work "
    "waiting, 'qst' the first whose output queue is short; the rows are the same. "
    f"Default: '{HEURISTICS[0]}'",
    "transactions": "how to run the transactions of events: 'serial' one after the other, 'chains' on all workers, "
    "where an event waits only for earlier events that name the same rows, 'auto' the faster of the two by estimated "
    "cost; the rows are the same. "
    f"Default: '{SCHEMES[0]}'. "
    "For comparison: 'lock', 'lock_a', 'mvlk' and 'pat' lock rows or "
    "partitions, 'nolock' does not and gives wrong rows",
    "punctuation_interval": "maximum number of events whose transactions run together; 'auto' tunes it at run time; "
    f"the rows are the same. Default: {EVENTS_TOGETHER}",
    "placement": "how transactions are assigned to workers: 'stealing' those of its own rows, then any; "
    "'shared_nothing' those of its own rows only; 'shared_everything' any; 'per_socket' those of its socket, then any; "
    f"the rows are the same. Default: '{PLACEMENTS[0]}'",
    "time_zone": "time zone for displaying and truncating TIMESTAMP_LTZ, and for text without a zone, such as "
    "'Europe/Berlin' or '+02:00'. "
    f"Default: '{NO_ZONE}'",
}
NO_SETTINGS: dict[str, str] = {
    "aborts": "a transaction is evaluated once, on rows that are final, so none is undone or tried again",
}
"""Settings of other systems that have no counterpart here, and why."""
NO_CHECKPOINTS = "cq writes no checkpoints; a run starts from the beginning of its inputs"
SETTING_ALIASES = {
    "threads": "parallelism",
    "workers": "parallelism",
    **dict.fromkeys(["timezone", "table.local-time-zone", "spark.sql.session.timezone"], "time_zone"),
}
PARALLELISM = "parallelism"
BATCH_ROWS = "batch_rows"
MEMORY_LIMIT = "memory_limit"
HEURISTIC = "heuristic"
TRANSACTIONS = "transactions"
PUNCTUATION = "punctuation_interval"
TIME_ZONE = "time_zone"
ADAPTIVE = "auto"  # of punctuation_interval
PLACEMENT = "placement"
CHOICES = {HEURISTIC: HEURISTICS, TRANSACTIONS: SCHEMES, PLACEMENT: PLACEMENTS}
WORDS = frozenset({MEMORY_LIMIT, TIME_ZONE, PUNCTUATION, *CHOICES})
"""The settings whose values may be text."""
NO_MEMORY_LIMIT = 0  # the value of 'none'

MOST_THREADS = 1024  # in one run: several times the processors of any machine
MOST_BATCH_ROWS = 2**31 - 1  # what Arrow counts with 32 bits
MOST_EVENTS = 1_000_000  # between punctuations: more than any latency requirement tolerates
BOUNDS = {PARALLELISM: (0, MOST_THREADS), BATCH_ROWS: (1, MOST_BATCH_ROWS), PUNCTUATION: (1, MOST_EVENTS)}
"""The range of each numeric setting, however it is given: by SET, -s, -j or in Python."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run, and their defaults.

    parallelism: workers; None: one for each usable processor, less one if a generator is read.  batch_rows: None: the
    engine's choice. memory_limit: bytes; None: a share of what the process may use.  punctuation_interval: events, or
    ADAPTIVE.
    """

    parallelism: int | None = None
    batch_rows: int | None = None
    memory_limit: int | None = None
    heuristic: str = HEURISTICS[0]
    transactions: str = SCHEMES[0]
    punctuation_interval: Setting = EVENTS_TOGETHER
    placement: str = PLACEMENTS[0]
    time_zone: str = NO_ZONE

    @property
    def sharing(self) -> Sharing:
        """How workers share transactions."""
        events = self.punctuation_interval
        return Sharing(events if isinstance(events, int) else None, self.placement)


_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)


def setting_called(name: str) -> str:
    """The setting for a name that people write; the name itself if there is none."""
    return SETTING_ALIASES.get(name.lower(), name)


def unknown_setting(name: str) -> tuple[str, str]:
    """The error for an unknown setting, with a fix."""
    why = NO_CHECKPOINTS if is_of_checkpoints(name) else NO_SETTINGS.get(name)
    if why is not None:
        return f'there is no setting "{name}": {why}', "remove it"
    return f'there is no setting "{name}"', f"{did_you_mean(name, SETTINGS)} settings: {', '.join(SETTINGS)}".strip()


FOREIGN_SETTINGS = ("auto", "execution", "ksql", "parallelism", "pipeline", "spark", "sql-client", "state", "table")
"""How the names of Flink's, ksqlDB's and Spark's settings begin."""


def is_foreign(name: str) -> bool:
    """Whether it is the name of a setting in another system, such as `table.exec.state.ttl`."""
    first, point, _ = name.lower().partition(".")
    return bool(point) and first in FOREIGN_SETTINGS


def is_of_checkpoints(name: str) -> bool:
    """Whether a setting, here or in another system, concerns the checkpoints from which a run would resume."""
    return "checkpoint" in name.lower()


def asked_settings(given: Mapping[str, Setting]) -> dict[str, Setting]:
    """The values of settings given outside the text. UsageError for invalid ones (CQ0207, CQ0208)."""
    found: dict[str, Setting] = {}
    for written, text in given.items():
        name = setting_called(written)
        if name not in SETTINGS:
            cause, way = unknown_setting(written)
            raise UsageError(Diagnostic("CQ0207", cause, help=(way,)))
        value = setting_value(name, text)
        if value is None:
            cause = f'{written} takes {takes(name)}, not "{text}"'
            raise UsageError(Diagnostic("CQ0208", cause, help=(f"{name}: {SETTINGS[name]}",)))
        found[name] = value
    return found


def setting_value(name: str, written: Setting) -> Setting | None:
    """The value of a setting that exists; None when it cannot take it. memory_limit: bytes."""
    if name == TIME_ZONE:
        return _zone(str(written))
    if name in CHOICES:
        word = str(written).lower().replace("-", "_")
        return word if word in CHOICES[name] else None
    if name == PUNCTUATION and str(written).lower() == ADAPTIVE:
        return ADAPTIVE
    if name == MEMORY_LIMIT:
        return written if isinstance(written, int) and written > 0 else bytes_of(str(written))
    return _number(name, str(written))


def _zone(written: str) -> str | None:
    try:
        return zone_name(written)
    except BadZone:
        return None


def _number(name: str, text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    least, most = BOUNDS[name]
    return int(text) if least <= int(text) <= most else None


def takes(name: str) -> str:
    """What the setting takes, for errors."""
    if name in CHOICES:
        return "one of " + ", ".join(f"'{word}'" for word in CHOICES[name])
    if name == TIME_ZONE:
        return "the name of a zone, such as 'Europe/Berlin', or an offset, '+02:00'"
    if name == MEMORY_LIMIT:
        return "a size such as '2GB', or 'none'"
    return within(*BOUNDS[name]) + (f", or '{ADAPTIVE}'" if name == PUNCTUATION else "")


def within(least: int, most: int) -> str:
    """A number within these bounds, for errors."""
    return f"a whole number from {least} to {most:,}"


def bytes_of(text: str) -> int | None:
    """The bytes a size stands for: 2GB is 2 * 1000^3, 2GiB is 2 * 1024^3; 'none' is NO_MEMORY_LIMIT."""
    if text.strip().lower() == "none":
        return NO_MEMORY_LIMIT
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    number, letter, binary = found.groups()
    power = " kmgt".index(letter.lower()) if letter else 0
    if binary and not letter:
        return None
    size = int(float(number) * (1024 if binary else 1000) ** power)
    return size if 0 < size < 2**62 else None
