"""Records, partitions and columns: the types that every layer shares. No I/O, no heavy imports."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Generic, NamedTuple

from penstock.common.hints import with_hints
from penstock.headers import Header
from penstock.printable import printable

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from penstock.cloudevents.event import Event
    from penstock.cloudevents.outcome import InvalidEvent, NotAnEvent

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:
    # Defaults of type variables are for type checkers; Python has them from 3.13 on.
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

NO_TIMESTAMP = -1
"""The timestamp of a record that carries none (magic 0)."""

EARLIEST = -2
"""Stands for the first offset that is still in the partition's log, as in ListOffsets."""

LATEST = -1
"""Stands for the offset that the next record of the partition will get, as in ListOffsets."""

COLUMN_NAMES = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
"""The columns of a topic, named as Spark's Kafka source names them."""


class TimestampType(IntEnum):
    """The meaning of a record's timestamp (attribute bit 3 of a batch): CreateTime or LogAppendTime."""

    NONE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


@with_hints("TopicPartition")
class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return printable(f"{self.topic}-{self.partition}")


@with_hints("Record", leave=("__new__",))
class Record(NamedTuple, Generic[K, V]):
    """One record with its topic, partition and offset. `timestamp` is in milliseconds since 1970, UTC.

    A tuple and not a dataclass, because consumers make millions of them: a frozen dataclass takes four times
    as long to build. Key and value are bytes, or what the deserializers of a consumer return, or None:
    ``Record[str, dict]``.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: K | None
    value: V | None
    headers: Sequence[Header]

    @property
    def event(self) -> Event | NotAnEvent | InvalidEvent:
        """The CloudEvent that the record carries, or a `NotAnEvent` or `InvalidEvent` if it carries none.

        Never raises, unless a deserializer has returned a key or value that is neither bytes nor text. The
        event is decoded at each access, in the strict profile; `penstock.cloudevents.from_message(record,
        ...)` takes options.
        """
        # By its name: the room that reads events stands on records, and most records are no events.
        read_record = import_module("penstock.cloudevents.read_record")
        found: Event | NotAnEvent | InvalidEvent = read_record.from_record(self.key, self.value, self.headers)
        return found


@with_hints("ShareRecord", leave=("__new__",))
class ShareRecord(Record[K, V]):
    """A record that is locked for a share consumer until it is acknowledged, or its lock expires.

    It is a `penstock.Record` with one more attribute: `delivery_count` is the number of times that the record
    has been delivered, including this time.
    """

    # Instances have a dictionary: a tuple of nine would not be the tuple that programs unpack.
    delivery_count: int = 1


class OffsetRange(NamedTuple):
    """The records of one partition from `start` (inclusive) to `end` (exclusive)."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of offsets in the range. After compaction, the number of records may be smaller."""
        return self.end - self.start


@with_hints("RecordMetadata")
class RecordMetadata(NamedTuple):
    """The partition and offset of a produced record. `offset` is -1 if no acknowledgement was requested."""

    topic: str
    partition: int
    offset: int
    timestamp: int


def setting_text(value: object) -> str:
    """Return a setting's value as Kafka writes it: ``true`` for True, commas between items of a list."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)
