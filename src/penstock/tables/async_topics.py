"""Whole topics as tables for asyncio: the twins of `penstock.tables.topics`, on the running loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING

from penstock.client.arguments import topic_name
from penstock.client.fetch.ranges import BATCH_BYTES
from penstock.common.extras import need_arrow
from penstock.common.hints import hinted
from penstock.errors import EncodeError
from penstock.tables.reading import KAFKA, Reading
from penstock.tables.scans import AsyncArrowScan
from penstock.tables.sources import Tabular, tables_in
from penstock.tables.topics import READ_BATCH_BYTES, compressing, older

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.options import CompressionType, ConsumerOptions, ProducerOptions
    from penstock.client.produce.columns import WriteSummary
    from penstock.tables.bounds import Bound, Last


@hinted("read_topic")
async def read_topic_async(
    topic: str,
    bootstrap_servers: str | Sequence[str],
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    last: Last | None = None,
    limit: int | None = None,
    columns: Sequence[str] | None = None,
    partitions: int | Collection[int] | None = None,
    isolation: str = "read_uncommitted",
    config: ConsumerOptions | Mapping[str, object] | None = None,
) -> pa.Table:
    """Return the records of a topic between two bounds as a table, by partition and offset.

    Fetches on the running loop, decodes in another thread. Arguments and errors are those of
    `penstock.read_topic`; Kafka 0.7 is not read this way.
    """
    scan = scan_topic_async(
        topic,
        bootstrap_servers,
        start=start,
        end=end,
        last=last,
        limit=limit,
        columns=columns,
        partitions=partitions,
        isolation=isolation,
        batch_bytes=READ_BATCH_BYTES,
        config=config,
    )
    import pyarrow as pa

    by_partition: dict[int, list[pa.RecordBatch]] = {}
    async with aclosing(scan):
        async for tp, batch in scan.placed():
            by_partition.setdefault(tp.partition, []).append(batch)
    ordered = [batch for _, batches in sorted(by_partition.items()) for batch in batches]
    return pa.Table.from_batches(ordered, scan.schema)


@hinted("read_topic")
def scan_topic_async(
    topic: str,
    bootstrap_servers: str | Sequence[str],
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    last: Last | None = None,
    limit: int | None = None,
    columns: Sequence[str] | None = None,
    partitions: int | Collection[int] | None = None,
    isolation: str = "read_uncommitted",
    batch_bytes: int = BATCH_BYTES,
    config: ConsumerOptions | Mapping[str, object] | None = None,
) -> AsyncArrowScan:
    """The records between two bounds, in bounded memory: ``async for batch in scan_topic_async(...)``.

    Yields `pyarrow.RecordBatch` es of about `batch_bytes`; each belongs to one partition, and those of one
    partition come in offset order. Left early, it is closed by ``await scan.aclose()``, or with the loop.

    Arguments and errors are those of `penstock.scan_topic`; Kafka 0.7 is not read this way.
    """
    need_arrow("scan_topic_async")
    from penstock.records.arrow import schema_for

    reading = Reading.checked(
        topic, bootstrap_servers, start, end, last, limit, columns, partitions, isolation, config, KAFKA
    )
    return AsyncArrowScan(
        schema_for(reading.columns), reading.scan_async(batch_bytes), f"topic {reading.topic}"
    )


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
    """Write a table, or several, and return what was written once all of it is acknowledged.

    `data` is all that `penstock.write_topic` takes, and async iterables of such, a `scan_topic_async` for
    instance. What is not async is read in another thread. Arguments and errors are those of
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
