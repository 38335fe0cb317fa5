"""`Alarm`: wakes a coordinator when its next timer is due."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.broker.coordination.timers import NEVER
from penstock.broker.requests.purgatory import Wait

if TYPE_CHECKING:
    from penstock.broker.requests.purgatory import DelayedOperation, Purgatory


class Alarm:
    """The alarm of one coordinator. It calls `wake` at the time that was set; `wake` sets the next time."""

    def __init__(self, purgatory: Purgatory, wake: Callable[[], None]) -> None:
        self._purgatory = purgatory
        self._wake = wake
        self._waiting: DelayedOperation | None = None

    def set(self, deadline: float | None) -> None:
        """Wake the coordinator at `deadline`, in seconds of the monotonic clock, or earlier.

        None and `NEVER` change nothing. An alarm that was set for an earlier time stays as it is.
        """
        waiting = self._waiting
        if deadline is None or deadline == NEVER:
            return
        if waiting is not None:
            if waiting.is_waiting and waiting.deadline <= deadline:
                return
            self._purgatory.cancel(waiting)
        self._waiting = self._purgatory.park(Wait((), deadline), self._went_off)

    def _went_off(self) -> None:
        self._waiting = None
        self._wake()
