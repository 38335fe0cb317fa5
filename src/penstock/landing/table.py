"""A landed table: a directory with Parquet files, and manifests in ``_penstock`` that name the valid ones.

    orders/date=2026-01-31/00000000000000000012-00003-4f1c9a2b7d3e-0000.parquet
    orders/_penstock/table.json                                        columns and partitions
    orders/_penstock/manifests/WRITER/00000000000000000012.json        the files of batch 12
    orders/_penstock/staging/WRITER/12/...parquet.unfinished           files not committed yet

A batch is committed when its manifest exists. A hard link creates the manifest and fails if there is one, so
that one of two drivers succeeds. The batch's files then get their final names. After an interruption between
these two steps, the next commit renames the files; `files` yields them under either name.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from penstock.common.atomic_files import (
    TEMPORARY_SUFFIX,
    create_whole,
    is_there,
    make_directory,
    storage_error,
    sync_directory,
    write_whole_text,
)
from penstock.common.errno_advice import reason_of
from penstock.errors import ConfigError, StorageError
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import (
    LandedFile,
    Manifest,
    manifests_from_json,
    manifests_to_json,
    refuse_overlaps,
)
from penstock.model import OffsetRange

HIDDEN = "_penstock"
"""The subdirectory for manifests and other metadata of a table. Readers of Parquet directories skip names
that begin with ``_``.
"""

KEPT_SINGLE = 100
"""The number of newest manifests that stay in files of their own. At twice this number, the older half is
merged into one file.
"""

STALE_STAGING_S = 7 * 24 * 3600
"""The seconds without a change after which the unfinished files of a writer that has ended are removed."""

WRITER_CHARACTERS_MAX = 200

_SINGLE = re.compile(r"(\d{20})\.json")
_FOLDED = re.compile(r"(\d{20})-(\d{20})\.json")

Register = Callable[[Manifest], None]
"""A function that adds the files of a batch to a Delta or Iceberg table, unless the table has them."""


class LandingTable:
    """The landed table (Parquet files and manifests) in directory `root`."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self._hidden = self.root / HIDDEN
        self._unsynced: set[Path] = set()
        """Directories in which files were created or renamed, and which may not be flushed to disk yet."""

    # -- what all files have in common

    def layout(self) -> TableLayout | None:
        """Return the layout of the table, or None if the directory has no table.

        Raises:
            DecodeError: table.json is damaged, or of a newer release.
            StorageError: table.json cannot be read.
        """
        text = _read(self._hidden / "table.json")
        return None if text is None else TableLayout.from_json(text)

    def require(self, layout: TableLayout) -> None:
        """Check that rows with the columns and partitions of `layout` fit the table.

        Raises:
            ConfigError: the table has other columns or partitions.
        """
        there = self.layout()
        found = there.differences(layout) if there is not None else []
        if found:
            raise ConfigError(
                f"{self.root} has other columns or partitions than this query: {'; '.join(found)}. "
                "Land into another directory, or set the landing options as the table has them"
            )

    def declare(self, layout: TableLayout) -> None:
        """Create the table if it is missing. Raises ConfigError, as `require`, and StorageError."""
        if self.layout() is None:
            create_whole(self._hidden / "table.json", layout.to_json())
        self.require(layout)

    # -- files on their way

    def staging(self, writer: str, batch: int) -> Path:
        """Return the directory to which the tasks of a batch write their files."""
        return self._hidden / "staging" / checked_writer(writer) / str(batch)

    def discard(self, files: Iterable[LandedFile]) -> None:
        """Remove files in staging directories that will not become part of any batch."""
        for file in files:
            with suppress(OSError):
                (self.root / file.staged).unlink(missing_ok=True)

    def clean(self, names: Iterable[str], *, now: float | None = None) -> None:
        """Remove the staging directories `names`, and old unfinished files of writers that have ended.

        Call this after a batch is committed, when the query needs no running task of these writers any more.
        """
        staging = self._hidden / "staging"
        for name in names:
            with suppress(OSError):  # not all are ignored below: a later commit removes what stays
                shutil.rmtree(staging / checked_writer(name), ignore_errors=True)
        moment = time.time() if now is None else now
        with suppress(OSError):  # what may be owed to a batch stays
            stale = [each for each in staging.iterdir() if moment - _last_change(each) > STALE_STAGING_S]
            owed = self._owed() if stale else set()
            for each in stale:
                if each.name not in owed:
                    shutil.rmtree(each, ignore_errors=True)
        with suppress(OSError):
            for each in (self._hidden / "manifests").glob(f"*/.*{TEMPORARY_SUFFIX}"):
                if moment - each.stat().st_mtime > STALE_STAGING_S:
                    each.unlink()

    def _owed(self) -> set[str]:
        """Return the staging directories with files of committed batches that have not been renamed yet."""
        newest = [self.newest(writer) for writer in self.writers()]
        return {
            staging_name(file)
            for manifest in newest
            if manifest is not None
            for file in manifest.files
            if is_there(self.root / file.staged)
        }

    # -- batches

    def newest(self, writer: str) -> Manifest | None:
        """Return the manifest of the last batch of `writer`, or None. Raises DecodeError and StorageError."""
        batches = self._batches(checked_writer(writer))
        return self._manifest(checked_writer(writer), max(batches)) if batches else None

    def commit(
        self,
        writer: str,
        batch: int,
        layout: TableLayout,
        files: Sequence[LandedFile],
        ranges: Sequence[OffsetRange] = (),
        register: Register | None = None,
        topic_ids: Mapping[str, str] = MappingProxyType({}),
    ) -> Manifest:
        """Commit `files` as a batch, unless this batch is committed already; return the batch's manifest.

        A batch that is committed again keeps its first content, and the given files are removed. On return,
        all files of the batch have their final names, and are in the table of `register` if there is one.

        Raises:
            ConfigError: the table has other columns or a later batch, or records were read twice.
            StorageError: the disk is full, a file is missing, or another operation fails.
        """
        checked_writer(writer)
        self.declare(layout)
        newest = self.newest(writer)
        if newest is not None and newest.batch > batch:
            raise ConfigError(
                f"batch {batch} is to be landed, but {self.root} has batch {newest.batch} of {writer}: the "
                "checkpoint is older than the table. Go on with the newer checkpoint, or land into another "
                "directory"
            )
        if newest is not None and newest.batch < batch:
            self._complete(newest, register)
        if newest is None or newest.batch < batch:
            refuse_overlaps(ranges)
            self._refuse_missing(files)
            mine = Manifest(writer, batch, tuple(files), tuple(sorted(ranges)), topic_ids)
            create_whole(self._single(writer, batch), mine.to_json())
        decided = self._manifest(writer, batch)
        self._complete(decided, register)
        self.clean({writer, *map(staging_name, files), *map(staging_name, decided.files)})
        self._fold(writer)
        return decided

    def files(self) -> Iterator[tuple[LandedFile, Path]]:
        """Yield (file, its path) of all committed files, in the order of their batches.

        Raises:
            DecodeError: a manifest is damaged, or of a newer release.
            StorageError: a manifest cannot be read, or a file is missing.
        """
        for writer in self.writers():
            for manifest in self.manifests(writer):
                for file in manifest.files:
                    yield file, self._place(file)

    def writers(self) -> list[str]:
        """Return the names of the writers with committed batches.

        Raises:
            StorageError: the directory cannot be read.
        """
        directory = self._hidden / "manifests"
        try:
            return sorted(os.listdir(directory))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(f"cannot read {directory}: {reason_of(error)}") from error

    def manifests(self, writer: str) -> list[Manifest]:
        """Return the manifests of `writer`, in order. Raises DecodeError and StorageError."""
        while True:
            found: dict[int, Manifest] = {}
            texts = {name: _read(self._manifests(writer) / name) for name in self._names(writer)}
            if None in texts.values():
                continue  # put together with others meanwhile
            for name, text in texts.items():
                found |= {each.batch: each for each in manifests_from_json(text or b"", name)}
            return [found[batch] for batch in sorted(found)]

    # -- the steps of a commit

    def _refuse_missing(self, files: Sequence[LandedFile]) -> None:
        """Check that a batch's files exist with their full size, and flush their names to disk."""
        for directory in {(self.root / file.staged).parent for file in files if staging_name(file)}:
            for each in (directory, *_between(self.root, directory)):
                sync_directory(each)  # what is missing is named below
        for file in files:
            try:
                size_bytes = (self.root / file.staged).stat().st_size
            except FileNotFoundError:
                size_bytes = -1
            except OSError as error:
                raise StorageError(f"cannot read {self.root / file.staged}: {reason_of(error)}") from error
            if size_bytes != file.size_bytes:
                found = "not there" if size_bytes < 0 else f"{size_bytes} bytes, not {file.size_bytes}"
                raise StorageError(
                    f"{self.root / file.staged}, which a task has written, is {found}: "
                    "the directory has to be the same file system for the driver and all executors"
                )

    def _complete(self, manifest: Manifest, register: Register | None) -> None:
        """Give a batch's files their final names, and call `register`; a repeated call changes nothing."""
        for file in manifest.files:
            target, staged = self.root / file.path, self.root / file.staged
            # A file that is gone from here has its name, since nothing removes it before that.
            if is_there(staged):
                make_directory(target.parent)
                self._unsynced |= {target.parent, *_between(self.root, target.parent)}
                try:
                    staged.rename(target)
                except OSError as error:
                    raise storage_error(target, error) from error
        for each in sorted(self._unsynced):
            sync_directory(each)
        self._unsynced.clear()
        if register is not None and manifest.files:
            register(manifest)

    def _fold(self, writer: str) -> None:
        """Merge the oldest hundred manifests of a writer into one file, if it has two hundred single ones."""
        single = sorted(name for name in self._names(writer) if _SINGLE.fullmatch(name))
        if len(single) < 2 * KEPT_SINGLE:
            return
        oldest = single[:KEPT_SINGLE]
        batches = [self._manifest(writer, int(name[:20])) for name in oldest]
        target = self._manifests(writer) / f"{oldest[0][:20]}-{oldest[-1][:20]}.json"
        write_whole_text(target, manifests_to_json(batches))
        for name in oldest:
            with suppress(OSError):
                (self._manifests(writer) / name).unlink()

    # -- names

    def _place(self, file: LandedFile) -> Path:
        for name in (file.path, file.staged, file.path):
            if is_there(self.root / name):
                return self.root / name
        raise StorageError(f"{self.root / file.path} is missing, which a manifest names: was it deleted?")

    def _manifests(self, writer: str) -> Path:
        return self._hidden / "manifests" / checked_writer(writer)

    def _single(self, writer: str, batch: int) -> Path:
        if batch < 0:
            raise ConfigError(f"a batch counts from 0, not {batch}")
        return self._manifests(writer) / f"{batch:020d}.json"

    def _names(self, writer: str) -> list[str]:
        """Return the names of a writer's manifest files, except those that a merged file replaces."""
        try:
            names = os.listdir(self._manifests(writer))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage_error(self._manifests(writer), error) from error
        folded = [found for name in names if (found := _FOLDED.fullmatch(name))]
        last = max((found[2] for found in folded), default="")
        return [
            name
            for name in names
            if _FOLDED.fullmatch(name) or (_SINGLE.fullmatch(name) and name[:20] > last)
        ]

    def _batches(self, writer: str) -> list[int]:
        return [int(name.removesuffix(".json")[-20:]) for name in self._names(writer)]

    def _manifest(self, writer: str, batch: int) -> Manifest:
        text = _read(self._single(writer, batch))
        found = manifests_from_json(text, f"batch {batch}") if text is not None else self.manifests(writer)
        for each in found:
            if each.batch == batch:
                return each
        raise StorageError(
            f"batch {batch} of {writer} is missing in {self._manifests(writer)}: was it deleted?"
        )


def staging_name(file: LandedFile) -> str:
    """Return the name of the staging directory to which a file was written: the writer's name.

    Raises ConfigError if the path has none.
    """
    parts = file.staged.split("/")
    strange = {"", ".", ".."} & {*parts, *file.path.split("/")}
    if strange or len(parts) != 5 or parts[:2] != [HIDDEN, "staging"]:
        raise ConfigError(f"{file.staged!r} is no file on its way into a landed table")
    return checked_writer(parts[2])


def checked_writer(writer: str) -> str:
    """Return `writer` if it is valid as the name of a directory.

    Raises:
        ConfigError: the name is empty, too long, or has an invalid character.
    """
    if not writer or writer[0] == "." or not re.fullmatch(r"[\w.+=@-]+", writer, re.ASCII):
        raise ConfigError(f"{writer!r} cannot name the writer of a table: use letters, digits, '-', '_', '.'")
    if len(writer) > WRITER_CHARACTERS_MAX:
        raise ConfigError(
            f"the name of a writer has at most {WRITER_CHARACTERS_MAX} characters, not {len(writer)}"
        )
    return writer


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


def _between(root: Path, directory: Path) -> Iterator[Path]:
    """Yield the parent directories of `directory` up to and including `root`."""
    while directory != root:
        directory = directory.parent
        yield directory


def _last_change(directory: Path) -> float:
    found = [directory.stat().st_mtime]
    for parent, _, names in os.walk(directory):
        found.append(os.stat(parent).st_mtime)
        found += [os.stat(os.path.join(parent, name)).st_mtime for name in names]
    return max(found)
