"""`read_log` and `scan_log` for data directories of all Kafka releases.

`penstock.log.disk.scan` reads the logs of Kafka 0.8 and later, `penstock.v07` the segments of Kafka 0.7,
which are recognised by their names. The columns are the same; in 0.7 the offset of a message is the byte
where it starts.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from typing import TYPE_CHECKING

from penstock.client.arguments import whole
from penstock.common.extras import need_arrow
from penstock.errors import ConfigError
from penstock.log.disk import scan
from penstock.log.disk.data_directory import find_partitions
from penstock.log.disk.scan import BATCH_BYTES
from penstock.records.compression.codecs import DEFAULT_LIMITS, UnpackLimits
from penstock.tables.scans import ArrowScan, chosen
from penstock.tables.spec import Bound, Bounds, KnownBound, Last, ReadSpec, Topics

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.registry.client import Finder
    from penstock.registry.dead_letters import DeadLetters
    from penstock.registry.schemas import Schema
    from penstock.tables.scans import Batches
    from penstock.tables.spec import ValueFormat
    from penstock.tables.values import Values


def read_log(
    directory: str | os.PathLike[str],
    topic: Topics | None = None,
    *,
    partitions: int | Iterable[int] | None = None,
    start: Bound = "earliest",
    end: Bound = "latest",
    last: Last | None = None,
    limit: int | None = None,
    columns: Sequence[str] | None = None,
    key: bytes | None = None,
    isolation: str = "read_uncommitted",
    unpack_max_bytes: int = DEFAULT_LIMITS.max_bytes,
    unpack_max_records: int = DEFAULT_LIMITS.max_records,
    value: ValueFormat | None = None,
    key_format: ValueFormat | None = None,
    registry: str | Mapping[str, object] | Finder | None = None,
    schema: str | Schema | None = None,
    message: str | None = None,
    dead_letters: DeadLetters | None = None,
) -> pa.Table:
    """Return records of topics in a data directory as one table, partition after partition.

    Arguments and errors are those of `scan_log`.
    """
    values = _values_of(
        directory,
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
    found = scan_log(
        directory,
        topic,
        partitions=partitions,
        start=start,
        end=end,
        last=last,
        limit=limit,
        columns=columns if values is None else values.fetched,
        key=key,
        isolation=isolation,
        unpack_max_bytes=unpack_max_bytes,
        unpack_max_records=unpack_max_records,
    )
    table = found.read_all()
    return table if values is None else values.table(table)


def scan_log(
    directory: str | os.PathLike[str],
    topic: Topics | None = None,
    *,
    partitions: int | Iterable[int] | None = None,
    start: Bound = "earliest",
    end: Bound = "latest",
    last: Last | None = None,
    limit: int | None = None,
    columns: Sequence[str] | None = None,
    key: bytes | None = None,
    isolation: str = "read_uncommitted",
    batch_bytes: int = BATCH_BYTES,
    unpack_max_bytes: int = DEFAULT_LIMITS.max_bytes,
    unpack_max_records: int = DEFAULT_LIMITS.max_records,
    value: ValueFormat | None = None,
    key_format: ValueFormat | None = None,
    registry: str | Mapping[str, object] | Finder | None = None,
    schema: str | Schema | None = None,
    message: str | None = None,
    dead_letters: DeadLetters | None = None,
) -> ArrowScan:
    """Return the records of topics in a data directory, in bounded memory: batches, and an Arrow stream.

    The stream is Arrow's PyCapsule interface, which DuckDB, Polars, pandas and pyarrow read; each such use
    reads the directory anew.

    Args:
        directory: a broker's data directory (`log.dirs`, with Kafka 0.7 `log.dir`), or one partition's
            directory in it.
        topic: one or several names, or a pattern, as in `read_topic`; may be left out if the directory has
            only one topic.
        partitions: numbers of the partitions to read; all by default.
        start: where to begin: "earliest", "latest", an offset, a time ("2026-01-31T12:00:00Z", a `datetime`
            with a zone, a `date`), a duration before now ("1h", a `timedelta`), or a mapping of partition
            numbers to these, in which a partition that is missing begins at the earliest. A time means the
            first record at or after it. Offsets before the log's start mean its start. With Kafka 0.7 an
            offset is the byte position at which a message begins, and there are no times.
        end: where to stop, exclusive, in the forms of `start`; partitions missing in a mapping end at the
            latest.
        last: instead of `start`: how many offsets before the end of each partition to start, or a duration
            before now.
        limit: the most records to return: the first by topic, partition and offset.
        columns: names of `COLUMN_NAMES`, in the order wanted; all by default.
        key: return only the records with this key. All partitions are read: a directory may lack partitions
            of the topic, so that the key's partition cannot be computed.
        isolation: "read_committed" leaves out aborted transactions, and stops at the first open
            transaction. It reads all batch headers of the partition first.
        batch_bytes: approximate size of the columns of an Arrow batch; a batch of the log is never
            divided, however large it is decompressed.
        unpack_max_bytes: how many bytes one compressed batch may take when it is decompressed.
        unpack_max_records: how many records one compressed batch may hold.
        value, key_format, registry, schema, message, dead_letters: how values and keys are decoded, as in
            `penstock.read_topic`.

    Raises:
        ConfigError: no such topic, partition or column; a time without a time zone; other invalid
            arguments. Raised by the call itself.
        StorageError: a file cannot be read.
        CorruptRecordError: a checksum or the layout of a batch is wrong.
        UnpackLimitError: a compressed batch exceeds `unpack_max_bytes` or `unpack_max_records`.
        DecodeError: some records do not decode, and `dead_letters` is None.
        RegistryError, NetworkError: the schema registry refuses a request, or does not answer.
        MissingDependencyError: pyarrow or numpy is not installed.
    """
    path = _path(directory)
    need_arrow("reading into Arrow")
    from penstock.records.arrow import schema_for

    values = _values_of(
        path, topic, columns, value, key_format, registry, schema, message, dead_letters, needs_types=True
    )
    spec = ReadSpec.checked(
        topic,
        start=start,
        end=end,
        last=last,
        limit=limit,
        columns=columns if values is None else values.fetched,
        partitions=partitions,
        key=key,
        isolation=isolation,
        needs_zones=True,
    )
    limits = UnpackLimits(
        whole(unpack_max_bytes, "unpack_max_bytes"), whole(unpack_max_records, "unpack_max_records")
    )
    batch_bytes = whole(batch_bytes, "batch_bytes")
    old = _directories_07(path)
    if old:
        _check_07(spec.bounds)
        names: Sequence[str | None] = _names_in({name for name, _ in old}, spec)
        parts = [_chosen(path, old, name, spec.partitions) for name in names]
    else:
        names = _names_in({tp.topic for tp in find_partitions(path)} if spec.pattern else (), spec)

    def begin_each() -> list[Batches]:
        if old:
            return [_scan_07(part, spec.decoded, spec.bounds, limits) for part in parts]
        return [
            scan.scan_log(
                path,
                name,
                partitions=spec.partitions,
                start=spec.bounds.start,
                end=spec.bounds.end,
                columns=spec.decoded,
                isolation=spec.isolation,
                batch_bytes=batch_bytes,
                unpack_max_bytes=limits.max_bytes,
                unpack_max_records=limits.max_records,
                last=spec.bounds.last,
            )
            for name in names
        ]

    def begin(_: bool) -> Batches:
        found = chosen(one_after_the_other(begin_each()), spec)
        return found if values is None else values.batches(found)

    begin_each()  # their arguments are checked now
    title = spec.title if spec.names or spec.pattern else "the log"
    shown = schema_for(spec.columns) if values is None else values.schema
    return ArrowScan(shown, begin, f"{title.removeprefix('topic ')} in {path}")


def _path(directory: str | os.PathLike[str]) -> str:
    if not isinstance(directory, (str, os.PathLike)):
        raise ConfigError(f"{directory!r} is no directory: a path is needed")
    return os.fspath(directory)


def _values_of(
    directory: str | os.PathLike[str],
    topic: Topics | None,
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
    """Return the decoders (`Values`) of a log's keys and values, or None if both stay bytes.

    If `topic` is None, the name of the only topic in the directory selects the subject in the registry.
    Raises the errors of `Values.checked`.
    """
    given: tuple[object, ...] = (value, key_format, registry, schema, message, dead_letters)
    if all(each is None for each in given):
        return None
    need_arrow("decoding values")
    from penstock.tables.values import Values

    return Values.checked(
        topic if topic is not None else _only_topic(_path(directory)),
        columns,
        value=value,
        key_format=key_format,
        registry=registry,
        schema=schema,
        message=message,
        dead_letters=dead_letters,
        needs_types=needs_types,
    )


def _only_topic(path: str) -> str:
    """Return the only topic in a directory. Raises ConfigError if there are several."""
    old = _directories_07(path)
    places = _chosen(path, old, None, None) if old else scan.find_topic(path, None)
    return next(iter(places))[0]


def _names_in(found: Collection[str], spec: ReadSpec) -> Sequence[str | None]:
    """Return the topics to read, out of those `found` in the directory; [None] means the only topic in it."""
    if spec.pattern is not None:
        fits = spec.pattern.fullmatch
        return sorted(name for name in found if fits(name) and not name.startswith("__"))
    return spec.names or [None]


def one_after_the_other(parts: Sequence[Batches]) -> Generator[pa.RecordBatch, None, None]:
    """Yield the batches of several scans: all of one scan, then all of the next."""
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(closing(part))
        for part in parts:
            yield from part


def _scan_07(
    wanted: Mapping[tuple[str, int], str], names: tuple[str, ...], bounds: Bounds, limits: UnpackLimits
) -> Batches:
    from penstock.tables.topics07 import scan_log07

    for (name, number), directory in wanted.items():
        yield from scan_log07(
            directory,
            name,
            number,
            names,
            start=_byte(bounds.start, number, 0) or 0,
            end=_byte(bounds.end, number, None),
            unpack=limits,
        )


def _directories_07(path: str) -> dict[tuple[str, int], str]:
    """Return the Kafka 0.7 partition directories in `path` by (topic, partition); {} for newer releases."""
    from penstock.v07.files import is_log_directory, partition_directories, partition_of

    if is_log_directory(path):
        return {partition_of(os.path.basename(os.path.abspath(path))) or ("", 0): path}
    try:
        return {
            partition: directory
            for partition in partition_directories(path)
            if is_log_directory(directory := os.path.join(path, f"{partition[0]}-{partition[1]}"))
        }
    except OSError:
        return {}


def _chosen(
    path: str,
    found: dict[tuple[str, int], str],
    topic: str | None,
    partitions: int | Iterable[int] | None,
) -> dict[tuple[str, int], str]:
    names = sorted({name for name, _ in found})
    if topic is None and len(names) > 1:
        raise ConfigError(f"{path} holds several topics, name one: {', '.join(names)}")
    name = names[0] if topic is None else topic
    there = {key: directory for key, directory in found.items() if key[0] == name}
    if not there:
        raise ConfigError(f"{path} holds no topic {name}; it holds {', '.join(names)}")
    if partitions is None:
        return there
    wanted = [partitions] if isinstance(partitions, int) else sorted(set(partitions))
    for number in wanted:
        if (name, number) not in there:
            known = ", ".join(str(one) for _, one in sorted(there))
            raise ConfigError(f"topic {name} has no partition {number} in {path}; there are {known}")
    return {(name, number): there[name, number] for number in wanted}


def _check_07(bounds: Bounds) -> None:
    if bounds.last is not None:
        raise ConfigError("last is a number of records, which Kafka 0.7 does not count: give start")
    for bound in (bounds.start, bounds.end):
        for point in bound.values() if isinstance(bound, Mapping) else [bound]:
            if isinstance(point, datetime):
                raise ConfigError(
                    f"{point} is no position in a log of Kafka 0.7: earliest, latest or a byte offset; its "
                    "messages have no times"
                )


def _byte(bound: KnownBound, partition: int, latest: int | None) -> int | None:
    """Convert a bound of a Kafka 0.7 log to a byte offset; `latest` if a mapping lacks the partition."""
    point = bound.get(partition) if isinstance(bound, Mapping) else bound
    if point is None or (point == "earliest" and latest == 0) or (point == "latest" and latest is None):
        return latest
    if point in ("earliest", "latest"):
        return 0 if point == "earliest" else 1 << 62
    assert isinstance(point, int)
    return point
