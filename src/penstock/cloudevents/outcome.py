"""The outcomes of reading a record that is not a valid event: `NotAnEvent` and `InvalidEvent`.

Reading a record has three outcomes: an `Event`, `NotAnEvent` (an ordinary record that makes no claim to be
one) and `InvalidEvent` (it claims to be one and breaks a rule). Rules are named by the identifiers of the
binding checklist in ``docs/reference/cloudevents.md``: K for the Kafka binding, C for the core, T for types,
J for the JSON format, A for Avro, R for Protobuf, P for partitioning, D for Penstock's decisions where the
specifications leave a case open.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import PenstockError
from penstock.printable import printable


class InvalidEventError(PenstockError, ValueError):
    """Raised if a CloudEvents rule is broken. `rule` names the rule, `reason` describes the mistake."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(rule, reason)
        self.rule = rule
        self.reason = reason

    def __str__(self) -> str:
        return printable(f"{self.rule}: {self.reason}")


def in_batch(error: InvalidEventError, before: int) -> InvalidEventError:
    """Return `error` with the number of the invalid event added; `before` events precede it in the batch."""
    return InvalidEventError(error.rule, f"event {before + 1} of the batch: {error.reason}")


class NotAnEvent(NamedTuple):
    """An ordinary Kafka record: nothing in it claims to be an event."""

    reason: str
    rule: str = "K16"

    def __str__(self) -> str:
        return printable(f"{self.rule}: not an event: {self.reason}")


class InvalidEvent(NamedTuple):
    """A record that claims to be an event and breaks a rule, or whose event format is not supported."""

    rule: str
    reason: str

    def __str__(self) -> str:
        return printable(f"{self.rule}: {self.reason}")


NO_CLAIM = NotAnEvent(
    "its content-type is no event format's, and none of ce_id, ce_source, ce_specversion, ce_type is there"
)
"""The most common `NotAnEvent`: no content type and no header of the record belongs to a CloudEvent."""


def shown(value: str | bytes) -> str:
    """Return a value of a record as text for an error message: escaped, and cut if it is long."""
    return repr(value) if len(value) <= 80 else f"{value[:80]!r}..."
