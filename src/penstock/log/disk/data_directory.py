"""A whole data directory: which partitions it holds, whose it is, and how it was left.

The files are Kafka's. In the directory: `meta.properties`; `.lock`, held while a process uses it;
`.kafka_cleanshutdown`, there only while none does and the last one closed everything; the checkpoints
`recovery-point-offset-checkpoint`, `log-start-offset-checkpoint` and `cleaner-offset-checkpoint`. One
directory a partition, named topic-partition; one whose deletion has begun ends in `-delete`, and what is left
of it is removed after the next start, while `-stray` and `-future` (Kafka's own affairs) are left alone.
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
"""What to do about what is missing at a start."""

LOOKED_AT_ONCE = 500
"""Open logs whose files are looked for at a time: some milliseconds."""

NAME_CHARACTERS_MAX = 255
"""The longest name that file systems allow."""

_in_use: set[str] = set()
"""Directories opened in this process: a lock of its own would not keep it out."""


def parse_partition_name(name: str) -> TopicPartition | None:
    """Return the partition that a directory name stands for; None if it stands for none."""
    topic, dash, partition = name.rpartition("-")
    if not (dash and topic and partition.isascii() and partition.isdigit()):
        return None
    return TopicPartition(topic, int(partition))


def find_partitions(directory: str) -> dict[TopicPartition, str]:
    """Return the directory of every partition in a data directory, in order.

    Raises:
        StorageError: the directory cannot be read.
    """
    with storage("read", directory), os.scandir(directory) as found:
        names = [entry.name for entry in found if entry.is_dir()]
    partitions = {parse_partition_name(name): f"{directory}/{name}" for name in names}
    return dict(sorted((partition, path) for partition, path in partitions.items() if partition))


class DataDirectory:
    """A data directory in use by this process. Opening locks it; closing in good order marks it clean."""

    def __init__(self, path: str, *, node_id: int = 1, cluster_id: str | None = None) -> None:
        """Open `path`, which is made if need be.

        `cluster_id` (22 characters of base64; a random one by default) counts for a new directory,
        and must not contradict one that exists.

        Raises:
            StorageError: in use by another process, unreadable, unwritable, or another cluster's.
        """
        self.path = os.path.abspath(os.fspath(path))
        self.logs: dict[TopicPartition, DiskLog] = {}
        """The logs that are open."""
        make_directory(self.path)
        warn_if_others_may_read(self.path)
        self._lock = _lock(self.path)
        self._missing: set[TopicPartition] = set()
        self._unwanted: set[TopicPartition] = set()
        """Directories that are no partitions any more, or not yet, but could not be taken away."""
        self._remover = Remover()
        self._looked_at = 0
        self.broker_epoch = -1
        """What the mark of a clean shutdown names: the epoch of the last registration with a controller."""
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
            """Whether the last process closed its logs, or there are none."""
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
        """Where a partition lies, or will lie: here."""
        return self

    @property
    def all(self) -> Sequence[DataDirectory]:
        """The directories of the broker: this one."""
        return (self,)

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions on disk, whether open or not, in order."""
        return sorted(self._paths)

    def topic_id(self, partition: TopicPartition) -> bytes | None:
        """Return the topic id that a partition's directory notes; None if it has none.

        A power cut may leave half of one, which is as good as none: it is reported.

        Raises:
            StorageError: it cannot be read.
        """
        try:
            return read_topic_id(self._paths[partition])
        except StorageError as error:
            if error.errno is not None:
                raise
            logger.warning("%s; it is passed over", error)
            return None

    def note_topic_id(self, partition: TopicPartition, topic_id: bytes) -> None:
        """Write the topic id into a partition's directory, because an older broker or a power cut left none.

        Raises:
            StorageError: it cannot be written.
        """
        write_topic_id(self._paths[partition], topic_id)

    def open_log(self, partition: TopicPartition, config: LogConfig | None = None, *, now_ms: int) -> DiskLog:
        """Open the log of a partition that is on disk, once.

        Raises:
            StorageError: there is none, or it cannot be opened.
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
        """Make the directory of a new partition, and its empty log: all of it, or nothing.

        Raises:
            StorageError: there is one already, or it cannot be made.
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

        The directory is renamed first: a crash on the way leaves nothing that looks like a partition. Where
        many are deleted, their files are removed in a thread, after this has returned. What the system
        refuses is logged, and done later: with the next checkpoint, when the name is needed, or at the next
        start.
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
        """Rename a directory that is no partition, and have it removed.

        Raises:
            StorageError: it keeps its name.
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
        """Look through what was there at the start; may run in another thread.

        `known` returns whether a partition is in the metadata, for those without a directory.

        Yields:
            What is missing, in words, with what to do; the empty string after each partition.
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
        """See that the directory has not been removed, moved or replaced: its lock is where it was.

        Raises:
            StorageError: it has.
        """
        if identity_of(f"{self.path}/{LOCK}") != self._lock_identity:
            raise StorageError(f"{self.path} {GONE}")

    def missing(self) -> list[StorageError]:
        """Look whether something was removed or moved; return what was, and have appends look, too.

        Meant to be called once a second. Of the open logs `LOOKED_AT_ONCE` are looked at in turn, and those
        that were missing; each append looks for itself when that was a second ago.
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
        """Note how far every open log is safe, where it begins, and up to where it is compacted.

        Raises:
            StorageError: it cannot be written.
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
            StorageError: something could not be written; then there is no mark, and the next start
                checks the logs.
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
        """Let go of everything as a crash would, but for the lock, which is released."""
        self._remover.stop()
        for log in self.logs.values():
            log.abandon()
        self.logs.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
            _in_use.discard(self.path)


def _lock(path: str) -> int:
    """Take the lock that Kafka takes, and return its descriptor.

    Raises:
        StorageError: another process has it, or this one.
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
    """Return the offsets in a checkpoint; none, and a warning, if it is damaged: they only save work."""
    try:
        return read_offsets(path)
    except StorageError as error:
        if error.errno is not None:
            raise
        logger.warning("%s; it is passed over", error)
        return {}
