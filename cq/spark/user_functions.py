"""The user's functions on Spark: Arrow functions of the session, each under a name that tells its source.

A worker gets the function itself, not the name of its module, so that the module need not be there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cq.lang.functions import Failure
from cq.lang.functions.spark_text import spark_type
from cq.lang.functions.user import UserFunction
from cq.lang.types import to_arrow
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.user_calls import user_calls
from cq.spark.session import spark_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def register_functions(session: SparkSession, plan: LogicalPlan) -> None:
    """The session knows every function of the user that the plan calls."""
    known = set()
    for function, _ in user_calls(plan):
        if function.spark_name not in known:
            known.add(function.spark_name)
            _register(session, function)


def _register(session: SparkSession, function: UserFunction) -> None:
    from pyspark import cloudpickle
    from pyspark.sql.functions import arrow_udf

    module = sys.modules.get(function.function.__module__)
    if module is not None:
        cloudpickle.register_pickle_by_value(module)
    try:
        made = arrow_udf(_over_arrow(function), spark_type(function.returns.type))
        with spark_errors():
            session.udf.register(function.spark_name, made)
    finally:
        if module is not None:
            cloudpickle.unregister_pickle_by_value(module)


def _over_arrow(function: UserFunction) -> Callable[..., pa.Array]:
    """The function over columns: what a worker runs."""
    import pyarrow as pa

    parts = (function.function, function.name, function.parameters, function.returns)

    def over_columns(*columns: Any) -> Any:
        from cq.connectors.physical_rows import array_of, values_of

        made = UserFunction(*parts)
        given = [values_of(c.cast(to_arrow(p.type)), p.type) for c, p in zip(columns, made.parameters, strict=True)]
        try:
            return array_of([made.compute(*row) for row in zip(*given, strict=True)], made.returns.type)
        except Failure as failure:
            raise ArithmeticError(f"[{failure.code}] {failure.message}") from None

    over_columns.__annotations__ = {"columns": pa.Array, "return": pa.Array}  # Spark looks for them
    return over_columns
