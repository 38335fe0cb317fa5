"""Checks that a response has every entry that the request asked for.

A response that leaves out an entry, or contradicts the request, is a failed attempt like any other: the
client retries until the timeout. A missing entry must not count as success, or as "does not exist".
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TypeVar

from penstock.errors import ProtocolViolationError

T = TypeVar("T")


def left_out(broker: object, what: object, api: str) -> ProtocolViolationError:
    """Return the exception for an entry that a response leaves out."""
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
