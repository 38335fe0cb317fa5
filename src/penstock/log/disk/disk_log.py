"""A log on disk in Kafka's layout: one directory, with one `.log` file and two indexes per segment."""

from __future__ import annotations

import os
from zlib import crc32

from penstock.common import operating_system
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.log.contract import LogConfig, PendingFlush, Segment
from penstock.log.directory.checkpoint import LEADER_EPOCHS
from penstock.log.directory.epoch_checkpoint import load_epochs, new_epochs
from penstock.log.directory.files import (
    GONE,
    OpenFile,
    check_in_place,
    identity_of,
    make_directory,
    remove_file,
    storage,
    storage_error,
    sync_directory,
)
from penstock.log.epochs import LeaderEpochs
from penstock.log.segmented import SegmentedLog
from penstock.log.segments.recovery import open_segments
from penstock.log.segments.segment import FileSegment
from penstock.log.segments.segment_files import SUFFIX_CLEANED, SUFFIX_SWAP

logger = logger_named("penstock.log")


class FileFlush:
    """The files and directories to flush so that all batches of a log below `up_to_offset` are on disk.

    `sync` may run in another thread: it uses only the files that this object holds open.
    """

    __slots__ = ("_directories", "_files", "up_to_offset")

    def __init__(self, files: list[OpenFile], directories: list[str], up_to_offset: int) -> None:
        self._files = files
        self._directories = directories
        self.up_to_offset = up_to_offset

    def sync(self) -> None:
        """Flush all the files to disk, and wait until this is done.

        Raises:
            StorageError: the device failed, and data written before may be lost; or a file was removed.
        """
        for file in self._files:
            try:
                operating_system.fdatasync(file.fileno())
                is_gone = not os.fstat(file.fileno()).st_nlink
            except OSError as error:
                raise storage_error("flush", str(file.name), error) from error
            if is_gone:
                raise StorageError(f"{file.name} {GONE}")
        for directory in self._directories:
            sync_directory(directory)


class DiskLog(SegmentedLog):
    """The log of one partition in a directory; it implements `Log`.

    Only one process may use it; `DataDirectory` holds the lock for that.
    """

    flush_is_instant = False

    def __init__(
        self,
        directory: str,
        config: LogConfig | None = None,
        *,
        now_ms: int,
        clean_shutdown: bool = False,
        recovery_point: int = 0,
        start_offset: int = 0,
        cleaned_to: int = 0,
    ) -> None:
        """Open the log in `directory`, which is created if missing; repair the damage of a crash.

        With `clean_shutdown`, the last process has closed the log; otherwise the batches are checked from
        `recovery_point` on. `start_offset` and `cleaned_to` (the offset up to which the log was compacted)
        come from the checkpoints. The attribute `recovery` reports the checks and repairs.

        Raises:
            StorageError: a file cannot be read or written.
        """
        config = config or LogConfig()
        self.directory = os.fspath(directory)
        make_directory(self.directory)
        self._identity = identity_of(self.directory)
        epochs = _load_epochs(f"{self.directory}/{LEADER_EPOCHS}")
        segments, self.recovery = open_segments(
            self.directory,
            config,
            epochs,
            now_ms=now_ms,
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            start_offset=start_offset,
        )
        for segment in segments:
            if segment.end_offset <= cleaned_to:
                segment.allow_gap()
        self._directory_changed = True
        self._is_listed = False
        """True if the parent directory was flushed to disk, so that this directory survives a power cut."""
        super().__init__(
            config, segments, epochs, jitter_seed=crc32(os.path.basename(self.directory).encode())
        )
        self.start_offset = max(start_offset, self.start_offset)
        self.cleaned_to = min(cleaned_to, self.end_offset)
        self.recovery_point = max(
            self.end_offset
            if clean_shutdown and not self.recovery.bytes_cut
            else min(recovery_point, self.end_offset),
            self.start_offset,
        )
        try:
            self._complete_epochs()
        except StorageError as error:
            # A damaged segment that was flushed long ago: reading it raises the error.
            if error.errno is not None:
                raise
            logger.warning("%s", error)
        # One that begins at the end is the latest of a log from which everything was deleted: it stays.
        epochs.truncate_end(self.end_offset + 1)
        epochs.truncate_start(self.start_offset)
        self._epoch = epochs.latest
        for segment in segments:
            segment.release()  # an idle partition costs no descriptor

    def __repr__(self) -> str:
        return f"<DiskLog {self.directory}>"

    def configure(self, config: LogConfig) -> None:
        super().configure(config)
        active = self._active
        assert isinstance(active, FileSegment)
        active.configure(config)
        if config.compacted:
            for segment in self._segments:
                assert isinstance(segment, FileSegment)
                segment.allow_gap()

    def _new_segment(self, base_offset: int, now_ms: int) -> FileSegment:
        self._directory_changed = True
        return FileSegment.create(self.directory, base_offset, self.config, now_ms)

    def new_compacted(self, first: Segment) -> FileSegment:
        return FileSegment.create(
            self.directory, first.base_offset, self.config, first.created_ms, suffix=SUFFIX_CLEANED
        )

    def check_in_place(self) -> None:
        """Check that the log's directory and active segment have not been removed, moved or replaced.

        Raises:
            StorageError: the directory or segment is missing or was replaced; or the log is closed, and
            another process
                may use its files.
        """
        if self.is_closed:
            raise StorageError(f"{self.directory} is closed: the broker that wrote to it has stopped")
        check_in_place(self.directory, self._identity)
        active = self._active
        assert isinstance(active, FileSegment)
        check_in_place(active.path, active.identity)

    def settle(self) -> None:
        """Retry failed file operations of earlier compactions, and remove leftover files.

        After a crash, the next start would mistake these files for parts of a later compaction.
        """
        super().settle()
        with storage("read", self.directory):
            names = os.listdir(self.directory)
        for name in names:
            if name.endswith((SUFFIX_CLEANED, SUFFIX_SWAP)):
                remove_file(f"{self.directory}/{name}")

    def _complete_epochs(self) -> None:
        """Read the leader epochs from the batches if the checkpoint lacks the epoch of the first batch."""
        epochs, known = self.leader_epochs, self.leader_epochs.entries
        first = next(self.entries(), None)
        if first is None or first.leader_epoch < 0:
            return
        if known and known[0][1] <= max(first.base_offset, self.start_offset):
            return
        epochs.entries = []
        for entry in self.entries():
            if entry.leader_epoch > epochs.latest:
                epochs.assign(entry.leader_epoch, entry.base_offset)

    # --- durability -------------------------------------------------------------------------------

    def pending_flush(self, *, sealed_only: bool = False) -> FileFlush:
        up_to_offset = self._active.base_offset if sealed_only else self.end_offset
        files = [
            segment.file
            for segment in self._segments
            if isinstance(segment, FileSegment)
            and segment.size
            and segment.end_offset > self.recovery_point
            and segment.base_offset < up_to_offset
        ]
        directories = [self.directory] if self._directory_changed else []
        if not self._is_listed:
            directories.append(os.path.dirname(os.path.abspath(self.directory)))
        return FileFlush(files, directories, up_to_offset)

    def flushed(self, done: PendingFlush) -> None:
        super().flushed(done)
        self._is_listed = True
        if self.recovery_point == self.end_offset:
            self._directory_changed = False
            self._unflushed_since_ms = -1

    def flush(self) -> None:
        pending = self.pending_flush()
        pending.sync()
        self.flushed(pending)

    def truncate_to(self, offset: int) -> None:
        if self.is_closed:
            self.check_in_place()
        super().truncate_to(offset)

    def close(self) -> None:
        super().close()
        for segment in self._segments:
            if isinstance(segment, FileSegment):
                segment.close()
        self.look_again()

    def abandon(self) -> None:
        """Release all files without writing, as after a crash.

        Code of this broker that still runs then cannot write to the files, which the next broker may use.
        """
        self.is_closed = True
        for segment in self._segments:
            if isinstance(segment, FileSegment):
                segment.release()
        self.look_again()


def _load_epochs(path: str) -> LeaderEpochs:
    """Return the leader epochs in a checkpoint file; empty, with a logged warning, if it is damaged."""
    try:
        return load_epochs(path)
    except StorageError as error:
        if error.errno is not None:
            raise
        logger.warning("%s; the epochs are taken from the log", error)
        return new_epochs(path)
