"""Share groups in the offsets topic of a directory that Apache Kafka has written (KIP-932).

What of a topic a share group has delivered stands in a topic of its own, in state that this broker neither
reads nor goes on with: serving it would deliver records again, or never.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from penstock.errors import DecodeError
from penstock.log.contract import LogConfig
from penstock.log.directory.files import storage
from penstock.log.segments.recovery import segments_in
from penstock.log.segments.salvage import sound_batches
from penstock.log.segments.segment import FileSegment
from penstock.protocol.messages.share_group_metadata_key import ShareGroupMetadataKey
from penstock.records.batch import decode_batch
from penstock.records.format.batch_header import read_header

SHARE_STATE_TOPIC = "__share_group_state"

_SHARE_GROUP = (11).to_bytes(2, "big")
"""What the key of a share group's own record begins with."""


def share_groups(directories: Iterable[str]) -> list[str]:
    """Return the ids of share groups in partitions of `__consumer_offsets`, those that were deleted aside.

    What is damaged is passed over.

    Raises:
        StorageError: a file cannot be read.
    """
    found: set[str] = set()
    for directory in directories:
        with storage("read", directory):
            names = os.listdir(directory)
        for base in segments_in(names):
            segment = FileSegment.existing(directory, base, LogConfig(), -1, writable=False)
            for batch, magic in sound_batches(segment, lambda position, size: None):
                if magic >= 2 and not read_header(batch).is_control:
                    _collect(batch, directory, found)
    return sorted(found)


def _collect(batch: memoryview, directory: str, found: set[str]) -> None:
    try:
        for row in decode_batch(batch, 0, len(batch), directory, 0, verify=False):
            if row.key is not None and row.key[:2] == _SHARE_GROUP:
                group = ShareGroupMetadataKey.decode(row.key[2:], 0).group_id
                (found.discard if row.value is None else found.add)(group)
    except DecodeError:
        return
