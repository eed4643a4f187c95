"""Identity: what an operator is, as a hash that names and the layout of columns do not change.

State outlives a run, so it is matched by what computes it and not by position. The identity of an operator is a hash of
its class, of its parameters and of its inputs' identities; a column counts as what it is (a column of a source by its
name there, a computed one by its expression), never by its position or alias. A projection has no identity: its columns
are their expressions. So `AS n` or `AS m`, one more column elsewhere, or a view around a query change no identity.

Identities are computed on the bound plan and carried through every rewrite (`LogicalNode.identity`), so that a better
rule loses no state. If several operators in one plan have the same meaning, the second has `#2` after its hash, and so
on.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from enum import Enum

from cq.lang.expressions import Column, Expr, walk
from cq.lang.schema import TimeAttribute
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LABEL, Inputs, LogicalNode, OpClass, Text
from cq.records import dataclass, fields, is_dataclass, replace

DIGITS = 24  # hexadecimal digits of a hash: two of a billion operators collide with probability 1e-11


@dataclass(frozen=True, slots=True)
class _Known:
    """A node's hash, and that of each of its columns."""

    node: str
    columns: tuple[str, ...]


def identified(plan: LogicalPlan, called: Sequence[tuple[LogicalNode, str]] = ()) -> LogicalPlan:
    """The plan with the identity of every node in it, and with the names that the text gives its rows: the first of
    several."""
    known: dict[int, _Known] = {}
    seen: Counter[str] = Counter()
    names: dict[int, str] = {}
    for node in plan.nodes():
        made = known[id(node)] = _known(node, [known[id(i)] for i in node.inputs])
        seen[made.node] += node.keeps_state
        again = node.keeps_state and seen[made.node] > 1
        names[id(node)] = f"{made.node}#{seen[made.node]}" if again else made.node
    by_text = {id(node): name for node, name in reversed(called)}
    done: dict[int, LogicalNode] = {}
    for node in plan.nodes():
        over = node.with_inputs([done[id(i)] for i in node.inputs])
        done[id(node)] = replace(over, identity=names[id(node)], called=by_text.get(id(node), ""))
    return LogicalPlan(tuple(replace(o, node=done[id(o.node)]) for o in plan.outputs))


def contents(plan: LogicalPlan) -> dict[str, str]:
    """For each operator with state, by identity, a hash of what it keeps: what it computes, and of which columns.

    Identity does not depend on how many columns are read after an operator; what it keeps of its rows does.
    """
    known: dict[int, _Known] = {}
    found = {}
    for node in plan.nodes():
        inputs = [known[id(i)] for i in node.inputs]
        known[id(node)] = _known(node, inputs)
        if node.keeps_state:
            found[node.identity] = _hash(known[id(node)].node, *(c for i in inputs for c in i.columns))
    return found


def _known(node: LogicalNode, inputs: list[_Known]) -> _Known:
    def text(over: Inputs, e: Expr | TimeAttribute) -> str:
        columns = [c for n in over for c in inputs[n].columns]
        if isinstance(e, TimeAttribute):
            return f"{columns[e.column]}{e.shift_us:+}"
        return columns[e.index] if isinstance(e, Column) else _expression(e, columns)

    parameters = [canonical(p) for p in node.parameters(text)]
    # row-by-row computation shows in the columns; with several inputs, their order counts as well
    every = node.fan_out == 1 and not node.may_drop
    passes = node.op_class is OpClass.STATELESS and len(inputs) == 1 and every and not parameters
    own = inputs[0].node if passes else _hash(node.operator, *parameters, *(i.node for i in inputs))
    return _Known(own, tuple(_column(node, own, c, text) for c in range(len(node.schema))))


def _column(node: LogicalNode, own: str, column: int, text: Text) -> str:
    f = node.schema.fields[column]
    pulled = node.pull(Column(f.type, f.nullable, column))
    if pulled is None or len(pulled) > 1:
        return _hash(own, node.meaning(column, text))
    ((port, expr),) = pulled
    return text((port,), expr)


def _expression(e: Expr, columns: list[str]) -> str:
    """An expression as a hash, with columns by identity. Long ones, with columns made of columns, stay short."""
    parts = []
    for x in walk(e):
        own = columns[x.index] if isinstance(x, Column) else _own(x)
        parts.append(f"{type(x).__name__}({own}){len(x.children)}")
    return _hash(*parts)


def _own(e: Expr) -> str:
    """The fields of an expression that are not expressions themselves."""
    held = (getattr(e, f.name) for f in fields(e) if f.compare)
    return ",".join(canonical(v) for v in held if not _holds_expressions(v))


def _holds_expressions(value: object) -> bool:
    return isinstance(value, Expr) or (isinstance(value, tuple) and any(_holds_expressions(v) for v in value))


def canonical(value: object) -> str:
    """A text that is equal for equal plan values and does not depend on spans, labels, addresses or process."""
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, tuple):
        return "(" + ",".join(canonical(v) for v in value) + ")"
    if isinstance(value, Enum):
        return value.name
    key = getattr(value, "registry_key", None)
    if isinstance(key, str):
        return key
    if is_dataclass(value):
        shown = [f for f in fields(value) if f.compare and LABEL not in f.metadata]
        inner = ",".join(f"{f.name}={canonical(getattr(value, f.name))}" for f in shown)
        return f"{type(value).__name__}({inner})"
    return repr(value)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:DIGITS]
