"""What names of functions mean: scalar functions, their short forms, and those of other systems."""

from __future__ import annotations

from cq.planner.binding.functions import arrays, choices, foreign, formats, json_text, times_and_urls  # noqa: F401  they register their short forms
