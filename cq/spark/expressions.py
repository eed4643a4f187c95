"""Bound expressions as Spark SQL text.

Numbers, TRUE, FALSE and NULL are written out; every other literal is a parameter (`:k0`, `:k1`, …), so that no text of
the query becomes SQL. Types are always explicit: a NULL is cast, a parameter is cast, a cast is never left to Spark.
The registry has the Spark text of functions. Casts are here: `cq.lang.casts` defines their meaning.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

from cq.errors import compile_error
from cq.lang.calendar import DAY_US
from cq.lang.expressions import And, Call, Case, Cast, Coalesce, Column, Expr, IsNull, Literal, Or, columns_of
from cq.lang.functions import Failure
from cq.lang.functions.spark_text import spark_type, time_of_day
from cq.lang.types import BIGINT, DOUBLE, REAL, TIMESTAMP, DataType, Kind
from cq.lang.value_text import write_decimal
from cq.planner.plan.fold import constant
from cq.records import dataclass, field, replace
from cq.spark.instants import instant_from_text, instant_of, instant_text, local_time

INTEGER_SUFFIXES: Final = {Kind.TINYINT: "Y", Kind.SMALLINT: "S", Kind.INTEGER: "", Kind.BIGINT: "L"}

# the escape, the digits, the pattern
CONSTANT_ARGUMENTS: Final = {
    "like": 2, "round": 1, "trunc": 1, "date_format": 1, "to_timestamp": 1, "try_to_timestamp": 1,
    "from_utc_timestamp": 1, "to_utc_timestamp": 1,
}  # fmt: skip

# The numbers and times that cq.lang.value_text accepts: the day, then the clock, then a zone that is UTC, without
# surrounding white space. Spark accepts more: a year alone, any zone (which it drops), anything after the day.
_WHITE: Final = r"[\x00-\x20]*"
_DAY: Final = r"[+-]?[0-9]{4,7}-[0-9]{1,2}-[0-9]{1,2}"
_ZONE: Final = r"[ ]?(?:Z|z|UTC|[+-]00:?00)?"
_CLOCK: Final = r"[0-9]{1,2}:[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]{0,9})?)?"
_TIME_OF_DAY: Final = r"(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9](?::[0-5]?[0-9](?:\.[0-9]{0,9})?)?"
NUMBER_PATTERN: Final = rf"\A{_WHITE}([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,5}})?){_WHITE}\z"
TIMESTAMP_PATTERN: Final = rf"\A{_WHITE}({_DAY}(?:[ Tt]{_CLOCK}(?={_ZONE}{_WHITE}\z))?){_ZONE}{_WHITE}\z"
TIME_PATTERN: Final = rf"\A{_WHITE}({_TIME_OF_DAY}){_WHITE}\z"
DATE_PATTERN: Final = rf"\A{_WHITE}({_DAY})(?:[ Tt]{_TIME_OF_DAY}{_ZONE})?{_WHITE}\z"


@dataclass(slots=True)
class TextConstants:
    """The values of the parameters in a text, by name; equal values of one type share a name."""

    values: dict[str, object] = field(default_factory=dict)
    _names: dict[tuple[str, str], str] = field(default_factory=dict)

    def name(self, value: object) -> str:
        """`:k3` for a value."""
        key = (type(value).__name__, repr(value))  # not the value: 1.0 equals 1, and NaN equals nothing
        if key not in self._names:
            self._names[key] = f"k{len(self.values)}"
            self.values[self._names[key]] = value
        return f":{self._names[key]}"


@dataclass(slots=True)
class Expressions:
    """Writes expressions, collecting their constants."""

    constants: TextConstants = field(default_factory=TextConstants)
    _variables: int = 0

    def text(self, expr: Expr, columns: Sequence[str]) -> str:
        """`expr` over a row with columns written as `columns`; it may be used anywhere in a larger expression."""
        match expr:
            case Column(index=i):
                return columns[i]
            case Literal():
                return self.literal(expr)
            case Call() | Cast() if (failure := failure_of_constants(expr)) is not None:
                said = self.constants.name(f"{failure.code}: {failure.message}")
                return f"cast(raise_error({said}) as {spark_type(expr.type)})"
            case Call(function=f, args=args):
                demand_constants(expr)
                given = [_for_spark(a, f.spark_literals.get(i)) for i, a in enumerate(args)]
                shown = [self.text(a, columns) for a in given]
                return self.once(shown, lambda texts: f.spark_text(expr.signature, texts))
            case Cast(arg=arg, type=type_, try_=soft):
                shown = [self.text(arg, columns)]
                return self.once(shown, lambda texts: cast_text(texts[0], arg.type, type_, soft))
            case And(args=args):
                return "(" + " and ".join(self.text(a, columns) for a in args) + ")"
            case Or(args=args):
                return "(" + " or ".join(self.text(a, columns) for a in args) + ")"
            case IsNull(arg=arg):
                return f"({self.text(arg, columns)} is null)"
            case Coalesce(args=args):
                return f"coalesce({', '.join(self.text(a, columns) for a in args)})"
            case Case(branches=branches, default=default):
                whens = " ".join(f"when {self.text(c, columns)} then {self.text(v, columns)}" for c, v in branches)
                return f"(case {whens} else {self.text(default, columns)} end)"
            case _:
                raise AssertionError(f"an expression of unknown kind: {type(expr).__name__}")

    def literal(self, expr: Literal) -> str:
        """A constant of the expression's type."""
        value, type_ = expr.value, expr.type
        name = spark_type(type_)
        if value is None:
            return f"cast(null as {name})"
        match type_.kind:
            case Kind.BOOLEAN:
                return "true" if value else "false"
            case Kind.TINYINT | Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
                digits = f"{int(value)}{INTEGER_SUFFIXES[type_.kind]}"
                return digits if value >= 0 else f"({digits})"
            case Kind.BINARY:
                return f"X'{value.hex()}'"
            case Kind.DATE:
                return f"date_from_unix_date({int(value)})"
            case Kind.TIME:
                return f"{int(value)}L"
            case Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ:
                return f"cast(timestamp_micros({int(value)}L) as TIMESTAMP_NTZ)"
            case Kind.INTERVAL_MONTH:
                return f"make_ym_interval(0, {int(value)})"
            case Kind.DECIMAL:
                return f"cast({self.constants.name(Decimal(write_decimal(value, type_.scale)))} as {name})"
            case Kind.INTERVAL:
                return f"cast({self.constants.name(datetime.timedelta(microseconds=value))} as {name})"
            case Kind.REAL | Kind.DOUBLE:
                return f"cast({self.constants.name(float(value))} as {name})"
            case Kind.ARRAY:
                assert type_.element is not None
                elements = [self.literal(Literal(type_.element, v is None, v)) for v in value]
                return f"cast(array({', '.join(elements)}) as {name})"
            case _:
                return self.constants.name(value)

    def once(self, texts: list[str], write: Callable[[list[str]], str]) -> str:
        """`write(texts)`, in which a long text used several times is written, and computed, only once.

        Without this the text of nested calls would grow exponentially with their depth.
        """
        marks = [f"\x00{i}\x00" for i in range(len(texts))]
        draft = write(marks)
        bound = {i for i, t in enumerate(texts) if not is_simple(t) and draft.count(marks[i]) > 1}
        if not bound:
            return write(texts)
        names = {}
        for i in bound:
            self._variables += 1
            names[i] = f"v{self._variables}"
        out = write([names.get(i, t) for i, t in enumerate(texts)])
        for i in sorted(bound, reverse=True):
            out = f"transform(array({texts[i]}), {names[i]} -> {out})[0]"
        return out


def _for_spark(argument: Expr, made: Callable[[str], str] | None) -> Expr:
    """The argument; for a literal converted by `made`, the value that Spark should see."""
    if made is None:
        return argument
    assert isinstance(argument, Literal), "a literal of Spark that is none"
    return replace(argument, value=made(argument.value))


def failure_of_constants(expr: Call | Cast) -> Failure | None:
    """The failure of a call of constants, if any. Spark would compute it before any row needs it."""
    if columns_of(expr):
        return None
    try:
        constant(expr)
    except Failure as failure:
        return failure
    return None


def demand_constants(expr: Call) -> None:
    """Refuse a call with a computed argument where Spark accepts only constants."""
    place = CONSTANT_ARGUMENTS.get(expr.function.name)
    if place is None or place >= len(expr.args):
        return
    given = expr.args[place]
    if columns_of(given) or (given.type.kind is Kind.VARCHAR and not isinstance(given, Literal)):
        raise compile_error(
            "CQ0901",
            f"on Spark, argument {place + 1} of {expr.function.name.upper()} must be a constant",
            given.span,
            label="computed for each row",
            help="write a literal, or use the native engine",
        )


def is_simple(text: str) -> bool:
    """Whether a text is short enough to be repeated."""
    return len(text) <= 24


def cast_text(text: str, source: DataType, target: DataType, soft: bool) -> str:
    """CAST or TRY_CAST as defined in `cq.lang.casts`, built on Spark's."""
    name = spark_type(target)
    cast = "try_cast" if soft else "cast"
    if source == target:
        return text
    if source.element is not None and target.element is not None:
        element = cast_text("e", source.element, target.element, soft) if source.element.kind is not Kind.NULL else "e"
        return f"cast(transform({text}, e -> {element}) as {name})"
    if Kind.TIMESTAMP_LTZ in {source.kind, target.kind} and source.kind is not Kind.NULL:
        return _instant_cast(text, source, target, soft)
    if Kind.TIME in {source.kind, target.kind} and source.kind is not Kind.VARCHAR:
        return _time_cast(text, source, target)
    if source.kind is Kind.BINARY and target.kind is Kind.VARCHAR:
        return _from_binary(text, soft)
    if source.kind is Kind.VARCHAR:
        return _from_text(text, target, cast)
    if source.kind is Kind.INTERVAL and target.kind is Kind.VARCHAR:
        return f"cast(cast({text} as {spark_type(source)}) as STRING)"  # a narrower interval would show fewer fields
    if source == REAL and (target.is_integer or target.kind is Kind.DECIMAL):
        # Spark compares a REAL with the range as REALs; and ours uses its shortest text
        text, source = (f"cast({text} as DOUBLE)", DOUBLE) if target.is_integer else (f"cast({text} as STRING)", source)
    if source == DOUBLE and target == BIGINT:
        text = f"nullif({text}, 9223372036854775807D)" if soft else _below_two_to_63(text)
    if not soft and (target.kind is Kind.DECIMAL or source.kind is Kind.DATE) and target.kind is not Kind.VARCHAR:
        return _or_bad_cast(text, name)
    return f"{cast}({text} as {name})"


def _instant_cast(text: str, source: DataType, target: DataType, soft: bool) -> str:
    """From and to TIMESTAMP_LTZ, through the local time."""
    if source.kind is target.kind:
        return text
    if source.kind is Kind.VARCHAR:
        return instant_from_text(text, target, "try_cast" if soft else "cast")
    if target.kind is Kind.VARCHAR:
        return instant_text(text, source.zone)
    if source.kind is Kind.TIMESTAMP_LTZ:
        return cast_text(local_time(text, source.zone), TIMESTAMP, target, soft)
    return instant_of(cast_text(text, source, TIMESTAMP, soft), target.zone)


def _time_cast(text: str, source: DataType, target: DataType) -> str:
    """To TIME from a time or an interval, and from TIME; none of these fail."""
    if source.kind is Kind.NULL:
        return f"cast({text} as {spark_type(target)})"
    if target.kind is Kind.VARCHAR:
        return f"substring(cast({time_of_day(text)} as STRING), 12)"
    if target.kind is Kind.INTERVAL:
        return f"(timestamp_micros({text}) - timestamp_micros(0L))"
    since = f"timestamp_micros(0L) + {text}" if source.kind is Kind.INTERVAL else f"cast({text} as TIMESTAMP_LTZ)"
    return f"pmod(unix_micros({since}), {DAY_US}L)"


def _below_two_to_63(text: str) -> str:
    # 2**63 is the one DOUBLE out of range that Spark clamps; infinity instead of it fails
    return f"if({text} = 9223372036854775807D, cast('Infinity' as DOUBLE), {text})"


def _or_bad_cast(text: str, name: str) -> str:
    """A value out of range is a bad cast (in Spark: an overflow); so are NaN and infinity as DECIMAL (in Spark:
    NULL)."""
    return f"coalesce(try_cast({text} as {name}), cast(concat('?', cast({text} as STRING)) as {name}))"


def _from_binary(text: str, soft: bool) -> str:
    """The text in UTF-8; Spark's own cast takes any bytes for it."""
    return f"try_validate_utf8(cast({text} as STRING))" if soft else f"validate_utf8(cast({text} as STRING))"


def _from_text(text: str, target: DataType, cast: str) -> str:
    name = spark_type(target)
    match target.kind:
        case Kind.TIMESTAMP:
            return f"{cast}(upper(regexp_extract({text}, r'{TIMESTAMP_PATTERN}', 1)) as {name})"
        case Kind.TIME:
            clock = f"regexp_extract({text}, r'{TIME_PATTERN}', 1)"
            day = f"if({clock} = '', '?', '1970-01-01 ')"
            return f"unix_micros(cast({cast}(concat({day}, {clock}) as TIMESTAMP_NTZ) as TIMESTAMP_LTZ))"
        case Kind.DATE:
            return f"{cast}(regexp_extract({text}, r'{DATE_PATTERN}', 1) as {name})"
        case Kind.DOUBLE:
            return f"{cast}(translate({text}, 'xX', '??') as {name})"  # Spark reads 0x1p3
        case Kind.REAL:
            return f"cast({cast}(translate({text}, 'xX', '??') as DOUBLE) as {name})"
        case Kind.DECIMAL:
            number = f"regexp_extract({text}, r'{NUMBER_PATTERN}', 1)"  # Spark reads the digits of every script
            return _or_bad_cast(number, name) if cast == "cast" else f"try_cast({number} as {name})"
        case _:
            return f"{cast}({text} as {name})"
