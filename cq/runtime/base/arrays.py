"""Arrays for native functions: their addresses, and buffers that are reused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Address = Callable[[NDArray[Any]], int]


def real_address(array: NDArray[Any]) -> int:
    """The address of an array for compiled code."""
    address: int = array.ctypes.data
    return address


class Spare:
    """Buffers to reuse: fresh pages cost as much as writing into them. Several threads may use them."""

    def __init__(self) -> None:
        self._rooms: list[NDArray[np.uint8]] = []

    def room(self, size: int) -> NDArray[np.uint8]:
        """At least this many bytes, the caller's until it gives them back."""
        try:
            spare = self._rooms.pop()
        except IndexError:
            spare = np.empty(0, np.uint8)
        return spare if len(spare) >= size else np.empty(size, np.uint8)

    def give_back(self, room: NDArray[np.uint8]) -> None:
        """Make the bytes available again."""
        self._rooms.append(room)
