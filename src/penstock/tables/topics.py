"""Read, scan and write whole topics as tables.

These calls block; `penstock.tables.async_topics` has the same calls for asyncio. A read resolves its bounds
to offsets when it begins, so that it ends even if producers write to the topic all the time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Unpack, overload

from penstock.client.arguments import flag, optional, size, topic_name
from penstock.client.fetch.ranges import BATCH_BYTES
from penstock.common.extras import need_arrow
from penstock.common.hints import hinted
from penstock.errors import EncodeError
from penstock.tables.progress import ProgressLine
from penstock.tables.reading import KAFKA, CheckedRead
from penstock.tables.scans import ArrowScan
from penstock.tables.sources import Tabular, row_count, tables_in
from penstock.tables.spec import DecodingScanOptions, ReadSpec, Topics, ValueFormat, topic_given

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
    from penstock.registry.client import Finder
    from penstock.registry.dead_letters import DeadLetters
    from penstock.registry.schemas import Schema
    from penstock.tables.scans import Batches
    from penstock.tables.spec import Bound, Last
    from penstock.tables.values import Values

READ_BATCH_BYTES = 4 << 20
COMPRESSION_NAMES = {"compression.type", "compression.codec", "compression_type", "compression_codec"}


@hinted("read_topic")
def read_topic(
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
    protocol: str = "kafka",
    progress: bool | None = None,
    value: ValueFormat | None = None,
    key_format: ValueFormat | None = None,
    registry: str | Mapping[str, object] | Finder | None = None,
    schema: str | Schema | None = None,
    message: str | None = None,
    dead_letters: DeadLetters | None = None,
) -> pa.Table:
    """Return the records of topics between two bounds as a table, ordered by topic, partition and offset.

    Args:
        topic: one name; or several names, whose topics come in this order; or a pattern that must fit whole
            names, compiled or as text that begins with ``^``: all topics that it fits now, by name, except
            Kafka's internal ones.
        bootstrap_servers: ``host:port``, or several.
        start: where to begin: ``"earliest"``, ``"latest"``, an offset, a time (``"2026-01-31T12:00:00Z"``, a
            `datetime` or `date`), a duration before now (``"1h"``, ``"7d"``, a `timedelta`), or one of these
            for each partition by its number; a partition left out begins at the earliest. A time means the
            first record that is not older. Offsets outside the log mean its start or end. Text without a
            zone is UTC, a `datetime` without one local time.
        end: where to stop, exclusive, in the forms of `start`. A time that no record has reached means the
            latest.
        last: instead of `start`: how many offsets before each partition's end to start (fewer records, if
            compaction or transactions have left gaps), or a duration before now.
        limit: the most records to return: the first by topic, partition and offset.
        columns: names of `penstock.model.COLUMN_NAMES`; fewer are faster. All by default.
        partitions: the numbers of the partitions, or one number; all by default. They apply to each topic.
        key: return only the records with this key. All partitions are read for that, unless `partitioner`
            or `partitions` is given.
        partitioner: how the producers of the topic chose partitions by keys: a partitioner's name
            (``"murmur2_random"`` is the default of Java's producer and of this package's,
            ``"consistent_random"`` that of librdkafka), or a function of the key and the number of
            partitions. Only the partition of `key` is read then: records that were written otherwise, or
            before partitions were added, are not found.
        isolation: ``"read_committed"`` leaves out the records of aborted and of open transactions.
        config: more options of a consumer, by their dotted names.
        protocol: ``"0.7"`` for brokers of Kafka 0.7: ``host:port``, ``id:host:port,id:host:port`` or
            ``zookeeper://host:port/chroot``. Then offsets are byte positions, a time means the start of the
            segment written at that time, and partition N of broker B has the number B * 65,536 + N.
            One topic is read at a time, and there are no keys.
        progress: True shows a progress line on stderr after a second, False does not; by default it is shown
            in terminals and notebooks (see docs/how-to/tables.md).
        value: ``"avro"``, ``"json"`` or ``"protobuf"``: decode values into columns (see
            docs/how-to/schemas.md).
        key_format: the same for keys.
        registry: the URL of a schema registry, its settings, or a `penstock.registry.RegistryClient`.
        schema: the reader's schema of values; by default the newest that the registry has for the topic.
            Without a registry, values have no schema id, and this is the writer's schema as well.
        message: the full name of a Protobuf message; by default the first of the file.
        dead_letters: collects the records that do not decode. Without it, such a record is an error.

    Records that retention removes during the call, before they are read, are left out with a warning; if
    `start` is an offset, that is an error. It is also an error if a topic is deleted and created anew
    meanwhile.

    Raises:
        ConfigError: an argument of a wrong type, an unknown column, option or partition.
        DecodeError: some records do not decode, and `dead_letters` is None.
        RegistryError: the schema registry refuses a request.
        KafkaError: the topic does not exist, or records from a named offset on vanished while it was read.
        TopicRecreatedError: the topic was deleted and created anew while it was read.
        NetworkError: no broker answers.
        RequestTimeoutError: no data arrives for ``default.api.timeout.ms``; the message has the last
            obstacle.
        MissingDependencyError: pyarrow or numpy is not installed.
    """
    need_arrow("read_topic")
    import pyarrow as pa

    from penstock.records.arrow import schema_for

    progress = optional(flag)(progress, "progress")
    values = values_of(
        topic, columns, value, key_format, registry, schema, message, dead_letters, needs_types=False
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
    reading = CheckedRead.checked(spec, bootstrap_servers, config, protocol)
    found = list(reading.placed_batches(READ_BATCH_BYTES, progress))
    if protocol == KAFKA:
        found.sort(key=lambda placed: placed[0])
    table = pa.Table.from_batches([batch for _, batch in found], schema_for(spec.columns))
    return table if values is None else values.table(table)


@overload
def scan_topic(
    topic: Topics,
    bootstrap_servers: str | Sequence[str],
    *,
    end: Bound = "latest",
    follow: Literal[False] = False,
    protocol: str = "kafka",
    progress: bool | None = None,
    **options: Unpack[DecodingScanOptions],
) -> ArrowScan: ...


@overload
def scan_topic(
    topic: Topics,
    bootstrap_servers: str | Sequence[str],
    *,
    follow: bool,
    **options: Unpack[DecodingScanOptions],
) -> ArrowScan: ...


@hinted("read_topic")
def scan_topic(
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
    protocol: str = "kafka",
    progress: bool | None = None,
    value: ValueFormat | None = None,
    key_format: ValueFormat | None = None,
    registry: str | Mapping[str, object] | Finder | None = None,
    schema: str | Schema | None = None,
    message: str | None = None,
    dead_letters: DeadLetters | None = None,
) -> ArrowScan:
    """Return the records between two bounds in bounded memory: batches to iterate over, and an Arrow stream.

    ``for batch in scan_topic(...)`` yields a `pyarrow.RecordBatch` of about `batch_bytes` at a time. Each
    belongs to one partition; those of one partition come in offset order. DuckDB, Polars, pandas and pyarrow
    can also read the scan by Arrow's PyCapsule interface, as in ``duckdb.sql("SELECT count(*) FROM scan")``;
    each such use reads the topic anew.

    With `follow`, the scan continues with new records, without end: it ends by ``break``, by `close` (from
    another thread, too), or after `limit` records. New partitions of the topics, and new topics that fit a
    pattern, are read from their first record. A topic that is deleted and created anew is read from its
    beginning, after a warning. The scan waits for brokers that do not answer. `end` cannot be given.

    The other arguments and the errors are those of `read_topic`. The call checks the arguments; all other
    errors are raised during the iteration. A library that reads the Arrow stream raises errors of its own
    (`pyarrow.ArrowException`, `duckdb.Error`), with the same text. By default `progress` is shown only for an
    Arrow stream, because the body of a loop may print.
    """
    need_arrow("scan_topic")
    from penstock.records.arrow import schema_for

    batch_bytes = size(batch_bytes, "batch_bytes")
    progress = optional(flag)(progress, "progress")
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
    reading = CheckedRead.checked(spec, bootstrap_servers, config, protocol)

    def begin(is_library: bool) -> Batches:
        found: Batches
        if spec.is_following:
            from penstock.tables.following import FollowedBatches

            found = FollowedBatches(reading, batch_bytes)
        else:
            found = reading.batches(batch_bytes, progress if is_library else bool(progress))
        return found if values is None else values.batches(found)

    return ArrowScan(schema_for(spec.columns) if values is None else values.schema, begin, spec.title)


def values_of(
    topic: Topics,
    columns: Sequence[str] | None,
    value: str | None,
    key_format: str | None,
    registry: str | Mapping[str, object] | Finder | None,
    schema: str | Schema | None,
    message: str | None,
    dead_letters: DeadLetters | None,
    *,
    needs_types: bool,
) -> Values | None:
    """Return the decoders (`Values`) of a topic's keys and values, or None if both stay bytes.

    Raises the errors of `Values.checked`.
    """
    given: tuple[object, ...] = (value, key_format, registry, schema, message, dead_letters)
    if all(each is None for each in given):
        return None
    from penstock.tables.values import Values

    return Values.checked(
        topic,
        columns,
        value=value,
        key_format=key_format,
        registry=registry,
        schema=schema,
        message=message,
        dead_letters=dead_letters,
        needs_types=needs_types,
    )


@hinted("write_topic")
def write_topic(
    data: Tabular | Iterable[Tabular],
    topic: str,
    bootstrap_servers: str | Sequence[str],
    *,
    compression: CompressionType = "none",
    fields: Mapping[str, str] | None = None,
    config: ProducerOptions | Mapping[str, object] | None = None,
    progress: bool | None = None,
) -> WriteSummary:
    """Write one or several tables to a topic; return a summary once all records are acknowledged.

    `data` is a table of any library with Arrow's PyCapsule interface (``__arrow_c_stream__`` or
    ``__arrow_c_array__``) or the dataframe interchange protocol: of pyarrow, pandas, Polars, DuckDB, or a
    `scan_topic` of another topic; or an iterable of such tables. Streams are written in bounded memory.

    The columns ``key``, ``value``, ``headers``, ``partition`` and ``timestamp`` are written, as far as the
    table has them; `fields` maps these names to others, as in ``fields={"key": "user"}``. A row goes to its
    ``partition`` if it has one, else to the partition that Java's producer chooses for its key; rows without
    both are spread over all partitions. Any other column would be lost, and is refused, except ``topic``,
    ``offset`` and ``timestampType`` of a topic that was read, and the unnamed index of a pandas frame.

    With ``transactional.id`` in `config` everything is written in one transaction: all of it, or nothing.

    A broker removes records that are older than the topic's ``retention.ms``, a week by default, even if they
    were written just now: a warning is logged if that is about to happen.

    `progress` is that of `read_topic`.

    Raises:
        EncodeError: a column is missing, would be lost, or has a type that records cannot hold; or `data` is
            no table.
        KafkaError: the topic does not exist and is not created, or a record is refused.
        NetworkError, RequestTimeoutError: the brokers cannot be reached, or not in time.
        TransactionError: the transaction was not committed; see `Producer.transaction`.
        MissingDependencyError: pyarrow or numpy is not installed.
    """
    need_arrow("write_topic")
    from penstock.client.blocking.producer import Producer
    from penstock.client.produce.columns import TableDelivery, oldest_time_ms

    topic_name(topic)
    optional(flag)(progress, "progress")
    if data is None:
        raise EncodeError("there is no data to write: it is None")
    delivery = TableDelivery(topic)
    with (
        Producer(bootstrap_servers, compressing(compression, config)) as producer,
        ProgressLine(topic, "rows", row_count(data), progress) as shown,
        producer.at_once(),
    ):
        oldest_ms: int | None = None
        for table in tables_in(data):
            producer.send_arrow(topic, table, fields=fields, delivery=delivery)
            oldest_ms = older(oldest_ms, oldest_time_ms(table, fields or {}))
            if shown.is_wanted:
                shown.add(table.num_rows, table.nbytes)
        written = delivery.result()
        producer.warn_of_retention(topic, oldest_ms)
        return written


def compressing(
    compression: str, config: ProducerOptions | Mapping[str, object] | None
) -> Mapping[str, object]:
    """Return `config` of a producer with `compression` added, unless `config` sets a compression type."""
    if config is None:
        return {"compression_type": compression}
    if _says_how(config):
        return config
    return {**config, "compression_type": compression}


def _says_how(config: object) -> bool:
    """Return True if `config` sets a compression type, or is no mapping, which the producer refuses later."""
    return not isinstance(config, Mapping) or bool(COMPRESSION_NAMES & config.keys())


def older(one: int | None, other: int | None) -> int | None:
    """Return the earlier of two times; None stands for no time. Return None if both are None."""
    return other if one is None else one if other is None else min(one, other)
