"""Read topics from a Kafka data directory into Arrow, without a broker or beside a running one.

Segments are mapped into memory and decoded from these mappings. The directory may be Penstock's or Apache
Kafka's, and in use: each partition is read up to the last complete batch at the time when its reading
began. Nothing is locked or written. See `ReadOnlyLog`.

If a log is truncated while it is read (by a follower with a new leader), mapped pages disappear, which
ends the process with SIGBUS; deleting segments does not.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from mmap import ACCESS_READ, mmap
from typing import TYPE_CHECKING

from penstock.common.extras import need_arrow
from penstock.common.operating_system import advise_sequential
from penstock.errors import (
    ConfigError,
    CorruptRecordError,
    StorageError,
    UnpackLimitError,
)
from penstock.log.directory.files import storage_error
from penstock.log.disk.data_directory import find_partitions, parse_partition_name
from penstock.log.disk.readonly import ReadOnlyLog, Region
from penstock.log.segments.recovery import segments_in
from penstock.model import COLUMN_NAMES, EARLIEST, LATEST, TopicPartition
from penstock.records.compression.codecs import DEFAULT_LIMITS, UnpackLimits, naming_place

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.records.decode import WholeBatches

BATCH_BYTES = 4 << 20
"""The size in bytes of the Arrow batches that a scan yields. In measurements, smaller and larger ones cost
more per byte.
"""

NAMES_SHOWN_MAX = 20

LIMITS_ADVICE = ", here the arguments unpack_max_bytes and unpack_max_records"
"""The end of an error message about unpack limits (`UnpackLimitError`). It names the arguments of a scan
that set these limits.
"""

Position = int | str | datetime | Mapping[int, int | str | datetime]
"""The start or end of a scan: an offset, "earliest", "latest", a time, or a mapping from partition number
to offset.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED = {"earliest": EARLIEST, "latest": LATEST}
_ISOLATIONS = ("read_uncommitted", "read_committed")


def read_log(
    directory: str | os.PathLike[str],
    topic: str | None = None,
    *,
    partitions: int | Iterable[int] | None = None,
    start: Position = "earliest",
    end: Position = "latest",
    columns: Sequence[str] | None = None,
    isolation: str = "read_uncommitted",
    unpack_max_bytes: int = DEFAULT_LIMITS.max_bytes,
    unpack_max_records: int = DEFAULT_LIMITS.max_records,
) -> pa.Table:
    """Return records of a topic in a data directory as one table, partition after partition.

    Arguments and errors are those of `scan_log`.
    """
    batches = scan_log(
        directory,
        topic,
        partitions=partitions,
        start=start,
        end=end,
        columns=columns,
        isolation=isolation,
        unpack_max_bytes=unpack_max_bytes,
        unpack_max_records=unpack_max_records,
    )
    return as_table(batches, columns)


def as_table(batches: Iterable[pa.RecordBatch], columns: Sequence[str] | None) -> pa.Table:
    """Return the batches of a scan as one table. It has all columns even if there are no records."""
    import pyarrow

    from penstock.records.arrow import schema_for

    schema = schema_for(COLUMN_NAMES if columns is None else columns)
    return pyarrow.Table.from_batches(batches, schema=schema)


def scan_log(
    directory: str | os.PathLike[str],
    topic: str | None = None,
    *,
    partitions: int | Iterable[int] | None = None,
    start: Position = "earliest",
    end: Position = "latest",
    columns: Sequence[str] | None = None,
    isolation: str = "read_uncommitted",
    batch_bytes: int = BATCH_BYTES,
    unpack_max_bytes: int = DEFAULT_LIMITS.max_bytes,
    unpack_max_records: int = DEFAULT_LIMITS.max_records,
    last: int | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """Yield records of a topic in a data directory as Arrow batches, in bounded memory.

    Args:
        directory: a broker's data directory (`log.dirs`), or one partition's directory in it.
        topic: name of the topic; may be left out if the directory has only one.
        partitions: numbers of the partitions to read; all by default.
        start: where to begin: "earliest", "latest", an offset, a `datetime` (the first record at or
            after it), or a mapping of partition numbers to offsets, in which a partition that is
            missing begins at the earliest. Offsets before the log's start mean its start.
        end: where to stop, exclusive, in the same forms; a partition missing in a mapping ends at the latest.
        columns: names from `COLUMN_NAMES`, in the order of the result's columns; all by default.
        isolation: "read_committed" leaves out aborted transactions, and stops at the first open
            transaction. It reads all batch headers of the partition first.
        batch_bytes: approximate size of the columns of an Arrow batch; one batch of the log is never divided,
        even if it is larger after decompression. unpack_max_bytes: the maximum bytes of one compressed batch
        after decompression. unpack_max_records: the maximum number of records in one compressed batch. last:
        the scan starts this number of offsets before the end of each partition; replaces `start`.

    Raises:
        ConfigError: no such topic, partition or column; a time without a time zone; other invalid
            arguments. Raised before the first batch.
        StorageError: a file cannot be read.
        CorruptRecordError: a checksum or the layout of a batch is wrong.
        UnpackLimitError: a compressed batch exceeds `unpack_max_bytes` or `unpack_max_records`.
        MissingDependencyError: pyarrow or numpy is not installed.
    """
    names = checked_columns(columns)
    if batch_bytes <= 0:
        raise ConfigError(f"batch_bytes is {batch_bytes}: it must be positive")
    if isolation not in _ISOLATIONS:
        raise ConfigError(f"isolation is {isolation!r}: it must be {' or '.join(_ISOLATIONS)}")
    wanted = find_topic(os.fspath(directory), topic, partitions)
    _check_position("start", start, wanted)
    _check_position("end", end, wanted)
    need_arrow("reading into Arrow")
    limits = UnpackLimits(unpack_max_bytes, unpack_max_records)
    return _scan(wanted, names, start, end, isolation == "read_committed", batch_bytes, limits, last)


def find_topic(
    directory: str, topic: str | None, partitions: int | Iterable[int] | None = None
) -> dict[TopicPartition, str]:
    """Return a dict from each partition to read, in order, to its directory.

    Raises:
        ConfigError: there is no such topic or partition, or `topic` is None and there are several topics; the
            message names those that exist.
        StorageError: the directory cannot be read.
    """
    directory = os.path.abspath(directory)
    numbers = {partitions} if isinstance(partitions, int) else None if partitions is None else {*partitions}
    itself = parse_partition_name(os.path.basename(directory))
    if itself is not None and _holds_segments(directory):
        found = {itself: directory}
        if topic not in (None, itself.topic):
            raise ConfigError(f"{directory} is a partition of topic {itself.topic}, not {topic}")
    else:
        found = find_partitions(directory)
    topics = sorted({partition.topic for partition in found})
    if topic is None:
        ours = [name for name in topics if not name.startswith("__")] or topics
        if len(ours) != 1:
            raise ConfigError(f"name the topic: {directory} holds {_listed(topics, 'topics')}")
        topic = ours[0]
    elif topic not in topics:
        raise ConfigError(
            f"there is no topic {topic!r} in {directory}, which holds {_listed(topics, 'topics')}"
        )
    chosen = {partition: path for partition, path in found.items() if partition.topic == topic}
    missing = (numbers or set()).difference(partition.partition for partition in chosen)
    if missing:
        there = [str(partition.partition) for partition in chosen]
        raise ConfigError(
            f"topic {topic} has no partition {min(missing)} here, only {_listed(there, 'ones')}"
        )
    return {
        partition: path
        for partition, path in chosen.items()
        if numbers is None or partition.partition in numbers
    }


def _holds_segments(directory: str) -> bool:
    try:
        return bool(segments_in(os.listdir(directory)))
    except OSError:
        return False


def _listed(names: Sequence[str], what: str) -> str:
    if not names:
        return f"no {what}"
    shown = ", ".join(names[:NAMES_SHOWN_MAX])
    more = len(names) - NAMES_SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def checked_columns(columns: Sequence[str] | None) -> tuple[str, ...]:
    if columns is None:
        return COLUMN_NAMES
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    unknown = [name for name in names if name not in COLUMN_NAMES]
    if unknown:
        raise ConfigError(f"there is no column {unknown[0]!r}; known: {', '.join(COLUMN_NAMES)}")
    return names


def _check_position(which: str, position: Position, wanted: Mapping[TopicPartition, str]) -> None:
    if isinstance(position, str) and position not in _NAMED:
        raise ConfigError(f"{which} is {position!r}: it must be earliest, latest, an offset or a time")
    if isinstance(position, datetime) and position.tzinfo is None:
        raise ConfigError(f"{which} is a time without a time zone; add one, for example tzinfo=timezone.utc")
    if isinstance(position, Mapping):
        numbers = [partition.partition for partition in wanted]
        unknown = [number for number in position if number not in numbers]
        if unknown:
            raise ConfigError(f"{which} names partition {unknown[0]!r}, which is not among those read")
        points: list[object] = list(position.values())
    else:
        points = [position]
    for offset in points:
        if isinstance(offset, int) and offset < EARLIEST:
            raise ConfigError(f"{which} is offset {offset}: offsets are not negative")


def _scan(
    wanted: Mapping[TopicPartition, str],
    names: tuple[str, ...],
    start: Position,
    end: Position,
    committed: bool,
    batch_bytes: int,
    limits: UnpackLimits,
    last: int | None,
) -> Generator[pa.RecordBatch, None, None]:
    from penstock.records.arrow import to_arrow
    from penstock.records.decode import iter_columns

    for partition, path in wanted.items():
        log = ReadOnlyLog(path, partition)
        first = _resolve(log, partition, start, EARLIEST)
        stop = _resolve(log, partition, end, LATEST)
        aborted: list[tuple[int, int]] = []
        transactions: list[tuple[int, int, int]] = []
        if committed:
            stop, transactions = log.committed(stop)
        if last is not None:
            first = max(log.start_offset, stop - last)
        if committed:
            # One that ended before the first offset would never be seen to end.
            aborted = [(producer_id, since) for producer_id, since, until in transactions if until >= first]
        source = path

        # What is decoded when an error comes is what was handed out last.
        def mapped(regions: Iterator[Region]) -> Iterator[memoryview | WholeBatches]:
            nonlocal source
            for region in regions:
                source = str(region.file.name)
                yield _mapped(region)

        pieces = iter_columns(
            mapped(log.regions(first, stop)),
            columns=names,
            start_offset=first,
            end_offset=stop,
            aborted=aborted,
            limit_bytes=limits.max_bytes,
            limit_records=limits.max_records,
            batch_bytes=batch_bytes,
        )
        with naming_place(partition, LIMITS_ADVICE):
            try:
                for columns in pieces:
                    yield to_arrow(columns, partition.topic, partition.partition, names)
            except UnpackLimitError:
                raise
            except CorruptRecordError as error:
                raise CorruptRecordError(f"{source} is damaged: {error}") from error


def _resolve(log: ReadOnlyLog, partition: TopicPartition, position: Position, default: int) -> int:
    """Return the offset that the argument `start` or `end` of `scan_log` means, within the log's offsets."""
    if isinstance(position, Mapping):
        position = position.get(partition.partition, default)
    if isinstance(position, datetime):
        milliseconds = -((_EPOCH - position) // timedelta(milliseconds=1))  # rounded up
        found = log.offset_for_timestamp(milliseconds)
        return log.end_offset if found is None else found[0]
    offset = _NAMED[position] if isinstance(position, str) else position
    if offset == LATEST:
        return log.end_offset
    return min(max(offset, log.start_offset), log.end_offset)


def _mapped(region: Region) -> memoryview | WholeBatches:
    """Map a region of a file into memory. The mapping ends when its last view is dropped."""
    from penstock.records.decode import WholeBatches

    file, position, end, end_offset = region
    try:
        mapping = mmap(file.fileno(), end, access=ACCESS_READ)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            raise storage_error("map", str(file.name), error) from error
        raise StorageError(f"cannot map {file.name}: it is shorter than it was a moment ago") from error
    advise_sequential(mapping)
    data = memoryview(mapping)[position:]
    return data if end_offset < 0 else WholeBatches(data, end_offset)
