"""Transactions in a partition that Apache Kafka has written: those still open, and those that were aborted.

Read from its files: `.txnindex` names aborted transactions, the newest `.snapshot` those open when it was
written, and the batch headers behind it tell the rest. Nothing is written.
"""

from __future__ import annotations

import os

from penstock.broker.partitions.producer_snapshots import ProducerSnapshots
from penstock.log.directory.files import storage
from penstock.log.segments.headers import headers_behind

SUFFIX_ABORTED = ".txnindex"


def has_aborted(directory: str) -> bool:
    """Whether a partition holds an aborted transaction.

    Raises:
        StorageError: the directory cannot be read.
    """
    with storage("read", directory), os.scandir(directory) as found:
        return any(entry.stat().st_size > 0 for entry in found if entry.name.endswith(SUFFIX_ABORTED))


def open_since(directory: str) -> int | None:
    """The first offset of the oldest transaction that is open in a partition; None if there is none.

    Raises:
        StorageError: the directory or a file in it cannot be read.
    """
    snapshots = ProducerSnapshots(directory)
    since: dict[int, int] = {}
    known_to = 0
    for offset in reversed(snapshots.offsets()):
        found = snapshots.open_transactions(offset)
        if found is not None:
            since, known_to = found, offset
            break
    for _, _, header in headers_behind(directory, known_to):
        if header.is_control:
            since.pop(header.producer_id, None)
        elif header.is_transactional:
            since.setdefault(header.producer_id, header.base_offset)
    return min(since.values(), default=None)
