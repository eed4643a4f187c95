"""SemiJoin: the right rows by key, and the left rows that have matched none of them yet."""

from __future__ import annotations

from cq.planner.operators import JoinKind, SemiJoin
from cq.records import dataclass
from cq.reference.evaluate import Row, evaluator, keys_of
from cq.reference.operator import Clock, RowOperator, runs

LEFT = 0  # port


@dataclass
class WaitingRow:
    """A left row. matched: whether it has found a match since it came."""

    row: Row
    matched: bool = False


@runs("semi_join")
class SemiJoinRows(RowOperator):
    """A left row looks for a match among the right rows that came before it, then waits for those that follow."""

    def __init__(self, node: SemiJoin, clock: Clock) -> None:
        super().__init__(node, clock)
        self._anti = node.kind is JoinKind.ANTI
        self._right_first = node.right_first
        self._keys = (keys_of(node.left_keys), keys_of(node.right_keys))
        self._residual = evaluator(node.residual) if node.residual is not None else None
        self._right: dict[Row, list[Row]] = {}
        self._waiting: dict[Row, list[WaitingRow]] = {}
        self._all: list[WaitingRow] = []  # of an ANTI join, by arrival

    def on_row(self, port: int, row: Row) -> None:
        key = self._keys[port](row)
        if port == LEFT:
            self._look_up(key, row)
        elif None not in key:
            self._right.setdefault(key, []).append(row)
            self._release(key, row)

    def _look_up(self, key: Row, row: Row) -> None:
        """The left row is emitted if something matches it; else it waits, if a match may still come."""
        if None not in key and any(self._match(row, right) for right in self._right.get(key, ())):
            if not self._anti:
                self.out.append(row)
            return
        if self._right_first:
            if self._anti:
                self.out.append(row)
            return
        waiting = WaitingRow(row)
        if None not in key:
            self._waiting.setdefault(key, []).append(waiting)
        if self._anti:
            self._all.append(waiting)

    def _release(self, key: Row, right: Row) -> None:
        """Emit the left rows that waited for this right row; an ANTI join never emits them."""
        for waiting in self._waiting.get(key, ()):
            if not waiting.matched and self._match(waiting.row, right):
                waiting.matched = True
                if not self._anti:
                    self.out.append(waiting.row)

    def _match(self, left: Row, right: Row) -> bool:
        return self._residual is None or bool(self._residual(left + right))

    def on_end(self) -> None:
        self.out.extend(waiting.row for waiting in self._all if not waiting.matched)
