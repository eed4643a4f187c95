"""Constants as they are written."""

from __future__ import annotations

from typing import Literal

from cq.grammar.ast.nodes import Node, node


@node
class NumberLiteral(Node):
    """An unsigned number exactly as written: `10`, `1.50`, `.5`, `1e-9`."""

    text: str


@node
class StringLiteral(Node):
    """A string by its value: doubled quotes are already single."""

    value: str


@node
class BinaryLiteral(Node):
    """`X'0AFF'` by its hexadecimal digits, two for each byte, in upper case."""

    digits: str


@node
class BooleanLiteral(Node):
    """TRUE or FALSE."""

    value: bool


@node
class NullLiteral(Node):
    """NULL."""


@node
class EveryColumn(Node):
    """`ALL` in ORDER BY."""


@node
class DefaultValue(Node):
    """DEFAULT as a whole value in VALUES or SET: the column's value when an INSERT leaves it out."""


@node
class TypedLiteral(Node):
    """`DATE '2024-01-31'` and its like; the text between the quotes is not yet read."""

    kind: Literal["DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"]
    text: str


@node
class IntervalPart(Node):
    """One summand of an interval. amount: decimal text, perhaps with a leading minus.  unit: one of INTERVAL_UNITS."""

    amount: str
    unit: str


@node
class IntervalLiteral(Node):
    """The sum of its parts, at least one; `INTERVAL '1:30' MINUTE TO SECOND` is (1 MINUTE, 30 SECOND)."""

    parts: tuple[IntervalPart, ...]


INTERVAL_UNITS = (
    "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND",
)  # fmt: skip
