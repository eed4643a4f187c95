"""All entries: importing this file registers them."""

from cq.lang.functions import (
    arithmetic,
    array_building,
    arrays,
    comparison,
    conditional,
    integers,
    json_text,
    mathematics,
    regular,
    rounding,
    text,
    text_building,
    text_bytes,
    time,
    time_formats,
    time_making,
)

LOADED = (
    arithmetic,
    array_building,
    arrays,
    comparison,
    conditional,
    integers,
    json_text,
    mathematics,
    regular,
    rounding,
    text,
    text_building,
    text_bytes,
    time,
    time_formats,
    time_making,
)
