"""The bounds of a read: check those that a caller gives, and resolve them to offsets of partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from operator import index
from typing import NamedTuple

from penstock.client.arguments import whole
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.metadata import no_such_partition
from penstock.client.fetch.offsets import fetch_known_offsets, fetch_offsets
from penstock.clock import SystemClock
from penstock.errors import ConfigError, ProtocolViolationError
from penstock.model import EARLIEST, LATEST, OffsetRange, TopicPartition
from penstock.moments import is_duration, moment_ms

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

_NAMES = {"earliest": "earliest", "latest": "latest", EARLIEST: "earliest", LATEST: "latest"}


class Bounds(NamedTuple):
    """Checked bounds of a read. If `last` is set, each partition is read from `last` offsets before its end.

    `limit` is the most records to return.
    """

    start: KnownBound
    end: KnownBound
    last: int | None
    limit: int | None


class ReadPlan(NamedTuple):
    """The offset ranges to read, the topic ids, and the start offset of every partition, also of empty ones.

    Retention may remove the first records of a partition during the read. For the partitions in
    `may_begin_later`, whose start was not given as an offset, reading continues with the remaining records.
    """

    ranges: list[OffsetRange]
    may_begin_later: frozenset[TopicPartition]
    topic_ids: Mapping[str, bytes]
    starts: Mapping[TopicPartition, int]

    @property
    def offsets(self) -> int:
        """The number of offsets in the ranges: an upper bound of the number of records."""
        return sum(wanted.size for wanted in self.ranges)


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
    now_ms = SystemClock().now_ms()
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
    """Return the time `point`, or the time that is the duration `point` before now, in whole milliseconds."""
    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment_ms(point, now_ms))
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{which} is {point!r}, which is no position in a topic: earliest, latest, an offset, a time or "
            f"a duration ({error})"
        ) from None
    return found


async def plan_reading(
    client: AsyncClient,
    topics: Sequence[str],
    bounds: Bounds,
    numbers_of: Callable[[str, Collection[int]], list[int]],
    isolation: str,
) -> ReadPlan:
    """Return the offset ranges to read: what the topics contain now between two bounds.

    `numbers_of(topic, existing partitions)` returns the numbers of the partitions to read.

    Raises:
        ConfigError: a topic does not have a partition that `numbers_of` returned.
        KafkaError: a topic does not exist.
        NetworkError, RequestTimeoutError: no broker answers.
        ProtocolViolationError: a broker answers that a log ends before it begins.
    """
    what = f"getting to know topic {', '.join(map(repr, topics))}"
    infos = await client.retrying(what, lambda: client.topics_of(topics))
    tps: list[TopicPartition] = []
    for topic in topics:
        known = infos[topic].partitions
        chosen = numbers_of(topic, known)
        for number in chosen:
            if number not in known:
                raise no_such_partition(TopicPartition(topic, number), len(known))
        for which, bound in (("start", bounds.start), ("end", bounds.end)):
            check_partitions(which, bound, chosen)
        tps += [TopicPartition(topic, number) for number in chosen]
    first = await fetch_known_offsets(client, tps, EARLIEST)
    last = await fetch_known_offsets(client, tps, LATEST, isolation=isolation)
    for tp in tps:
        if first[tp] > last[tp]:
            broker = client.address_of(await client.leader(tp))
            raise ProtocolViolationError(
                f"broker {broker} says that {tp} begins at {first[tp]} and ends at {last[tp]}"
            )
    ends = await _offsets_at(client, tps, bounds.end, "latest", first, last)
    if bounds.last is None:
        starts = await _offsets_at(client, tps, bounds.start, "earliest", first, last)
    else:
        starts = {tp: max(first[tp], ends[tp] - bounds.last) for tp in tps}
    return ReadPlan(
        [OffsetRange(*tp, starts[tp], ends[tp]) for tp in tps if starts[tp] < ends[tp]],
        frozenset(tp for tp in tps if not isinstance(point_of(bounds.start, tp.partition, "earliest"), int)),
        {topic: infos[topic].topic_id for topic in topics},
        starts,
    )


def check_partitions(which: str, bound: KnownBound, partitions: Collection[int]) -> None:
    """Raise ConfigError if a bound names a partition that is not read."""
    for partition in bound if isinstance(bound, Mapping) else ():
        if partition not in partitions:
            raise ConfigError(f"{which} names partition {partition}, which is not among those read")


def point_of(bound: KnownBound, partition: int, default: KnownPoint) -> KnownPoint:
    """Return the bound of one partition; `default` if `bound` is a mapping without it."""
    return bound.get(partition, default) if isinstance(bound, Mapping) else bound


async def _offsets_at(
    client: AsyncClient,
    tps: Sequence[TopicPartition],
    bound: KnownBound,
    default: str,
    first: Mapping[TopicPartition, int],
    last: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Resolve a bound to an offset within the log of each partition, for example by ListOffsets for a time.

    `default` ("earliest" or "latest") applies to partitions that are missing in a mapping.
    """
    known: dict[TopicPartition, int] = {}
    times: dict[TopicPartition, int] = {}
    for tp in tps:
        point = point_of(bound, tp.partition, default)
        if isinstance(point, datetime):
            times[tp] = moment_ms(point, 0)
        elif isinstance(point, str):
            known[tp] = first[tp] if point == "earliest" else last[tp]
        else:
            known[tp] = min(max(point, first[tp]), last[tp])
    for tp, found in (await fetch_offsets(client, times)).items() if times else ():
        known[tp] = last[tp] if found is None else min(found.offset, last[tp])
    return known
