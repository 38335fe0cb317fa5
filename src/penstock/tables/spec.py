"""What the readers of topics and logs are asked for, checked once for all of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

from penstock.client.arguments import (
    column_names,
    flag,
    one_of,
    partition_numbers,
    topic_name,
    topics_or_pattern,
)
from penstock.client.config import Partitioner
from penstock.client.fetch.cursors import ISOLATION_LEVELS
from penstock.client.produce.partitioner import PARTITIONERS
from penstock.errors import ConfigError
from penstock.model import COLUMN_NAMES
from penstock.tables.bounds import Bound, Bounds, Last, checked_bounds

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.options import ConsumerOptions, PartitionerName
    from penstock.registry.client import Finder
    from penstock.registry.dead_letters import DeadLetters
    from penstock.registry.schemas import Schema

Topics = str | re.Pattern[str] | Iterable[str]
"""The name of a topic, several names, or a pattern that fits whole names: compiled, or text after ``^``."""


class ScanOptions(TypedDict, total=False):
    """The arguments of a scan that mean the same whether it ends or follows; see `penstock.scan_topic`."""

    start: Bound
    last: Last | None
    limit: int | None
    columns: Sequence[str] | None
    partitions: int | Collection[int] | None
    key: bytes | None
    partitioner: PartitionerName | Partitioner | None
    isolation: str
    batch_bytes: int
    config: ConsumerOptions | Mapping[str, object] | None


ValueFormat = Literal["avro", "json", "protobuf"]
"""What keys and values of a topic are written in."""


class DecodingScanOptions(ScanOptions, total=False):
    """The arguments of a scan that decodes keys or values; see `penstock.scan_topic`."""

    value: ValueFormat | None
    key_format: ValueFormat | None
    registry: str | Mapping[str, object] | Finder | None
    schema: str | Schema | None
    message: str | None
    dead_letters: DeadLetters | None


@dataclass(frozen=True)
class ReadSpec:
    """What is to be read: of which topics, between which bounds, in which columns, with which key."""

    names: tuple[str, ...]
    """In the order given; empty where there is a pattern, or where a log has but one topic."""
    pattern: re.Pattern[str] | None
    columns: tuple[str, ...]
    bounds: Bounds
    partitions: tuple[int, ...] | None
    isolation: str
    key: bytes | None
    partitioner: Partitioner | None
    is_following: bool

    @classmethod
    def checked(
        cls,
        topic: Topics | None,
        *,
        start: Bound = "earliest",
        end: Bound = "latest",
        last: Last | None = None,
        limit: int | None = None,
        columns: Sequence[str] | None = None,
        partitions: int | Iterable[int] | None = None,
        key: bytes | None = None,
        partitioner: str | Partitioner | None = None,
        isolation: str = "read_uncommitted",
        follow: bool = False,
        needs_zones: bool = False,
    ) -> ReadSpec:
        """Check the arguments of a call; `needs_zones` refuses datetimes without a zone.

        Raises:
            ConfigError: one of them is wrong, or two contradict each other; the message names them.
        """
        names, pattern = ((), None) if topic is None else _topics(topic)
        if key is not None and not isinstance(key, bytes):
            raise ConfigError(f"key is {key!r}: the bytes of a key are needed, as b'user-7'")
        if flag(follow, "follow") and end != "latest":
            raise ConfigError(f"a scan that follows has no end, and end is {end!r}: give limit, or close it")
        if partitioner is not None and (key is None or partitions is not None):
            raise ConfigError(
                "partitioner says in which partition a key is: give key as well, and leave out partitions"
            )
        one_of(*ISOLATION_LEVELS)(isolation, "isolation")
        return cls(
            tuple(dict.fromkeys(names)),
            pattern,
            COLUMN_NAMES if columns is None else column_names(columns, COLUMN_NAMES),
            checked_bounds(start, end, last, limit, needs_zones=needs_zones),
            None if partitions is None else tuple(sorted(set(partition_numbers(partitions)))),
            isolation,
            key,
            None if partitioner is None else _partitioner(partitioner),
            follow,
        )

    @property
    def title(self) -> str:
        """How messages name what is read."""
        if self.pattern is not None:
            return f"topics {self.pattern.pattern}"
        return f"topic {self.names[0]}" if len(self.names) == 1 else f"topics {', '.join(self.names)}"

    @property
    def decoded(self) -> tuple[str, ...]:
        """The columns to decode: those asked for, and the key where records are chosen by it."""
        is_needed = self.key is not None and "key" not in self.columns
        return (*self.columns, "key") if is_needed else self.columns

    @property
    def may_be_small(self) -> bool:
        """Whether about as many records as the limit says are looked at."""
        return self.bounds.limit is not None and self.key is None

    def numbers_of(self, topic: str, known: Collection[int]) -> list[int]:
        """Return the partitions to read of a topic that has those of `known`.

        Raises:
            ConfigError: the partitioner answers with none that there is.
        """
        if self.partitions is not None:
            return list(self.partitions)
        number = None if self.partitioner is None else self.partitioner(self.key, len(known))
        if number is None:
            return sorted(known)
        if number not in known:
            raise ConfigError(f"partitioner says partition {number!r}; topic {topic!r} has {len(known)}")
        return [number]

    def chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch that are asked for, in the columns that are; of the decoded ones."""
        if self.key is None:
            return batch
        import pyarrow
        import pyarrow.compute

        keys = batch.column("key")
        rows = batch.filter(pyarrow.compute.equal(keys, pyarrow.scalar(self.key, keys.type)))
        return rows.select(list(self.columns))


class RowLimit:
    """Cuts batches where so many rows have come; never, where `limit` is None."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit

    def is_reached(self) -> bool:
        """Return whether nothing more is wanted."""
        return self._left == 0

    def cut(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch that are still wanted, which are counted."""
        if self._left is None:
            return batch
        taken = batch if batch.num_rows <= self._left else batch.slice(0, self._left)
        self._left -= taken.num_rows
        return taken


def topic_given(topic: Topics) -> Topics:
    """Return the first argument of a reader that has to have one.

    Raises:
        ConfigError: it is None.
    """
    return topic_name(topic) if topic is None else topic


def _topics(topic: Topics) -> tuple[tuple[str, ...], re.Pattern[str] | None]:
    """Return the names, or the pattern, that the first argument of a reader says."""
    if isinstance(topic, re.Pattern):
        if isinstance(topic.pattern, str):
            return (), topic
    elif not isinstance(topic, (str, bytes)) and isinstance(topic, Iterable):
        names = tuple(map(topic_name, topic))
        if not names:
            raise ConfigError("no topic is named: the list is empty")
        return topics_or_pattern(names, "a reader")
    return topics_or_pattern(topic_name(topic), "a reader")


def _partitioner(value: str | Partitioner) -> Partitioner:
    return value if callable(value) else PARTITIONERS[one_of(*PARTITIONERS)(value, "partitioner")]
