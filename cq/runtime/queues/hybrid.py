"""Hybrid queue: tickets of many lanes; each lane's tickets are served in order by one worker at a time.

Roles     one writer at a time (hybrid_add).  Many workers (hybrid_claim, hybrid_item, hybrid_done).
Shared    MASTER  ring of lane numbers + 1, one for each item.  lane ring  the items of that lane.
          COUNT[lane]  items claimed and not done; the worker that raises it from 0 serves the lane, the others have
          delegated their claim to it. Each on a line of its own.
I1        two workers never serve one lane at once.                        tests: test_a_lane_has_one_worker_at_a_time
I2        items of a lane are served once each, in the order added.   tests: test_items_of_a_lane_keep_their_order
I3        the worker that serves a lane finds an item for every claim.     tests: test_a_claim_always_finds_its_item
Progress  no call waits: a claim on a busy lane is left to its worker, which sees it before leaving.
Order     add: item into the lane's ring, then the lane into MASTER; the other way round a claim could find no item.
Source    Prasaad et al. (2018), section 4.3, figure 7. Lanes are what the paper calls partitions.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_add, ld_i64, release, st_i64, zalloc
from cq.runtime.layout.words import Struct
from cq.runtime.queues.ring import ring_drop, ring_has_room, ring_new, ring_pop, ring_push

_hybrid = Struct("HYBRID")
HYBRID_MASTER = _hybrid.word()
HYBRID_LANES = _hybrid.word()
HYBRID_QUEUES = _hybrid.word()  # -> one word a lane: its ring
HYBRID_COUNTS = _hybrid.word()  # -> eight words a lane, the first of them its count
HYBRID_WORDS = _hybrid.size()


@native("i64(i64, i64)", export=True)
def hybrid_new(lanes: int, capacity: int) -> int:
    """An empty queue for `lanes` (a power of two) lanes of at most `capacity` (a power of two) items each; or 0."""
    hybrid = zalloc(HYBRID_WORDS * 8)
    if hybrid == 0:
        return 0
    st_i64(hybrid, HYBRID_LANES, lanes)
    st_i64(hybrid, HYBRID_MASTER, ring_new(lanes * capacity))
    st_i64(hybrid, HYBRID_COUNTS, zalloc(lanes * 64))
    queues = zalloc(lanes * 8)
    st_i64(hybrid, HYBRID_QUEUES, queues)
    complete = ld_i64(hybrid, HYBRID_MASTER) != 0 and ld_i64(hybrid, HYBRID_COUNTS) != 0 and queues != 0
    if complete:
        for lane in range(lanes):
            queue = ring_new(capacity)
            st_i64(queues, lane, queue)
            complete = complete and queue != 0
    if not complete:
        hybrid_drop(hybrid)
        return 0
    return hybrid


@native("void(i64)", export=True)
def hybrid_drop(hybrid: int) -> None:
    """Free the queue; no thread uses it. 0 is ignored."""
    if hybrid == 0:
        return
    queues = ld_i64(hybrid, HYBRID_QUEUES)
    if queues != 0:
        for lane in range(ld_i64(hybrid, HYBRID_LANES)):
            ring_drop(ld_i64(queues, lane))
    release(queues)
    ring_drop(ld_i64(hybrid, HYBRID_MASTER))
    release(ld_i64(hybrid, HYBRID_COUNTS))
    release(hybrid)


@native("i64(i64, i64)", export=True)
def hybrid_has_room(hybrid: int, lane: int) -> int:
    """1 if the writer can add an item to the lane.

    MASTER is as large as all lanes together, and still has no room while a worker is between the claim and the release
    of its oldest cell.
    """
    if ring_has_room(ld_i64(hybrid, HYBRID_MASTER)) == 0:
        return 0
    return ring_has_room(ld_i64(ld_i64(hybrid, HYBRID_QUEUES), lane))


@native("i64(i64, i64, i64)", export=True)
def hybrid_add(hybrid: int, lane: int, item: int) -> int:
    """Append the item to its lane and return 1; 0 if there is no room. One thread at a time."""
    if hybrid_has_room(hybrid, lane) == 0:
        return 0
    pushed = ring_push(ld_i64(ld_i64(hybrid, HYBRID_QUEUES), lane), item)
    pushed += ring_push(ld_i64(hybrid, HYBRID_MASTER), lane + 1)
    assert pushed == 2, "room for the only writer"
    return 1


@native("i64(i64)", export=True)
def hybrid_claim(hybrid: int) -> int:
    """A lane that the caller now serves, or -1 if there is none that others are not serving already."""
    while True:
        lane = ring_pop(ld_i64(hybrid, HYBRID_MASTER)) - 1
        if lane < 0:
            return -1
        if at_add(ld_i64(hybrid, HYBRID_COUNTS) + lane * 64, 1) == 0:
            return lane


@native("i64(i64, i64)", export=True)
def hybrid_item(hybrid: int, lane: int) -> int:
    """The next item of the lane the caller serves."""
    item = ring_pop(ld_i64(ld_i64(hybrid, HYBRID_QUEUES), lane))
    assert item != 0, "a claim without an item (I3)"
    return item


@native("i64(i64, i64)", export=True)
def hybrid_done(hybrid: int, lane: int) -> int:
    """Mark the item as served; 1 if the caller goes on with the lane's next one, 0 if it no longer serves the lane."""
    return 1 if at_add(ld_i64(hybrid, HYBRID_COUNTS) + lane * 64, -1) > 1 else 0
