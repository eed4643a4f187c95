"""The names of calls, invalid ones, and the messages about unknown ones."""

from __future__ import annotations

from cq.errors import CompileError, compile_error, did_you_mean
from cq.grammar import ast
from cq.grammar.unsupported import ELSEWHERE, FUNCTION_WAYS, SAME_PLACE
from cq.hints import face
from cq.lang.aggregates import ALIASES as AGGREGATE_ALIASES
from cq.lang.aggregates import all_aggregates, lookup
from cq.lang.functions import all_names, trunc_units
from cq.planner.binding.functions.shorthands import SHORTHANDS

COALESCE_NAMES = {"coalesce", "ifnull", "nvl"}
TRUNC_NAMES = {"date_trunc", "time_trunc"}
NOT_REPEATABLE = {"random", "rand", "randn", "uuid", "gen_random_uuid", "newid", "clock_timestamp"}
CLOCK_NAMES = {
    *("now", "current_timestamp", "current_date", "current_time", "localtimestamp", "localtime"),
    *("proctime", "getdate", "today", "sysdate", "utc_timestamp", "curdate", "curtime"),
}
GIVES_ROWS = {"unnest", "explode"}
OVER_ONLY = {
    "lag", "lead", "row_number", "rank", "dense_rank", "nth_value", "ntile", "percent_rank", "cume_dist",
}  # fmt: skip
OF_THE_GRAMMAR = {
    *("nullif", "if", "cast", "try_cast", "extract", "date_part", "datepart"),
    *("tumble_start", "tumble_end", "hop_start", "hop_end"),
}


def known_functions() -> list[str]:
    """All names a call can have, for `did you mean`; functions of the user are not included."""
    names = {n for n in all_names() if n.isidentifier()} | set(all_aggregates()) | set(AGGREGATE_ALIASES)
    return sorted(names | COALESCE_NAMES | TRUNC_NAMES | set(SHORTHANDS) | OVER_ONLY | OF_THE_GRAMMAR)


def is_aggregate(node: ast.Node) -> bool:
    """Whether it is a call of an aggregate, over the rows of a group."""
    return isinstance(node, ast.Call) and node.over is None and lookup(node.name) is not None


def unnamed(node: ast.Call) -> tuple[ast.Expr, ...]:
    """The arguments of a call. CQ0302 if one has a name."""
    plain = list[ast.Expr]()
    for argument in node.args:
        if isinstance(argument, ast.NamedArgument):
            cause = f"{node.name.upper()} takes no named arguments"
            raise compile_error("CQ0302", cause, argument.span, help="write the values without names, in order")
        plain.append(argument)
    return tuple(plain)


def unknown_function(node: ast.Call) -> CompileError:
    """The error for a call of an unknown name."""
    span = node.name_span
    if node.name in NOT_REPEATABLE:
        return compile_error(
            "CQ0501",
            f"{node.name.upper()} returns a new value each time, and a query must always return the same rows",
            span,
            help="compute it from a column, or include the values in the data",
        )
    if node.name in CLOCK_NAMES:
        return compile_error(
            "CQ0501",
            f"{node.name.upper()} is not supported: queries cannot read the clock",
            span,
            help="use the event time of the row, or a parameter: CAST(:now AS TIMESTAMP), "
            f"with {face().setting('now', '2024-01-31 10:00:00')}",
        )
    if node.name in GIVES_ROWS:
        cause = f"{node.name.upper()} returns rows: SELECT accepts it once, not inside an expression, and not beside *"
        return compile_error("CQ0502", cause, span, help=(ELSEWHERE["unnest"], SAME_PLACE))
    callable_ = set(known_functions()) - set(trunc_units().values())
    return compile_error(
        "CQ0205",
        f'unknown function "{node.name}"',
        span,
        label="no such function",
        help=ELSEWHERE.get(node.name) or did_you_mean(node.name, callable_) or FUNCTION_WAYS,
    )
