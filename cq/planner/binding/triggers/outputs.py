"""The columns of a trigger's rows: its own, from its SELECTs, and those that it inserts elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from cq.errors import Span, amount, compile_error
from cq.grammar import ast, inline
from cq.lang.expressions import Expr
from cq.lang.schema import Field
from cq.lang.types import INTEGER, NULL, common_type
from cq.planner.binding.conversion import convert, unsettled
from cq.planner.plan.transactions import Emit, Step, rebuilt
from cq.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class RowTarget:
    """A relation into which triggers emit rows besides their own. name: the `into` of the steps."""

    name: str
    fields: tuple[Field, ...]


@dataclass(slots=True)
class Outputs:
    """The columns so far; None before the first SELECT. unknown: one SELECT is wrong, so no other is compared with
    it."""

    fields: tuple[Field, ...] | None = None
    unknown: bool = False

    def row(
        self, trigger: str, values: Sequence[Expr], items: Sequence[ast.SelectItem], span: Span
    ) -> tuple[Expr, ...]:
        """The values as the trigger's columns: the first SELECT sets their names, all SELECTs together their types."""
        if self.unknown:
            return tuple(values)
        if self.fields is None:
            names = [_name(item, n) for n, item in enumerate(items, 1)]
            self.fields = tuple(Field(n, unsettled(v), True) for n, v in zip(names, values, strict=True))
            twice = next((n for n in names if names.count(n) > 1), None)
            if twice is not None:
                cause = f'two columns of the trigger are named "{twice}"'
                raise compile_error("CQ0409", cause, span, help=_apart(twice, items, names))
        if len(self.fields) != len(values):
            cause = f"this SELECT gives {amount(len(values), 'column')}, but the first one of trigger {trigger} gives"
            way = f"the first one gives {_listed(self.fields)}: give as many, NULL for one that is missing"
            raise compile_error("CQ0307", f"{cause} {len(self.fields)}", span, help=way)
        types = [common_type(f.type, unsettled(v)) for f, v in zip(self.fields, values, strict=True)]
        if None in types:
            raise compile_error(
                "CQ0307",
                f"this SELECT gives other columns than the first one of trigger {trigger}",
                span,
                help=f"the first one gives {_listed(self.fields)}: CAST the values to these types",
            )
        self.fields = tuple(replace(f, type=t) for f, t in zip(self.fields, types, strict=True) if t is not None)
        return tuple(values)

    def settled(self) -> tuple[Field, ...]:
        """The columns, with those that are a bare NULL in every SELECT as INTEGER."""
        return tuple(replace(f, type=INTEGER) if f.type == NULL else f for f in self.fields or ())

    def aligned(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """The steps with the rows of every SELECT converted to the common types."""
        types = [f.type for f in self.settled()]

        def one(step: Step) -> Step:
            if isinstance(step, Emit) and not step.into:
                return replace(step, values=tuple(map(convert, step.values, types)))
            return step

        return rebuilt(steps, one)


def _listed(fields: Sequence[Field]) -> str:
    return ", ".join(map(str, fields))


def _apart(name: str, items: Sequence[ast.SelectItem], names: Sequence[str]) -> str:
    """How to tell apart two columns with one name. Those of a star have its place."""
    for item in (i for i, n in reversed([*zip(items, names, strict=True)]) if n == name):
        if isinstance(item.expr, ast.ColumnRef) and sum(other.span == item.span for other in items) > 1:
            star = "*" if item.expr.qualifier is None else f"{inline.name(item.expr.qualifier)}.*"
            return f"leave one out: {star} EXCLUDE {inline.names([name])}"
    return "give one of them an alias"


def _name(item: ast.SelectItem, number: int) -> str:
    if item.alias is not None:
        return item.alias
    return item.expr.name if isinstance(item.expr, ast.ColumnRef) else f"col{number}"
