"""Read and write topics of one Kafka 0.7 broker, without ZooKeeper.

A fetch of Kafka 0.7 never waits, and its response may end anywhere in a message. The read loop of this module
continues after the last complete message, crosses segments, and requests more bytes if a message is larger
than the response.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from penstock.common.extras import need_arrow
from penstock.errors import ConfigError, DecodeError
from penstock.records.compression.codecs import DEFAULT_LIMITS, CompressionCodec, UnpackLimits
from penstock.v07.connection import DEFAULT_TIMEOUT_S, Connection07, Fetched07
from penstock.v07.message_set import (
    LENGTH_BYTES,
    FetchSizeTooSmall,
    PlainMessage,
    complete_size,
    encode_set,
    iter_messages,
)
from penstock.v07.wire import (
    ANY_PARTITION,
    EARLIEST_TIME,
    LATEST_TIME,
    FetchPart,
    OffsetsPart,
    ProducePart,
)

if TYPE_CHECKING:
    import pyarrow as pa

FETCH_BYTES = 1 << 20
MESSAGE_BYTES_MAX = 1 << 28
PARTITIONS_MAX = 1 << 16

_ADDRESS = re.compile(r"(?:(?P<id>\d+):)?(?P<host>[^:\s]+|\[[^\]]+\]):(?P<port>\d+)")


class BrokerAddress(NamedTuple):
    """One broker of a list: ``id:host:port``, or ``host:port`` for id 0."""

    broker_id: int
    host: str
    port: int


def parse_brokers(text: str | Sequence[str]) -> list[BrokerAddress]:
    """Return the brokers of a list, given as text with commas or as a sequence.

    Raises:
        ConfigError: an entry is neither ``host:port`` nor ``id:host:port``, or a broker occurs twice.
    """
    entries = text.split(",") if isinstance(text, str) else list(text)
    brokers: list[BrokerAddress] = []
    for entry in entries:
        match = _ADDRESS.fullmatch(entry.strip())
        if match is None or int(match["port"]) > 65535:
            raise ConfigError(f"a Kafka 0.7 broker is host:port or id:host:port; {entry!r} is not")
        brokers.append(BrokerAddress(int(match["id"] or 0), match["host"].strip("[]"), int(match["port"])))
    if len({broker.broker_id for broker in brokers}) < len(brokers):
        raise ConfigError("several Kafka 0.7 brokers need numbers of their own: 0:host:port,1:host:port")
    return brokers


class Driver07:
    """Reads and writes the topics of one broker.

    Raises, in every method:
        NetworkError: the broker cannot be reached, or has closed the connection.
        KafkaError: the broker has answered with an error; `code` is 0.7's.
        DecodeError: the response makes no sense.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        fetch_bytes: int = FETCH_BYTES,
        dice: random.Random | None = None,
    ) -> None:
        self.connection = Connection07(host, port, timeout_s=timeout_s)
        self._fetch_bytes = fetch_bytes
        self._dice = dice or random.Random()

    def __enter__(self) -> Driver07:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    # --- what is there -----------------------------------------------------------------------------------

    def earliest(self, topic: str, partition: int) -> int:
        """Return the first byte offset of the partition."""
        return (self.connection.offsets(OffsetsPart(topic, partition, EARLIEST_TIME, 1)) or [0])[0]

    def latest(self, topic: str, partition: int) -> int:
        """Return the end offset of the partition in bytes: the end of its readable messages."""
        return (self.connection.offsets(OffsetsPart(topic, partition, LATEST_TIME, 1)) or [0])[0]

    def offset_before(self, topic: str, partition: int, time_ms: int) -> int:
        """Return a segment's start offset, from which all messages written after `time_ms` can be read."""
        found = self.connection.offsets(OffsetsPart(topic, partition, max(time_ms, 0), 1))
        return found[0] if found else self.earliest(topic, partition)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions the broker has, or would create, for a topic.

        The protocol has no request for this; each partition is probed.
        """
        count = 1
        while count < PARTITIONS_MAX and self.connection.has_partition(topic, count):
            count += 1
        return count

    # --- reading -----------------------------------------------------------------------------------------

    def chunks(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int | None = None,
        *,
        measure: Callable[[memoryview], int] = complete_size,
    ) -> Iterator[tuple[int, memoryview]]:
        """Yield the messages from `start` to `end` (default: the current end) in chunks (offset, bytes).

        The next chunk is fetched while the caller processes one. `measure` returns the size in bytes of the
        complete messages in a response.
        """
        stop = self.latest(topic, partition) if end is None else end
        position, size_max = start, self._fetch_bytes

        def ask() -> Future[Fetched07]:
            part = FetchPart(topic, partition, position, min(size_max, stop - position))
            return ahead.submit(self.connection.fetch, part)

        with ThreadPoolExecutor(1, "penstock-fetch-0.7") as ahead:
            waiting = ask() if position < stop else None
            while waiting is not None:
                fetched = waiting.result()
                data = fetched.checked()
                offset, size = position, measure(data)
                position += size
                if not size:
                    if not len(data):
                        return
                    size_max = self._larger(data, fetched.part, stop)
                waiting = ask() if position < stop else None
                if size:
                    yield offset, data[:size]

    def _larger(self, data: memoryview, part: FetchPart, stop: int) -> int:
        """Return the fetch size in bytes that fits the first message of a response.

        Segments end between messages, and a response is smaller than requested only at the end of a segment.
        If the first message is incomplete there, or reaches beyond `stop`, the offset is inside a message.

        Raises:
            DecodeError: the offset is inside a message.
            FetchSizeTooSmall: the message is larger than any fetch may be.
        """
        needed = LENGTH_BYTES
        if len(data) >= LENGTH_BYTES:
            needed += int.from_bytes(data[:LENGTH_BYTES], "big")
        if len(data) < part.size_max or part.offset + max(needed, part.size_max + 1) > stop:
            raise DecodeError(
                f"the start or the end of what is to be read of {part.topic}-{part.partition} is inside a "
                f"message at byte {part.offset}: the length there says {needed} bytes"
            )
        if needed > MESSAGE_BYTES_MAX:
            raise FetchSizeTooSmall(needed, MESSAGE_BYTES_MAX)
        return needed

    def messages(
        self, topic: str, partition: int, start: int, end: int | None = None
    ) -> Iterator[PlainMessage]:
        """Yield the messages from byte `start` to `end` (default: the current end)."""
        for offset, data in self.chunks(topic, partition, start, end):
            yield from iter_messages(data, offset)

    def scan(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int | None = None,
        *,
        names: Sequence[str],
        shown_partition: int | None = None,
        check_crcs: bool = True,
        unpack: UnpackLimits = DEFAULT_LIMITS,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages as Arrow batches with the columns `names`.

        `shown_partition` is the value of the column `partition`, by default the number of the partition.
        """
        need_arrow("reading into Arrow")
        from penstock.v07 import columns

        shown = partition if shown_partition is None else shown_partition
        for offset, data in self.chunks(topic, partition, start, end, measure=columns.complete_size):
            yield from columns.to_batches(
                data, offset, topic, shown, names, check_crcs=check_crcs, unpack=unpack
            )

    # --- writing -----------------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        payloads: Iterable[bytes],
        *,
        partition: int = ANY_PARTITION,
        codec: CompressionCodec = CompressionCodec.NONE,
    ) -> None:
        """Send one message set; the broker picks a partition unless one is given.

        The call returns when the set is sent, since Kafka 0.7 acknowledges nothing. A broker that refuses
        closes the connection, which the next call notices.
        """
        self.connection.produce([ProducePart(topic, partition, encode_set(payloads, codec=codec))])
