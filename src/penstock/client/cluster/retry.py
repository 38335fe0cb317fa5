"""Retries: delays, deadlines, and the reaction to each error code.

The functions are pure: clock and random numbers are arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from penstock.errors import (
    DecodeError,
    KafkaError,
    NetworkError,
    PenstockError,
    ProtocolViolationError,
    RequestTimeoutError,
)

JITTER = 0.2
"""The fraction by which delays vary at random in both directions, so that clients do not retry together
(KIP-144)."""


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
"""The error codes after which metadata may be out of date (protocol table of error codes)."""


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
