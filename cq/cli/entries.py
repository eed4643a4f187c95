"""An entry of `cq docs`."""

from __future__ import annotations

from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class HelpEntry:
    """The documentation of a function. names: all its spellings."""

    names: tuple[str, ...]
    shape: str
    doc: str
    examples: tuple[str, ...]
    fails: tuple[str, ...]
