"""The wording of where a data error happened, if not in a row of a source. All engines use it."""

from __future__ import annotations

from collections.abc import Sequence

from cq.lang.casts import shown
from cq.lang.expressions import Value
from cq.lang.types import DataType
from cq.lang.value_text import write_timestamp

END = "the end of the input"
MISSING = " IS NULL"  # a key with this suffix says whether the one before it, which is then filled in, is NULL
Columns = Sequence[tuple[str, DataType]]  # what rows are grouped by


def closing(instant: int) -> str:
    """Output of a window, or of rows that waited for the watermark, at an instant, and anything derived from it."""
    return f"closing at {write_timestamp(instant)}"


def window_group(start: int, end: int, columns: Columns, key: Sequence[Value]) -> str:
    """A group of a window; just the window if there are no keys."""
    window = f"window {write_timestamp(start)} to {write_timestamp(end)}"
    return f"{window}, {group(columns, key)}" if columns else window


def group(columns: Columns, key: Sequence[Value]) -> str:
    """A group of an aggregate over the whole input; without keys there is a single one, at the end."""
    missing = {name for (name, _), value in zip(columns, key, strict=True) if name.endswith(MISSING) and value}
    keys = ", ".join(
        f"{name} = {_text(type_, None if name + MISSING in missing else value)}"
        for (name, type_), value in zip(columns, key, strict=True)
        if not name.endswith(MISSING)
    )
    return f"group {keys}" if keys else END


def met(side: str, time: int) -> str:
    """After the place of a row: the stored row of the other side that it met in a join."""
    return f", joined with the {side} row of {write_timestamp(time)}"


def _text(type_: DataType, value: Value) -> str:
    return "NULL" if value is None else shown(value, type_)
