"""Translation of Fetch before version 4: batches of magic 2 become messages of magic 0 or 1.

Messages have magic 0 for Fetch 0 and 1, and magic 1 for Fetch 2 and 3. The gateway fetches committed records
only, without a fetch session. One client request may take several requests to the cluster. If the fetched
batches have no record for the client, the gateway continues to fetch after them. Partitions that got no
records, because other partitions have filled the response, are fetched separately: for old clients, the
records of one partition never displace those of another.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from penstock.errors import CorruptRecordError
from penstock.gateway.calls import NodeCall
from penstock.gateway.translation.errors import NotForwarded, highest_code, older_code
from penstock.gateway.translation.fetched_records import PartitionReading
from penstock.protocol.field_values import READ_COMMITTED
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from penstock.protocol.since import FETCH_MAGIC_1_SINCE
from penstock.records.compression.codecs import UnpackBudget
from penstock.records.format.crc import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.gateway.translation.rules import Steps, TranslatedRequest

WHOLE_LIMIT_SINCE = 3

FETCH_BYTES_MAX = 8 << 20
"""The largest size in bytes of one fetch from the cluster. It is converted in one step, during which other
clients wait.
"""

BATCH_BYTES = (1 << 20) + 12
"""The fetch size in bytes when a partition is fetched again because other partitions filled the first
response: the default of `max.message.bytes`.
"""

CROWDED_OUT_MAX = 16
"""The most partitions of a request that are fetched one by one. That is done if a partition's next batch
exceeds `BATCH_BYTES`.
"""

UNPACKED_BYTES_MAX = 64 << 20
"""The largest decompressed size, in bytes, of the records of one response from the cluster."""


def fetch(asked: TranslatedRequest) -> Steps:
    """Translate a Fetch request of a consumer that cannot read magic 2.

    Raises:
        Refused: the request is from a replica.
    """
    if asked.request.replica_id >= 0:
        raise NotForwarded("Fetch of a replica: only consumers can read through the gateway")
    return _Fetching(asked).steps()


class _Fetching:
    """The handling of one Fetch request of a client, with the state of all requests to the cluster for it."""

    def __init__(self, asked: TranslatedRequest) -> None:
        self._asked = asked
        self._request = asked.request
        self._magic = 1 if asked.version >= FETCH_MAGIC_1_SINCE else 0
        self._throttle_ms = 0
        self._readings: dict[tuple[str, int], PartitionReading] = {}
        for topic in asked.request.topics:
            for partition in topic.partitions:
                self._readings[topic.topic, partition.partition] = PartitionReading(topic.topic, partition)

    def steps(self) -> Steps:
        """Fetch from the cluster until there are records or an error to return, or the logs end."""
        everything = self._in_turn()
        while everything:
            response = yield self._call(everything, is_waiting=True)
            self._take(response, everything)
            if any(reading.is_done for reading in everything):
                yield from self._read_the_rest()
                break
            if not any(reading.skips for reading in everything):
                break
        return self._answer()

    def _in_turn(self) -> list[PartitionReading]:
        """Return the partitions in the order of the requests to the cluster.

        Clients of Fetch 0 to 2, which have no limit for the whole response, do not vary the order of
        partitions. A checksum of the fetch offsets selects the first partition, so that all partitions are
        served in time although the gateway has no state between requests.
        """
        readings = list(self._readings.values())
        if self._asked.version >= WHOLE_LIMIT_SINCE or not readings:
            return readings
        offsets = array("q", (each.offset for each in readings))
        first = crc32(offsets.tobytes()) % len(readings)
        return readings[first:] + readings[:first]

    def _read_the_rest(self) -> Steps:
        """Fetch again from partitions that have records but got none, since others filled the response."""
        everything = self._in_turn()
        while skipping := [each for each in everything if each.skips]:
            response = yield self._call(skipping)
            self._take(response, skipping)
        starved = [each for each in everything if each.is_starved]
        if len(starved) > 1:
            response = yield self._call(starved, least_bytes=BATCH_BYTES)
            self._take(response, starved)
        for reading in [each for each in starved if each.is_starved or each.skips][:CROWDED_OUT_MAX]:
            while reading.is_starved or reading.skips:
                # The first batch of the first partition comes whole, however large it is.
                response = yield self._call([reading])
                was_skipping = reading.skips
                self._take(response, [reading])
                if reading.is_starved and not was_skipping:
                    break
        return None

    def _call(
        self, readings: Iterable[PartitionReading], *, is_waiting: bool = False, least_bytes: int = 0
    ) -> NodeCall:
        topics: dict[str, FetchTopic] = {}
        for reading in readings:
            topic = topics.setdefault(reading.topic, FetchTopic(topic=reading.topic))
            topic.partitions.append(
                FetchPartition(
                    partition=reading.partition,
                    fetch_offset=reading.offset,
                    partition_max_bytes=max(reading.max_bytes, least_bytes),
                )
            )
        request = self._request
        max_bytes = FETCH_BYTES_MAX
        if self._asked.version >= WHOLE_LIMIT_SINCE:
            max_bytes = min(max_bytes, request.max_bytes)
        message = FetchRequest(
            replica_id=request.replica_id,
            max_wait_ms=request.max_wait_ms if is_waiting else 0,
            min_bytes=request.min_bytes if is_waiting else 0,
            max_bytes=max_bytes,
            isolation_level=READ_COMMITTED,
            topics=list(topics.values()),
        )
        return NodeCall(self._asked.api_key, self._asked.target, message)

    def _take(self, response: FetchResponse, readings: list[PartitionReading]) -> None:
        """Add the records and errors in a response of the cluster to `readings`."""
        for reading in readings:
            reading.skips = reading.is_starved = False
        budget = UnpackBudget(UNPACKED_BYTES_MAX)
        self._throttle_ms = max(self._throttle_ms, response.throttle_time_ms)
        for topic in response.responses:
            for data in topic.partitions:
                found = self._readings.get((topic.topic, data.partition_index))
                if found is not None:
                    found.take(data, self._magic, budget)
        if response.error_code:
            for reading in readings:
                reading.error_code = reading.error_code or response.error_code

    def _answer(self) -> FetchResponse:
        asked = self._asked
        highest = highest_code(asked.api_key, asked.version)
        left_bytes: int | None = None
        if asked.version >= WHOLE_LIMIT_SINCE:
            left_bytes = self._request.max_bytes
        topics: dict[str, FetchableTopicResponse] = {}
        found = False
        for reading in self._readings.values():
            records = reading.cut(left_bytes)
            if left_bytes is not None:
                if reading.records and not found:
                    records = max(records, _first_message(reading), key=len)
                    found = True
                left_bytes = max(left_bytes - len(records), 0)
            topic = topics.setdefault(reading.topic, FetchableTopicResponse(topic=reading.topic))
            topic.partitions.append(
                PartitionData(
                    partition_index=reading.partition,
                    error_code=older_code(reading.error_code, highest),
                    high_watermark=reading.high_watermark,
                    records=records,
                )
            )
        return FetchResponse(throttle_time_ms=self._throttle_ms, responses=list(topics.values()))


def _first_message(reading: PartitionReading) -> bytes:
    try:
        return reading.first_message()
    except CorruptRecordError:  # of a topic whose segments hold messages that are damaged
        return b""
