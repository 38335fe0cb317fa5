"""The arguments of all readers of topics and logs, and their checks: topics, bounds, columns, keys."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from operator import index
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

from penstock.client.arguments import (
    column_names,
    flag,
    one_of,
    partition_numbers,
    topic_name,
    topics_or_pattern,
    whole,
)
from penstock.client.config import Partitioner
from penstock.client.fetch.cursors import ISOLATION_LEVELS
from penstock.client.produce.partitioner import PARTITIONERS
from penstock.errors import ConfigError
from penstock.model import COLUMN_NAMES, EARLIEST, LATEST
from penstock.moments import is_duration, moment_ms

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.options import ConsumerOptions, PartitionerName
    from penstock.registry.client import Finder
    from penstock.registry.dead_letters import DeadLetters
    from penstock.registry.schemas import Schema

Point = str | int | datetime | date | timedelta
"""``"earliest"``, ``"latest"``, an offset, a time (``"2026-01-31T12:00:00Z"``, a datetime or date), or a
duration before now (``"1h"``, a timedelta).
"""

Bound = Point | Mapping[int, Point]
"""A `Point` for all partitions, or a mapping of partition numbers to points."""

Last = int | str | timedelta
"""The last part of each partition to read: a number of records, or a duration before now such as "1h"."""

KnownPoint = str | int | datetime
KnownBound = KnownPoint | Mapping[int, KnownPoint]
"""A checked bound: ``"earliest"``, ``"latest"``, an offset of 0 or more, a datetime; or one per partition."""

Topics = str | re.Pattern[str] | Iterable[str]
"""The name of a topic, several names, or a pattern that fits whole names: compiled, or text after ``^``."""


class ScanOptions(TypedDict, total=False):
    """The keyword arguments of scans with and without `follow`, as a type; see `penstock.scan_topic`."""

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
"""The serialization format of a topic's keys or values."""


class DecodingScanOptions(ScanOptions, total=False):
    """The keyword arguments of scans that decode keys or values, as a type; see `penstock.scan_topic`."""

    value: ValueFormat | None
    key_format: ValueFormat | None
    registry: str | Mapping[str, object] | Finder | None
    schema: str | Schema | None
    message: str | None
    dead_letters: DeadLetters | None


_NAMES = {"earliest": "earliest", "latest": "latest", EARLIEST: "earliest", LATEST: "latest"}


class Bounds(NamedTuple):
    """Checked bounds of a read. If `last` is set, a read of a partition starts `last` offsets before its end.

    `limit` is the maximum number of records to return; None means no limit.
    """

    start: KnownBound
    end: KnownBound
    last: int | None
    limit: int | None


@dataclass(frozen=True)
class ReadSpec:
    """The specification of a read: the topics, partitions, bounds, columns and key."""

    names: tuple[str, ...]
    """Topic names in the order given; empty if there is a pattern, or for the only topic of a directory."""
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
        """Return the checked arguments of a call; `needs_zones` refuses datetimes without a zone.

        Raises:
            ConfigError: an argument is wrong, or two contradict each other; the message names them.
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
        """The text that names the topics in messages, such as "topic orders" or "topics a, b"."""
        if self.pattern is not None:
            return f"topics {self.pattern.pattern}"
        return f"topic {self.names[0]}" if len(self.names) == 1 else f"topics {', '.join(self.names)}"

    @property
    def decoded(self) -> tuple[str, ...]:
        """The columns to decode: the requested ones, and the key if records are chosen by it."""
        is_needed = self.key is not None and "key" not in self.columns
        return (*self.columns, "key") if is_needed else self.columns

    @property
    def may_be_small(self) -> bool:
        """True if there is a limit and no key, so that at most `limit` records must be decoded."""
        return self.bounds.limit is not None and self.key is None

    def numbers_of(self, topic: str, known: Collection[int]) -> list[int]:
        """Return the numbers of the partitions to read of a topic; `known` has the topic's partitions.

        Raises:
            ConfigError: the partitioner returns a partition that does not exist.
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
        """Return the rows of a decoded batch with the requested key, in the requested columns."""
        if self.key is None:
            return batch
        import pyarrow
        import pyarrow.compute

        keys = batch.column("key")
        rows = batch.filter(pyarrow.compute.equal(keys, pyarrow.scalar(self.key, keys.type)))
        return rows.select(list(self.columns))


class RowLimit:
    """Cuts a sequence of batches after `limit` rows in all; None means no limit."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit

    def is_reached(self) -> bool:
        """Return True if as many rows as the limit allows have been taken."""
        return self._left == 0

    def cut(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Count the rows of a batch; return the batch without the rows that exceed the limit."""
        if self._left is None:
            return batch
        taken = batch if batch.num_rows <= self._left else batch.slice(0, self._left)
        self._left -= taken.num_rows
        return taken


def topic_given(topic: Topics) -> Topics:
    """Return `topic`, for readers that require one.

    Raises:
        ConfigError: `topic` is None.
    """
    return topic_name(topic) if topic is None else topic


def _topics(topic: Topics) -> tuple[tuple[str, ...], re.Pattern[str] | None]:
    """Return (names, None) or ((), pattern) for the first argument of a reader."""
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


def checked_bounds(
    start: Bound,
    end: Bound,
    last: Last | None = None,
    limit: int | None = None,
    *,
    needs_zones: bool = False,
) -> Bounds:
    """Return checked bounds, durations converted to times; `needs_zones` refuses datetimes without a zone.

    Raises:
        ConfigError: an argument is not a bound, or `start` and `last` are both given.
    """
    now_ms = time.time_ns() // 1_000_000
    checked_limit = None if limit is None else _count(limit, "limit")
    count: int | None = None
    if last is not None:
        if start != "earliest":
            raise ConfigError(f"start is {start!r} and last is {last!r}: give one of them")
        if isinstance(last, (str, timedelta)):
            text = last if isinstance(last, timedelta) or is_duration(last) else None
            if text is None:
                raise ConfigError(
                    f"last is {last!r}: a number of records or a duration is needed, as 100 or '1h'"
                )
            start = _at(text, "last", now_ms)
        else:
            count = _count(last, "last", " or a duration such as '1h'")
    return Bounds(
        _checked(start, "start", now_ms, needs_zones), _checked(end, "end", now_ms, needs_zones),
        count, checked_limit,
    )  # fmt: skip


def _count(value: object, what: str, otherwise: str = "") -> int:
    try:
        count = whole(value, what)
    except ConfigError:
        count = -1
    if count < 0:
        raise ConfigError(f"{what} is {value!r}: a number of records{otherwise} is needed")
    return count


def _checked(bound: Bound, which: str, now_ms: int, needs_zones: bool) -> KnownBound:
    if isinstance(bound, Mapping):
        return {
            whole(partition, f"a partition of {which}"): _point(point, which, now_ms, needs_zones)
            for partition, point in bound.items()
        }
    return _point(bound, which, now_ms, needs_zones)


def _point(point: object, which: str, now_ms: int, needs_zones: bool) -> KnownPoint:
    if isinstance(point, datetime) and needs_zones and point.tzinfo is None:
        raise ConfigError(f"{which} is a time without a time zone; add one, for example tzinfo=timezone.utc")
    if isinstance(point, (date, timedelta)):
        return _at(point, which, now_ms)
    if isinstance(point, str):
        return point if point in _NAMES else _at(point, which, now_ms)
    try:
        offset = -3 if isinstance(point, bool) else index(point)  # type: ignore[arg-type]
    except TypeError:
        offset = -3
    if offset >= 0:
        return offset
    if offset in _NAMES:
        return _NAMES[offset]
    raise ConfigError(
        f"{which} is {point!r}, which is no position in a topic: earliest, latest, an offset, a time or "
        "a duration"
    )


def _at(point: str | date | timedelta, which: str, now_ms: int) -> datetime:
    """Return the time `point` in whole milliseconds; a duration `point` means that long before now."""
    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment_ms(point, now_ms))
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{which} is {point!r}, which is no position in a topic: earliest, latest, an offset, a time or "
            f"a duration ({error})"
        ) from None
    return found
