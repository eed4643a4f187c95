"""Columns of objects in memory that no Arrow type holds, such as Python values of several types: they stay in the
schema, without values, until a query reads one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from cq.lang.schema import Unheld

_TYPES, _WAY = b"cq.types", b"cq.way"  # metadata of an Arrow field
MOST_TYPES = 5  # types named in a message


def in_words(values: Iterable[Any]) -> str:
    """Describe what is odd about the values, with their types, for people."""
    names = list(dict.fromkeys(type(v).__name__ for v in values if v is not None))
    what = "of several types" if len(names) > 1 else "that no type holds all of"
    return f"values {what}: " + ", ".join(names[:MOST_TYPES]) + (", …" if len(names) > MOST_TYPES else "")


def mixed(name: str, values: Iterable[Any], way: str) -> pa.Field:
    """The field of a column of such values. way: how to convert them to texts."""
    return untaken(name, in_words(values), way)


def untaken(name: str, said: str, way: str) -> pa.Field:
    """The field of a column whose type Arrow does not support. said: the type.  way: how to convert it to one that
    works."""
    return pa.field(name, pa.null(), True, {_TYPES: said.encode(), _WAY: way.encode()})


def is_mixed(column: pa.Field) -> bool:
    """Whether it is such a column."""
    return column.metadata is not None and _TYPES in column.metadata


def unheld(column: pa.Field) -> Unheld:
    """The message for a column that no query can read."""
    if not is_mixed(column):
        return Unheld(column.name, str(column.type))
    return Unheld(column.name, f"of {column.metadata[_TYPES].decode()}", way=column.metadata[_WAY].decode())
