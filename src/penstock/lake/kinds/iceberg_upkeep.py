"""Upkeep of Iceberg tables: merge small files, expire snapshots, remove orphans. Needs pyiceberg."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from penstock.lake.kinds.iceberg_sorting import in_order, note_order

COMMITTED_BYTES_MAX = 1 << 30
"""The size in bytes of the small files that one commit merges. If the commit fails, the work for these
files is lost.
"""

SNAPSHOTS_KEPT = 1
"""The number of snapshots that are always kept: if a table has no more, nothing expires."""

ATTEMPTS_MAX = 10
"""The number of attempts to commit, when other writers of the table commit first."""

_WHOLE = {"write.target-file-size-bytes": str(1 << 62)}
"""The table property that makes pyiceberg write rows into one file for each partition."""


def compact(table: Any, small_bytes: int, file_bytes: int) -> tuple[int, int]:
    """Merge files under `small_bytes` into files of about `file_bytes`; return (files merged, files made).

    The new files have the sort order of the table. The rows of one new file at a time are in memory. Rows
    that others append meanwhile stay. If others replace files that are being merged, that commit is given up,
    and merging ends.
    """
    before = after = 0
    for bins in _commits(_small(table, small_bytes), file_bytes):
        chosen = [task for each in bins for task in each]
        made: list[Any] = []
        try:
            for each in bins:
                made += _put_together(table, each)
        except BaseException:
            _remove_unnamed(table, made)
            raise
        # Where the end of the commit is uncertain, the files stay: it may take effect later.
        if not _replace(table, chosen, made):
            _remove_unnamed(table, made)
            break
        before, after = before + len(chosen), after + len(made)
    return before, after


def _small(table: Any, small_bytes: int) -> list[list[Any]]:
    """Return pyiceberg's scan tasks for the files smaller than `small_bytes`, grouped by partition."""
    groups: dict[str, list[Any]] = {}
    for task in table.scan().plan_files():
        if task.file.file_size_in_bytes < small_bytes:
            groups.setdefault(f"{task.file.spec_id}{task.file.partition}", []).append(task)
    return list(groups.values())


def _commits(groups: list[list[Any]], file_bytes: int) -> Iterator[list[list[Any]]]:
    """Yield for each commit a list of groups of files. Each group is merged into one file."""
    bins: list[list[Any]] = []
    size = 0
    for group in groups:
        for each in _bins(group, file_bytes):
            bins.append(each)
            size += sum(task.file.file_size_in_bytes for task in each)
            if size >= COMMITTED_BYTES_MAX:
                yield bins
                bins, size = [], 0
    if bins:
        yield bins


def _bins(tasks: list[Any], file_bytes: int) -> Iterator[list[Any]]:
    """Yield groups of consecutive files of at most `file_bytes` in total; skip groups of one file."""
    found: list[Any] = []
    size = 0
    for task in tasks:
        if found and size + task.file.file_size_in_bytes > file_bytes:
            if len(found) > 1:
                yield found
            found, size = [], 0
        found.append(task)
        size += task.file.file_size_in_bytes
    if len(found) > 1:
        yield found


def _put_together(table: Any, tasks: list[Any]) -> list[Any]:
    """Write the rows of some files into one file, or one per partition if the partition spec changed."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files

    metadata = table.metadata
    rows = in_order(ArrowScan(metadata, table.io, table.schema(), AlwaysTrue()).to_table(tasks), metadata)
    whole = metadata.model_copy(update={"properties": {**metadata.properties, **_WHOLE}})
    made = list(_dataframe_to_data_files(whole, rows, table.io, uuid.uuid4(), itertools.count()))
    note_order(made, metadata)
    return made


def _replace(table: Any, chosen: list[Any], made: list[Any]) -> bool:
    """Replace the files `chosen` by `made` in one snapshot; return False if others have changed `chosen`."""
    from pyiceberg.exceptions import CommitFailedException

    before = table.metadata
    read = {task.file.file_path: _deletes(task) for task in chosen}
    for _ in range(ATTEMPTS_MAX):
        # The library would commit again on top of what another writer has committed, unseen. Only the copy in
        # memory changes.
        table.properties["commit.retry.num-retries"] = "0"
        try:
            transaction = table.transaction()
            with transaction.update_snapshot(
                snapshot_properties={"penstock.compacted-files": str(len(chosen))}
            ).overwrite() as overwrite:
                for task in chosen:
                    overwrite.delete_data_file(task.file)
                for file in made:
                    overwrite.append_data_file(file)
            transaction.commit_transaction()
            return True
        except CommitFailedException:
            table.refresh()
            there = {task.file.file_path: _deletes(task) for task in table.scan().plan_files()}
            if made[0].file_path in there:
                return True  # what answers for the catalog has asked it twice
            is_other = (table.metadata.current_schema_id, table.metadata.default_spec_id) != (
                before.current_schema_id,
                before.default_spec_id,
            )
            if is_other or any(there.get(path) != deletes for path, deletes in read.items()):
                return False
    return False


def _deletes(task: Any) -> frozenset[str]:
    """Return the paths of the delete files that apply to a task's data file."""
    return frozenset(each.file_path for each in task.delete_files)


def _remove_unnamed(table: Any, made: list[Any]) -> None:
    """Remove the new files `made` that no snapshot contains; if that fails, they stay as orphans."""
    with suppress(Exception):
        table.refresh()
        named = _named(table)
        for file in made:
            if file.file_path not in named:
                table.io.delete(file.file_path)


def expire(table: Any, moment: datetime) -> int:
    """Expire the snapshots older than `moment` (UTC without a zone); return the number of expired ones."""
    before = len(table.metadata.snapshots)
    if before <= SNAPSHOTS_KEPT:
        return 0
    table.properties["commit.retry.num-retries"] = "0"
    table.maintenance.expire_snapshots().older_than(moment).commit()
    return before - len(table.refresh().metadata.snapshots)


def remove_orphans(table: Any, orphan_s: float) -> int:
    """Remove files in the table's directory that no snapshot contains and that are older than `orphan_s`."""
    from pyarrow.fs import FileSelector
    from pyiceberg.io.pyarrow import PyArrowFileIO

    io = table.io if isinstance(table.io, PyArrowFileIO) else PyArrowFileIO(table.io.properties)
    scheme, netloc, root = PyArrowFileIO.parse_location(table.location(), io.properties)
    filesystem = io.fs_by_scheme(scheme, netloc)
    moment = time.time()
    # Listed first: what a commit names meanwhile is seen as named.
    found = filesystem.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
    old = [each.path for each in found if each.is_file and moment - each.mtime.timestamp() >= orphan_s]
    if not old:
        return 0
    table.refresh()
    named = {PyArrowFileIO.parse_location(path, io.properties)[2] for path in _named(table)}
    orphans = [path for path in old if path not in named]
    for path in orphans:
        filesystem.delete_file(path)
    return len(orphans)


def _named(table: Any) -> set[str]:
    """Return the paths of all files that the table's metadata refer to; these files are no orphans."""
    metadata = table.metadata
    paths = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    paths |= {each.statistics_path for each in metadata.statistics}
    manifests: dict[str, Any] = {}
    for snapshot in metadata.snapshots:
        paths.add(snapshot.manifest_list)
        manifests |= {each.manifest_path: each for each in snapshot.manifests(table.io)}
    for path, manifest in manifests.items():
        paths.add(path)
        paths |= {
            entry.data_file.file_path
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        }
    return paths
