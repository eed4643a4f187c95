"""Results of the passes after binding, kept for later queries with the same text and the same plan.

A program runs one text over new rows again and again, each time as a new query: planning and writing its stages took
7 ms of CPU for a filter and 20 ms for a GROUP BY, where the rows of a small input took less than one.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cq.planner.plan.logical import LogicalPlan

MOST_KEPT = 64  # plans, each placed for one number of workers: a few hundred KB each with its generated sources


class KeptPlans:
    """The results of the last MOST_KEPT plans. Threads may share it: two of them compute equal results from a plan.

    It holds no inputs. A plan holds the user functions that it calls, so a query that calls any has its own KeptPlans.
    """

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[LogicalPlan, dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def of(self, key: Hashable, plan: LogicalPlan) -> dict[str, Any]:
        """The results by pass, to be read and added to; empty unless the plan under the key is equal.

        key: what results depend on besides the plan: the text, whose lines they name, and what it is planned for.
        """
        with self._lock:
            found = self._found.pop(key, None)
            if found is None or not found[0].equals(plan):
                found = (plan, {})
            self._found[key] = found  # last: the most recently used
            if len(self._found) > MOST_KEPT:
                del self._found[next(iter(self._found))]
        return found[1]


OF_PROCESS = KeptPlans()
