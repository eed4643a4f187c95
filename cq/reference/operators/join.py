"""Join: all rows of both sides by key, in order of arrival."""

from __future__ import annotations

from cq.planner.operators import Join
from cq.records import dataclass
from cq.reference.evaluate import Row, evaluator, keys_of
from cq.reference.operator import Clock, RowOperator, nulls, runs

LEFT, RIGHT = 0, 1  # ports


@dataclass
class StoredRow:
    """A row. alone: how it is emitted if nothing matched it; None if unmatched rows are not."""

    row: Row
    alone: Row | None
    matched: bool = False


@runs("join")
class JoinRows(RowOperator):
    """A row meets the rows of the other side that came before it, then waits for those that may still come."""

    def __init__(self, node: Join, clock: Clock) -> None:
        super().__init__(node, clock)
        self._keys = (keys_of(node.left_keys), keys_of(node.right_keys))
        self._residual = evaluator(node.residual) if node.residual is not None else None
        self._outer = (node.kind.left_unmatched, node.kind.right_unmatched)
        self._right_first = node.right_first
        self._nulls = (nulls(len(node.left.schema)), nulls(len(node.right.schema)))
        self._kept: tuple[dict[Row, list[StoredRow]], dict[Row, list[StoredRow]]] = ({}, {})
        self._waiting: list[StoredRow] = []  # by arrival, of both sides

    def on_row(self, port: int, row: Row) -> None:
        mine = StoredRow(row, self._alone(port, row))
        key = self._keys[port](row)
        if None not in key:
            for theirs in self._kept[1 - port].get(key, ()):
                self._meet(*((mine, theirs) if port == LEFT else (theirs, mine)))
            if port == RIGHT or not self._right_first:
                self._kept[port].setdefault(key, []).append(mine)
        if mine.alone is None or mine.matched:
            return
        if port == LEFT and self._right_first:
            self.out.append(mine.alone)
        else:
            self._waiting.append(mine)

    def _alone(self, port: int, row: Row) -> Row | None:
        if not self._outer[port]:
            return None
        return row + self._nulls[RIGHT] if port == LEFT else self._nulls[LEFT] + row

    def _meet(self, left: StoredRow, right: StoredRow) -> None:
        joined = left.row + right.row
        if self._residual is None or self._residual(joined):
            left.matched = right.matched = True
            self.out.append(joined)

    def on_end(self) -> None:
        self.out.extend(kept.alone for kept in self._waiting if kept.alone is not None and not kept.matched)
