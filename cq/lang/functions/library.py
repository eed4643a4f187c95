"""All entries: importing this file registers them."""

from cq.lang.functions import arithmetic, comparison, conditional, integers, mathematics, rounding, text, time

LOADED = (arithmetic, comparison, conditional, integers, mathematics, rounding, text, time)
