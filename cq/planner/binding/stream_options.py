"""The options of WITH: as written, which of them apply when rows come from elsewhere, and their checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cq.connectors.access import STDIN
from cq.connectors.registry import ROW_OPTIONS, SOURCES, Connector
from cq.errors import CompileError, Findings, Span, UsageError, compile_error, did_you_mean
from cq.grammar import ast
from cq.hints import face
from cq.planner.binding.foreign_sources import TOPIC, is_elsewhere, nearest_connector
from cq.planner.binding.parameters import ParameterValue, bind_parameter
from cq.records import replace

Options = Mapping[str, str]


def written_options(options: Iterable[ast.Option], parameters: Mapping[str, ParameterValue]) -> dict[str, str]:
    """The options of a WITH clause as text."""
    out: dict[str, str] = {}
    for o in options:
        if o.key in out:
            raise compile_error("CQ0202", f'the option "{o.key}" is given twice', o.key_span)
        out[o.key] = _option_text(o, parameters)
    return out


def _option_text(option: ast.Option, parameters: Mapping[str, ParameterValue]) -> str:
    match option.value:
        case ast.StringLiteral(value=text):
            return text
        case ast.NumberLiteral(text=text):
            return text
        case ast.Unary(op=op, operand=ast.NumberLiteral(text=text)):
            return text if op == "+" else "-" + text
        case ast.BooleanLiteral(value=truth):
            return "true" if truth else "false"
        case ast.Parameter(name=name):
            if name in parameters:
                value = bind_parameter(name, parameters[name], option.value.span).value
                return str(value).lower() if isinstance(value, bool) else str(parameters[name])
            raise compile_error(
                "CQ0206",
                f'the parameter ":{name}" has no value',
                option.value.span,
                help=f"set it: {face().setting(name)}",
            )
        case _:
            raise compile_error(
                "CQ0208", f'the option "{option.key}" takes text, a number, TRUE or FALSE', option.value.span
            )


def check_followed(options: Options, span: Span) -> None:
    """A CompileError for options that a followed file cannot have."""
    from cq.connectors import followed  # with Arrow in tow, which most texts do not need

    try:
        followed.check_followed(options)
    except UsageError as error:
        raise CompileError(replace(error.first, span=span)) from None


def connector_of(options: Options, default: str) -> str:
    """The connector as written, else the one implied by the options."""
    return options.get("connector", "file" if "path" in options else default).lower()


def from_stdin(written: Options) -> dict[str, str]:
    """The options as written, with the path - as standard input, as on the command line."""
    if written.get("path") != STDIN or connector_of(written, "") != "file":
        return dict(written)
    return {"connector": "stdin", **{key: value for key, value in written.items() if key not in {"connector", "path"}}}


def still_said(written: Options, given: Options) -> dict[str, str]:
    """The WITH options that still apply when the rows come from elsewhere: their format, and the checks on them. An
    unknown option of the text is kept, so that it is refused."""
    from cq.connectors.formats import FORMATS, ending_format

    declared = written.get("connector", "file").lower()
    if is_elsewhere(declared):  # all others say where the rows are
        return {key: value for key, value in written.items() if key in ROW_OPTIONS}
    new = given.get("connector", declared)
    here, there = SOURCES.get(new), SOURCES.get(declared)
    table, known = (c.options if c is not None else {} for c in (here, there))
    open_ended = there is not None and there.takes_more
    format_is_given = bool(given.get("path")) and bool(ending_format(given["path"]))
    laid = FORMATS.get(written.get("format", ""))
    by_rows = laid is not None and not laid.magics  # and that is a guess
    told = {"compression", *(() if by_rows else ("format",))} if new == "stdin" else set()
    kept = {}
    for key, value in written.items():
        said = key in table and (new == declared or table[key].accepts(value))
        unknown = key not in known and not open_ended and key != "connector"
        if new != declared and key in told:  # by the first bytes of standard input
            continue
        if (said or unknown) and not (key in {"format", "compression"} and format_is_given):
            kept[key] = value
    return kept


def check_options(
    options: dict[str, str],
    places: Iterable[ast.Option],
    known: Mapping[str, Connector],
    span: Span,
    default: str,
) -> None:
    """Name the connector if the text does not, and convert words to lower case, in place.

    CQ0207 and CQ0208 for options it does not take.
    """
    written = {o.key: o for o in places}
    connector = options["connector"] = connector_of(options, default)
    if connector not in known:
        at = written.get("connector") or written.get(TOPIC)
        raise compile_error(
            "CQ0208",
            f'there is no connector "{connector}"',
            at.value.span if at else span,
            label="unknown connector",
            help=(
                face().giving("NAME") if is_elsewhere(connector) and "stdin" in known and "path" not in written else "",
                f"{nearest_connector(connector, known)} connectors: {', '.join(known)}".strip(),
            ),
        )
    table = known[connector].options
    findings = Findings()
    for key, value in options.items():
        at = written.get(key)
        if key == "connector":
            continue
        if key not in table:
            if known[connector].takes_more:
                continue
            unknown = compile_error(
                "CQ0207",
                f'the connector "{connector}" has no option "{key}"',
                at.key_span if at else span,
                label="unknown option",
                help=f"{did_you_mean(key, ['connector', *table])} options: {', '.join(table)}".strip(),
            )
            findings.add(unknown)
        elif not table[key].accepts(value):
            refused = compile_error(
                "CQ0208",
                f"{key} cannot be '{value}'",
                at.value.span if at else span,
                help=f"{key} is {table[key].allowed}: {table[key].doc}",
            )
            findings.add(refused)
        elif table[key].is_word:
            options[key] = value.lower()
    findings.raise_if_any()
    for key, option in table.items():
        if option.required and key not in options:
            raise compile_error(
                "CQ0207", f'the connector "{connector}" needs the option "{key}"', span, help=f"{key}: {option.doc}"
            )


def as_pairs(options: Options) -> tuple[tuple[str, str], ...]:
    """Options in order of their keys, so that the order of writing does not change the plan."""
    return tuple(sorted(options.items()))


def is_bounded(options: Options) -> bool:
    """Whether the stream ends, according to its connector."""
    return SOURCES[options["connector"]].ends(options)
