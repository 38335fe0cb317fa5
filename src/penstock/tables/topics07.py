"""Read whole topics of Kafka 0.7 as Arrow batches, from brokers or from a log directory.

Offsets are byte positions. Each broker of Kafka 0.7 numbers its own partitions from 0. With several brokers
(``0:host:port,1:host:port``, or ZooKeeper) partition N of broker B has the number B * 65,536 + N here, so
that the numbers of broker 0 are unchanged.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.cluster.retry import Troubles, register
from penstock.errors import ConfigError, CorruptRecordError, StorageError
from penstock.records.compression.codecs import DEFAULT_LIMITS, UnpackLimits
from penstock.v07.byte_log import segment_starts
from penstock.v07.driver import BrokerAddress, Driver07, parse_brokers
from penstock.v07.files import segment_name

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.addresses import Address
    from penstock.v07.connection import Connection07

ZOOKEEPER = "zookeeper://"
PARTITIONS_PER_BROKER = 1 << 16

Bound = str | int | datetime | Mapping[int, "str | int | datetime"]


class Range07(NamedTuple):
    """The bytes from `start` to before `end` of one partition; both are boundaries of messages."""

    topic: str
    partition: int
    start: int
    end: int


def split_partition(number: int) -> tuple[int, int]:
    """Split the number of a `Topics07` partition; return (broker id, partition number on that broker)."""
    return divmod(number, PARTITIONS_PER_BROKER)


def resolve(bootstrap_servers: str | Sequence[str]) -> list[BrokerAddress]:
    """Return the addresses of the brokers in a broker list, or in ``zookeeper://host:port/chroot``.

    Raises:
        ConfigError: the list is malformed.
        NetworkError: no ZooKeeper answers.
    """
    if isinstance(bootstrap_servers, str) and bootstrap_servers.startswith(ZOOKEEPER):
        from penstock.v07.groups import zookeeper
        from penstock.v07.groups.cluster import Cluster07

        hosts = bootstrap_servers.removeprefix(ZOOKEEPER)
        client = zookeeper.connect(hosts, session_timeout_ms=6_000)
        try:
            found = Cluster07(client).brokers()
        finally:
            zookeeper.disconnect(client)
        if not found:
            raise ConfigError(f"ZooKeeper at {hosts} lists no Kafka 0.7 broker: start one")
        return [found[number] for number in sorted(found)]
    return parse_brokers(bootstrap_servers)


class Topics07:
    """Several Kafka 0.7 brokers, read as one set of numbered partitions.

    Every method raises as `Driver07`, and ConfigError for a partition that does not exist.
    """

    def __init__(self, bootstrap_servers: str | Sequence[str], *, timeout_s: float = 30.0) -> None:
        self._drivers = {
            broker.broker_id: Driver07(broker.host, broker.port, timeout_s=timeout_s)
            for broker in resolve(bootstrap_servers)
        }
        self.troubles = Troubles()
        register(self)

    def __enter__(self) -> Topics07:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for driver in self._drivers.values():
            driver.connection.close()

    def connections(self) -> list[Connection07]:
        """Return the connections to all brokers."""
        return [driver.connection for driver in self._drivers.values()]

    def addresses_opening(self) -> list[Address]:
        """Return no addresses, because connections to 0.7 brokers are opened only within a request."""
        return []

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic on all brokers, or those that a new topic would get."""
        return [
            broker * PARTITIONS_PER_BROKER + number
            for broker, driver in sorted(self._drivers.items())
            for number in range(driver.partition_count(topic))
        ]

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return (first byte offset, end byte offset) of a partition."""
        driver, number = self._at(partition)
        return driver.earliest(topic, number), driver.latest(topic, number)

    def offset_before(self, topic: str, partition: int, time_ms: int) -> int:
        """Return the byte offset at which the segment begins that was being written at `time_ms`."""
        driver, number = self._at(partition)
        return driver.offset_before(topic, number, time_ms)

    def scan(
        self,
        wanted: Range07,
        names: Sequence[str],
        *,
        check_crcs: bool = True,
        unpack: UnpackLimits = DEFAULT_LIMITS,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range as batches, in order."""
        driver, number = self._at(wanted.partition)
        return driver.scan(
            wanted.topic,
            number,
            wanted.start,
            wanted.end,
            names=names,
            shown_partition=wanted.partition,
            check_crcs=check_crcs,
            unpack=unpack,
        )

    def chunks(self, wanted: Range07) -> Iterator[tuple[int, memoryview]]:
        """Yield the bytes of a range in chunks: (byte offset of the chunk, bytes of complete messages)."""
        driver, number = self._at(wanted.partition)
        return driver.chunks(wanted.topic, number, wanted.start, wanted.end)

    def _at(self, partition: int) -> tuple[Driver07, int]:
        broker, number = split_partition(partition)
        if broker not in self._drivers:
            known = ", ".join(map(str, sorted(self._drivers)))
            raise ConfigError(f"partition {partition} is of broker {broker}; known are {known}")
        return self._drivers[broker], number


def scan_topic07(
    topic: str,
    bootstrap_servers: str | Sequence[str],
    *,
    start: Bound,
    end: Bound,
    columns: Sequence[str],
    partitions: Collection[int] | None,
    check_crcs: bool = True,
    unpack: UnpackLimits = DEFAULT_LIMITS,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (partition, batch) of the messages between two bounds; see `penstock.scan_topic`.

    A datetime means the start of the segment that was being written then: 0.7 has no finer index.
    """
    with Topics07(bootstrap_servers) as topics:
        known = topics.partitions(topic)
        chosen = known if partitions is None else sorted(set(partitions))
        for number in chosen:
            if number not in known:
                raise ConfigError(
                    f"topic {topic} has no partition {number}; it has {', '.join(map(str, known))}"
                )
        ranges = [_range(topics, topic, number, start, end) for number in chosen]
        for wanted in ranges:
            for batch in topics.scan(wanted, columns, check_crcs=check_crcs, unpack=unpack):
                yield wanted.partition, batch


def _range(topics: Topics07, topic: str, partition: int, start: Bound, end: Bound) -> Range07:
    first, last = topics.bounds(topic, partition)

    def offset_of(bound: Bound, default: int) -> int:
        wanted = bound.get(partition, default) if isinstance(bound, Mapping) else bound
        if isinstance(wanted, datetime):
            return topics.offset_before(topic, partition, int(wanted.timestamp() * 1000))
        if wanted in ("earliest", -2):
            return first
        if wanted in ("latest", -1):
            return last
        if isinstance(wanted, int) and not isinstance(wanted, bool) and wanted >= 0:
            return min(max(wanted, first), last)
        raise ConfigError(f"{wanted!r} is no position in a topic: earliest, latest, a byte offset or a time")

    return Range07(topic, partition, offset_of(start, first), offset_of(end, last))


# --- without a broker --------------------------------------------------------------------------------------


def scan_log07(
    directory: str,
    topic: str,
    partition: int,
    columns: Sequence[str],
    *,
    start: int = 0,
    end: int | None = None,
    unpack: UnpackLimits = DEFAULT_LIMITS,
) -> Iterator[pa.RecordBatch]:
    """Yield the messages from byte `start` to `end` in the memory-mapped segments of one partition.

    An incomplete message at the end of the last segment is left out: a running broker may be writing it, or
    a broker was killed while writing it.

    Raises:
        StorageError: the files cannot be read.
        CorruptRecordError: a message is damaged, or a segment that another follows ends inside a message.
        UnpackLimitError: a compressed message decompresses to more than `unpack` allows.
    """
    from penstock.v07.columns import to_batches

    starts = segment_starts(directory)
    for first in starts:
        path = os.path.join(directory, segment_name(first))
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if not size or first + size <= start or (end is not None and first >= end):
                    continue
                mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error
        skipped = max(start - first, 0)
        stop = size if end is None else min(size, end - first)
        view = memoryview(mapped)[skipped:stop]
        done = 0
        for chunk_start, chunk in _chunks(view):
            yield from to_batches(
                chunk, first + skipped + chunk_start, topic, partition, columns, unpack=unpack
            )
            done = chunk_start + len(chunk)
        if done < len(view) and stop == size and first != starts[-1]:
            raise CorruptRecordError(
                f"{path}: no message can be read at byte {skipped + done}, and the next segment begins at "
                f"{size}: the file is damaged, or the start is inside a message"
            )


CHUNK_BYTES = 16 << 20


def _chunks(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield (position, chunk) for a segment; chunks have about `CHUNK_BYTES`, and end between messages."""
    from penstock.v07.columns import complete_size

    position = 0
    while position < len(data):
        size_max = CHUNK_BYTES
        size = complete_size(data[position : position + size_max])
        while not size and size_max < len(data) - position:
            size_max *= 4
            size = complete_size(data[position : position + size_max])
        if not size:
            return
        yield position, data[position : position + size]
        position += size
