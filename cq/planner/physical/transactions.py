"""Transactions: whether all workers can run those of a plan together, and from how many workers on that pays.

They can if every row that a transaction names is known from its event, and its outcome depends only on these rows and
the event. Then a transaction depends on earlier ones that name one of its rows, and on nothing else. An array of the
event names as many rows as it has elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from cq.lang.expressions import Expr, can_fail, columns_of
from cq.lang.schema import Schema
from cq.planner.operators import Trigger
from cq.planner.physical.named_rows import accesses_of, known_from_event, lists_of
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.transactions import Each, Program, every, frame_starts
from cq.records import dataclass

# The extra time that a row takes from all workers in chains: to be collected, linked, copied and settled, and to change
# cores. From the wall clock of two workers on a machine with two cores: 73 ns in the streaming ledger, 78 in online
# bidding, 86 in grep and sum, 110 in toll processing; one worker takes 14 to 27. For more workers it is a guess. If a
# body does little, chains begin with 8 or 9 workers; at half of this with 5, at double with 15 or 16.
CHAINED_NS = 85
MEASURED_WORKERS = 2  # at most; figures for more are extrapolated from these

MOST_COLUMNS = 1000  # per table: an access has twelve bits for the number of words in its row, at most three per column
MOST_TABLES = 511  # per stage: an access has nine bits for the table of its row
MOST_KEY_COLUMNS = 20  # per key: a word of an access has a bit for each word of the key where a text starts


@dataclass(frozen=True, slots=True)
class Natively:
    """What kernels know about an expression over these columns.

    at_once: it needs no memory beyond the row.  alone: it does not call Python.
    """

    at_once: Callable[[Schema, Expr], bool]
    alone: Callable[[Schema, Expr], bool]


@dataclass(frozen=True, slots=True)
class Cost:
    """About how long the transactions of an event take: for one worker that runs them one after the other, and in total
    for all that share them in chains."""

    serial_ns: int
    chained_ns: int

    @property
    def pays_from(self) -> int:
        """From how many workers chains are faster."""
        return self.chained_ns // self.serial_ns + 1


def cost_of(nodes: Sequence[Trigger]) -> Cost:
    """The model's cost for the operators that process one event after the other."""
    serial_ns = sum(n.cost_ns for n in nodes)
    return Cost(serial_ns, serial_ns + sum(n.work.rows for n in nodes) * CHAINED_NS)


def transactions_of(plan: LogicalPlan) -> tuple[Trigger, ...]:
    """The operators of a plan that run transactions."""
    return tuple(n for n in plan.nodes() if isinstance(n, Trigger))


def why_serial(nodes: Sequence[Trigger], natively: Natively) -> str | None:
    """Why the transactions of these operators have to run one after the other, in words; None if they need not."""
    if sum(len(n.tables) for n in nodes) > MOST_TABLES:
        return f"there are more than {MOST_TABLES} tables"
    return next((reason for n in nodes for reason in _obstacles(n, natively)), None)


def _obstacles(node: Trigger, natively: Natively) -> Iterator[str]:
    for table in node.tables:
        if len(table.fields) > MOST_COLUMNS:
            yield f'table "{table.name}" has more than {MOST_COLUMNS} columns'
        if len(table.key) > MOST_KEY_COLUMNS:
            yield f'the key of "{table.name}" has more than {MOST_KEY_COLUMNS} columns'
    schema = Schema(node.frame)
    for program in node.programs:
        yield from _obstacles_in(node, program, partial(natively.at_once, schema))
    if not any(accesses_of(p) for p in node.programs):
        yield f'trigger "{node.programs[0].name}" names no row'
    if not all(natively.alone(schema, e) for e, _ in node.expressions()):
        yield "a user function that runs in Python is called by one worker"


def _obstacles_in(node: Trigger, program: Program, at_once: Callable[[Expr], bool]) -> Iterator[str]:
    trigger = f'trigger "{program.name}"'
    if program.strict:
        filled = next(node.tables[node.access(n).table].name for n in accesses_of(program))
        yield f'a source fills "{filled}", and the first row that does not fit ends the run'
    starts = frame_starts(node.width, node.tables, node.accesses)
    elements: dict[int, set[int]] = {}  # by access: the columns of the elements that it is read for
    for found in lists_of(node, program):
        if any(isinstance(s, Each) and s is not found.each for s in every((found.each,))):
            yield f"{trigger} loops over an array for each element of another"
        if not known_from_event(node, *found.each.arrays):
            yield f"the event alone does not say which rows an array of {trigger} names"
        if any(map(can_fail, found.each.arrays)):
            yield f"computing an array of {trigger} may fail"
        if not all(map(at_once, found.each.arrays)):
            yield f"{trigger} builds an array of keys"
        for number in found.accesses:
            elements[number] = {starts[n] for n in found.each.locals}
    for number in accesses_of(program):
        access = node.access(number)
        name = node.tables[access.table].name
        if not all(c < node.width or c in elements.get(number, ()) for c in columns_of(*access.key)):
            yield f'the event alone does not say which row of "{name}" {trigger} means'
        if any(map(can_fail, access.key)):
            yield f'computing the key of "{name}" may fail'
        if not all(map(at_once, access.key)):
            yield f'{trigger} builds a key of "{name}" from texts or arrays'
