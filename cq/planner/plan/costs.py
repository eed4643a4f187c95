"""Costs of operators: nanoseconds a row keeps a worker busy, each measured alone with 10,000 keys.

`python -m benchmarks.costs` measures them: the CPU time of the bare kernel, compared with one that passes the same
columns on, here medians of seven turns on two shared, busy cores of an AMD EPYC. The names in brackets are those it
prints.

They decide whether routing rows to lanes pays (`cq.planner.physical.choose`), whether a chain of stages does (`chain`),
and by LOOK_UP_NS which scheme runs transactions (`cq.planner.plan.work`); `cq explain` shows them. Doubling or halving
one changes a decision only for queries whose cost is near the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.lang.expressions import Expr
from cq.lang.types import Kind

GROUP_NS = 6  # [group: 3 where all is in the cache] find a group, add to its aggregates
DISTINCT_NS = 15  # more for each DISTINCT aggregate: in segment statistics; [distinct] 55 where most values are new
PARTITION_NS = 8  # [over: 3 where all is in the cache] find a partition, answer its calls
WALK_NS = 1800  # [frame that is walked] more where the rows of a frame are gone through for each row: of 24 rows
FRAME_NS = 60  # [frame of rows] more where a frame slides: keep a row, let another go
TIMED_FRAME_NS = 150  # [frame of time; greatest of a frame: 130 to 270] the same where rows wait for their time, too
SESSION_NS = 55  # [session: 80 where most have two or three rows; long session: 14 where none ends] find it, count in
SESSION_ROWS_NS = 120  # [rows of sessions: 120 to 150] keep a row of a session until that ends
SORT_NS = 40  # [first of a window: 50, the benchmark: 8; order: 100] keep a row, put it into its place at the end
LOOK_UP_NS = 12  # [ASOF join: 18, two of them] find the version of a key, or replace it
JOIN_NS = 40  # [join: 30 to 60] keep a row of either side, go through those of its key on the other one
INTERVAL_NS = 100  # [interval join: 65 to 100; the benchmark: 140] the same, and let it go by its time
PROOF_NS = 90  # [outer interval join] more where rows without a match leave when none can come
WINDOW_JOIN_NS = 20  # [window join] keep a row of either side until its window is over, go through those of its key
WINDOW_PROOF_NS = 20  # [outer window join] more for each side whose rows leave without a match when it is
TEXT_KEY_NS = 15  # [text key: 10 where all is in the cache] more where a part of the key is a text or bytes


def key_ns(keys: Sequence[Expr]) -> int:
    """The extra cost of the key's type."""
    return TEXT_KEY_NS * any(k.type.kind in {Kind.VARCHAR, Kind.BINARY} for k in keys)
