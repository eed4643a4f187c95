"""Which shares of the transactions of a ticket a worker takes, and in which order: a pure function of numbers.

A share has the transactions of the rows of some hashes. Under every placement each share is some worker's, so all of
them are done, and the rows of the query do not depend on which it is.
"""

from __future__ import annotations

from collections.abc import Sequence


def homes_of(workers: int, sockets: int) -> tuple[int, ...]:
    """The socket of each worker: neighbours are on one, and sockets have as many as each other, or one more."""
    return tuple(worker * sockets // workers for worker in range(workers))


def shares_of(placement: str, worker: int, homes: Sequence[int], count: int) -> tuple[int, ...]:
    """The shares, of so many, that the worker looks at, the first one first. homes: the socket of each worker."""
    owners = [share * len(homes) // count for share in range(count)]
    own = [share for share in range(count) if owners[share] == worker]
    turned = [(own[0] + turn) % count for turn in range(count)]
    match placement:
        case "shared_nothing":
            return tuple(own)
        case "shared_everything":
            return tuple(range(count))
        case "per_socket":
            return tuple(sorted(turned, key=lambda share: homes[owners[share]] != homes[worker]))
    return tuple(turned)
