"""IntervalJoin: each side's rows by key, in order of arrival, until nothing can match them any more."""

from __future__ import annotations

import heapq

from cq.lang import error_places
from cq.lang.functions import Failure
from cq.planner.operators import IntervalJoin, JoinKind
from cq.records import dataclass
from cq.reference.evaluate import Row, evaluator, keys_of
from cq.reference.operator import NEVER, Clock, RowOperator, nulls, runs

LEFT, RIGHT = 0, 1  # ports
SIDES = ("left", "right")


@dataclass
class TimedRow:
    """A row that may still match. matched: whether it has."""

    time: int
    row: Row
    alone: Row | None  # how it is emitted if nothing matches it; None if it is not
    matched: bool = False


@runs("interval_join")
class IntervalJoinRows(RowOperator):
    """A row meets the rows of the other side that came before it, then waits for those that come after it."""

    def __init__(self, node: IntervalJoin, clock: Clock) -> None:
        super().__init__(node, clock)
        self._times = (node.left_time, node.right_time)
        self._keys = (keys_of(node.left_keys), keys_of(node.right_keys))
        self._residual = evaluator(node.residual) if node.residual is not None else None
        self._bounds = ((node.lower_us, node.upper_us), (-node.upper_us, -node.lower_us))  # other - own, by port
        self._expiry = (node.left_expiry_us, node.right_expiry_us)
        self._kept: tuple[dict[Row, list[TimedRow]], dict[Row, list[TimedRow]]] = ({}, {})
        self._outer = (node.kind.left_unmatched, node.kind.right_unmatched)
        self._left_only = node.kind.left_only
        self._semi = node.kind is JoinKind.SEMI
        self._nulls = (nulls(len(node.left.schema)), nulls(len(node.right.schema)))
        self._proofs: list[tuple[int, int, TimedRow]] = []  # (instant that proves it unmatched, arrival, row)

    def on_row(self, port: int, row: Row) -> None:
        if self.drop_if_late():
            return
        mine = TimedRow(row[self._times[port].column] + self._times[port].shift_us, row, self._alone(port, row))
        key = self._keys[port](row)
        if None not in key:
            self._meet(port, key, mine)
        proof = mine.time + self._expiry[port] + 1
        may_match = proof > self.clock.over and None not in key
        if may_match and not self._is_done(mine):
            self._kept[port].setdefault(key, []).append(mine)
        if mine.alone is not None and not mine.matched:
            if may_match:
                heapq.heappush(self._proofs, (proof, self.clock.arrival(), mine))
            else:
                self.out.append(mine.alone)

    def _alone(self, port: int, row: Row) -> Row | None:
        if not self._outer[port]:
            return None
        if self._left_only:
            return row
        return row + self._nulls[RIGHT] if port == LEFT else self._nulls[LEFT] + row

    def _is_done(self, row: TimedRow) -> bool:
        """Whether a match decided all there was to decide about the row: only the first one of a left row counts."""
        return self._left_only and row.matched

    def _meet(self, port: int, key: Row, mine: TimedRow) -> None:
        """Every row of the other side that matches, in order of arrival; rows that nothing can match any more are
        dropped."""
        other = 1 - port
        lower, upper = self._bounds[port]
        kept = (k for k in self._kept[other].get(key, ()) if k.time + self._expiry[other] >= self.clock.over)
        rows = [k for k in kept if not self._is_done(k)]
        if rows:
            self._kept[other][key] = rows
        else:
            self._kept[other].pop(key, None)
        for theirs in rows:
            if lower <= theirs.time - mine.time <= upper:
                left, right = (mine, theirs) if port == LEFT else (theirs, mine)
                joined = left.row + right.row
                if self._residual is None or self._passes(joined, SIDES[other], theirs):
                    self._match(left, right, joined)
                    if self._is_done(mine):
                        return

    def _match(self, left: TimedRow, right: TimedRow, joined: Row) -> None:
        """The pair leaves; or the left row alone, or nobody if only left rows without a match do."""
        left.matched = True
        if not self._left_only:
            right.matched = True
            self.out.append(joined)
        elif self._semi:
            self.out.append(left.row)

    def _passes(self, joined: Row, side: str, theirs: TimedRow) -> bool:
        """Whether the residual condition is TRUE; a failure in it also names the kept row."""
        assert self._residual is not None
        try:
            return bool(self._residual(joined))
        except Failure as failure:
            failure.met = error_places.met(side, theirs.time)
            raise

    def next_instant(self) -> int:
        while self._proofs and self._proofs[0][2].matched:
            heapq.heappop(self._proofs)
        return self._proofs[0][0] if self._proofs else NEVER

    def on_instant(self, instant: int) -> None:
        while self._proofs and self._proofs[0][0] <= instant:
            _, _, kept = heapq.heappop(self._proofs)
            if kept.alone is not None and not kept.matched:
                self.out.append(kept.alone)
