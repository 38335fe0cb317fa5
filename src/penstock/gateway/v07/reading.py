"""Read records of the cluster by offset, without waiting for new ones, for the fetches of Kafka 0.7.

A batch of the cluster often holds more than fits into one response of 0.7. The rest is cached for a few
seconds, within a limit.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.client.cluster.client import FETCH, AsyncClient
from penstock.client.cluster.retry import RetryVerdict, judge
from penstock.client.fetch.cursors import (
    Cursor,
    FetchLimits,
    cut_batch_bytes,
    fetch_answers,
    fetch_request,
    fetch_version_limit,
    measure,
)
from penstock.errors import KafkaError, PenstockError
from penstock.gateway.v07.padding import Value
from penstock.gateway.v07.topics import ClusterTopics
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import READ_COMMITTED
from penstock.protocol.messages.fetch_request import FetchRequest
from penstock.protocol.messages.fetch_response import FetchResponse, PartitionData
from penstock.records.rows import iter_rows

FETCH_BYTES = 1 << 20
"""The fetch size in bytes for each partition."""

ANSWER_BYTES = 8 << 20
"""The fetch size in bytes for one request to a broker, over all its partitions."""

AT_ONCE = 4
"""The most concurrent fetches from one broker; further fetches wait."""

DECODED_BYTES_MAX = 8 << 20
"""The largest total size, in bytes, of the values that are decoded from one partition at a time."""

BATCH_BYTES_MAX = 64 << 20
"""The largest batch, in bytes, that is fetched again in full, after a broker before 0.10.1 has returned it
cut."""

INLINE_BYTES = 32 << 10
"""The largest size, in bytes, of a partition's records that are decoded on the event loop; larger ones use a
thread."""

KEPT_BYTES_MAX = 64 << 20
"""The largest total size, in bytes, of the cached values of all partitions."""

KEPT_S = 5.0

VALUE_OVERHEAD_BYTES = 120

ROUNDS = 3
"""The most attempts of a fetch if partition leaders change meanwhile."""


class FoundRecords(NamedTuple):
    """The result of reading a partition: its records in order, or an error instead."""

    values: Sequence[Value] = ()
    error: PenstockError | None = None


class _Kept(NamedTuple):
    """Cached records of a partition from offset `start` on, and the time until which they may be used."""

    start: int
    values: list[Value]
    size: int
    until: float


class ClusterReader:
    """Fetches committed records from the cluster for consumers of Kafka 0.7, on one event loop."""

    def __init__(self, client: AsyncClient, topics: ClusterTopics) -> None:
        self._client = client
        self._topics = topics
        self._turns: dict[int, asyncio.Semaphore] = {}
        self._kept: OrderedDict[TopicPartition, _Kept] = OrderedDict()
        self._kept_bytes = 0

    async def read(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, FoundRecords]:
        """Return the records of each partition from an offset on, without waiting for new ones.

        Raises nothing: a failed partition has its error in its `FoundRecords`.
        """
        found = {tp: kept for tp, offset in places.items() if (kept := self._from_kept(tp, offset))}
        left = {tp: offset for tp, offset in places.items() if tp not in found}
        for _ in range(ROUNDS):
            if not left:
                break
            await self._round(left, found)
            again = [tp for tp in left if _is_worth_a_look(found[tp].error)]
            if again:
                try:
                    await self._topics.look()
                except PenstockError:
                    break
            left = {tp: left[tp] for tp in again}
        return found

    async def _round(
        self, left: Mapping[TopicPartition, int], found: dict[TopicPartition, FoundRecords]
    ) -> None:
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for tp, offset in left.items():
            leader = self._client.cluster.leader(tp)
            if leader is None:
                error = error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {tp}")
                found[tp] = FoundRecords(error=error)
            else:
                by_leader.setdefault(leader, {})[tp] = offset
        await asyncio.gather(*(self._in_turn(leader, some, found) for leader, some in by_leader.items()))

    async def _in_turn(
        self, leader: int, places: Mapping[TopicPartition, int], found: dict[TopicPartition, FoundRecords]
    ) -> None:
        async with self._turns.setdefault(leader, asyncio.Semaphore(AT_ONCE)):
            await self._ask(leader, places, found)

    async def _ask(
        self, leader: int, places: Mapping[TopicPartition, int], found: dict[TopicPartition, FoundRecords]
    ) -> None:
        """Fetch from one partition leader. A batch that the broker has cut is fetched again, alone."""
        size_max, left = FETCH_BYTES, dict(places)
        while left:
            try:
                answers = await self._fetch(leader, left, size_max)
            except PenstockError as error:
                found.update(dict.fromkeys(left, FoundRecords(error=error)))
                return
            cut: dict[TopicPartition, int] = {}
            for tp, offset in left.items():
                data = answers.get(tp)
                if data is None:
                    found[tp] = FoundRecords()
                elif data.error_code:
                    what = f"fetching {tp} at offset {offset}"
                    found[tp] = FoundRecords(error=error_for(data.error_code, what))
                else:
                    records = memoryview(data.records or b"")
                    try:
                        if (
                            records.nbytes
                            and not measure(records, offset)[1]
                            and size_max < cut_batch_bytes(records) <= BATCH_BYTES_MAX
                        ):
                            cut[tp] = cut_batch_bytes(records)
                        else:
                            found[tp] = FoundRecords(await self._decoded(tp, offset, data, records))
                    except PenstockError as error:
                        found[tp] = FoundRecords(error=error)
            left = {tp: left[tp] for tp in list(cut)[:1]}
            found.update((tp, FoundRecords()) for tp in cut if tp not in left)
            size_max = max([size_max, *(cut[tp] for tp in left)])

    async def _fetch(
        self, leader: int, places: Mapping[TopicPartition, int], size_max: int
    ) -> dict[TopicPartition, PartitionData]:
        peer = await self._client.peer(leader, FETCH)
        cluster = self._client.cluster
        cursors = [Cursor(tp, offset, None, size_max) for tp, offset in places.items()]
        limits = FetchLimits(0, 0, max(size_max, ANSWER_BYTES), READ_COMMITTED)
        request = fetch_request(cursors, cluster, limits)
        version = peer.versions.choose(FetchRequest, fetch_version_limit(cursors, cluster))
        answer: FetchResponse = await peer.connection.request(
            request, version, self._client.request_timeout_s
        )
        if answer.error_code:
            raise error_for(answer.error_code, f"fetching from broker {self._client.address_of(leader)}")
        return dict(fetch_answers(answer, cluster))

    async def _decoded(
        self, tp: TopicPartition, offset: int, data: PartitionData, records: memoryview
    ) -> list[Value]:
        aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]

        def decode() -> list[Value]:
            values: list[Value] = []
            size = 0
            for rows, _ in iter_rows(records, *tp, start_offset=offset, aborted=aborted):
                values += [Value(row.offset, row.value or b"") for row in rows]
                size += sum(len(row.value or b"") for row in rows)
                if size > DECODED_BYTES_MAX:
                    break
            return values

        values = decode() if records.nbytes <= INLINE_BYTES else await asyncio.to_thread(decode)
        self._keep(tp, offset, values)
        return values

    # --- what is kept -----------------------------------------------------------------------------------

    def _from_kept(self, tp: TopicPartition, offset: int) -> FoundRecords | None:
        kept = self._kept.get(tp)
        if kept is None:
            return None
        if asyncio.get_running_loop().time() > kept.until:
            self._drop(tp)
            return None
        if offset < kept.start:
            return None
        index = bisect_left(kept.values, offset, key=lambda value: value.offset)
        return FoundRecords(kept.values[index:]) if index < len(kept.values) else None

    def _keep(self, tp: TopicPartition, start: int, values: list[Value]) -> None:
        self._drop(tp)
        size = sum(len(value.value) + VALUE_OVERHEAD_BYTES for value in values)
        if len(values) < 2 or size > KEPT_BYTES_MAX:
            return
        until = asyncio.get_running_loop().time() + KEPT_S
        self._kept[tp] = _Kept(start, values, size, until)
        self._kept_bytes += size
        while self._kept_bytes > KEPT_BYTES_MAX:
            self._drop(next(iter(self._kept)))

    def _drop(self, tp: TopicPartition) -> None:
        kept = self._kept.pop(tp, None)
        if kept is not None:
            self._kept_bytes -= kept.size


def _is_worth_a_look(error: PenstockError | None) -> bool:
    """Return True if the error is one that a refresh of the metadata may resolve, such as a moved leader."""
    return error is not None and judge(error) is RetryVerdict.REFRESH


def is_out_of_range(error: PenstockError) -> bool:
    """Return True if the error means that the log has no such offset."""
    return isinstance(error, KafkaError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE
