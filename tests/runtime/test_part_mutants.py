"""Bugs planted in parts filled by key, and in shares of lanes, are seen: which rows are whose, and in what order."""

from __future__ import annotations

import pytest
from mutate import Mutant, in_turn

PARTIALS = ("test_partials.py",)
PORTS = ("test_lanes_of_ports.py",)
DEALS, PARTIAL = "cq.runtime.engine.ways.deals", "cq.runtime.engine.ways.partial"
APART = "cq.runtime.containers.disjoint_panes"

BY_KEY = "by_key_give and tumble"
CHANGING = "may_change and tumble"

WAITS = "    if part != 0 and is_behind(partials, part) == 1:\n        take_share(stage, part)\n        return 1\n"

MUTANTS = {
    "late rows of several inputs are on time in lanes": Mutant(
        "cq.runtime.flow.shares",
        "            st_i64(target, SEGMENT_KIND, kind)\n",
        "            st_i64(target, SEGMENT_KIND, SEGMENT_ROWS)\n",
        PORTS,
        "interpreted and near",
    ),
    "the rows of a port begin where those of another lane do": Mutant(
        "cq.runtime.flow.shares",
        "                first += mine\n",
        "                first += 0\n",
        PORTS,
        "interpreted and near",
    ),
    "of a segment of two ports the ends say which rows there are": Mutant(
        "cq.runtime.flow.shares",
        "step = 1 if ld_i64(segment, SEGMENT_PORT) == MIXED else max_i64(1, hi - lo - 1)",
        "step = max_i64(1, hi - lo - 1)",
        PORTS,
        "interpreted and near",
    ),
    "a ticket is shown to parts before it is dealt": Mutant(
        DEALS,
        """    st_i64(ld_i64(partials, PARTIALS_RING), dealt & ld_i64(partials, PARTIALS_MASK), task)
    at_store(partials + PARTIALS_DEALT * 8, dealt + 1)
""",
        """    at_store(partials + PARTIALS_DEALT * 8, dealt + 1)
    st_i64(ld_i64(partials, PARTIALS_RING), dealt & ld_i64(partials, PARTIALS_MASK), task)
""",
        PARTIALS,
        BY_KEY,
    ),
    "a ticket is sent on before all parts have their rows": Mutant(
        DEALS, "DEAL_LEFT * 8, -1) == 1:", "DEAL_LEFT * 8, -1) == 2:",
        PARTIALS, BY_KEY,
    ),
    "tickets are dealt by several workers": Mutant(
        PARTIAL,
        "    if not at_cas(partials + PARTIALS_TAKING * 8, 0, 1):\n        return 0\n",
        "    at_cas(partials + PARTIALS_TAKING * 8, 0, 1)\n",
        PARTIALS,
        "by_key_give",
    ),
    "a whole ticket is run on a part before tickets that were dealt": Mutant(
        PARTIAL,
        "    if part == 0 or is_behind(partials, part) == 0:\n        task = take_ticket(stage)\n",
        "    task = take_ticket(stage)\n",
        PARTIALS,
        CHANGING,
        more=((WAITS, WAITS.replace("is_behind(partials, part) == 1", "is_behind(partials, part) == 2")),),
    ),
    "whole tickets open panes as if they were dealt": Mutant(
        PARTIAL, "        open_panes(partials, part, 0)\n", "", PARTIALS, CHANGING
    ),
    "rows of a ticket without its first part are no part's": Mutant(
        DEALS, "ld_u8(part_of, row) == mine", "ld_u8(part_of, row) >= mine", PARTIALS, BY_KEY
    ),
    "a share's serials are those of the ticket's first rows": Mutant(
        DEALS,
        "ld_i64(segment, SEGMENT_SERIAL) + ld_i32(selection, first) - lo)",
        "ld_i64(segment, SEGMENT_SERIAL))",
        PARTIALS,
        BY_KEY,
    ),
    "of several failures the last one counts": Mutant(
        DEALS, "_position(state) < _position(found)", "_position(state) > _position(found)",
        PARTIALS, "smallest_position_fails and 20",
    ),
    "a failure is told behind the part that is done last": Mutant(
        DEALS,
        """        at_store(part + PART_FAILED * 8, ld_i64(task, TASK_TICKET) + 1)
    at_store(part + PART_NEXT * 8, following + 1)
    if at_add(ld_i64(task, TASK_DEAL) + DEAL_LEFT * 8, -1) == 1:
        _send_on(stage, task)
""",
        """        failed = True
    ticket = ld_i64(task, TASK_TICKET)
    at_store(part + PART_NEXT * 8, following + 1)
    last = at_add(ld_i64(task, TASK_DEAL) + DEAL_LEFT * 8, -1) == 1
    if failed:
        at_store(part + PART_FAILED * 8, ticket + 1)
    if last:
        _send_on(stage, task)
""",
        PARTIALS, "done_last",
    ),
    "events behind a failure are passed on": Mutant(
        DEALS, "            port_failed(out, kind, failed, item)\n            return 1\n",
        "            port_failed(out, kind, failed, item)\n",
        PARTIALS, "smallest_position_fails and 20",
    ),
    "panes filled with whatever rows came are apart": Mutant(
        APART, "        if among == 0 or ", "        if ", PARTIALS, "panes_of_workers_give and tumble"
    ),
    "panes filled among any number of parts are apart": Mutant(
        APART, " // APART != among:", " // APART == 0:", PARTIALS, "by_key_outlive and whole and 2-4"
    ),
    "the latest group is next": Mutant(APART, "pick(serial < least, head, at)", "head", PARTIALS, BY_KEY),
    "groups begin anew where a full port stopped them": Mutant(
        APART, "        if number == 0:\n", "        if number >= 0:\n", PARTIALS, "full_ports"
    ),
}  # fmt: skip


@pytest.mark.mutants
@pytest.mark.parametrize("name", in_turn(MUTANTS))
def test_a_planted_bug_is_seen(name: str, pytestconfig: pytest.Config) -> None:
    MUTANTS[name].demand_seen(name, pytestconfig.getoption("--update"))
