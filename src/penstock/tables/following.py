"""Follow topics: yield batches without end as records arrive, in bounded memory.

New partitions of topics, and new topics that fit a pattern, are read from their first record. If a topic
was deleted and created anew, the new topic is read from its beginning, after a warning with both topic ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.client.background_loop import finish, run
from penstock.client.cluster.client import AsyncClient
from penstock.client.fetch.cursors import ISOLATION_LEVELS, Cursor, FetchedPart, FetchLimits, FetchSettings
from penstock.client.fetch.fetcher import Fetcher
from penstock.client.fetch.offsets import fetch_known_offsets
from penstock.client.fetch.ranges import FETCH_BYTES, decode_part
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, NetworkError, PenstockError, RequestTimeoutError, TopicRecreatedError
from penstock.model import EARLIEST, TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.tables.reading import CheckedRead, topics_of
from penstock.tables.spec import RowLimit

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.cluster.metadata import TopicInfo

LOOK_EVERY_S = 5.0
"""Seconds between two checks for new partitions and topics; ``metadata.max.age.ms`` applies if it is less."""

log = logger_named("penstock.tables")


class TopicFollower:
    """Fetches new records of topics without end. Runs on one event loop; any thread may call `stop`."""

    def __init__(self, reading: CheckedRead) -> None:
        self._reading = reading
        self._spec = reading.spec
        self._look_every_s = min(LOOK_EVERY_S, reading.config.metadata_max_age_ms / 1000)
        self._look_at = 0.0
        self._followed: set[TopicPartition] = set()
        self._opened: AsyncClient | None = None
        self._fetcher: Fetcher | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopped = False

    @property
    def _client(self) -> AsyncClient:
        if self._opened is None:
            self._opened = AsyncClient(self._reading.config)
        return self._opened

    async def start(self) -> None:
        """Start fetching at the start bound of each partition. Raises the errors of `plan_reading`."""
        self._loop = asyncio.get_running_loop()
        config = self._reading.config
        limits = FetchLimits(
            config.fetch_max_wait_ms,
            1,
            FETCH_BYTES,
            ISOLATION_LEVELS[self._spec.isolation],
            config.client_rack or "",
        )
        violation_patience_s = config.default_api_timeout_ms / 1000
        self._fetcher = Fetcher(self._client, FetchSettings(limits, FETCH_BYTES, None, violation_patience_s))
        plan = await self._reading.plan(self._client)
        for tp, start in plan.starts.items():
            self._follow(self._fetcher, tp, start, plan.topic_ids[tp.topic])
        self._look_at = self._loop.time() + self._look_every_s

    async def next_parts(self) -> list[FetchedPart]:
        """Wait for records; return the parts fetched since the last call, or an empty list after `stop`.

        Raises:
            KafkaError: a broker refuses a request.
            DecodeError: an answer of a broker cannot be decoded.
        """
        fetcher, loop = self._fetcher, self._loop
        assert fetcher is not None  # started before
        assert loop is not None
        while not self._is_stopped:
            if loop.time() >= self._look_at:
                await self._look(fetcher)
                self._look_at = loop.time() + self._look_every_s
            await fetcher.wait(self._look_at - loop.time(), lambda: self._is_stopped)
            parts: list[FetchedPart] = []
            while (part := fetcher.take()) is not None:
                if part.error is not None:
                    await self._handle(fetcher, part.cursor, part.error)
                elif part.size:
                    parts.append(part)
            if parts:
                return parts
        return []

    def stop(self) -> None:
        """Stop fetching: `next_parts` returns an empty list from now on."""
        self._is_stopped = True
        loop, fetcher = self._loop, self._fetcher
        if loop is not None and fetcher is not None:
            with suppress(RuntimeError):  # the loop has ended, and with it what waits
                loop.call_soon_threadsafe(fetcher.buffer.announce)

    async def close(self) -> None:
        """Stop fetching and close the connections."""
        if self._fetcher is not None:
            await self._fetcher.close()
        if self._opened is not None:
            await self._opened.close()

    def decoded(self, part: FetchedPart, batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """Decode a fetched part; yield its requested rows. Raises CorruptRecordError and UnpackLimitError."""
        config = self._reading.config
        batches = decode_part(
            part,
            self._spec.decoded,
            batch_bytes,
            check_crcs=config.check_crcs,
            unpack=config.unpack_limits,
        )
        return map(self._spec.chosen, batches)

    def _follow(self, fetcher: Fetcher, tp: TopicPartition, offset: int, topic_id: bytes) -> None:
        self._followed.add(tp)
        fetcher.start(Cursor(tp, offset, None, FETCH_BYTES, topic_id))

    async def _look(self, fetcher: Fetcher) -> None:
        """Look up new partitions and topics, and fetch them; if no broker answers, the next call retries."""
        try:
            topics = await topics_of(self._client, self._spec)
            await self._client.refresh(topics)
            known = self._client.cluster.topics
            await self._begin(fetcher, [known[topic] for topic in topics if topic in known])
        except (NetworkError, RequestTimeoutError, KafkaError) as error:
            if isinstance(error, KafkaError) and not error.retriable:
                raise
            log.debug("new partitions of %s cannot be looked for: %s", self._spec.title, error)

    async def _begin(self, fetcher: Fetcher, topics: Iterable[TopicInfo]) -> None:
        new: dict[TopicPartition, bytes] = {}
        for topic in topics:
            if topic.partitions and not topic.error_code:
                for number in self._spec.numbers_of(topic.name, topic.partitions):
                    tp = TopicPartition(topic.name, number)
                    if tp not in self._followed and number in topic.partitions:
                        new[tp] = topic.topic_id
        await self._begin_at_first(fetcher, new)

    async def _begin_at_first(self, fetcher: Fetcher, partitions: dict[TopicPartition, bytes]) -> None:
        if partitions:
            first = await fetch_known_offsets(self._client, partitions, EARLIEST)
            for tp, topic_id in partitions.items():
                self._follow(fetcher, tp, first[tp], topic_id)

    async def _handle(self, fetcher: Fetcher, cursor: Cursor, error: PenstockError) -> None:
        """Continue at a partition's first record after OFFSET_OUT_OF_RANGE; raise every other error."""
        if not isinstance(error, KafkaError) or error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise error
        tp = cursor.tp
        fetcher.stop([tp])
        self._followed.discard(tp)
        # Where it cannot be asked now, it is new at the next look.
        self._look_at = 0.0
        if isinstance(error, TopicRecreatedError):
            log.warning("%s; %s is gone on with at its beginning", error, tp)
        else:
            log.warning(
                "offset %d of %s is outside its log, by retention or since the topic was created anew: it is "
                "gone on with at its beginning",
                cursor.offset,
                tp,
            )


class FollowedBatches(Iterator["pa.RecordBatch"]):
    """An endless iterator of the batches of followed topics. It ends when any thread calls `close`."""

    def __init__(self, reading: CheckedRead, batch_bytes: int) -> None:
        self._follower = TopicFollower(reading)
        self._batches = _batches_of(self._follower, reading, batch_bytes)

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def close(self) -> None:
        """End the iteration, also in another thread that waits for the next batch."""
        self._follower.stop()
        with suppress(ValueError):  # it is running in another thread, and ends by itself
            self._batches.close()


def _batches_of(
    follower: TopicFollower, reading: CheckedRead, batch_bytes: int
) -> Generator[pa.RecordBatch, None, None]:
    # It does not refer to the object that has it: a loop that breaks off ends it at once, in its own thread.
    limit = RowLimit(reading.spec.bounds.limit)
    try:
        if limit.is_reached():
            return
        run(follower.start())
        while parts := run(follower.next_parts()):
            parts.reverse()
            while parts:
                # Nothing refers to a part once it is decoded: its buffer serves the next fetch.
                for found in follower.decoded(parts.pop(), batch_bytes):
                    batch = limit.cut(found)
                    if batch.num_rows:
                        yield batch
                    if limit.is_reached():
                        return
    finally:
        finish(follower.close())


class AsyncFollowedBatches:
    """An endless async iterator of (partition, batch) of followed topics; decodes in another thread.

    The iteration ends when `aclose` is called, also while another task waits for the next batch.
    """

    def __init__(self, reading: CheckedRead, batch_bytes: int) -> None:
        self._follower = TopicFollower(reading)
        self._batches = self._generate(reading, batch_bytes)

    def __aiter__(self) -> AsyncFollowedBatches:
        return self

    async def __anext__(self) -> tuple[TopicPartition, pa.RecordBatch]:
        return await anext(self._batches)

    async def aclose(self) -> None:
        """End the iteration, also in another task that waits for the next batch."""
        self._follower.stop()
        with suppress(RuntimeError):  # it is running in another task, and ends by itself
            await self._batches.aclose()

    async def _generate(
        self, reading: CheckedRead, batch_bytes: int
    ) -> AsyncGenerator[tuple[TopicPartition, pa.RecordBatch], None]:
        follower, limit = self._follower, RowLimit(reading.spec.bounds.limit)
        try:
            if limit.is_reached():
                return
            await follower.start()
            while parts := await follower.next_parts():
                for part in parts:
                    for found in await asyncio.to_thread(list, follower.decoded(part, batch_bytes)):
                        batch = limit.cut(found)
                        if batch.num_rows:
                            yield part.tp, batch
                        if limit.is_reached():
                            return
        finally:
            await follower.close()
