"""Planned stops: accidents, and look-alikes that must not be mistaken for accidents.

Every incident is a place on the road (travel coordinates) at which the next vehicles passing it are held. Plans depend
only on (seed, expressway, direction, slot), never on the traffic.
"""

from __future__ import annotations

from cq.records import dataclass
from cq.workloads.draws import below, philox, raw
from cq.workloads.linear_road.profiles import SEGMENT_FT, SLOT_S, Profile

ACCIDENT, BREAKDOWN, NEAR_STOP, SIDE_BY_SIDE = "accident", "breakdown", "near stop", "side by side"
FOREVER = 1 << 60

# Purposes of the counter-based generator; arrivals and moves of traffic.py use 0 and 1.
_ACCIDENTS, _LOOKALIKES = 2, 3

# Per slot and direction: enough to meet every kind in each twenty minutes, far below 1 % of the reports.
_LOOKALIKES_PER_SLOT = (BREAKDOWN, BREAKDOWN, NEAR_STOP, NEAR_STOP, NEAR_STOP, SIDE_BY_SIDE)

# An accident starts in the first 900 s of its slot, so that two vehicles pass and four reports fit before the run ends.
_START_RANGE_S = 900
_STOP_S = 120  # longer than the 90 s that make a vehicle stopped


@dataclass(slots=True)
class Incident:
    """One planned stop and the vehicles held by it so far.

    From start_s on the next len(lanes) vehicles whose move passes x are held there, the i-th in lanes[i]. When
    `complete` of them are held, all are released `hold_s` later. An accident halves the capacity of its segment.
    """

    kind: str
    start_s: int
    x: int
    lanes: tuple[int, ...]
    complete: int
    hold_s: int
    held: int = 0
    release_s: int = FOREVER

    @property
    def segment(self) -> int:
        return self.x // SEGMENT_FT


def plan(profile: Profile, seed: int, xway: int, direction: int, slot: int) -> list[Incident]:
    """The incidents that start in one slot of one direction, by start."""
    out = _accidents(profile, seed, xway, direction, slot) + _lookalikes(profile, seed, xway, direction, slot)
    return sorted(out, key=lambda i: (i.start_s, i.x))


def _accidents(profile: Profile, seed: int, xway: int, direction: int, slot: int) -> list[Incident]:
    if profile.accident_starts is None:
        drawn = [_Draw(profile, seed, 2 * xway, _ACCIDENTS, slot)]
        if drawn[0].side != direction:
            return []
        starts = [slot * SLOT_S + drawn[0].within(_START_RANGE_S)]
    else:
        here = [(n, s) for n, s in enumerate(profile.accident_starts) if s[0] // SLOT_S == slot]
        drawn = [_Draw(profile, seed, 2 * xway + direction, _ACCIDENTS, n) for n, _ in here]
        starts = [low + d.within(high - low + 1) for d, (_, (low, high)) in zip(drawn, here, strict=True)]
    shortest, longest = profile.accident_s
    out = []
    for n, (draw, start) in enumerate(zip(drawn, starts, strict=True)):
        cars = 3 if draw.rare else 2
        # Neighbouring slots take segments of different parity: two accidents in one segment would be seen as one.
        segment = draw.segment - (draw.segment - slot - n) % 2
        hold = _STOP_S + shortest + draw.fraction * (longest - shortest + 1) // (1 << 20)
        out.append(Incident(ACCIDENT, start, _spot(segment, draw.offset, 0), (draw.lane,) * cars, 2, hold))
    return out


def _lookalikes(profile: Profile, seed: int, xway: int, direction: int, slot: int) -> list[Incident]:
    out = []
    for n, kind in enumerate(_LOOKALIKES_PER_SLOT):
        draw = _Draw(profile, seed, 2 * xway + direction, _LOOKALIKES, slot * 64 + n)
        lanes: tuple[int, ...] = (draw.lane,)
        if kind == SIDE_BY_SIDE:
            lanes = (draw.lane, draw.lane % 3 + 1)
        # Held 75 s a vehicle reports three times from the spot, held 120 s or more at least five times.
        hold = 75 if kind == NEAR_STOP else _STOP_S + draw.fraction * 300 // (1 << 20)
        x = _spot(draw.segment, draw.offset, 1 + (slot * len(_LOOKALIKES_PER_SLOT) + n) % 63)
        out.append(Incident(kind, slot * SLOT_S + draw.within(SLOT_S), x, lanes, len(lanes), hold))
    return out


def _spot(segment: int, offset: int, residue: int) -> int:
    """A place between the entry stretch and the exit ramp; incidents of different residue never share one."""
    return segment * SEGMENT_FT + 640 + offset * 64 + residue


class _Draw:
    """The random choices of one incident."""

    def __init__(self, profile: Profile, seed: int, stream: int, purpose: int, number: int) -> None:
        bits = raw(philox(seed, stream, purpose, number), 8)
        self._bits = bits
        self.side = int(below(bits, 2)[0])
        margin = 5
        self.segment = margin + 1 + int(below(bits, profile.segments - 2 * margin - 1)[1])
        self.offset = int(below(bits, 64)[2])
        self.lane = 1 + int(below(bits, 3)[3])
        self.rare = int(below(bits, 4)[4]) == 0
        self.fraction = int(below(bits, 1 << 20)[5])

    def within(self, seconds: int) -> int:
        """Uniform 0 … seconds−1."""
        return int(below(self._bits[6:7], seconds)[0])
