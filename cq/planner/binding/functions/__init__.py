"""What names of functions mean: scalar functions, their short forms, and those of other systems."""

from __future__ import annotations

from cq.planner.binding.functions import arrays as _of_arrays  # noqa: F401  they register their short forms
from cq.planner.binding.functions import choices as _choices  # noqa: F401
from cq.planner.binding.functions import foreign as _foreign  # noqa: F401
from cq.planner.binding.functions import formats as _formats  # noqa: F401
from cq.planner.binding.functions import json_text as _json_text  # noqa: F401
from cq.planner.binding.functions import times_and_urls as _times_and_urls  # noqa: F401
