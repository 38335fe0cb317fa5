"""Checks of answers, which every call of the client makes: each entry that was asked for must be there.

An answer that leaves something out, or contradicts the question, is a failed attempt like any other: it is
tried again until the time allowed is over. Nothing that was left out may count as done, or as not there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TypeVar

from penstock.errors import ProtocolViolationError

T = TypeVar("T")


def left_out(broker: object, what: object, api: str) -> ProtocolViolationError:
    """Return the error for a part of the question that has no answer."""
    return ProtocolViolationError(f"broker {broker} left {what} out of its answer to {api}")


def check_complete(
    asked: Iterable[object], answered: Container[object], broker: object, api: str, kind: str = "partition"
) -> None:
    """Check that everything that was asked for is answered.

    Raises:
        ProtocolViolationError: something is left out; the message names the first.
    """
    for one in asked:
        if one not in answered:
            raise left_out(broker, f"{kind} {one}", api)


def only(answers: Sequence[T], broker: object, api: str) -> T:
    """Return the one entry of the response to a request with one entry.

    Raises:
        ProtocolViolationError: there is none, or more than one.
    """
    if len(answers) != 1:
        raise ProtocolViolationError(f"broker {broker} gave {len(answers)} answers to one {api}")
    return answers[0]
