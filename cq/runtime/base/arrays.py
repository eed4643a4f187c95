"""Arrays for native functions: where they are, and rooms that are used again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Address = Callable[[NDArray[Any]], int]


def real_address(array: NDArray[Any]) -> int:
    """Where an array is for compiled code."""
    address: int = array.ctypes.data
    return address


class Spare:
    """Rooms that were used before: fresh pages cost as much as writing into them. Several threads may use them."""

    def __init__(self) -> None:
        self._rooms: list[NDArray[np.uint8]] = []

    def room(self, size: int) -> NDArray[np.uint8]:
        """At least so many bytes, the caller's until it gives them back."""
        try:
            spare = self._rooms.pop()
        except IndexError:
            spare = np.empty(0, np.uint8)
        return spare if len(spare) >= size else np.empty(size, np.uint8)

    def give_back(self, room: NDArray[np.uint8]) -> None:
        """The bytes may be used again."""
        self._rooms.append(room)
