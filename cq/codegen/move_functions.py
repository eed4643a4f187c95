"""Moving state to another plan: generated functions that move the contents of a slot into a slot of another state.

A snapshot of one plan is restored into any other plan of the same query: its containers are filled as they were, and
the new plan's containers are filled from them, entry by entry (cq/runtime/engine/state_moves.py). A lane takes only its
own entries, and only generated code can compute the lane of an entry.

Operators declare what their slots hold (cq/codegen/state/entry_moves.py). These functions are a module of their own,
compiled when needed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from cq.codegen.state.entry_moves import HOLDS, Held, Mover
from cq.codegen.state.hash_tables import lane_hash
from cq.codegen.values import Constants, Scope, Sites, Val
from cq.codegen.waiting_rows import waiting_ports, waiting_rows
from cq.codegen.writer import Writer
from cq.planner.physical.stages import Stage
from cq.planner.plan.node import LogicalNode
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.pipeline import Moving, Slot

ARGUMENTS = ("source", "target", "constants", "routing")


def held_by(node: LogicalNode, waits: bool) -> Iterator[Held]:
    """What the slots of an operator with state hold."""
    yield from HOLDS[node.operator](node)
    keys = node.input_keys
    for port in waiting_ports(node, waits):
        assert keys is not None, "rows wait in an operator without state"
        yield waiting_rows(node, port, keys[port])


def write_moving(planned: Stage, slots: Sequence[Slot], globals_: Iterable[str]) -> Moving:
    """The functions that fill these slots of a stage."""
    writer, constants = Writer(), Constants()
    kept = {slot.key: slot for slot in slots if slot.container and not slot.transient}
    found: dict[str, tuple[int, str]] = {}
    for node in planned.plan.nodes():
        for held in held_by(node, planned.waits) if node.keeps_state else ():
            key = f"{node.identity} {held.name}"
            if key in kept:
                found[key] = branch_of(planned, node), f"move_{len(found)}"
                _write_move(planned, node, held, found[key], writer, constants)
    assert found.keys() == kept.keys(), f"nothing moves {sorted(kept.keys() - found.keys())}"
    entries = tuple((key, branch, name) for key, (branch, name) in found.items())
    return Moving(writer.finish(globals_), tuple(writer.signatures.items()), entries, constants.pack())


def branch_of(planned: Stage, node: LogicalNode) -> int:
    """The number of the branch an operator with state is in; 0 without lanes."""
    return next((n for n, b in enumerate(planned.branches) if node.identity in b.parts), 0)


def _write_move(
    planned: Stage, node: LogicalNode, held: Held, place: tuple[int, str], writer: Writer, constants: Constants
) -> None:
    number, name = place

    def fail(code: ErrorCode, site: int) -> None:
        mover.leave()

    with writer.function(name, ARGUMENTS):
        scope = Scope(writer, constants, Sites(), fail)

        def lane_of(values: Sequence[Val]) -> ast.expr:
            branch = planned.branches[number]
            return lane_hash(scope, branch.all_keys, [values[n] for n in branch.parts[node.identity]])

        mover = Mover(scope, lane_of if planned.branches else None)
        held.move(mover)
        writer.code("return 1")
