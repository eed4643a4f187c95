"""What function names mean: scalar functions, their short forms, and those of other systems.

The files of short forms are imported here for what they register.
"""

from __future__ import annotations

from cq.planner.binding.functions import arrays, choices, foreign, formats, json_text, times_and_urls

__all__ = ["arrays", "choices", "foreign", "formats", "json_text", "times_and_urls"]
