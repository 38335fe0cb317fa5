"""Upkeep of Iceberg tables: small files put together, snapshots expired, orphans removed. Needs pyiceberg."""

from __future__ import annotations

import itertools
import time
import uuid
from datetime import datetime
from typing import Any

from penstock.lake.kinds.iceberg_sorting import in_order, note_order

COMPACTED_BYTES_MAX = 1 << 30
"""Bytes of files that are put together at a time, since they pass through memory."""

SNAPSHOTS_KEPT = 1
"""So many of the newest snapshots stay, however old they are."""


def compact(table: Any, small_bytes: int, file_bytes: int) -> tuple[int, int]:
    """Write the rows of files under `small_bytes` into fewer files, by one snapshot; return both counts.

    They have the sort order of the table. A partition with less than two such files is left alone. Rows are
    those of the snapshot that the table is at; a commit of another writer meanwhile makes the catalog refuse
    this one.
    """
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files

    groups: dict[str, list[Any]] = {}
    for task in table.scan().plan_files():
        if task.file.file_size_in_bytes < small_bytes:
            groups.setdefault(f"{task.file.spec_id}{task.file.partition}", []).append(task)
    chosen: list[Any] = []
    size = 0
    for tasks in groups.values():
        fitting = []
        for task in tasks:
            if size + task.file.file_size_in_bytes <= COMPACTED_BYTES_MAX:
                fitting.append(task)
                size += task.file.file_size_in_bytes
        if len(fitting) > 1:
            chosen += fitting
    if not chosen:
        return 0, 0
    rows = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table(chosen)
    rows = in_order(rows, table.metadata)
    made = list(_dataframe_to_data_files(table.metadata, rows, table.io, uuid.uuid4(), itertools.count()))
    note_order(made, table.metadata)
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
    except BaseException as error:
        from pyiceberg.exceptions import CommitFailedException

        if isinstance(error, CommitFailedException):
            for file in made:
                table.io.delete(file.file_path)
        raise
    return len(chosen), len(made)


def expire(table: Any, moment: datetime) -> int:
    """Expire the snapshots that are older than `moment`, in UTC without a zone; return how many."""
    before = len(table.metadata.snapshots)
    if before <= SNAPSHOTS_KEPT:
        return 0
    table.properties["commit.retry.num-retries"] = "0"
    table.maintenance.expire_snapshots().older_than(moment).commit()
    return before - len(table.refresh().metadata.snapshots)


def remove_orphans(table: Any, orphan_s: float) -> int:
    """Remove the files at the table's location that no snapshot names and that are older than `orphan_s`."""
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
    """Every file that the table's metadata lead to."""
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
