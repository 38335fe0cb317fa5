"""Whole topics as tables: read, scanned in bounded memory, written.

Blocking. What is read is fixed when the call begins: the records between two bounds that the log holds
then, so that a topic written all the time is still read to an end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from penstock.client.arguments import column_names, partition_numbers, topic_name
from penstock.client.background_loop import run
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.metadata import no_such_partition
from penstock.client.config import ConsumerConfig
from penstock.client.fetch.offsets import fetch_known_offsets, fetch_offsets
from penstock.client.fetch.ranges import BATCH_BYTES, scan_ranges
from penstock.common.extras import need_arrow
from penstock.errors import ConfigError, EncodeError, ProtocolViolationError
from penstock.model import COLUMN_NAMES, EARLIEST, LATEST, OffsetRange, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.produce.columns import WriteSummary

Bound = str | int | datetime | Mapping[int, "str | int | datetime"]
"""``"earliest"``, ``"latest"``, an offset, a time, or one of these for each partition."""

KAFKA = "kafka"
PROTOCOLS = (KAFKA, "0.7")
"""The protocol of brokers: that of Kafka since 0.8, or that of 0.7, which shares nothing with it."""

READ_BATCH_BYTES = 4 << 20
WRITE_BATCH_BYTES = 8 << 20
"""Small batches are put together up to this size before they are written."""


def read_topic(
    topic: str,
    bootstrap_servers: str | Sequence[str],
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    columns: Sequence[str] | None = None,
    partitions: Collection[int] | None = None,
    isolation: str = "read_uncommitted",
    config: Mapping[str, object] | None = None,
    protocol: str = "kafka",
) -> pa.Table:
    """Return the records of a topic between two bounds as a table, by partition and offset.

    `start` is inclusive, `end` exclusive; a datetime means the first record that is not older, and for
    `end` the latest when there is none. Offsets outside the log are cut to what it holds. `columns` are
    names of `penstock.model.COLUMN_NAMES`; fewer are faster. `partitions` default to all.

    With `protocol` ``"0.7"`` the brokers are of Kafka 0.7: ``host:port``, ``id:host:port,id:host:port`` or
    ``zookeeper://host:port/chroot``. Offsets are bytes then, a datetime means the segment written at that
    time, and with several brokers a partition's number is the broker's id times 65,536 plus its own.

    Raises:
        ConfigError: an unknown column, option or partition.
        KafkaError: the topic does not exist, or records vanished while it was read.
        NetworkError: no broker answers.
        RequestTimeoutError: nothing comes any more for ``default.api.timeout.ms``; the message has the last
            obstacle.
        MissingDependencyError: pyarrow or numpy is not installed.
    """
    need_arrow("read_topic")
    import pyarrow as pa

    from penstock.records.arrow import schema_for

    topic_name(topic)
    names = COLUMN_NAMES if columns is None else column_names(columns, COLUMN_NAMES)
    if protocol != KAFKA:
        found = _scan07(topic, bootstrap_servers, start, end, names, partitions, protocol, config)
        return pa.Table.from_batches([batch for _, batch in found], schema_for(names))
    batches = list(
        _scan(topic, bootstrap_servers, start, end, names, partitions, isolation, READ_BATCH_BYTES, config)
    )
    batches.sort(key=lambda found: found[0])
    return pa.Table.from_batches([batch for _, batch in batches], schema_for(names))


def scan_topic(
    topic: str,
    bootstrap_servers: str | Sequence[str],
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    columns: Sequence[str] | None = None,
    partitions: Collection[int] | None = None,
    isolation: str = "read_uncommitted",
    batch_bytes: int = BATCH_BYTES,
    config: Mapping[str, object] | None = None,
    protocol: str = "kafka",
) -> Iterator[pa.RecordBatch]:
    """Yield the same records as `read_topic` as batches of about `batch_bytes`, in bounded memory.

    Each batch belongs to one partition; those of one partition come in offset order.

    Raises: as `read_topic`.
    """
    need_arrow("scan_topic")
    topic_name(topic)
    names = COLUMN_NAMES if columns is None else column_names(columns, COLUMN_NAMES)
    if protocol != KAFKA:
        old = _scan07(topic, bootstrap_servers, start, end, names, partitions, protocol, config)
        return (batch for _, batch in old)
    found = _scan(topic, bootstrap_servers, start, end, names, partitions, isolation, batch_bytes, config)
    return (batch for _, batch in found)


def write_topic(
    data: pa.Table | pa.RecordBatch | Iterable[pa.Table | pa.RecordBatch],
    topic: str,
    bootstrap_servers: str | Sequence[str],
    *,
    compression: str = "none",
    fields: Mapping[str, str] | None = None,
    config: Mapping[str, object] | None = None,
) -> WriteSummary:
    """Write a table, or several, and return what was written once all of it is acknowledged.

    The columns ``key``, ``value``, ``headers``, ``partition`` and ``timestamp`` count, as far as they are
    there; `fields` maps these names to others, as in ``fields={"key": "user"}``. Rows with a partition go
    there, those with a key where Java would send them, the others are spread over all partitions.

    With ``transactional.id`` in `config` everything is written in one transaction: all of it, or nothing.

    A broker removes records that are older than the topic's ``retention.ms``, a week by default, whenever
    they were written: a warning says so where that is about to happen.

    Raises:
        EncodeError: a column is missing or has a type that records cannot hold.
        KafkaError: the topic does not exist and is not created, or a record is refused.
        NetworkError, RequestTimeoutError: the brokers cannot be reached, or not in time.
        TransactionError: the transaction was not committed; see `Producer.transaction`.
        MissingDependencyError: pyarrow or numpy is not installed.
    """
    need_arrow("write_topic")
    from penstock.client.blocking.producer import Producer
    from penstock.client.produce.columns import TableDelivery, oldest_time_ms

    topic_name(topic)

    options: dict[str, object] = {"compression_type": compression}
    if config is not None and {"compression.type", "compression.codec"} & config.keys():
        options.clear()
    delivery = TableDelivery(topic)
    with Producer(bootstrap_servers, config, **options) as producer, producer.at_once():
        oldest_ms: int | None = None
        for table in _tables(data):
            producer.send_arrow(topic, table, fields=fields, delivery=delivery)
            oldest_ms = _older(oldest_ms, oldest_time_ms(table, fields or {}))
        written = delivery.result()
        producer.warn_of_retention(topic, oldest_ms)
        return written


def _older(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def _tables(
    data: pa.Table | pa.RecordBatch | Iterable[pa.Table | pa.RecordBatch],
) -> Iterator[pa.Table | pa.RecordBatch]:
    """Put small batches together: what is written at once is grouped by partition."""
    import pyarrow as pa

    if isinstance(data, (pa.Table, pa.RecordBatch)):
        yield data
        return
    held: list[pa.Table] = []
    size = 0
    for item in data:
        table = pa.Table.from_batches([item]) if isinstance(item, pa.RecordBatch) else item
        if not isinstance(table, pa.Table):
            raise EncodeError(f"pyarrow tables or record batches are needed, not {type(item).__name__}")
        if held and (table.schema != held[0].schema or size >= WRITE_BATCH_BYTES):
            yield pa.concat_tables(held)
            held, size = [], 0
        held.append(table)
        size += table.nbytes
    if held:
        yield pa.concat_tables(held)


def _scan(
    topic: str,
    bootstrap_servers: str | Sequence[str],
    start: Bound,
    end: Bound,
    columns: Sequence[str],
    partitions: Collection[int] | None,
    isolation: str,
    batch_bytes: int,
    config: Mapping[str, object] | None,
) -> Iterator[tuple[tuple[int, int], pa.RecordBatch]]:
    """Yield batches, each with its partition and its place among those of the partition."""
    parsed = ConsumerConfig.parse(config, {"bootstrap_servers": bootstrap_servers})
    client = AsyncClient(parsed)
    places: dict[int, int] = {}
    try:
        ranges = run(_ranges(client, topic, start, end, partitions, isolation))
        for where, batch in scan_ranges(
            client,
            ranges,
            columns,
            isolation=isolation,
            batch_bytes=batch_bytes,
            check_crcs=parsed.check_crcs,
            unpack=parsed.unpack_limits,
        ):
            place = places.get(where.partition, 0)
            places[where.partition] = place + 1
            yield (where.partition, place), batch
    finally:
        run(client.close())


def _scan07(
    topic: str,
    bootstrap_servers: str | Sequence[str],
    start: Bound,
    end: Bound,
    columns: Sequence[str],
    partitions: Collection[int] | None,
    protocol: str,
    config: Mapping[str, object] | None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    if protocol not in PROTOCOLS:
        raise ConfigError(f"protocol is {protocol!r}: it is one of {', '.join(PROTOCOLS)}")
    from penstock.tables.topics07 import scan_topic07

    # Of a client's settings only this one means anything here; where the brokers are is said otherwise.
    parsed = ConsumerConfig.parse(config, {"bootstrap_servers": "localhost:9092"})
    return scan_topic07(
        topic,
        bootstrap_servers,
        start=start,
        end=end,
        columns=columns,
        partitions=partitions,
        check_crcs=parsed.check_crcs,
        unpack=parsed.unpack_limits,
    )


async def _ranges(
    client: AsyncClient,
    topic: str,
    start: Bound,
    end: Bound,
    partitions: Collection[int] | None,
    isolation: str,
) -> list[OffsetRange]:
    """What lies between two bounds, and in the log, at this moment."""
    await client.bootstrap()
    info = await client.topic(topic)
    chosen = sorted(info.partitions if partitions is None else set(partition_numbers(partitions)))
    places = [TopicPartition(topic, partition) for partition in chosen]
    for where in places:
        if where.partition not in info.partitions:
            raise no_such_partition(where, len(info.partitions))
    first = await fetch_known_offsets(client, places, EARLIEST)
    last = await fetch_known_offsets(client, places, LATEST, isolation=isolation)
    for where in places:
        if first[where] > last[where]:
            broker = client.address_of(await client.leader(where))
            raise ProtocolViolationError(
                f"broker {broker} says that {where} begins at {first[where]} and ends at {last[where]}"
            )
    starts = await _offsets_at(client, places, start, "earliest", first, last)
    ends = await _offsets_at(client, places, end, "latest", first, last)
    return [
        OffsetRange(*where, starts[where], ends[where]) for where in places if starts[where] < ends[where]
    ]


async def _offsets_at(
    client: AsyncClient,
    places: Sequence[TopicPartition],
    bound: Bound,
    default: str,
    first: Mapping[TopicPartition, int],
    last: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Where a bound is in each partition, `default` in those it leaves out; never outside the log."""
    known: dict[TopicPartition, int] = {}
    times: dict[TopicPartition, int] = {}
    for where in places:
        wanted = bound.get(where.partition, default) if isinstance(bound, Mapping) else bound
        if isinstance(wanted, datetime):
            times[where] = int(wanted.timestamp() * 1000)
        elif wanted in ("earliest", EARLIEST):
            known[where] = first[where]
        elif wanted in ("latest", LATEST):
            known[where] = last[where]
        elif isinstance(wanted, int) and not isinstance(wanted, bool) and wanted >= 0:
            known[where] = min(max(wanted, first[where]), last[where])
        else:
            raise ConfigError(f"{wanted!r} is no position in a topic: earliest, latest, an offset or a time")
    for where, found in (await fetch_offsets(client, times)).items() if times else ():
        known[where] = last[where] if found is None else min(found.offset, last[where])
    return known
