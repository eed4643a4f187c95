"""All entries: importing this file registers them."""

from cq.functions import arithmetic, comparison, conditional, mathematics, rounding, text, time

LOADED = (arithmetic, comparison, conditional, mathematics, rounding, text, time)
