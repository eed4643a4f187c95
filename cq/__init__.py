"""cq: declarative continuous queries on one machine, and the same text on Spark.

    q = cq.load("hot.cq")
    r = q.run(inputs={"bid": table})
    r["result"].to_pandas()

Importing this loads nothing else: names come from the files beside it when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cq.version import VERSION

if TYPE_CHECKING:
    from cq.api import Query, diff, load, run, sql
    from cq.errors import CompileError, CqError, DataError, EngineError, UsageError
    from cq.job import Job
    from cq.result import KeptTable, Output, Result
    from cq.user_functions import udaf, udf

__version__ = VERSION
__all__ = [
    "CompileError",
    "CqError",
    "DataError",
    "EngineError",
    "Job",
    "KeptTable",
    "Output",
    "Query",
    "Result",
    "UsageError",
    "diff",
    "load",
    "run",
    "sql",
    "udaf",
    "udf",
]

_ERRORS = ("CompileError", "CqError", "DataError", "EngineError", "UsageError")
_EXTENSION = "load_ipython_extension"  # called by `%load_ext cq`
_HOMES = {
    **dict.fromkeys(_ERRORS, "cq.errors"),
    "Job": "cq.job",
    "KeptTable": "cq.result",
    "Output": "cq.result",
    "Result": "cq.result",
    "udaf": "cq.user_functions",
    "udf": "cq.user_functions",
    _EXTENSION: "cq.notebook",
}


def __getattr__(name: str) -> Any:
    if name not in __all__ and name != _EXTENSION:
        raise AttributeError(f"module 'cq' has no attribute {name!r}")
    import importlib

    from cq.garbage_collection import collector_paused

    with collector_paused():
        value = getattr(importlib.import_module(_HOMES.get(name, "cq.api")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
