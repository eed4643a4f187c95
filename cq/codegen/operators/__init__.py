"""The operators in kernels, by the names of `cq.planner.operators`. A file registers what it defines."""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
