"""A whole data directory: its partitions, its node and cluster, and whether it was closed cleanly.

The files are Kafka's. In the directory: `meta.properties`; `.lock`, held while a process uses it;
`.kafka_cleanshutdown`, which exists only while no process uses the directory, and only after a clean
shutdown; the checkpoints `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint` and
`cleaner-offset-checkpoint`. Each partition has one directory, named topic-partition. If its deletion has
begun, the name ends in `-delete`, and the next start removes its remaining files. Directories whose names end
in `-stray` or `-future`, which only Apache Kafka uses, are not touched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from penstock.common.logs import logger_named
from penstock.common.operating_system import OPEN_FLAGS, try_lock
from penstock.errors import StorageError
from penstock.log.contract import LogConfig
from penstock.log.directory.checkpoint import (
    CLEANED,
    RECOVERY_POINTS,
    START_OFFSETS,
    read_offsets,
    write_offsets,
)
from penstock.log.directory.files import (
    DIRECTORY_MODE,
    FILE_MODE,
    GONE,
    identity_of,
    make_directory,
    remove_file,
    storage,
    storage_error,
    sync_directory,
    warn_if_others_may_read,
    write_text,
)
from penstock.log.directory.identity_files import (
    MetaProperties,
    read_meta_properties,
    read_topic_id,
    write_meta_properties,
    write_topic_id,
)
from penstock.log.directory.removal import Remover
from penstock.log.disk.disk_log import DiskLog
from penstock.log.disk.inspection import Noted, problems_of
from penstock.model import TopicPartition
from penstock.protocol.uuid import random_uuid, uuid_to_text

logger = logger_named("penstock.log")

LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
SUFFIX_DELETE = "-delete"
SUFFIXES_FOREIGN = ("-stray", "-future")

REMEDY = "restore it from a copy, or go on without what it held"
"""Advice for the user, which ends log messages about partitions or files that are missing at a start."""

LOOKED_AT_ONCE = 500
"""The maximum number of open logs whose files are checked in one call of `missing`, which takes some
milliseconds.
"""

NAME_CHARACTERS_MAX = 255
"""The maximum length in characters of a file name in common file systems."""

_in_use: set[str] = set()
"""The data directories that this process has open. They are tracked because a file lock does not exclude
the process that holds it.
"""


def parse_partition_name(name: str) -> TopicPartition | None:
    """Return the partition to which a directory name belongs, or None for any other name."""
    topic, dash, partition = name.rpartition("-")
    if not (dash and topic and partition.isascii() and partition.isdigit()):
        return None
    return TopicPartition(topic, int(partition))


def find_partitions(directory: str) -> dict[TopicPartition, str]:
    """Return a dict from partition, in order, to its path in a data directory.

    Raises:
        StorageError: the directory cannot be read.
    """
    with storage("read", directory), os.scandir(directory) as found:
        names = [entry.name for entry in found if entry.is_dir()]
    partitions = {parse_partition_name(name): f"{directory}/{name}" for name in names}
    return dict(sorted((partition, path) for partition, path in partitions.items() if partition))


class DataDirectory:
    """A data directory in use by this process. Opening locks it; a successful `close` marks it clean."""

    def __init__(self, path: str, *, node_id: int = 1, cluster_id: str | None = None) -> None:
        """Open the data directory `path`, and create it if it is missing.

        `cluster_id` (22 characters of base64; a random one by default) is the id of a new directory's
        cluster; for an existing directory it must match.

        Raises:
            StorageError: the directory is in use by another process, unreadable, unwritable, or of another
                cluster.
        """
        self.path = os.path.abspath(os.fspath(path))
        self.logs: dict[TopicPartition, DiskLog] = {}
        """A dict from partition to its log, for all open logs."""
        make_directory(self.path)
        warn_if_others_may_read(self.path)
        self._lock = _lock(self.path)
        self._missing: set[TopicPartition] = set()
        self._unwanted: set[TopicPartition] = set()
        """The partitions that were deleted or not completely created, and whose directories could not be
        renamed yet."""
        self._remover = Remover()
        self._looked_at = 0
        self.broker_epoch = -1
        """The epoch of the last registration with a controller, for the clean-shutdown file."""
        try:
            self._lock_identity = identity_of(self._lock)
            self.meta = self._identify(node_id, cluster_id)
            was_marked = os.path.exists(f"{self.path}/{CLEAN_SHUTDOWN}")
            # From here on a crash is a crash, also one before the first append.
            remove_file(f"{self.path}/{CLEAN_SHUTDOWN}")
            self._recovery_points = _offsets_or_none(f"{self.path}/{RECOVERY_POINTS}")
            self._start_offsets = _offsets_or_none(f"{self.path}/{START_OFFSETS}")
            self._cleaned = _offsets_or_none(f"{self.path}/{CLEANED}")
            self._remove_deleted()
            self._paths = find_partitions(self.path)
            self._paths_at_start = dict(self._paths)
            self._noted_at_start = {
                partition: Noted(
                    self._recovery_points.get(partition, 0),
                    self._start_offsets.get(partition, 0),
                    self._cleaned.get(partition, 0),
                )
                for partition in sorted({*self._paths, *self._recovery_points})
            }
            self._deleted: set[TopicPartition] = set()
            self.was_clean = was_marked or not self._paths
            """True if the last process shut down cleanly, or if there are no logs."""
        except BaseException:
            self.abandon()
            raise

    def _identify(self, node_id: int, cluster_id: str | None) -> MetaProperties:
        meta = read_meta_properties(self.path)
        if meta is None:
            fresh = cluster_id or uuid_to_text(random_uuid())
            meta = MetaProperties(fresh, node_id, uuid_to_text(random_uuid()))
            if find_partitions(self.path):
                logger.warning(
                    "%s holds partitions but no meta.properties, which says whose they are: it becomes "
                    "cluster %s, node %d; if it had another id, stop the broker and put the file back",
                    self.path,
                    fresh,
                    node_id,
                )
            write_meta_properties(self.path, meta)
        elif cluster_id is not None and meta.cluster_id not in ("", cluster_id):
            raise StorageError(
                f"{self.path} belongs to cluster {meta.cluster_id}, not {cluster_id}; "
                "name another directory, or leave the cluster id out"
            )
        return meta

    def _remove_deleted(self) -> None:
        with storage("read", self.path):
            names = os.listdir(self.path)
        for name in names:
            if name.endswith(SUFFIX_DELETE):
                self._remover.remove(f"{self.path}/{name}")
            elif name.endswith(SUFFIXES_FOREIGN):
                logger.warning("leaving %s/%s alone", self.path, name)

    # --- partitions -------------------------------------------------------------------------------

    def home_of(self, partition: TopicPartition) -> DataDirectory:
        """Return the data directory for a partition: always this one (`LogDirectories` has several)."""
        return self

    @property
    def all(self) -> Sequence[DataDirectory]:
        """All data directories of the broker: only this one (`LogDirectories` has several)."""
        return (self,)

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions on disk, whether open or not, in order."""
        return sorted(self._paths)

    def topic_id(self, partition: TopicPartition) -> bytes | None:
        """Return the topic id in a partition's `partition.metadata`, or None if there is none.

        A malformed file, which a power cut may leave, counts as missing and is logged.

        Raises:
            StorageError: the file cannot be read.
        """
        try:
            return read_topic_id(self._paths[partition])
        except StorageError as error:
            if error.errno is not None:
                raise
            logger.warning("%s; it is passed over", error)
            return None

    def note_topic_id(self, partition: TopicPartition, topic_id: bytes) -> None:
        """Write the topic id into a partition's directory if the file with the id is missing.

        Raises:
            StorageError: the file cannot be written.
        """
        write_topic_id(self._paths[partition], topic_id)

    def open_log(self, partition: TopicPartition, config: LogConfig | None = None, *, now_ms: int) -> DiskLog:
        """Open the log of a partition that is on disk and not open yet.

        Raises:
            StorageError: the partition is not on disk, or its log cannot be opened.
        """
        path = self._paths.get(partition)
        if path is None:
            raise StorageError(f"{self.path} holds no partition {partition}")
        self.check_in_place()
        if not os.path.isdir(path):
            raise StorageError(
                f"{path} {GONE}; where its records are not needed any more, delete the topic instead"
            )
        log = DiskLog(
            path,
            config,
            now_ms=now_ms,
            clean_shutdown=self.was_clean,
            recovery_point=self._recovery_points.get(partition, 0),
            start_offset=self._start_offsets.get(partition, 0),
            cleaned_to=self._cleaned.get(partition, 0),
        )
        self.logs[partition] = log
        return log

    def create_log(
        self,
        partition: TopicPartition,
        topic_id: bytes | None = None,
        config: LogConfig | None = None,
        *,
        now_ms: int,
    ) -> DiskLog:
        """Create the directory of a new partition with an empty log; on an error, remove both.

        Raises:
            StorageError: the partition exists already, or its files cannot be created.
        """
        path = f"{self.path}/{partition}"
        self.check_in_place()
        if partition in self._unwanted:
            self._take_away(partition)
        if partition in self._deleted:
            # What the checkpoints say of the one that had this name must not be taken for the new one's.
            self.write_checkpoints()
        try:
            os.mkdir(path, DIRECTORY_MODE)
        except OSError as error:
            raise storage_error("create", path, error) from error
        try:
            if topic_id is not None:
                write_topic_id(path, topic_id)
            log = DiskLog(path, config, now_ms=now_ms, clean_shutdown=True)
        except BaseException:
            # What is left of it would be taken for a partition by the next start.
            self._unwanted.add(partition)
            with suppress(StorageError):
                self._take_away(partition)
            raise
        self._paths[partition] = path
        self.logs[partition] = log
        return log

    def delete_log(self, partition: TopicPartition) -> None:
        """Remove a partition with all its files. Slices that were read stay readable.

        The directory is renamed first, so that after a crash, a partly removed directory does not look like a
        partition. If many are deleted, their files are removed in a thread, after this method has returned. A
        failure of the system is logged, and the removal is retried: with the next checkpoint, when the name
        is needed again, or at the next start.
        """
        del self._paths[partition]
        self._deleted.add(partition)
        self.logs.pop(partition, None)
        self._recovery_points.pop(partition, None)
        self._start_offsets.pop(partition, None)
        self._cleaned.pop(partition, None)
        self._unwanted.add(partition)
        try:
            self._take_away(partition)
        except StorageError as error:
            logger.warning("%s; it is tried again later", error)

    def _take_away(self, partition: TopicPartition) -> None:
        """Rename the directory of a deleted partition, and start to remove it.

        Raises:
            StorageError: the directory cannot be renamed.
        """
        path = f"{self.path}/{partition}"
        mark = f".{random_uuid().hex()}{SUFFIX_DELETE}"
        doomed = f"{self.path}/{str(partition)[: NAME_CHARACTERS_MAX - len(mark)]}{mark}"
        with storage("delete", path):
            os.rename(path, doomed)
        self._unwanted.discard(partition)
        try:
            self._remover.remove(doomed)
        except StorageError as error:
            logger.warning("%s; it is tried again later", error)

    def problems(self, known: Callable[[TopicPartition], bool]) -> Iterator[str]:
        """Compare the directory at the start with the checkpoints to find missing files, in any thread.

        `known` returns True if a partition is in the metadata; it is called for partitions that have a
        checkpoint entry but no directory.

        Yields:
            A sentence with advice for each missing file; the empty string after each partition.
        """
        for partition, noted in self._noted_at_start.items():
            path = self._paths_at_start.get(partition)
            if path is None:
                if noted.recovery_point > noted.start_offset and known(partition):
                    yield (
                        f"{self.path}/{partition} is missing, which ended at offset {noted.recovery_point}; "
                        f"{REMEDY}"
                    )
                continue
            for problem in problems_of(path, noted):
                yield f"{problem}; {REMEDY}"
            yield ""

    # --- whether it is all still there ------------------------------------------------------------

    def check_in_place(self) -> None:
        """Check that the data directory has not been removed, moved or replaced while the broker runs.

        Raises:
            StorageError: the lock file is not where it was.
        """
        if identity_of(f"{self.path}/{LOCK}") != self._lock_identity:
            raise StorageError(f"{self.path} {GONE}")

    def missing(self) -> list[StorageError]:
        """Check if files were removed or moved; return an error for each. Let appends check again, too.

        Call this once a second. Each call checks the next `LOOKED_AT_ONCE` open logs, and the logs that were
        missing before. Each append checks its own log if the last check was a second ago.
        """
        try:
            self.check_in_place()
        except StorageError as error:
            for log in self.logs.values():
                log.look_again()
            return [error]
        partitions = list(self.logs)
        first = self._looked_at if self._looked_at < len(partitions) else 0
        self._looked_at = first + LOOKED_AT_ONCE
        failures = []
        for partition in {*self._missing, *partitions[first : self._looked_at]}:
            found = self.logs.get(partition)
            self._missing.discard(partition)
            if found is None:
                continue
            try:
                found.check_in_place()
            except StorageError as error:
                found.look_again()
                self._missing.add(partition)
                failures.append(error)
        return failures

    # --- durability -------------------------------------------------------------------------------

    def write_checkpoints(self) -> None:
        """Write the recovery point, start offset and compacted offset of every open log to the checkpoints.

        Raises:
            StorageError: a checkpoint cannot be written.
        """
        self.check_in_place()
        for partition in list(self._unwanted):
            self._take_away(partition)
        self._remover.retry()
        for partition, log in self.logs.items():
            self._recovery_points[partition] = log.recovery_point
            self._start_offsets[partition] = log.start_offset
            if log.cleaned_to:
                self._cleaned[partition] = log.cleaned_to
        write_offsets(f"{self.path}/{RECOVERY_POINTS}", self._recovery_points)
        write_offsets(f"{self.path}/{START_OFFSETS}", {p: o for p, o in self._start_offsets.items() if o > 0})
        if self._cleaned or self._deleted:
            write_offsets(f"{self.path}/{CLEANED}", self._cleaned)
        self._deleted.clear()

    def close(self) -> None:
        """Flush and close every log, and mark the directory clean.

        Raises:
            StorageError: a file could not be written; the directory is then not marked clean, and the next
                start checks the logs.
        """
        try:
            self.check_in_place()
            for log in self.logs.values():
                if log.end_offset > log.recovery_point:
                    log.flush()
                log.close()
            # What is still to be removed must not hold up a stop: the next start has the rest of it removed.
            self._remover.stop()
            self.write_checkpoints()
            path = f"{self.path}/{CLEAN_SHUTDOWN}"
            # A partition on disk that was never opened has not been checked: the mark would vouch for it.
            if self.was_clean or self._paths.keys() == self.logs.keys():
                write_text(path, f'{{"version":0,"brokerEpoch":{self.broker_epoch}}}', sync=True)
                sync_directory(self.path)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Release the lock and all files without flushing or closing the logs, as after a crash."""
        self._remover.stop()
        for log in self.logs.values():
            log.abandon()
        self.logs.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
            _in_use.discard(self.path)


def _lock(path: str) -> int:
    """Lock the data directory with Kafka's lock file; return the file's descriptor.

    Raises:
        StorageError: another process, or this one, holds the lock.
    """
    lock = f"{path}/{LOCK}"
    taken = f"{path} is in use by another broker; stop that one, or name another directory"
    if path in _in_use:
        raise StorageError(taken)
    with storage("open", lock):
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | OPEN_FLAGS, FILE_MODE)
    try:
        is_ours = try_lock(fd)
    except OSError as error:
        os.close(fd)
        raise storage_error("lock", lock, error) from error
    if not is_ours:
        os.close(fd)
        raise StorageError(taken)
    _in_use.add(path)
    return fd


def _offsets_or_none(path: str) -> dict[TopicPartition, int]:
    """Return the offsets in a checkpoint file; if the file is damaged, log a warning and return {}.

    Checkpoints only save time: the offsets can be found in the logs, too.
    """
    try:
        return read_offsets(path)
    except StorageError as error:
        if error.errno is not None:
            raise
        logger.warning("%s; it is passed over", error)
        return {}
