"""The pane of the last row, in locals of the function being written: mostly the next row belongs to it as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cq.codegen.state.hash_tables import TableLocals
from cq.codegen.values import Scope
from cq.codegen.writer import expr
from cq.records import dataclass
from cq.runtime.containers import pane_words as panes
from cq.runtime.layout.pipeline import TableShape
from cq.runtime.layout.words import beside


@dataclass(frozen=True, slots=True)
class PaneAtHand:
    """Its tables: the groups, and a set for each accumulator of distinct values.

    marks: locals that say which rows belong to it.  none: their values while there is no pane.
    """

    groups: TableLocals
    sets: tuple[TableLocals, ...]
    marks: tuple[str, ...]
    none: tuple[int, ...]

    @staticmethod
    def declare(scope: Scope, shapes: Sequence[TableShape], marks: Mapping[str, int]) -> PaneAtHand:
        """Locals without a pane. marks: hints of their names, and the values without a pane."""
        groups, *sets = (TableLocals.declare(scope, shape.entry_words) for shape in shapes)
        names = tuple(scope.writer.hoist(expr("NONE", NONE=none), hint) for hint, none in marks.items())
        return PaneAtHand(groups, tuple(sets), names, tuple(marks.values()))

    def use(self, record: str) -> None:
        """Use the tables of the pane with this record from here on."""
        for n, table in enumerate((self.groups, *self.sets)):
            word = beside(panes.PANE_TABLES, n, f"SET{n - 1}") if n else panes.PANE_TABLES
            table.use(expr("ld_i64(R, W)", R=record, W=word))

    def forget(self) -> None:
        """There is no pane from here on."""
        for name, none in zip(self.marks, self.none, strict=True):
            self.groups.scope.writer.set(name, none)
