"""What every registry refuses: an incomplete or contradictory entry, and a second one with the same name.

So a mistake is reported, with its name, when the file of the entry is imported, and not by the first query that meets
it.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any, TypeVar

K = TypeVar("K")


class BadEntry(TypeError):
    """An entry is incomplete, or contradicts itself."""


def enter(registry: MutableMapping[K, Any], name: K, entry: object, kind: str, problems: Iterable[str] = ()) -> None:
    """Register an entry, or raise BadEntry with all its problems. kind: of the entries in the registry, for people."""
    again = [f"there is another {kind} of that name"] if name in registry else []
    refuse(f"{kind} {name}", [*problems, *again])
    registry[name] = entry


def refuse(entry: str, problems: Iterable[str]) -> None:
    """Raise BadEntry with the problems of an entry, if there are any."""
    told = "; ".join(problems)
    if told:
        raise BadEntry(f"{entry}: {told}")
