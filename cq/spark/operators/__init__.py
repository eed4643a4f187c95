"""The operators in Spark SQL, by the names of `cq.planner.operators`. A file registers what it defines.

Importing this fails with the names of what is missing."""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

from cq.planner.plan.registration import complete  # noqa: E402  operators are there by now
from cq.spark.context import OPERATORS  # noqa: E402  they register themselves first

__all__ = ["OPERATORS"]

complete("Spark", OPERATORS)
