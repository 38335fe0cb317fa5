"""Ranges of offsets, fetched and decoded into Arrow batches in bounded memory.

`read_topic`, `scan_topic` and Spark's executors use this module. The module yields exactly the records of
each range, in order, and fetches the next records while the caller decodes earlier ones. It never fetches at
or after the end of a range, where a broker would wait for new records.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from penstock.client.arguments import column_names, flag, list_of, one_of, size, topic_name, whole
from penstock.client.background_loop import run
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.metadata import NO_TOPIC_ID, is_recreated
from penstock.client.config import ConsumerConfig
from penstock.client.fetch.cursors import ISOLATION_LEVELS, Cursor, FetchedPart, FetchLimits, FetchSettings
from penstock.client.fetch.fetcher import Fetcher
from penstock.client.fetch.offsets import fetch_known_offsets
from penstock.common.extras import need_arrow
from penstock.common.logs import logger_named
from penstock.errors import (
    ConfigError,
    KafkaError,
    NetworkError,
    RequestTimeoutError,
    TopicRecreatedError,
)
from penstock.model import COLUMN_NAMES, EARLIEST, OffsetRange, TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.records.compression.codecs import DEFAULT_LIMITS, UnpackLimits, naming_place

if TYPE_CHECKING:
    import pyarrow as pa

FETCH_BYTES = 4 << 20
"""The maximum size of a fetch in bytes: large enough to hide the round trip, and small enough for the
processor's cache when it is decoded."""

BATCH_BYTES = 1 << 20
"""The approximate size in bytes of Arrow batches, which suits Spark."""

MAX_WAIT_MS = 100
"""The maximum time in milliseconds that brokers wait for records. They wait only if compaction has removed
the last records of the log.
"""

START_AGAIN_AFTER_S = 1.0
"""The pause in seconds between attempts to reach the cluster at the start, if `start_patience_s` allows
several.
"""

OTHER_ID_PATIENCE_S = 2.0
"""The time in seconds after which a range's topic counts as deleted, if metadata show another topic of its
name."""

log = logger_named("penstock.client")

_GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
"""The error codes which mean that a topic was deleted."""


class RangeReader:
    """Fetches the records of given ranges of offsets, on one event loop."""

    def __init__(
        self,
        client: AsyncClient,
        ranges: Iterable[OffsetRange],
        *,
        isolation: str = "read_uncommitted",
        fetch_bytes: int = FETCH_BYTES,
        fail_on_data_loss: bool = True,
        patience_s: float | None = None,
        start_patience_s: float = 0.0,
        may_begin_later: Collection[TopicPartition] = (),
        topic_ids: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        """Prepare to fetch `ranges`. Fetching begins with `start`.

        `patience_s` is the time in seconds after which a partition without progress fails (default
        ``default.api.timeout.ms``), and `start_patience_s` is the time in seconds for attempts to reach the
        cluster at the start. If retention removes records of a partition in `may_begin_later` before they are
        read, reading continues after these records, and a warning has their offsets. `topic_ids` are the
        known ids of the ranges' topics; for other topics, the current id is used.
        """
        self._client = client
        self._start_patience_s = start_patience_s
        self._fail_on_data_loss = fail_on_data_loss
        self._may_begin_later = may_begin_later
        self._unfinished: dict[TopicPartition, Cursor] = {}
        self._waiting: list[Cursor] = []
        """Ranges that begin when the current range of the same partition is finished."""
        config = client.config
        rack = config.client_rack if isinstance(config, ConsumerConfig) else None
        limits = FetchLimits(MAX_WAIT_MS, 1, fetch_bytes, ISOLATION_LEVELS[isolation], rack or "")
        self._fetcher = Fetcher(
            client,
            FetchSettings(
                limits,
                fetch_bytes,
                client.config.default_api_timeout_ms / 1000 if patience_s is None else patience_s,
            ),
        )
        for topic, partition, start, end in ranges:
            if start < 0 or end < start:
                raise ConfigError(f"offsets {start} to {end} of {topic}-{partition} are no range")
            if start < end:
                tp, topic_id = TopicPartition(topic, partition), topic_ids.get(topic, NO_TOPIC_ID)
                self._waiting.append(Cursor(tp, start, end, fetch_bytes, topic_id))

    async def start(self) -> None:
        """Begin to fetch.

        Raises:
            KafkaError: a topic does not exist.
            ConfigError: a topic has no such partition.
            NetworkError: no broker answers.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._start_patience_s
        while True:
            try:
                await self._client.bootstrap()
                await self._find_topics()
                break
            except (NetworkError, RequestTimeoutError):
                if loop.time() >= deadline:
                    raise
                await asyncio.sleep(START_AGAIN_AFTER_S)
        cluster = self._client.cluster
        deadline = loop.time() + OTHER_ID_PATIENCE_S
        while any(is_recreated(one.topic_id, cluster.topic_id(one.tp.topic)) for one in self._waiting):
            # Ids do not say which topic is the newer one: the metadata of this client may be old.
            if loop.time() >= deadline:
                break
            await self._client.refresh()
            await asyncio.sleep(self._client.backoff.seconds(0, self._client.dice))
        for cursor in self._waiting:
            if cursor.topic_id == NO_TOPIC_ID:
                cursor.topic_id = cluster.topic_id(cursor.tp.topic)
        self._start_waiting()

    async def _find_topics(self) -> None:
        try:
            await self._client.topics_with([cursor.tp for cursor in self._waiting])
        except KafkaError as error:
            if self._fail_on_data_loss or error.code not in _GONE:
                raise
            self._waiting = [cursor for cursor in self._waiting if await self._exists(cursor.tp.topic)]

    async def _exists(self, topic: str) -> bool:
        try:
            await self._client.topic(topic)
        except KafkaError as error:
            if error.code not in _GONE:
                raise
            return False
        return True

    def _start_waiting(self) -> None:
        later: list[Cursor] = []
        for cursor in self._waiting:
            if cursor.tp in self._unfinished:
                later.append(cursor)
            else:
                self._unfinished[cursor.tp] = cursor
                self._fetcher.start(cursor)
        self._waiting = later

    async def next_parts(self) -> list[FetchedPart]:
        """Return the parts fetched since the last call, or wait for the next part.

        A part has records of one partition.

        Returns an empty list at the end of the ranges.

        Raises:
            KafkaError: records of a range are gone (and may not be skipped), or a broker refuses.
            RequestTimeoutError: no success for ``default.api.timeout.ms``.
            DecodeError: a response cannot be decoded.
        """
        parts: list[FetchedPart] = []
        while self._unfinished and not parts:
            await self._fetcher.wait(None)
            while (part := self._fetcher.take()) is not None:
                if part.error is not None:
                    await self._handle(part.cursor, part.error)
                    continue
                if part.size:
                    parts.append(part)
                # The cursor runs ahead of the parts that wait to be taken: only the last of them ends it.
                if part.next_offset >= (part.cursor.end or 0):
                    self._finish(part.cursor)
        return parts

    def _finish(self, cursor: Cursor) -> None:
        del self._unfinished[cursor.tp]
        if self._waiting:
            self._start_waiting()

    async def _handle(self, cursor: Cursor, error: Exception) -> None:
        """Skip records that have been deleted, if the reader's options allow it; raise all other errors."""
        cause = error.__cause__ if isinstance(error, RequestTimeoutError) else error
        is_gone = isinstance(cause, TopicRecreatedError) or (
            isinstance(cause, KafkaError) and cause.code in _GONE
        )
        if is_gone and not self._fail_on_data_loss:
            log.warning("%s from offset %d on is left out: %s", cursor.tp, cursor.offset, cause)
            self._finish(cursor)
            return
        is_outside = isinstance(error, KafkaError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE
        if is_gone or not isinstance(error, KafkaError) or not is_outside:
            raise error
        tp, end = cursor.tp, cursor.end or 0
        first = (await fetch_known_offsets(self._client, [tp], EARLIEST))[tp]
        if cursor.offset < first and tp in self._may_begin_later:
            log.warning(
                "offsets %d to %d of %s were removed while it was read, by retention or DeleteRecords: "
                "reading goes on at offset %d",
                cursor.offset,
                min(first, end) - 1,
                tp,
                first,
            )
        elif self._fail_on_data_loss:
            raise KafkaError(
                error.code,
                error.name,
                f"records {cursor.offset} to {end - 1} of {tp} were asked for, but are not there "
                f"(any more): the log begins at offset {first}; retention may have removed them, or the "
                "topic was created anew",
            )
        if cursor.offset < first < end:
            rest = Cursor(tp, first, end, cursor.size_max, cursor.topic_id)
            self._unfinished[tp] = rest
            self._fetcher.start(rest)
        else:
            self._finish(cursor)

    async def close(self) -> None:
        """Stop fetching. The client stays open."""
        await self._fetcher.close()


def decode_part(
    part: FetchedPart,
    columns: Sequence[str],
    batch_bytes: int,
    *,
    check_crcs: bool = True,
    unpack: UnpackLimits = DEFAULT_LIMITS,
) -> Iterator[pa.RecordBatch]:
    """Yield fetched records of one partition as Arrow batches of about `batch_bytes`.

    Records outside the requested range are left out.

    Raises:
        CorruptRecordError: a batch is damaged.
        UnpackLimitError: a compressed batch holds more than `unpack` allows.
    """
    from penstock.records.arrow import to_arrow
    from penstock.records.decode import iter_columns

    pieces = iter_columns(
        part.records,
        columns=columns,
        start_offset=part.start,
        end_offset=part.cursor.end,
        aborted=part.aborted,
        verify_crcs=check_crcs,
        limit_bytes=unpack.max_bytes,
        limit_records=unpack.max_records,
        batch_bytes=batch_bytes,
    )
    with naming_place(part.tp):
        for piece in pieces:
            yield to_arrow(piece, *part.tp, columns)


def _range(value: Any, what: str) -> OffsetRange:
    """Return a range of offsets, given as `OffsetRange` or as (topic, partition, start, end).

    Raises:
        ConfigError: `value` is neither.
    """
    if not isinstance(value, (tuple, list)) or len(value) != 4:
        raise ConfigError(f"{what} is {value!r}: a range is needed, such as ('orders', 0, 5, 42)")
    topic, *numbers = value
    return OffsetRange(topic_name(topic), *(whole(number, f"a number in {value!r}") for number in numbers))


def fetch_ranges(
    bootstrap_servers: str | Sequence[str],
    ranges: Iterable[OffsetRange | tuple[str, int, int, int]],
    columns: Sequence[str] = COLUMN_NAMES,
    *,
    isolation: str = "read_uncommitted",
    batch_bytes: int = BATCH_BYTES,
    fetch_bytes: int = FETCH_BYTES,
    fail_on_data_loss: bool = True,
    config: Mapping[str, object] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of all ranges as Arrow batches with the given columns, in that order.

    Each batch belongs to one partition. Batches of one partition come in offset order; partitions may
    alternate. Records outside the log are an error unless `fail_on_data_loss` is False. Fetching continues in
    the background while the caller processes a batch.

    Raises: as `RangeReader.start` and `RangeReader.next_parts`, and CorruptRecordError.
    """
    need_arrow("fetch_ranges")
    columns = column_names(columns, COLUMN_NAMES)
    isolation = one_of(*ISOLATION_LEVELS)(isolation, "isolation")
    wanted = list_of(_range, "[('orders', 0, 5, 42)]")(ranges, "ranges")
    batch_bytes, fetch_bytes = size(batch_bytes, "batch_bytes"), size(fetch_bytes, "fetch_bytes")
    fail_on_data_loss = flag(fail_on_data_loss, "fail_on_data_loss")
    parsed = ConsumerConfig.parse(config, {"bootstrap_servers": bootstrap_servers})
    client = AsyncClient(parsed)
    try:
        for _, batch in scan_ranges(
            client,
            wanted,
            columns,
            isolation=isolation,
            batch_bytes=batch_bytes,
            fetch_bytes=fetch_bytes,
            fail_on_data_loss=fail_on_data_loss,
            check_crcs=parsed.check_crcs,
            unpack=parsed.unpack_limits,
        ):
            yield batch
    finally:
        run(client.close())


def scan_ranges(
    client: AsyncClient,
    ranges: Sequence[OffsetRange],
    columns: Sequence[str],
    *,
    isolation: str,
    batch_bytes: int,
    fetch_bytes: int = FETCH_BYTES,
    fail_on_data_loss: bool = True,
    check_crcs: bool = True,
    unpack: UnpackLimits = DEFAULT_LIMITS,
    patience_s: float | None = None,
    start_patience_s: float = 0.0,
    may_begin_later: Collection[TopicPartition] = (),
    topic_ids: Mapping[str, bytes] = MappingProxyType({}),
) -> Generator[tuple[TopicPartition, pa.RecordBatch], None, None]:
    """Yield pairs of partition and Arrow batch for the given ranges, read by a client on the background loop.

    The client stays open. The options are those of `fetch_ranges` and `RangeReader`.
    """

    async def open_reader() -> RangeReader:
        reader = RangeReader(
            client,
            ranges,
            isolation=isolation,
            fetch_bytes=fetch_bytes,
            fail_on_data_loss=fail_on_data_loss,
            patience_s=patience_s,
            start_patience_s=start_patience_s,
            may_begin_later=may_begin_later,
            topic_ids=topic_ids,
        )
        await reader.start()
        return reader

    reader = run(open_reader())
    try:
        while parts := run(reader.next_parts()):
            parts.reverse()
            while parts:
                part = parts.pop()
                tp = part.tp
                decoded = decode_part(part, columns, batch_bytes, check_crcs=check_crcs, unpack=unpack)
                # Nothing refers to a part once it is decoded: its buffer serves the next fetch.
                del part
                for batch in decoded:
                    yield tp, batch
    finally:
        run(reader.close())


async def fetch_ranges_async(
    client: AsyncClient,
    ranges: Iterable[OffsetRange],
    columns: Sequence[str] = COLUMN_NAMES,
    *,
    isolation: str = "read_uncommitted",
    batch_bytes: int = BATCH_BYTES,
    fetch_bytes: int = FETCH_BYTES,
    fail_on_data_loss: bool = True,
    check_crcs: bool = True,
    unpack: UnpackLimits = DEFAULT_LIMITS,
    may_begin_later: Collection[TopicPartition] = (),
    topic_ids: Mapping[str, bytes] = MappingProxyType({}),
) -> AsyncGenerator[tuple[TopicPartition, pa.RecordBatch], None]:
    """Yield pairs of partition and Arrow batch for the given ranges; fetch on the running event loop.

    Another thread decodes them, and the client stays open. The options are those of `fetch_ranges` and
    `RangeReader`.
    """
    reader = RangeReader(
        client,
        ranges,
        isolation=isolation,
        fetch_bytes=fetch_bytes,
        fail_on_data_loss=fail_on_data_loss,
        may_begin_later=may_begin_later,
        topic_ids=topic_ids,
    )
    try:
        await reader.start()
        while parts := await reader.next_parts():
            for part in parts:
                batches = decode_part(part, columns, batch_bytes, check_crcs=check_crcs, unpack=unpack)
                for batch in await asyncio.to_thread(list, batches):
                    yield part.tp, batch
    finally:
        await reader.close()
