"""Costs of operators: nanoseconds a row keeps a worker busy, each measured alone with 10,000 keys.

They decide whether routing rows to lanes pays (`cq.planner.physical.choose`), whether a chain of stages does
(`chain`), and by LOOK_UP_NS which scheme runs transactions (`chains`); `cq explain` shows them. Twice or half of one
changes a decision only for queries whose cost is near the border.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.lang.expressions import Expr
from cq.lang.types import Kind

GROUP_NS = 6  # find a group, add to its aggregates
DISTINCT_NS = 15  # more for each DISTINCT aggregate: a set of its own
PARTITION_NS = 8  # find a partition, answer its calls
WALK_NS = 400  # more where the rows of a frame are gone through for each row: of some dozen rows
FRAME_NS = 20  # more where a frame slides: keep a row, let others go
SORT_NS = 40  # keep a row, put it into its place at the end
LOOK_UP_NS = 12  # find the version of a key, or replace it
TEXT_KEY_NS = 15  # more where a part of the key is a text


def key_ns(keys: Sequence[Expr]) -> int:
    """What the key's type adds."""
    return TEXT_KEY_NS * any(k.type.kind is Kind.VARCHAR for k in keys)
