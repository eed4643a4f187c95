"""The operators of the reference, by the names of `cq.planner.operators`. A file registers what it defines."""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

from cq.reference.operator import OPERATORS  # noqa: E402  they register themselves first

__all__ = ["OPERATORS"]
