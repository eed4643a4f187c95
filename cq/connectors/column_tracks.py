"""Decode the columns of one file in parallel: tracks whose items make up numbered steps, advanced by several threads.

Roles     the reader, who iterates over steps, and `helpers` threads; all of them advance tracks.
Shared    all under `_changed`: for every track: ready, the items not taken yet; coming, the step it makes next; busy,
          whether a thread is advancing it. taken, the steps the reader has taken; stopped.
I1        a track is advanced by one thread at a time, in order.                    tests: test_tracks_stay_in_step
I2        no item is made STEPS_AHEAD steps or more before the reader, but for      tests: test_no_track_runs_away
          MOST_APART items of tracks that are not due, less than MOST_AHEAD before. tests: test_track_of_a_later_stretch
Progress  the reader advances what it needs itself unless another thread is at it, so that no helper has to run;
          a helper waits only while every track is busy, at its end or as far ahead as it may be.
Order     the lock of `_changed` orders all shared words. Without it a thread takes the next item of a track: `busy`,
          set before the lock is released and reset when it is held again, keeps all others from that track. Waiters
          check their condition again after every notification.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import Generic, TypeVar

from cq.connectors.read_ahead import End
from cq.records import dataclass, field

T = TypeVar("T")

# Steps a track may be ahead of the reader. A slow column is overtaken by the others; with 2 they often wait for it,
# from 4 on nothing changes (three columns of a Parquet file, two threads).
STEPS_AHEAD = 4
# A slow column has a second track for every other run of row groups, begun while the first is in the run before. Row
# groups as most writers make them have 2 to 16 steps.
MOST_AHEAD = 20
MOST_APART = 16  # 8 MB of eight-byte values


@dataclass(slots=True)
class Track(Generic[T]):
    """Items for the steps `steps`, one for each; `steps` grows. place: which part of a step the items are.

    In every step, each place is filled by one track.
    """

    place: int
    steps: Iterator[int]
    items: Iterator[T]
    ready: deque[tuple[int, T | End]] = field(default_factory=deque, init=False)
    coming: int | None = field(init=False)
    busy: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.coming = next(self.steps, None)

    def first(self) -> int | None:
        """The step of the first item not taken yet; None at the end."""
        return self.ready[0][0] if self.ready else self.coming


class ColumnTracks(Generic[T]):
    """Iterates over steps: the items of each by their places. An error in a track is raised at its step.

    Of several errors at one step, the one at the first place is raised: thread timing decides nothing.
    """

    def __init__(self, tracks: Sequence[Track[T]], helpers: int, name: str) -> None:
        self._tracks = sorted(tracks, key=lambda track: track.place)
        self._taken = 0
        self._stopped = False
        self._changed = threading.Condition()
        self._helpers = [
            threading.Thread(target=self._help, name=f"cq-decode-{name}", daemon=True) for _ in range(helpers)
        ]

    def __iter__(self) -> Generator[list[T], None, None]:
        for helper in self._helpers:
            helper.start()
        try:
            while step := self._step():
                yield step
        finally:
            self._stop()

    def _step(self) -> list[T]:
        """The items of the next step; none at the end."""
        with self._changed:
            due = [track for track in self._tracks if track.first() == self._taken]
            while not all(track.ready for track in due):
                track = self._choice()
                if track is None:
                    self._changed.wait()
                else:
                    self._advance(track)
            items = [track.ready.popleft()[1] for track in due]
            self._taken += 1
            self._changed.notify_all()
        for item in items:
            if isinstance(item, End):
                assert item.error is not None
                raise item.error
        return [item for item in items if not isinstance(item, End)]

    def _choice(self) -> Track[T] | None:
        """The track furthest behind that may be advanced now."""
        near = self._taken + STEPS_AHEAD
        apart = sum(step >= near for track in self._tracks for step, _ in track.ready)
        limit = near if apart >= MOST_APART else self._taken + MOST_AHEAD
        chosen, least = None, limit
        for track in self._tracks:
            if track.coming is not None and not track.busy:
                may = near if track.first() == self._taken else limit
                if track.coming < min(may, least):
                    chosen, least = track, track.coming
        return chosen

    def _advance(self, track: Track[T]) -> None:
        """Make one more item of a track ready. Called with the lock held; releases it meanwhile."""
        step = track.coming
        assert step is not None
        track.busy = True
        self._changed.release()
        item: T | End
        try:
            item = next(track.items)
        except BaseException as e:  # passed to the reader, which raises it
            item = End(e)
        finally:
            self._changed.acquire()
        track.busy = False
        track.ready.append((step, item))
        track.coming = None if isinstance(item, End) else next(track.steps, None)
        self._changed.notify_all()

    def _help(self) -> None:
        with self._changed:
            while not self._stopped and any(track.coming is not None for track in self._tracks):
                track = self._choice()
                if track is None:
                    self._changed.wait()
                else:
                    self._advance(track)

    def _stop(self) -> None:
        """Stop the helpers and wait for them: nobody touches the tracks any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for helper in self._helpers:
            helper.join()
