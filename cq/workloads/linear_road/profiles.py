"""The four traffic profiles: how many vehicles come, how they drive, where they crowd."""

from __future__ import annotations

from cq.records import dataclass

SEGMENT_FT = 5280
REPORT_S = 30
FT_PER_MPH = 44  # travelled in one report interval
EXIT_OFFSET_FT = 4800  # where the exit ramp of a segment begins
TOP_MPH = 100
SLOT_S = 1200  # one accident per expressway and slot
EXIT_LANE = 4


@dataclass(frozen=True, slots=True)
class Profile:
    """One set of traffic parameters. Rates are vehicles per second and direction; speeds are mph.

    Arrivals grow linearly from rate_first to rate_last over duration_s and keep the last rate after it.
    free_mph, half_density, power_halves, floor_mph: the speed law max(floor, free / (1 + (k/half)^(power_halves/2))) at
    k vehicles per lane-mile; the exponent counts halves so that it needs only products and square roots.
    trip_segments: mean of a geometric trip length; None draws the exit uniformly from what is left of the road.
    hot_spot: (segment, width) of a bump in the entry weights, in travel direction; None is uniform.
    accident_starts: (earliest, latest) start per accident, the same in both directions; None is one per expressway and
    slot. accident_s: (shortest, longest) time until it is cleared.
    """

    name: str
    duration_s: int
    segments: int
    rate_first: float
    rate_last: float
    free_mph: int
    half_density: int
    power_halves: int
    floor_mph: int
    desired_mph: int
    trip_segments: int | None
    hot_spot: tuple[int, int] | None
    accident_s: tuple[int, int] = (600, 1200)
    accident_starts: tuple[tuple[int, int], ...] | None = None

    @property
    def road_ft(self) -> int:
        return self.segments * SEGMENT_FT


CLASSIC = Profile("classic", 10_800, 100, 6.65, 6.65, 60, 120, 4, 15, 54, None, None)
LIGHT = Profile("light", 10_800, 100, 0.6, 8.0, 72, 30, 3, 5, 66, 12, (45, 12))
HEAVY = Profile("heavy", 10_800, 100, 0.6, 20.0, 72, 110, 4, 5, 66, 20, (45, 12))
TINY = Profile(
    "tiny", 1_800, 20, 0.6, 4.0, 72, 12, 3, 5, 66, 6, (10, 4), (300, 300), ((300, 500), (800, 1000))
)  # fmt: skip

PROFILES = {p.name: p for p in (TINY, LIGHT, HEAVY, CLASSIC)}
