"""Read, scan and write whole topics with asyncio: `penstock.tables.topics` on the running event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Literal, Unpack, overload

from penstock.client.arguments import size, topic_name
from penstock.client.fetch.ranges import BATCH_BYTES
from penstock.common.extras import need_arrow
from penstock.common.hints import hinted
from penstock.errors import EncodeError
from penstock.tables.reading import CheckedRead
from penstock.tables.scans import AsyncArrowScan
from penstock.tables.sources import Tabular, tables_in
from penstock.tables.spec import DecodingScanOptions, ReadSpec, Topics, ValueFormat, topic_given
from penstock.tables.topics import READ_BATCH_BYTES, compressing, older, values_of

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.config import Partitioner
    from penstock.client.options import (
        CompressionType,
        ConsumerOptions,
        PartitionerName,
        ProducerOptions,
    )
    from penstock.client.produce.columns import WriteSummary
    from penstock.model import TopicPartition
    from penstock.registry.client import Finder
    from penstock.registry.dead_letters import DeadLetters
    from penstock.registry.schemas import Schema
    from penstock.tables.scans import PlacedBatches
    from penstock.tables.spec import Bound, Last


@hinted("read_topic")
async def read_topic_async(
    topic: Topics,
    bootstrap_servers: str | Sequence[str],
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    last: Last | None = None,
    limit: int | None = None,
    columns: Sequence[str] | None = None,
    partitions: int | Collection[int] | None = None,
    key: bytes | None = None,
    partitioner: PartitionerName | Partitioner | None = None,
    isolation: str = "read_uncommitted",
    config: ConsumerOptions | Mapping[str, object] | None = None,
    value: ValueFormat | None = None,
    key_format: ValueFormat | None = None,
    registry: str | Mapping[str, object] | Finder | None = None,
    schema: str | Schema | None = None,
    message: str | None = None,
    dead_letters: DeadLetters | None = None,
) -> pa.Table:
    """Return the records of topics between two bounds as a table, ordered by topic, partition and offset.

    Fetches on the running loop, decodes in another thread. Arguments and errors are those of
    `penstock.read_topic`, without `protocol`: topics of Kafka 0.7 cannot be read.
    """
    need_arrow("read_topic_async")
    import pyarrow as pa

    from penstock.records.arrow import schema_for

    values = await asyncio.to_thread(
        values_of,
        topic,
        columns,
        value,
        key_format,
        registry,
        schema,
        message,
        dead_letters,
        needs_types=False,
    )
    spec = ReadSpec.checked(
        topic_given(topic),
        start=start,
        end=end,
        last=last,
        limit=limit,
        columns=columns if values is None else values.fetched,
        partitions=partitions,
        key=key,
        partitioner=partitioner,
        isolation=isolation,
    )
    by_partition: dict[TopicPartition, list[pa.RecordBatch]] = {}
    async with aclosing(
        CheckedRead.checked(spec, bootstrap_servers, config).scan_async(READ_BATCH_BYTES)
    ) as found:
        async for tp, batch in found:
            by_partition.setdefault(tp, []).append(batch)
    topics = {name: place for place, name in enumerate(spec.names)}
    ordered = sorted(by_partition, key=lambda tp: (topics.get(tp.topic, 0), tp))
    batches = [batch for tp in ordered for batch in by_partition[tp]]
    table = pa.Table.from_batches(batches, schema_for(spec.columns))
    return table if values is None else await asyncio.to_thread(values.table, table)


@overload
def scan_topic_async(
    topic: Topics,
    bootstrap_servers: str | Sequence[str],
    *,
    end: Bound = "latest",
    follow: Literal[False] = False,
    **options: Unpack[DecodingScanOptions],
) -> AsyncArrowScan: ...


@overload
def scan_topic_async(
    topic: Topics,
    bootstrap_servers: str | Sequence[str],
    *,
    follow: bool,
    **options: Unpack[DecodingScanOptions],
) -> AsyncArrowScan: ...


@hinted("read_topic")
def scan_topic_async(
    topic: Topics,
    bootstrap_servers: str | Sequence[str],
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    last: Last | None = None,
    limit: int | None = None,
    columns: Sequence[str] | None = None,
    partitions: int | Collection[int] | None = None,
    key: bytes | None = None,
    partitioner: PartitionerName | Partitioner | None = None,
    isolation: str = "read_uncommitted",
    follow: bool = False,
    batch_bytes: int = BATCH_BYTES,
    config: ConsumerOptions | Mapping[str, object] | None = None,
    value: ValueFormat | None = None,
    key_format: ValueFormat | None = None,
    registry: str | Mapping[str, object] | Finder | None = None,
    schema: str | Schema | None = None,
    message: str | None = None,
    dead_letters: DeadLetters | None = None,
) -> AsyncArrowScan:
    """Return the records between two bounds, in bounded memory: ``async for batch in scan_topic_async(...)``.

    Yields `pyarrow.RecordBatch` objects of about `batch_bytes`; each belongs to one partition, and those of
    one partition come in offset order. To end the scan early, call ``await scan.aclose()``; the end of the
    event loop closes it too. `aclose` of a scan that follows also ends the iteration of another task that
    waits for a batch.

    Arguments and errors are those of `penstock.scan_topic`, without `protocol`: topics of Kafka 0.7 cannot be
    read. The call requests the types from the schema registry, and blocks the event loop during that request.
    """
    need_arrow("scan_topic_async")
    from penstock.records.arrow import schema_for

    batch_bytes = size(batch_bytes, "batch_bytes")
    values = values_of(
        topic, columns, value, key_format, registry, schema, message, dead_letters, needs_types=True
    )
    spec = ReadSpec.checked(
        topic_given(topic),
        start=start,
        end=end,
        last=last,
        limit=limit,
        columns=columns if values is None else values.fetched,
        partitions=partitions,
        key=key,
        partitioner=partitioner,
        isolation=isolation,
        follow=follow,
    )
    reading = CheckedRead.checked(spec, bootstrap_servers, config)
    if spec.is_following:
        from penstock.tables.following import AsyncFollowedBatches

        batches: PlacedBatches = AsyncFollowedBatches(reading, batch_bytes)
    else:
        batches = reading.scan_async(batch_bytes)
    if values is None:
        return AsyncArrowScan(schema_for(spec.columns), batches, spec.title)
    return AsyncArrowScan(values.schema, values.placed_batches(batches), spec.title)


@hinted("write_topic")
async def write_topic_async(
    data: Tabular | Iterable[Tabular] | AsyncIterable[Tabular],
    topic: str,
    bootstrap_servers: str | Sequence[str],
    *,
    compression: CompressionType = "none",
    fields: Mapping[str, str] | None = None,
    config: ProducerOptions | Mapping[str, object] | None = None,
) -> WriteSummary:
    """Write one or several tables; return a summary once all records are acknowledged.

    `data` is what `penstock.write_topic` takes, or an async iterable of tables, for instance a
    `scan_topic_async`. Data that is not async is read in another thread. Arguments and errors are those of
    `penstock.write_topic`.
    """
    need_arrow("write_topic_async")
    from penstock.client.produce.columns import TableDelivery, oldest_time_ms
    from penstock.client.produce.producer import AsyncProducer

    topic_name(topic)
    if data is None:
        raise EncodeError("there is no data to write: it is None")
    async with AsyncExitStack() as stack:
        producer = await stack.enter_async_context(
            AsyncProducer(bootstrap_servers, compressing(compression, config))
        )
        if producer.config.transactional_id is not None:
            await stack.enter_async_context(producer.transaction())
        oldest_ms: int | None = None
        delivery = TableDelivery(topic)
        async for table in _tables(data):
            await producer.send_arrow(topic, table, fields=fields, delivery=delivery)
            oldest_ms = older(oldest_ms, oldest_time_ms(table, fields or {}))
        written = await delivery
        await producer.warn_of_retention(topic, oldest_ms)
        return written


async def _tables(
    data: Tabular | Iterable[Tabular] | AsyncIterable[Tabular],
) -> AsyncIterator[pa.Table | pa.RecordBatch]:
    if isinstance(data, AsyncIterable):
        async for item in data:
            for table in await asyncio.to_thread(lambda item=item: list(tables_in(item))):  # type: ignore[misc]
                yield table
        return
    tables = tables_in(data)
    while (table := await asyncio.to_thread(next, tables, None)) is not None:
        yield table
