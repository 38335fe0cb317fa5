"""The interface of every kind of lake table: a commit adds rows, and stores the offsets that were read."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from penstock.errors import DecodeError, PenstockError

FORMAT_VERSION = 1
"""The version of the text in which a table stores offsets (`Positions`). Texts of newer versions are
refused.
"""

FILE_BYTES = 128 << 20
"""The approximate size in bytes at which a file is completed and the next one begins."""

UNCERTAIN_FILES_S = 24 * 3600.0
"""The age in seconds from which a file that no commit contains counts as an orphan, which maintenance
removes.
"""

WRITE_S_MAX = UNCERTAIN_FILES_S / 2
"""The maximum age in seconds at which a file can be committed: maintenance may have removed older ones as
orphans.
"""


class OtherWriterError(PenstockError):
    """Another process has committed to the same table under the same writer name before this one."""


class OvertakenError(Exception):
    """Another worker of the group committed first, with positions `found`; this worker's files are kept."""

    def __init__(self, found: Positions | None) -> None:
        super().__init__("another worker was faster")
        self.found = found


@dataclass(frozen=True, slots=True)
class Positions:
    """The progress of a writer in one topic, stored in its table: the next offset to read of each partition.

    `batch` counts the commits of the writer from 0. `token` identifies an attempt to commit, so that a commit
    whose outcome was unknown can be recognised. `begins` has the offset of each partition at which the writer
    began, if this kind of table stores them with the positions.
    """

    topic: str
    topic_id: str | None
    offsets: Mapping[int, int]
    batch: int = 0
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    begins: Mapping[int, int] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the positions as the text that a table's commit stores."""
        return json.dumps(
            {
                "formatVersion": FORMAT_VERSION,
                "topic": self.topic,
                "topicId": self.topic_id,
                "batch": self.batch,
                "token": self.token,
                "offsets": {str(partition): offset for partition, offset in sorted(self.offsets.items())},
                "begins": {str(partition): offset for partition, offset in sorted(self.begins.items())},
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Positions:
        """Return the positions in a text that `to_json` made.

        Raises:
            DecodeError: the text has another form, or is of a newer version.
        """
        try:
            found = json.loads(text)
            if found["formatVersion"] > FORMAT_VERSION:
                raise DecodeError(
                    f"the positions in the table have version {found['formatVersion']}; this release reads "
                    f"up to {FORMAT_VERSION}"
                )
            return cls(
                str(found["topic"]),
                found["topicId"],
                {int(partition): int(offset) for partition, offset in found["offsets"].items()},
                int(found["batch"]),
                str(found["token"]),
                {int(partition): int(offset) for partition, offset in found.get("begins", {}).items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, DecodeError):
                raise
            raise DecodeError(f"the positions in the table are damaged: {error!r}") from None


def on_top(found: Positions | None, before: Positions, after: Positions) -> Positions | None:
    """Return `after` merged with another worker's commit `found`; None if both have read a partition.

    The partitions that changed between `before` and `after` must have in `found` the offsets of `before`.
    """
    if found is None or (None not in (found.topic_id, after.topic_id) and found.topic_id != after.topic_id):
        return None
    moved = {partition: at for partition, at in after.offsets.items() if at != before.offsets.get(partition)}
    for partition in moved:
        known = before.offsets.get(partition)
        if found.offsets.get(partition, known) != known:
            return None
    offsets = {**before.offsets, **found.offsets, **moved}
    begins = found.begins or after.begins
    return replace(after, offsets=offsets, batch=found.batch + 1, begins=begins)


@dataclass(slots=True)
class Written:
    """Totals of what a writer has committed: numbers of rows, files, bytes and commits."""

    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    commits: int = 0

    def add(self, other: Written) -> None:
        """Add the counts of `other`."""
        self.rows += other.rows
        self.files += other.files
        self.size_bytes += other.size_bytes
        self.commits += other.commits


@dataclass(frozen=True, slots=True)
class HandedFile:
    """A data file that one process has written, and that another process will add to the table by a commit.

    `text` describes the file; the other process passes it to `LakeTable.take_over`.
    """

    path: str
    rows: int
    size_bytes: int
    text: str


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a table: a writer's offsets, and the numbers of files, bytes, rows and snapshots."""

    positions: Positions | None
    files: int
    size_bytes: int
    rows: int
    snapshots: int


@dataclass(frozen=True, slots=True)
class TableSettings:
    """The settings of a writer for its table.

    `writer` is the writer's name, `key` the columns by which an upsert finds rows, `partition_by` columns or
    transforms in the spelling of the table's kind.
    """

    writer: str
    partition_by: tuple[str, ...] = ()
    compression: str = "zstd"
    file_bytes: int = FILE_BYTES
    key: tuple[str, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    """A dict from the old names of columns to be renamed to their new names."""
    drops: tuple[str, ...] = ()
    """Columns to be removed from the table."""
    shares: bool = False
    """True if several workers of a group write to the table. A commit that another worker has overtaken then
    raises `OvertakenError` instead of `OtherWriterError`, and keeps its files.
    """
    sort_by: tuple[str, ...] = ()
    """Columns or transforms by which an Iceberg table is sorted; each may end in `` desc``."""


@dataclass(frozen=True, slots=True)
class Tidied:
    """The result of `LakeTable.tidy`: files merged, files made by merging, snapshots and orphans removed."""

    compacted_files: int = 0
    compacted_into: int = 0
    expired_snapshots: int = 0
    orphans: int = 0


class LakeTable(Protocol):
    """The interface of tables of all kinds (Iceberg, Delta, object store, directory), for one writer."""

    @property
    def title(self) -> str:
        """The name of the table in messages."""

    def positions(self) -> Positions | None:
        """Return the topic offsets stored in the writer's last commit, or None if it has committed nothing.

        Raises:
            DecodeError: the stored positions are damaged, or of a newer release.
            StorageError: the table cannot be read.
        """

    def begins(self) -> Mapping[int, int]:
        """Return the offset per partition at which the writer began; empty if the table does not store them.

        Raises as `positions`.
        """

    def schema(self) -> pa.Schema | None:
        """Return the columns of the table, or None if it does not exist. Raises StorageError."""

    def prepare(self, schema: pa.Schema) -> None:
        """Create the table if it is missing; else check or extend its columns for rows of `schema`.

        Raises:
            ConfigError: the table has columns that contradict `schema`.
            StorageError: the table cannot be written.
        """

    def write(self, rows: pa.RecordBatch) -> None:
        """Buffer or write rows, which have the columns passed to `prepare`, to be committed later.

        Raises:
            StorageError: the store refuses.
        """

    @property
    def pending_bytes(self) -> int:
        """The approximate size in bytes of the rows that are not committed yet."""

    def join(self, schema: pa.Schema) -> None:
        """Prepare to write rows with columns `schema` into a table that another process has already prepared.

        Raises:
            ConfigError: no table can have these columns.
            StorageError: the table does not exist, or cannot be read.
        """

    def hand_over(self) -> list[HandedFile]:
        """Complete the files since the last commit; return texts with which another process can commit them.

        Raises:
            StorageError: the store refuses.
        """

    def take_over(self, files: Sequence[str]) -> None:
        """Add files of other processes to the next commit; `files` are texts of `HandedFile`.

        Raises:
            DecodeError: a text was not made by `hand_over`.
        """

    def commit(self, before: Positions, after: Positions) -> Written:
        """Commit the rows since the last commit, together with the positions `after`.

        `before` are the positions of the writer's last commit; for a writer without a commit, those where it
        begins, with batch -1.

        Raises:
            OtherWriterError: the positions in the table have changed meanwhile.
            OvertakenError: the positions, which workers of a group share, have changed meanwhile.
            StorageError: the store refuses. `positions` then returns `after` if the commit has taken effect.
        """

    def abandon(self) -> None:
        """Drop the rows written since the last commit, and remove their files if possible."""

    def state(self) -> TableState:
        """Return the current state of the table. Raises as `positions`."""

    def tidy(self, *, small_bytes: int, keep_snapshots_s: float, orphan_s: float) -> Tidied:
        """Merge files under `small_bytes`, expire snapshots, and remove files that no commit names.

        `keep_snapshots_s` and `orphan_s` are ages in seconds; younger snapshots and files stay.

        Raises:
            StorageError: the store refuses.
        """


def begun_ago(begun_s: float) -> float:
    """Convert a time in seconds since 1970 to the corresponding reading of the local `time.monotonic`."""
    return time.monotonic() - max(0.0, time.time() - begun_s)


def other_writer(table: str, writer: str) -> OtherWriterError:
    """Return the error that another process has committed to `table` under the writer name `writer`."""
    return OtherWriterError(
        f"another process writes into {table} as {writer!r} and was faster, so this one ends: every record "
        "is to be there once. Let one of them run, or give each its --name"
    )
