"""Native twins of the workloads: the same rows as their definitions in `cq/workloads`, made by native code.

`twin(name)` stands for the `build` of the workload of that name. The definitions remain what the rows are; tests
compare them byte by byte.
"""

from __future__ import annotations

import importlib

from cq.workloads.registry import Build

TWINS = ("bids", "linear_road", "sentences")  # each a module here, with the function `generate`


def twin(name: str) -> Build | None:
    """What makes the rows of this workload natively; None where only the definition does."""
    if name not in TWINS:
        return None
    build: Build = importlib.import_module(f"{__name__}.{name}").generate
    return build
