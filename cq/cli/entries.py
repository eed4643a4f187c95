"""An entry of `cq docs`."""

from __future__ import annotations

from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class HelpEntry:
    """What there is to say of a function. names: all its spellings."""

    names: tuple[str, ...]
    shape: str
    doc: str
    examples: tuple[str, ...]
    fails: tuple[str, ...]
