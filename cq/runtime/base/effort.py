"""How much the generated code of queries is optimised."""

from __future__ import annotations

import os
from enum import IntEnum


class Effort(IntEnum):
    """The more, the longer a query compiles, and the faster it runs.

    A line of generated code takes about 0.1, 0.3 and 0.7 ms of CPU to compile. The code runs at a fifth to a half, then
    at four fifths of the full speed.
    """

    LITTLE = 0  # calls are inlined and variables kept in registers
    SOME = 1  # and instructions are chosen well
    FULL = 2  # after all of LLVM's passes


_BY_NAME = {effort.name.lower(): effort for effort in Effort}


def effort_asked(suits: Effort) -> Effort:
    """The effort that CQ_OPTIMISE names in the environment (`little`, `some`, `full`), else the one that suits."""
    return _BY_NAME.get(os.environ.get("CQ_OPTIMISE", ""), suits)
