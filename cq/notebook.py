"""`%load_ext cq`: cells that are queries, over the variables of the notebook.

    %%cq
    SELECT auction, MAX(price) AS best FROM bids GROUP BY auction;

    %%cq best -j 2                the result is also kept as the variable `best`
    %%cq --explain                a picture of the plan
    %%cq --analyze                a picture of what the stages did in a run

Streams that the text does not declare, or declares without a source, are the variables of their names: tables,
frames, lists of dicts, paths. So are its parameters (`:name`) and functions (`@cq.udf`, `@cq.udaf`). A mistake is shown
where it is, without a traceback.
"""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Mapping
from types import FunctionType
from typing import Any, Protocol

import click

from cq.api import Query
from cq.engines.analysis import analyze as run_counting
from cq.engines.analysis import drawn
from cq.engines.engines import ENGINES
from cq.errors import CompileError, CqError, SourceText, compile_error
from cq.grammar.naming import UsedNames, as_written, names_of
from cq.grammar.parser import parse
from cq.hints import NOTEBOOK, facing
from cq.lang.aggregates.user import UserFold
from cq.lang.functions.user import UserFunction
from cq.planner.binding.functions.names import known_functions
from cq.planner.binding.settings import MOST_THREADS
from cq.result import Result

NAME = "<cell>"


class IPythonShell(Protocol):
    """The parts of IPython that are used."""

    user_ns: dict[str, Any]

    def register_magic_function(self, func: Any, magic_kind: str, magic_name: str) -> None: ...


class Picture:
    """A plan for a notebook; as text it is the tree."""

    def __init__(self, svg: str, text: str) -> None:
        self._svg, self._text = svg, text

    def _repr_svg_(self) -> str:
        return self._svg

    def __repr__(self) -> str:
        return self._text


def load_ipython_extension(shell: IPythonShell) -> None:
    """Let cells begin with `%%cq`."""

    def magic(line: str, cell: str) -> Result | Picture | None:
        return run_cell(shell.user_ns, line, cell)

    magic.__doc__ = __doc__  # shown by `%%cq?`
    shell.register_magic_function(magic, "cell", "cq")


def run_cell(variables: dict[str, Any], line: str, cell: str) -> Result | Picture | None:
    """The value of the cell: the result of its query, or a picture of its plan; None if an error was shown instead.

    variables: of the notebook; the result is stored there if the line names it.
    """
    try:
        asked: dict[str, Any] | int = _line.main(shlex.split(line), prog_name="%%cq", standalone_mode=False)
        if not isinstance(asked, dict):
            return None  # the help has been shown
        with facing(NOTEBOOK):
            return _answer(variables, cell, **asked)
    except click.ClickException as error:
        print(f"%%cq: {error.format_message()}", file=sys.stderr)
    except ValueError as error:  # an unclosed quote
        print(f"%%cq: {error}", file=sys.stderr)
    except CqError as error:
        print(error, file=sys.stderr)
    return None


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", required=False)
@click.option("-j", "--threads", type=click.IntRange(0, MOST_THREADS), help="Set the number of workers.")
@click.option("--engine", default=next(iter(ENGINES)), help=f"Choose the engine: {', '.join(ENGINES)}.")
@click.option("--limit", type=click.IntRange(0), help="Stop after N rows of each output.")
@click.option("--explain", is_flag=True, help="Show the plan instead of running the query.")
@click.option("--analyze", is_flag=True, help="Run the query, discard its rows, and show what its stages did.")
def _line(**asked: Any) -> dict[str, Any]:
    """Run the query in this cell, and keep its result as NAME."""
    return asked


def _answer(
    variables: dict[str, Any],
    cell: str,
    *,
    name: str | None,
    threads: int | None,
    engine: str,
    limit: int | None,
    explain: bool,
    analyze: bool,
) -> Result | Picture:
    query = cell_query(variables, cell)
    if analyze:
        facts = run_counting(query.bound(), threads)
        return Picture(drawn(facts, "svg"), drawn(facts))
    if explain:
        return Picture(query.explain(format="svg"), query.explain())
    with warnings.catch_warnings(record=True) as told:
        result = query.run(engine=engine, threads=threads, limit=limit)
    _say_beside(result, told)
    if name is not None:
        variables[name] = result
    return result


def _say_beside(result: Result, told: list[warnings.WarningMessage]) -> None:
    """Print the warnings of a run, except those shown under its tables; no line of our code is named as their place."""
    for warning in told:
        if not issubclass(warning.category, UserWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        elif str(warning.message) not in result.losses:
            print(f"warning: {warning.message}", file=sys.stderr)


def cell_query(variables: Mapping[str, Any], cell: str) -> Query:
    """The query of a cell, with the variables it names."""
    source = SourceText(NAME, cell)
    try:
        script = parse(source)
        names = names_of(script)
        _demand_marked(names, variables)
    except CompileError as error:
        raise error.at(source) from None
    return Query(
        cell,
        NAME,
        inputs={n: variables[v] for v, n in sorted(as_written(variables, script).items()) if n in names.streams},
        variables={n: variables[n] for n in sorted(names.parameters) if n in variables},
        functions=[v for v in variables.values() if isinstance(v, UserFunction | UserFold)],
    )


def _demand_marked(names: UsedNames, variables: Mapping[str, Any]) -> None:
    """CQ0205 for a call of a plain Python function of the notebook: queries only know marked ones."""
    for name in sorted(names.calls.keys() & variables.keys() - set(known_functions())):
        if isinstance(variables[name], FunctionType):
            cause = f'"{name}" is a Python function that queries may not call'
            way = "write @cq.udf above it, annotate its arguments and result, and run its cell again"
            raise compile_error("CQ0205", cause, names.calls[name].name_span, label="not marked", help=way)
