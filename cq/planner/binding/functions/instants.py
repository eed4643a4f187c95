"""Instants, TIMESTAMP_LTZ: AT TIME ZONE, and the functions of dates and times over them.

A function of DATE or TIMESTAMP takes the local time of an instant, in the zone of its type. Its result is an instant
again if it only moves or truncates a clock. Counts since 1970 are in UTC, whatever the zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cq.errors import Span, compile_error
from cq.grammar import ast
from cq.lang.expressions import Cast, Expr, Literal
from cq.lang.functions import COUNTS_OF_TIMES, Refusal
from cq.lang.types import TIMESTAMP, UTC_INSTANT, VARCHAR, DataType, Kind, instant
from cq.lang.zones import BadZone, zone_name, zone_of_session
from cq.planner.binding.conversion import convert
from cq.planner.binding.functions.applying import apply, resolve_function
from cq.planner.binding.traits import check_size

WITHIN_THE_HOUR = {f"date_trunc_{unit}" for unit in ("microsecond", "millisecond", "second", "minute", "hour")}
BY_DAYS = {f"date_trunc_{unit}" for unit in ("day", "week", "month", "quarter", "year")}
MOVED = BY_DAYS | {"add_months", "subtract_months"}
BETWEEN_ZONES = {"from_utc_timestamp", "to_utc_timestamp"}


class InstantBinder(Protocol):
    """What this module needs of `ExprBinder`."""

    def bind(self, node: ast.Expr) -> Expr: ...


def session_instant() -> DataType:
    """TIMESTAMP_LTZ in the query being bound."""
    return instant(zone_of_session())


def as_instant(time: Expr, zone: str = "UTC") -> Expr:
    """The instant of a TIMESTAMP in a zone."""
    there = Cast(instant(zone), time.nullable, time, span=time.span)
    return there if there.type == session_instant() else Cast(session_instant(), time.nullable, there, span=time.span)


def local_time(time: Expr, zone: str = "") -> Expr:
    """The TIMESTAMP of an instant in a zone, by default that of its type."""
    if zone and zone != time.type.zone:
        time = Cast(instant(zone), time.nullable, time, span=time.span)
    return Cast(TIMESTAMP, time.nullable, time, span=time.span)


def bind_at_time_zone(binder: InstantBinder, node: ast.AtTimeZone) -> Expr:
    """For a TIMESTAMP, its instant in the zone; for an instant, the local TIMESTAMP there. CQ0302 for anything else."""
    time, zone = binder.bind(node.operand), _zone(binder.bind(node.zone))
    if time.type.kind is Kind.TIMESTAMP_LTZ:
        return local_time(time, zone)
    if time.type.kind not in {Kind.DATE, Kind.TIMESTAMP, Kind.NULL}:
        raise compile_error(
            "CQ0302",
            f"AT TIME ZONE takes a TIMESTAMP or a TIMESTAMP_LTZ, not {time.type}",
            node.operand.span,
            label=str(time.type),
            help="CAST it, if it has both a day and a time: CAST(text AS TIMESTAMP) AT TIME ZONE 'Europe/Berlin'",
        )
    return as_instant(convert(time, TIMESTAMP), zone)


def _zone(zone: Expr) -> str:
    if not isinstance(zone, Literal) or zone.type != VARCHAR:
        raise compile_error("CQ0302", "a time zone is a text", zone.span, help="write AT TIME ZONE 'Europe/Berlin'")
    try:
        return zone_name(zone.value)
    except BadZone as bad:
        raise compile_error("CQ0302", f"'{zone.value}' {bad}", zone.span, help=bad.help) from None


def applied(name: str, args: Sequence[Expr], span: Span) -> Expr | Refusal:
    """The call of the function, or why there is none; date and time functions use the local times of instants."""
    found = resolve_function(name, args)
    if not isinstance(found, Refusal):
        return apply(found, args, span)
    return _by_local_time(name, args, span) or found


def _by_local_time(name: str, args: Sequence[Expr], span: Span) -> Expr | None:
    """The call over local times; None if it does not take instants that way."""
    instants = [a for a in args if a.type.kind is Kind.TIMESTAMP_LTZ]
    if not instants:
        return None
    if name in BETWEEN_ZONES:
        help = "write ts AT TIME ZONE 'Europe/Berlin': the local time there"
        raise compile_error("CQ0302", f"{name.upper()} takes no TIMESTAMP_LTZ, which is an instant", span, help=help)
    zone = UTC_INSTANT.zone if name in COUNTS_OF_TIMES else ""
    local = [local_time(a, zone) if a in instants else a for a in args]
    found = resolve_function(name, local)
    if isinstance(found, Refusal):
        return None
    call = apply(found, local, span)
    if call.function.name in MOVED and call.type == TIMESTAMP:
        return Cast(instants[0].type, call.nullable, call, span=span)
    if call.function.name in WITHIN_THE_HOUR:
        # in an hour that occurs twice, each time is truncated to the start of its own occurrence
        return check_size(_less(instants[0], _less(local[0], call, span), span), span)
    return call


def _less(time: Expr, by: Expr, span: Span) -> Expr:
    found = resolve_function("-", (time, by))
    assert not isinstance(found, Refusal), "times and lengths are subtracted"
    return apply(found, (time, by), span)
