"""The names that a trigger's body may use from its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from cq.errors import Span
from cq.grammar import ast
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.tables import DeclaredTable
from cq.planner.binding.triggers.outputs import RowTarget
from cq.planner.plan.node import LogicalNode


class TriggerNames(Protocol):
    """What a trigger may name besides its event."""

    @property
    def parameters(self) -> Mapping[str, ParameterValue]: ...

    @property
    def tables(self) -> Mapping[str, DeclaredTable]: ...

    def target(self, name: str, span: Span, node: ast.CreateTrigger, stream: LogicalNode) -> RowTarget | None: ...

    def is_broken(self, table: str) -> bool: ...

    def is_sink(self, name: str) -> bool: ...

    def is_relation(self, name: str) -> bool: ...

    def is_made(self, name: str) -> bool: ...
