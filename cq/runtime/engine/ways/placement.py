"""Which shares of the transactions of a ticket a worker takes, and in which order: a pure function of numbers.

A share has the transactions of the rows with certain hashes. Under every placement each share belongs to some worker,
so all are done, and the rows of the query do not depend on the placement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from cq.entries import refuse
from cq.ways import PLACEMENTS


def homes_of(workers: int, sockets: int) -> tuple[int, ...]:
    """The socket of each worker: neighbours share one, and the sizes of sockets differ by at most one."""
    return tuple(worker * sockets // workers for worker in range(workers))


def shares_of(placement: str, worker: int, homes: Sequence[int], count: int) -> tuple[int, ...]:
    """The shares, of this many, that the worker visits, in order. homes: the socket of each worker."""
    owners = [share * len(homes) // count for share in range(count)]
    return ORDERS[placement](worker, owners, homes)


def _own(worker: int, owners: Sequence[int], homes: Sequence[int]) -> tuple[int, ...]:
    """The worker's own shares, and no others."""
    return tuple(share for share, owner in enumerate(owners) if owner == worker)


def _own_first(worker: int, owners: Sequence[int], homes: Sequence[int]) -> tuple[int, ...]:
    """All shares, from the worker's own on."""
    first = owners.index(worker)
    return (*range(first, len(owners)), *range(first))


def _all_alike(worker: int, owners: Sequence[int], homes: Sequence[int]) -> tuple[int, ...]:
    """All shares, in the same order for every worker."""
    return tuple(range(len(owners)))


def _socket_first(worker: int, owners: Sequence[int], homes: Sequence[int]) -> tuple[int, ...]:
    """The shares of the worker's socket, from its own on, then those of other sockets."""
    turned = _own_first(worker, owners, homes)
    return tuple(sorted(turned, key=lambda share: homes[owners[share]] != homes[worker]))


ORDERS: dict[str, Callable[[int, Sequence[int], Sequence[int]], tuple[int, ...]]] = {
    "stealing": _own_first,
    "shared_nothing": _own,
    "shared_everything": _all_alike,
    "per_socket": _socket_first,
}
"""By placement: the shares of a worker in order, from the owner of each share and the socket of each worker."""


def unordered(placements: Iterable[str]) -> Iterator[str]:
    """Placements that give no order."""
    yield from (f"placement {name} has no order of shares" for name in placements if name not in ORDERS)


refuse("placements", unordered(PLACEMENTS))
