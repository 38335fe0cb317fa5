"""The record that consumers return: the tuple of `penstock.model`, which also reads CloudEvents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model import Record as PlainRecord

if TYPE_CHECKING:
    from penstock.cloudevents.read_record import Outcome


class Record(PlainRecord):
    """One record of a topic. `timestamp` is in milliseconds since 1970, UTC.

    A tuple of topic, partition, offset, timestamp, timestamp_type, key, value and headers.
    """

    __slots__ = ()

    @property
    def event(self) -> Outcome:
        """The CloudEvent that the record carries; `NotAnEvent` or `InvalidEvent` where it carries none.

        Never raises. Decoded at each access, in the strict profile;
        `penstock.cloudevents.from_message(record, ...)` takes options.
        """
        from penstock.cloudevents.read_record import from_record  # most records are no events

        return from_record(self.key, self.value, self.headers)
