"""`read_log` and `scan_log` for data directories of all Kafka releases.

What Kafka 0.8 and later write is `penstock.log.disk.scan`'s; segments of Kafka 0.7, recognised by their
names, are `penstock.v07`'s. The columns are the same; in 0.7 the offset of a message is the byte where it
starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.common.extras import need_arrow
from penstock.errors import ConfigError
from penstock.log.disk import scan
from penstock.log.disk.scan import BATCH_BYTES, Position
from penstock.records.compression.budget import DEFAULT_LIMITS, UnpackLimits

if TYPE_CHECKING:
    import pyarrow as pa


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
    return scan.as_table(batches, columns)


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
) -> Iterator[pa.RecordBatch]:
    """Yield records of a topic in a data directory as Arrow batches, in bounded memory.

    Args:
        directory: a broker's data directory (`log.dirs`, with Kafka 0.7 `log.dir`), or one partition's
            directory in it.
        topic: may be left out where there is only one.
        partitions: their numbers; all by default.
        start: where to begin: "earliest", "latest", an offset, a `datetime` (the first record at or
            after it), or offsets by partition number, the partitions not named beginning at the
            earliest. Offsets before the log's start mean its start. With Kafka 0.7 offsets are bytes, at
            which a message must begin, and there are no times.
        end: where to stop, exclusive; likewise, the partitions not named ending at the latest.
        columns: names of `COLUMN_NAMES`, in the order wanted; all by default.
        isolation: "read_committed" leaves out aborted transactions, and stops at the first that is
            still open. It takes a walk over all headers of the partition.
        batch_bytes: size of a batch's columns, roughly; one batch of the log, however large it is
            decompressed, stays whole.
        unpack_max_bytes: how many bytes one compressed batch may take when it is decompressed.
        unpack_max_records: how many records one compressed batch may hold.

    Raises:
        ConfigError: no such topic, partition or column; a time without a time zone; other arguments
            that make no sense. Raised at once.
        StorageError: something cannot be read.
        CorruptRecordError: a checksum or the layout of a batch is wrong.
        UnpackLimitError: a compressed batch is beyond one of these two limits; the message names it.
        MissingDependencyError: pyarrow or numpy is not installed.
    """
    if not isinstance(directory, (str, os.PathLike)):
        raise ConfigError(f"{directory!r} is no directory: a path is needed")
    if topic is not None and not isinstance(topic, str):
        raise ConfigError(f"{topic!r} is no name of a topic: it must be text")
    path = os.fspath(directory)
    found = _directories_07(path)
    if found:
        need_arrow("reading into Arrow")
        from penstock.tables.topics07 import scan_log07

        wanted = _chosen(path, found, topic, partitions)
        names = scan.checked_columns(columns)
        for position in (start, end):
            _check_07(position)
        return (
            batch
            for (name, number), place in wanted.items()
            for batch in scan_log07(
                place,
                name,
                number,
                names,
                start=_byte(start, number, 0) or 0,
                end=_byte(end, number, None),
                unpack=UnpackLimits(unpack_max_bytes, unpack_max_records),
            )
        )
    return scan.scan_log(
        path,
        topic,
        partitions=partitions,
        start=start,
        end=end,
        columns=columns,
        isolation=isolation,
        batch_bytes=batch_bytes,
        unpack_max_bytes=unpack_max_bytes,
        unpack_max_records=unpack_max_records,
    )


def _directories_07(path: str) -> dict[tuple[str, int], str]:
    """The partitions in a directory of Kafka 0.7; none in one of later releases."""
    from penstock.v07.files import is_log_directory, partition_directories, partition_of

    if is_log_directory(path):
        return {partition_of(os.path.basename(os.path.abspath(path))) or ("", 0): path}
    try:
        return {
            partition: where
            for partition in partition_directories(path)
            if is_log_directory(where := os.path.join(path, f"{partition[0]}-{partition[1]}"))
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
    there = {key: where for key, where in found.items() if key[0] == name}
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


def _check_07(position: Position) -> None:
    values = position.values() if hasattr(position, "values") else [position]
    for value in values:
        if value not in ("earliest", "latest") and (not isinstance(value, int) or value < 0):
            raise ConfigError(
                f"{value!r} is no position in a log of Kafka 0.7: earliest, latest or a byte offset; its "
                "messages have no times"
            )


def _byte(position: Position, partition: int, latest: int | None) -> int | None:
    """A position as a byte offset; `latest` stands for where it was not named."""
    value = position.get(partition, None) if hasattr(position, "get") else position
    if value is None or (value == "earliest" and latest == 0) or (value == "latest" and latest is None):
        return latest
    if value in ("earliest", "latest"):
        return 0 if value == "earliest" else 1 << 62
    assert isinstance(value, int)
    return value
