"""The lists from which texts of NEXMark are drawn."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from cq.lang.arrow_buffers import text_array
from cq.workloads.bids import COLD_CHANNELS, HOT_CHANNELS
from cq.workloads.draws import mix
from cq.workloads.texts import LETTERS

FIRST_NAMES = ("Ada", "Bruno", "Clara", "Dario", "Emma", "Felix", "Grace", "Hugo", "Irene", "Jonas", "Karla")
LAST_NAMES = ("Adams", "Baker", "Cooper", "Dalton", "Evans", "Foster", "Grant", "Hughes", "Irving")
CITIES = (
    "Phoenix",
    "Tucson",
    "Los Angeles",
    "Oakland",
    "Boise",
    "Portland",
    "Eugene",
    "Seattle",
    "Spokane",
    "Cheyenne",
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")

_URLS = 120  # purposes of the draws for urls
_LINKED = 0.9  # of the cold channels have their number in the url


@lru_cache(maxsize=1)
def person_names() -> pa.StringArray:
    """Every first name with every last name."""
    return text_array([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES])


@lru_cache(maxsize=4)
def urls(seed: int) -> pa.StringArray:
    """The url of each channel, by its number: the hot ones, then the others."""
    made = []
    for n in range(len(HOT_CHANNELS) + COLD_CHANNELS):
        folders = "/".join(_word(mix(_URLS, seed, n, place)) for place in range(3))
        cold, drawn = n - len(HOT_CHANNELS), mix(_URLS, seed, n, 3)
        linked = cold >= 0 and (drawn >> 11) * 2.0**-53 < _LINKED
        number = f"&channel_id={_number(cold)}" if linked else ""
        made.append(f"https://www.nexmark.com/{folders}/item.htm?query=1{number}")
    return text_array(made)


def _word(drawn: int) -> str:
    """Three or four letters."""
    return "".join(chr(LETTERS[drawn >> (8 * n) & 255]) for n in range(3 + (drawn >> 63)))


def _number(channel: int) -> int:
    """The 32 bits of a channel's number from right to left, without a sign."""
    turned = int(f"{channel:032b}"[::-1], 2)
    return min(turned, (1 << 32) - turned)
