"""Backfill: add the records before the first offset of a table's writer, from a broker or a log directory.

If a writer began at the end of the topic, its table lacks the earlier records. A backfill adds these records
under a writer name of its own, up to the offsets at which the writer began. The table stores the offsets of
both, so that each record is added once, even if one of the processes is killed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ConfigError, StorageError
from penstock.lake.contract import LakeTable, Positions
from penstock.lake.lander import LandSettings
from penstock.lake.reading import TopicReader, check_positions
from penstock.log.directory.identity_files import read_topic_id
from penstock.log.disk.scan import find_topic, scan_log
from penstock.log.segments.recovery import segments_in
from penstock.model import TopicPartition
from penstock.protocol.uuid import uuid_to_text

BACKFILL_SUFFIX = ".backfill"
"""The suffix of a backfill's writer name: it is appended to the name of the writer whose earlier records
are added.
"""


class TopicBackfill:
    """Reads the records for a backfill from a broker, each partition up to its offset in `until`."""

    def __init__(self, reader: TopicReader, until: Mapping[int, int]) -> None:
        self._reader = reader
        self._until = dict(until)
        self._done: set[int] = set()
        self.ends: Mapping[int, int] = self._until
        """The offset of each partition at which reading ends."""
        self.topic_id = reader.topic_id

    def begin(self, positions: Positions | None) -> None:
        """Begin to read at the offsets that the backfill has committed.

        Raises ConfigError, as `TopicReader.begin`.
        """
        known = {} if positions is None else positions.offsets
        self._done = {number for number, at in known.items() if at >= self._until.get(number, 0)}
        open_ = None
        if positions is not None:
            # What is complete may have been removed from the topic since.
            left = {number: at for number, at in known.items() if number not in self._done}
            open_ = Positions(positions.topic, positions.topic_id, left, positions.batch, positions.token)
        self._reader.begin(open_)
        self._pause(number for number in self._reader.offsets() if self._is_complete(number))

    def poll(self, timeout_ms: float) -> pa.RecordBatch | None:
        """Return the next records of one partition before its end offset, or None if none arrive in time.

        Raises as `TopicReader.poll`.
        """
        records = self._reader.poll(timeout_ms)
        if records is None or not records.num_rows:
            return records
        number = records.column("partition")[0].as_py()
        end = 0 if number in self._done else self._until.get(number, 0)
        if records.column("offset")[-1].as_py() + 1 >= end:
            self._pause([number])
            records = records.filter(pc.less(records.column("offset"), end))
        return records

    def begins(self) -> dict[int, int]:
        """Return the offset of each partition at which reading begins; valid only before the first `poll`."""
        return self.offsets()

    def offsets(self) -> dict[int, int]:
        """Return the next offset to read of each partition, at most its end."""
        found = self._reader.offsets()
        return {
            number: end if number in self._done else min(end, found.get(number, end))
            for number, end in self._until.items()
        }

    @property
    def is_at_end(self) -> bool:
        """True if all partitions are read up to their end offsets."""
        return self.offsets() == self._until

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()

    def _is_complete(self, number: int) -> bool:
        end = self._until.get(number, 0)
        return number in self._done or self._reader.offsets()[number] >= end

    def _pause(self, numbers: Iterator[int] | Sequence[int]) -> None:
        self._reader.pause(list(numbers))


class LogBackfill:
    """Reads the records for a backfill from a topic's log files on disk, up to the offsets in `until`.

    The directory is a broker's data directory, or that of one partition. If it lacks the last records before
    `until`, a backfill from the broker has to add these.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        topic: str,
        until: Mapping[int, int],
        *,
        isolation: str = "read_committed",
        takes_losses: bool = False,
    ) -> None:
        """Find the partitions of the topic in the directory.

        Raises:
            ConfigError: the directory has no such topic, or partitions of two topics that had this name.
            StorageError: the directory cannot be read.
        """
        found = find_topic(os.fspath(directory), topic)
        self._topic = topic
        self._isolation = isolation
        self._takes_losses = takes_losses
        self._directories = {tp.partition: path for tp, path in found.items() if tp.partition in until}
        self._offsets: dict[int, int] = {}
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self.ends = {number: until[number] for number in self._directories}
        """The offset of each partition at which reading ends."""
        self.is_at_end = False
        """True if all records of the directory are read."""
        ids = {read_topic_id(path) for path in self._directories.values()} - {None}
        if len(ids) > 1:
            raise ConfigError(f"{os.fspath(directory)} has partitions of {len(ids)} topics named {topic!r}")
        self.topic_id = next((uuid_to_text(each) for each in ids if each is not None), None)

    def begin(self, positions: Positions | None) -> None:
        """Begin to read at the offsets that the backfill has committed.

        Raises:
            ConfigError: the positions are of another topic, or before the first offset in the directory.
            StorageError: the directory cannot be read.
        """
        if positions is not None:
            check_positions(positions, self._topic, self.topic_id)
        known = {} if positions is None else positions.offsets
        self._offsets = {}
        for number, path in self._directories.items():
            first = _first_offset(path)
            at = known.get(number, first)
            if at < min(first, self.ends[number]) and not self._takes_losses:
                tp = TopicPartition(self._topic, number)
                raise ConfigError(
                    f"the backfill is at offset {at} of {tp}, and {path} begins at {first}: backfill "
                    "what lies between first, or go on without it by --allow-loss"
                )
            self._offsets[number] = min(max(at, first), self.ends[number])
        self._batches = self._read()
        self.is_at_end = False

    def poll(self, timeout_ms: float) -> pa.RecordBatch | None:
        """Return the next records of one partition; None at the end.

        Raises:
            StorageError: the directory cannot be read.
            CorruptRecordError: a batch is damaged.
        """
        records = next(self._batches, None)
        if records is None:
            self.is_at_end = True
        return records

    def begins(self) -> dict[int, int]:
        """Return the offset of each partition at which reading begins; valid only before the first `poll`."""
        return dict(self._offsets)

    def offsets(self) -> dict[int, int]:
        """Return the next offset to read of each partition, after the records that `poll` returned."""
        return dict(self._offsets)

    def close(self) -> None:
        """Stop reading: `poll` returns None from now on."""
        self._batches = iter(())

    def _read(self) -> Iterator[pa.RecordBatch]:
        for number, path in self._directories.items():
            start, end = self._offsets[number], self.ends[number]
            if start >= end:
                continue
            found = scan_log(path, self._topic, start=start, end=end, isolation=self._isolation)
            for records in found:
                if records.num_rows:
                    self._offsets[number] = records.column("offset")[-1].as_py() + 1
                    yield records


def _first_offset(directory: str) -> int:
    try:
        found = segments_in(os.listdir(directory))
    except OSError as error:
        raise StorageError(f"cannot read {directory}: {error}") from error
    return min(found, default=0)


def backfill_source(
    settings: LandSettings, table: LakeTable, directory: str | os.PathLike[str] | None = None
) -> TopicBackfill | LogBackfill:
    """Return the source of a backfill: a topic up to the offsets at which the writer of `table` began.

    With `directory`, a broker's data directory or one partition's, the log files there are read, and no
    broker is asked.

    Raises:
        ConfigError: the writer has committed nothing, or the topic was deleted since; the directory does not
            have the topic.
        StorageError: the table or the directory cannot be read.
        KafkaError: the topic does not exist.
        NetworkError, RequestTimeoutError: no broker answers.
    """
    positions = table.positions()
    until = {} if positions is None else table.begins()
    if positions is None or not until:
        raise ConfigError(
            f"{table.title} does not say where the landing of {settings.topic!r} has begun: start that, with "
            "--start latest, and the backfill after its first commit"
        )
    source: TopicBackfill | LogBackfill
    if directory is not None:
        source = LogBackfill(
            directory,
            settings.topic,
            until,
            isolation=settings.isolation,
            takes_losses=settings.takes_losses,
        )
    else:
        reader = TopicReader(
            settings.topic,
            settings.bootstrap_servers,
            settings.config,
            isolation=settings.isolation,
            takes_losses=settings.takes_losses,
        )
        source = TopicBackfill(reader, until)
    try:
        check_positions(positions, settings.topic, source.topic_id)
    except BaseException:
        source.close()
        raise
    return source
