"""The record that consumers return: the tuple of `penstock.model`, which also reads CloudEvents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from penstock.common.hints import with_hints
from penstock.model import K, V
from penstock.model import Record as PlainRecord

if TYPE_CHECKING:
    from penstock.cloudevents.read_record import Outcome


@with_hints("Record", leave=("__new__",))
class Record(PlainRecord[K, V]):
    """One record of a topic. `timestamp` is in milliseconds since 1970, UTC.

    A tuple of topic, partition, offset, timestamp, timestamp_type, key, value and headers. Key and value are
    bytes, or what the deserializers of the consumer return, or None: ``Record[str, dict]``.
    """

    __slots__ = ()

    @property
    def event(self) -> Outcome:
        """The CloudEvent that the record carries; `NotAnEvent` or `InvalidEvent` where it carries none.

        Never raises, unless a deserializer has made something else than bytes or text of key or value.
        Decoded at each access, in the strict profile;
        `penstock.cloudevents.from_message(record, ...)` takes options.
        """
        from penstock.cloudevents.read_record import from_record  # most records are no events

        key: Any = self.key
        value: Any = self.value
        return from_record(key, value, self.headers)


@with_hints("ShareRecord", leave=("__new__",))
class ShareRecord(Record[K, V]):
    """One record of a topic, locked for a share consumer until it is acknowledged, or its lock runs out.

    The tuple of `penstock.Record`. `delivery_count` is how often it was delivered, this time included.
    """

    # Instances have a dictionary: a tuple of nine would not be the tuple that programs unpack.
    delivery_count: int = 1


@with_hints("records", leave=("__init__",))
class Records(list[Record[K, V]], Generic[K, V]):
    """What `poll` returns: a list of records, which says so where one record or a mapping is expected."""

    __slots__ = ()
