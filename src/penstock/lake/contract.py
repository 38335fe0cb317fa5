"""What every kind of table has in common: positions read back, and files that a commit makes count."""

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
"""The version of positions as they stand in tables. A newer one is refused."""

FILE_BYTES = 128 << 20
"""About how large a file gets before the next one begins."""

UNCERTAIN_FILES_S = 24 * 3600.0
"""After so many seconds a file that no commit names is an orphan."""

WRITE_S_MAX = UNCERTAIN_FILES_S / 2
"""A writer commits no file that it began longer ago: it may be gone as an orphan."""


class OtherWriterError(PenstockError):
    """Another process writes the same topic into the same table under the same name, and was faster."""


class OvertakenError(Exception):
    """A worker of a group has committed meanwhile; its positions are `found`. The files are still there."""

    def __init__(self, found: Positions | None) -> None:
        super().__init__("another worker was faster")
        self.found = found


@dataclass(frozen=True, slots=True)
class Positions:
    """How far a writer is: the next offset of each partition, of a topic by its name and its id.

    `batch` counts the commits of the writer from 0, and `token` is the one of the attempt that made it, by
    which a commit with an uncertain end is recognised. `begins` is where the writer has begun, by partition,
    as far as the kind of the table keeps that here.
    """

    topic: str
    topic_id: str | None
    offsets: Mapping[int, int]
    batch: int = 0
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    begins: Mapping[int, int] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the text that stands in a table's commit."""
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
        """Return the inverse of `to_json`.

        Raises:
            DecodeError: the text is something else, or of a newer version.
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
    """Return `after` on top of what another worker has committed; None where both have read a partition.

    What lies between `before` and `after` counts only where `found` has the partitions as `before` has them.
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
    """What was written: counts of rows, files and bytes, and of commits."""

    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    commits: int = 0

    def add(self, other: Written) -> None:
        """Count `other` as well."""
        self.rows += other.rows
        self.files += other.files
        self.size_bytes += other.size_bytes
        self.commits += other.commits


@dataclass(frozen=True, slots=True)
class HandedFile:
    """A file that one process has written and another one is to commit.

    `text` is what `LakeTable.take_over` of the other process needs of it.
    """

    path: str
    rows: int
    size_bytes: int
    text: str


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as it is: the positions of a writer, its files with their bytes and rows, its snapshots."""

    positions: Positions | None
    files: int
    size_bytes: int
    rows: int
    snapshots: int


@dataclass(frozen=True, slots=True)
class TableSettings:
    """How a table is written.

    `writer` names who writes, `key` the columns that an upsert finds rows by, `partition_by` columns or
    transforms in the spelling of the table's kind.
    """

    writer: str
    partition_by: tuple[str, ...] = ()
    compression: str = "zstd"
    file_bytes: int = FILE_BYTES
    key: tuple[str, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    """New names of columns, by their old ones."""
    drops: tuple[str, ...] = ()
    """Columns that the table is to lose."""
    shares: bool = False
    """Whether workers of a group write under this name: a commit then raises `OvertakenError` instead of
    `OtherWriterError`, and keeps its files."""
    sort_by: tuple[str, ...] = ()
    """Columns or transforms that rows of a table of Iceberg are sorted by, each may end in `` desc``."""


@dataclass(frozen=True, slots=True)
class Tidied:
    """What maintenance did: files put together, files that they became, snapshots and orphans removed."""

    compacted_files: int = 0
    compacted_into: int = 0
    expired_snapshots: int = 0
    orphans: int = 0


class LakeTable(Protocol):
    """One table and one writer of it."""

    @property
    def title(self) -> str:
        """How messages name the table."""

    def positions(self) -> Positions | None:
        """Read back how far the writer is; None where it has written nothing.

        Raises:
            DecodeError: what stands there is damaged, or of a newer release.
            StorageError: the table cannot be read.
        """

    def begins(self) -> Mapping[int, int]:
        """Read back where the writer has begun, by partition; empty where the table does not say it.

        Raises as `positions`.
        """

    def schema(self) -> pa.Schema | None:
        """Return the columns of the table; None where there is none. Raises StorageError."""

    def prepare(self, schema: pa.Schema) -> None:
        """Create the table where it is missing, or have it take rows of `schema`.

        Raises:
            ConfigError: the table has columns that do not go together with these.
            StorageError: the table cannot be written.
        """

    def write(self, rows: pa.RecordBatch) -> None:
        """Take rows, with the columns of `prepare`; they go into files as these fill.

        Raises:
            StorageError: the store refuses.
        """

    @property
    def pending_bytes(self) -> int:
        """About how many bytes the rows have that no commit has made count yet."""

    def join(self, schema: pa.Schema) -> None:
        """Have rows of `schema` written into the table as another process has prepared it.

        Raises:
            ConfigError: the columns cannot be those of a table.
            StorageError: there is no such table, or it cannot be read.
        """

    def hand_over(self) -> list[HandedFile]:
        """Complete the files since the last commit, and leave them to a process that takes them over.

        Raises:
            StorageError: the store refuses.
        """

    def take_over(self, files: Sequence[str]) -> None:
        """Have the next commit make files count that other processes have handed over, by their texts.

        Raises:
            DecodeError: a text is none that `hand_over` has made.
        """

    def commit(self, before: Positions, after: Positions) -> Written:
        """Make the rows since the last commit count, together with the positions `after`.

        `before` are the positions that the writer has read or written last; where it has
        written nothing, those it begins at, of batch -1.

        Raises:
            OtherWriterError: the positions in the table are others by now.
            OvertakenError: so are those that workers of a group share.
            StorageError: the store refuses. Whether the commit has taken effect is known by `positions`.
        """

    def abandon(self) -> None:
        """Drop the rows since the last commit, and remove their files as far as that is possible."""

    def state(self) -> TableState:
        """Read how the table is. Raises as `positions`."""

    def tidy(self, *, small_bytes: int, keep_snapshots_s: float, orphan_s: float) -> Tidied:
        """Put files under `small_bytes` together, expire snapshots, and remove files that no commit names.

        `keep_snapshots_s` and `orphan_s` are ages in seconds; what is younger stays.

        Raises:
            StorageError: the store refuses.
        """


def begun_ago(begun_s: float) -> float:
    """Return the reading of `time.monotonic` at a moment in seconds since 1970 by another machine."""
    return time.monotonic() - max(0.0, time.time() - begun_s)


def other_writer(table: str, writer: str) -> OtherWriterError:
    """Return the error for a table that another process has written under the same name."""
    return OtherWriterError(
        f"another process writes into {table} as {writer!r} and was faster, so this one ends: every record "
        "is to be there once. Let one of them run, or give each its --name"
    )
