"""User-defined functions on Spark: Arrow functions of the session, each under a name that identifies its source.

A worker gets the function itself, not the name of its module, so it does not need the module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cq.lang.aggregates.user import UserFold
from cq.lang.functions import Failure
from cq.lang.functions.spark_text import spark_type
from cq.lang.functions.user import UserFunction
from cq.lang.types import to_arrow
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.user_calls import user_calls, user_folds
from cq.spark.session import spark_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def register_functions(session: SparkSession, plan: LogicalPlan) -> None:
    """Register every user-defined function and aggregate that the plan calls in the session."""
    called: list[UserFunction | UserFold] = [function for function, _ in user_calls(plan)]
    called += [fold for node in plan.nodes() for fold, _ in user_folds(node)]
    for made in {c.spark_name: c for c in called}.values():
        if isinstance(made, UserFold):
            _register(session, made, _folding(made), made.add.function)
        else:
            _register(session, made, _over_arrow(made), made.function)


def _register(
    session: SparkSession, made: UserFunction | UserFold, body: Callable[..., pa.Array], python: Callable[..., Any]
) -> None:
    import pyarrow as pa
    from pyspark import cloudpickle
    from pyspark.sql.functions import arrow_udf

    body.__annotations__ = {"columns": pa.Array, "return": pa.Array}  # Spark looks for them
    module = sys.modules.get(python.__module__)
    if module is not None:
        cloudpickle.register_pickle_by_value(module)
    try:
        with spark_errors():
            session.udf.register(made.spark_name, arrow_udf(body, spark_type(made.returns.type)))
    finally:
        if module is not None:
            cloudpickle.unregister_pickle_by_value(module)


def _over_arrow(function: UserFunction) -> Callable[..., pa.Array]:
    """The function over columns, as a worker runs it."""
    parts = (function.function, function.name, function.parameters, function.returns)

    def over_columns(*columns: Any) -> Any:
        from cq.connectors.physical_rows import array_of, values_of

        made = UserFunction(*parts)
        given = [values_of(c.cast(to_arrow(p.type)), p.type) for c, p in zip(columns, made.parameters, strict=True)]
        try:
            return array_of([made.compute(*row) for row in zip(*given, strict=True)], made.returns.type)
        except Failure as failure:
            raise ArithmeticError(f"[{failure.code}] {failure.message}") from None

    return over_columns


def _folding(fold: UserFold) -> Callable[..., pa.Array]:
    """The aggregate over arrays of structs, one for each group, as a worker runs it."""
    parts = fold.parts

    def over_groups(*columns: Any) -> Any:
        from cq.connectors.physical_rows import array_of, values_of

        made, (groups,) = UserFold(*parts), columns
        structs = groups.values
        fields = [values_of(structs.field(n).cast(to_arrow(p.type)), p.type) for n, p in enumerate(made.parameters)]
        rows, ends = list(zip(*fields, strict=True)), groups.offsets.to_pylist()
        try:
            results = [made.folded(rows[a:b]) for a, b in pairwise(ends)]
        except Failure as failure:
            raise ArithmeticError(f"[{failure.code}] {failure.message}") from None
        return array_of(results, made.returns.type)

    return over_groups
