"""Records, partitions and columns: the nouns that every layer shares. No I/O, nothing heavy to import."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Generic, NamedTuple

from penstock.common.hints import with_hints
from penstock.printable import printable

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:
    # Defaults of type variables are for type checkers; Python has them from 3.13 on.
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

Header = tuple[str, bytes | None]
"""One record header: name and value. Names may repeat; a value may be null."""

NO_TIMESTAMP = -1
"""The timestamp of a record that carries none (magic 0)."""

EARLIEST = -2
"""In place of an offset: the first that is still in the log, as in ListOffsets."""

LATEST = -1
"""In place of an offset: the one that the next record will get, as in ListOffsets."""

COLUMN_NAMES = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
"""The columns of a topic, named as Spark's Kafka source names them."""


class TimestampType(IntEnum):
    """What a record's timestamp means (attribute bit 3 of a batch)."""

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


class Record(NamedTuple, Generic[K, V]):
    """One record with its position in a topic. `timestamp` is in milliseconds since 1970, UTC.

    A tuple and not a dataclass, because consumers make millions of them: a frozen dataclass takes
    four times as long to build. What consumers return, and what `penstock.Record` names, is
    `penstock.client.record.Record`: the same tuple, which also reads CloudEvents. Its type arguments are the
    types of key and value, bytes by default.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: K | None
    value: V | None
    headers: Sequence[Header]


class OffsetRange(NamedTuple):
    """The records of one partition from `start` (inclusive) to `end` (exclusive)."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets are in it; there may be fewer records."""
        return self.end - self.start


@with_hints("RecordMetadata")
class RecordMetadata(NamedTuple):
    """Partition and offset of a produced record. `offset` is -1 where the broker was not asked to answer."""

    topic: str
    partition: int
    offset: int
    timestamp: int


def setting_text(value: object) -> str:
    """Return a setting as Kafka writes it: ``true`` for True, lists with commas."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)
