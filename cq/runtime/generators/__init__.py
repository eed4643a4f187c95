"""Native twins of the workloads: the same rows as their definitions in `cq/workloads`, made by native code.

`twin(name)` stands for the `build` of the workload of that name. The definitions remain what the rows are; tests
compare them byte by byte.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cq.workloads.registry import Build

TWINS = {  # module here and function, by the name of the workload
    "bids": ("bids", "generate"),
    "linear_road": ("linear_road", "generate"),
    "nexmark_auction": ("nexmark", "auctions"),
    "nexmark_bid": ("nexmark", "bids"),
    "nexmark_person": ("nexmark", "persons"),
    "sentences": ("sentences", "generate"),
}


def twin(name: str) -> Build | None:
    """What makes the rows of this workload natively; None where only the definition does."""
    if name not in TWINS:
        return None
    module, function = TWINS[name]
    build: Build = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    return build
