"""Retries: the reaction to each error, delays, and reports of the failures that clients are retrying.

An incomplete response is a failed attempt like any other: a missing entry must not count as success, or as
"does not exist". Clients record the failures that they retry in `Troubles`. An `Observer`, in another thread,
reads these failures, and detects requests that have no response yet. Only `Troubles` reads the clock; the
other functions have the time as an argument.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from penstock.errors import (
    DecodeError,
    KafkaError,
    NetworkError,
    PenstockError,
    ProtocolViolationError,
    RequestTimeoutError,
)

if TYPE_CHECKING:
    from penstock.client.addresses import Address

T = TypeVar("T")

JITTER = 0.2
"""The fraction by which delays vary at random in both directions, so that clients do not retry together
(KIP-144)."""

PASSING_S = 3.0
"""The time in seconds after which a failure that was not repeated counts as over. Attempts are at most 1 s
apart."""

UNREACHABLE_S = 15.0
"""The time in seconds after which the failure of an address counts as over. Attempts are
``reconnect.backoff.max.ms`` apart."""

ENTRIES_MAX = 1_000
"""The number of failures in `Troubles` above which those that are over are removed: the metadata could have
new brokers again and again.
"""


class Backoff:
    """Delays that double from `initial_ms` to `max_ms`, with a random 20 per cent up or down."""

    def __init__(self, initial_ms: float, max_ms: float) -> None:
        self.initial_ms = initial_ms
        self.max_ms = max(initial_ms, max_ms)

    def seconds(self, attempt: int, dice: Callable[[], float]) -> float:
        """Return the delay after failure number `attempt` (from 0). `dice` returns numbers in [0, 1)."""
        delay_ms = min(self.max_ms, self.initial_ms * 2.0 ** min(attempt, 30))
        return delay_ms * (1 - JITTER + 2 * JITTER * dice()) / 1000


class RetryVerdict(Enum):
    """The reaction to an error: give up, try again, or refresh metadata and try again."""

    FATAL = "give up"
    RETRY = "ask the same broker again later"
    REFRESH = "ask for metadata, then try again"


REFRESH_CODES = frozenset((3, 5, 6, 9, 13, 56, 72, 74, 80, 83, 84, 100, 103))
"""The error codes after which metadata may be out of date, so that the client refreshes them."""


def judge(error: BaseException) -> RetryVerdict:
    """Return the reaction to `error`: give up, try again, or refresh metadata and try again."""
    if isinstance(error, KafkaError):
        if not error.retriable:
            return RetryVerdict.FATAL
        return RetryVerdict.REFRESH if error.code in REFRESH_CODES else RetryVerdict.RETRY
    if isinstance(error, ProtocolViolationError):
        return RetryVerdict.REFRESH
    if isinstance(error, DecodeError):
        return RetryVerdict.FATAL
    if isinstance(error, (NetworkError, RequestTimeoutError)):
        return RetryVerdict.REFRESH
    return RetryVerdict.FATAL


def timed_out(what: str, timeout_ms: float, cause: BaseException | None) -> PenstockError:
    """Return the exception for an action that did not succeed in time, with the last error as its cause."""
    because = f"; the last obstacle: {cause}" if cause is not None else ""
    error = RequestTimeoutError(f"{what} did not succeed within {timeout_ms / 1000:g} s{because}")
    error.__cause__ = cause
    return error


def left_out(broker: object, what: object, api: str) -> ProtocolViolationError:
    """Return the exception for a response that lacks a requested entry, such as a partition."""
    return ProtocolViolationError(f"broker {broker} left {what} out of its answer to {api}")


def check_complete(
    asked: Iterable[object], answered: Container[object], broker: object, api: str, kind: str = "partition"
) -> None:
    """Check that a response has every entry that the request asked for.

    Raises:
        ProtocolViolationError: an entry is left out; the message names the first.
    """
    for one in asked:
        if one not in answered:
            raise left_out(broker, f"{kind} {one}", api)


def only(answers: Sequence[T], broker: object, api: str) -> T:
    """Return the one entry of the response to a request with one entry.

    Raises:
        ProtocolViolationError: the response has no entry, or more than one.
    """
    if len(answers) != 1:
        raise ProtocolViolationError(f"broker {broker} gave {len(answers)} answers to one {api}")
    return answers[0]


class Obstacle(NamedTuple):
    """A failure or wait of a client as text for a progress message, and its start in monotonic seconds."""

    text: str
    since: float
    is_effect: bool = False
    """True if this failure may only be the effect of an unreachable broker."""


class Troubles:
    """The failures that one client is retrying, by broker address or name of the action.

    An `Observer` reads them to report progress. Only the client's event loop adds and removes entries.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[str | Address, tuple[float, float, str]] = {}

    def note(self, what: str | Address, error: BaseException, valid_s: float = PASSING_S) -> None:
        """Record that `what` has failed with `error`. The failure counts as over after `valid_s` seconds.

        `what` is a broker's address, or the name of an action.
        """
        now = time.monotonic()
        if len(self._entries) >= ENTRIES_MAX:
            self._entries = {each: entry for each, entry in self._entries.items() if entry[1] > now}
        since, until, _ = self._entries.get(what, (now, 0.0, ""))
        self._entries[what] = (since if until > now else now, now + valid_s, str(error))

    def end(self, what: str | Address) -> None:
        """Remove the entry of `what`, which has succeeded: a broker's address, or the name of an action."""
        self._entries.pop(what, None)

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()

    def present(self, now: float) -> Iterator[Obstacle]:
        """Yield the failures that still hold at the monotonic time `now`. Any thread may call this method."""
        for what, (since, until, text) in list(self._entries.items()):
            if until > now:
                yield Obstacle(f"{text}; trying again", since, is_effect=isinstance(what, str))


class ObservedConnection(Protocol):
    """The interface of a connection that an `Observer` reads from another thread."""

    @property
    def address(self) -> object:
        """The address of the broker."""
        ...

    def first_due(self) -> tuple[int, str] | None:
        """Return correlation id and API name of the oldest request in flight, or None."""
        ...


class ObservedClient(Protocol):
    """The interface of a client that an `Observer` reads from another thread."""

    troubles: Troubles

    def connections(self) -> Sequence[ObservedConnection]:
        """Return the open connections."""
        ...

    def addresses_opening(self) -> Sequence[Address]:
        """Return the addresses to which connections are being opened."""
        ...


_clients: weakref.WeakSet[ObservedClient] = weakref.WeakSet()


def register(client: ObservedClient) -> None:
    """Include `client` in the clients that every `Observer` checks, as long as `client` exists."""
    _clients.add(client)


class Observer:
    """Finds out what the clients of this process wait for, so that a program can report it.

    One thread calls `look` at intervals.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, float] = {}
        """The waits in progress (requests in flight, connections being opened), each with the time it was
        first seen."""

    def look(self, now: float) -> Obstacle | None:
        """Return the failure or wait that has lasted longest at monotonic time `now` (seconds), or None."""
        found: list[Obstacle] = []
        under_way: dict[Hashable, str] = {}
        for client in _copy(_clients):
            found += client.troubles.present(now)
            for connection in client.connections():
                due = connection.first_due()
                if due is not None:
                    under_way[id(connection), due[0]] = f"{connection.address} has not answered {due[1]}"
            for address in client.addresses_opening():
                under_way[address] = f"connecting to {address}"
        self._seen = {what: self._seen.get(what, now) for what in under_way}
        found += [Obstacle(text, self._seen[what]) for what, text in under_way.items()]
        return min(found, key=lambda one: (one.is_effect, one.since), default=None)


def _copy(clients: Iterable[ObservedClient]) -> list[ObservedClient]:
    for _ in range(10):
        try:
            return list(clients)
        except RuntimeError:  # another thread has just made a client
            continue
    return []
