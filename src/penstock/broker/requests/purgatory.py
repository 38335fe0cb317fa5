"""Requests that wait for an event or a deadline: Kafka's DelayedOperationPurgatory.

A handler that cannot answer yet returns a `Wait`: the keys of the events that it waits for, and a deadline.
The request is parked under those keys. Code that causes an event calls `notify` with its key. `take_due`
returns the requests that have become due, and their handlers are called again. Fetch, JoinGroup and delayed
Produce requests use this. The module does no I/O: callers pass the time as `now`, in seconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any, final


@final
class Wait:
    """The value that a handler returns instead of a response if the request has to wait.

    `deadline` is in seconds of the monotonic clock. `amount` is the total that `notify` must report before
    the handler is called again: bytes for a Fetch with `min_bytes`, 1 if any event is enough. `answer`, if
    given, is called instead of the handler, and must return what a handler returns.
    """

    __slots__ = ("amount", "answer", "deadline", "keeps_request", "keys")

    def __init__(
        self,
        keys: Sequence[Hashable],
        deadline: float,
        amount: int = 1,
        answer: Callable[[], Any] | None = None,
    ) -> None:
        self.keys = keys
        self.deadline = deadline
        self.amount = amount
        self.answer = answer
        self.keeps_request = answer is None
        """True if the decoded request stays in memory while it waits."""


class DelayedOperation:
    """One waiting request or timer in the purgatory.

    `resume` is called once, when the request is due, unless the request is cancelled before.
    """

    __slots__ = ("deadline", "is_waiting", "keys", "missing", "resume")

    def __init__(self, wait: Wait, resume: Callable[[], None]) -> None:
        self.keys: Sequence[Hashable] = wait.keys
        self.deadline = wait.deadline
        self.missing = wait.amount
        self.resume: Callable[[], None] | None = resume
        self.is_waiting = True


class Purgatory:
    """The waiting requests and timers of one broker."""

    def __init__(self) -> None:
        self.waiting: dict[Hashable, dict[DelayedOperation, None]] = {}
        """A dict from key to the requests that wait for its events. `notify` ignores keys that are not in
        it."""
        self._deadlines: list[tuple[float, int, DelayedOperation]] = []
        self._ticket = count()
        self._due: list[DelayedOperation] = []
        self.has_due = False
        """True if a notification has made a request due. Passed deadlines do not set this."""
        self._waiting = 0
        self.earlier: Callable[[], None] = _ignore
        """A function to call when a newly parked request has the earliest deadline of all, to set a timer."""

    def __len__(self) -> int:
        return self._waiting

    def park(self, wait: Wait, resume: Callable[[], None]) -> DelayedOperation:
        """Keep a request until one of its keys is notified or its deadline has passed."""
        parked = DelayedOperation(wait, resume)
        for key in parked.keys:
            self.waiting.setdefault(key, {})[parked] = None
        self._waiting += 1
        if len(self._deadlines) > 2 * self._waiting + _SLACK:
            self._deadlines = [entry for entry in self._deadlines if entry[2].is_waiting]
            heapq.heapify(self._deadlines)
        heapq.heappush(self._deadlines, (parked.deadline, next(self._ticket), parked))
        if self._deadlines[0][2] is parked:
            self.earlier()
        return parked

    def notify(self, key: Hashable, amount: int = 1) -> None:
        """Count `amount` for `key`. Requests that have got the amount that they wait for become due."""
        waiting = self.waiting.get(key)
        if waiting is None:
            return
        for parked in list(waiting):
            parked.missing -= amount
            if parked.missing <= 0:
                self._leave(parked)
                self._due.append(parked)
                self.has_due = True

    def cancel(self, parked: DelayedOperation) -> None:
        """Drop a request whose connection has ended. Does nothing if the request has run already."""
        parked.resume = None
        if parked.is_waiting:
            self._leave(parked)

    def take_due(self, now: float) -> list[Callable[[], None]]:
        """Return the functions to call for requests due by notification, then for those due by `now`."""
        while self._deadlines and self._deadlines[0][0] <= now:
            parked = heapq.heappop(self._deadlines)[2]
            if parked.is_waiting:
                self._leave(parked)
                self._due.append(parked)
        due = [parked.resume for parked in self._due if parked.resume is not None]
        self._due, self.has_due = [], False  # only now, so that an exception above loses nothing
        return due

    def next_deadline(self) -> float | None:
        """Return the earliest deadline of the waiting requests, in seconds, or None if none waits."""
        while self._deadlines and not self._deadlines[0][2].is_waiting:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _leave(self, parked: DelayedOperation) -> None:
        parked.is_waiting = False
        self._waiting -= 1
        for key in parked.keys:
            waiting = self.waiting.get(key)
            if waiting is not None:
                waiting.pop(parked, None)
                if not waiting:
                    del self.waiting[key]
        # Its deadline may stay in the heap for a while; a request may wait for very many keys.
        parked.keys = ()


_SLACK = 64
"""The tolerated excess of the heap of deadlines over twice the number of waiting requests. Beyond it, the
heap is rebuilt."""


def _ignore() -> None:
    """Do nothing: the default of `Purgatory.earlier`."""
