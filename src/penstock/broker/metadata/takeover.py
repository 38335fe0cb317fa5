"""Whether a data directory can be taken over whole, looked at before a byte in it is written.

A directory of Apache Kafka may hold what this broker does not read: metadata in snapshots, partitions in
further log directories or on other nodes, access rules that nothing would obey. Serving such a directory
would lose settings, hand out producer ids again, and leave metadata with which Apache Kafka cannot start any
more. It is refused with a message that says what was found. So is a metadata log that is damaged before its
end, whose rest recovery would cut away.

Reads only. What a directory must look like: KIP-631, KIP-858, KIP-866, KIP-868.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.broker.partitions.internal_topics import METADATA_TOPIC
from penstock.errors import StorageError
from penstock.log.contract import LogConfig
from penstock.log.directory.files import storage
from penstock.log.directory.identity_files import read_meta_properties
from penstock.log.disk.data_directory import CLEAN_SHUTDOWN, find_partitions
from penstock.log.segments.recovery import segments_in
from penstock.log.segments.salvage import sound_batches
from penstock.log.segments.segment import FileSegment
from penstock.model import TopicPartition
from penstock.records.format.batch_header import read_header

if TYPE_CHECKING:
    from penstock.records.format.batch_header import BatchHeader

BOOTSTRAP = "bootstrap.checkpoint"
QUORUM_STATE = "quorum-state"
SUFFIX_CHECKPOINT = ".checkpoint"


def check_takeover(path: str, *, has_authorizer: bool = False, has_token_secret: bool = False) -> None:
    """Look at a data directory that may be another program's.

    `has_authorizer` says whether access rules in it will be obeyed, `has_token_secret` whether delegation
    tokens can be verified.

    Raises:
        StorageError: it cannot be taken over whole, or cannot be read.
    """
    if not os.path.isdir(path):
        return
    meta = read_meta_properties(path)
    partitions = find_partitions(path)
    metadata = partitions.pop(TopicPartition(METADATA_TOPIC, 0), None)
    if metadata is None:
        if os.path.exists(f"{path}/{BOOTSTRAP}") and partitions:
            raise _refusal(
                path,
                "Apache Kafka has made it, and its metadata are elsewhere (metadata.log.dir, or the first of "
                "several log.dirs)",
                "have Apache Kafka move everything into one directory, and name that",
            )
    else:
        batches = _metadata_of_kafka(path, metadata)
        if batches is not None:
            from penstock.broker.metadata.foreign_metadata import check_records, check_voters

            node_id = -1 if meta is None else meta.node_id
            _say(path, check_voters(_text(f"{metadata}/{QUORUM_STATE}"), node_id))
            found = check_records(
                batches,
                node_id,
                meta and meta.directory_id,
                has_authorizer=has_authorizer,
                has_token_secret=has_token_secret,
            )
            _say(path, found)


def _refusal(path: str, found: str, remedy: str) -> StorageError:
    return StorageError(
        f"{path} cannot be taken over whole, and nothing in it was changed: {found}; {remedy}"
    )


# --- the metadata log ------------------------------------------------------------------------------------


def _metadata_of_kafka(path: str, directory: str) -> Iterator[memoryview] | None:
    """The batches of a metadata log that is whole, if Apache Kafka has written some of it; else None.

    Raises:
        StorageError: it is damaged, or not whole.
    """
    with storage("read", directory):
        names = os.listdir(directory)
    bases = segments_in(names)
    newest = max((_offset_of(name) for name in names if name.endswith(SUFFIX_CHECKPOINT)), default=0)
    start = bases[0] if bases else newest
    if start > 0:
        raise _refusal(
            path,
            f"its metadata log begins at offset {start}, and what came before is in snapshots, "
            "which are not read",
            _COPY,
        )
    if not bases:
        return None
    is_foreign = QUORUM_STATE in names or any(name.endswith(SUFFIX_CHECKPOINT) for name in names)
    segment, end = bases[0], 0
    for base, _, header in _sound(path, directory, bases):
        if header.base_offset < end or (base != segment and base != end):
            raise _refusal(
                path, f"its metadata log goes on at offset {header.base_offset} behind offset {end}", _REPAIR
            )
        segment, end = base, header.next_offset
        is_foreign = is_foreign or header.is_control
    if newest > end:
        raise _refusal(path, f"its metadata log ends at offset {end}, before its snapshot at {newest}", _COPY)
    return (batch for _, batch, _ in _sound(path, directory, bases)) if is_foreign else None


def _say(path: str, found: tuple[str, str] | None) -> None:
    if found is not None:
        raise _refusal(path, *found)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def _offset_of(name: str) -> int:
    digits = name[:20]
    return int(digits) if len(digits) == 20 and digits.isdecimal() else 0


def _sound(path: str, directory: str, bases: list[int]) -> Iterator[tuple[int, memoryview, BatchHeader]]:
    """Yield (segment, batch, header) of the metadata log.

    Raises:
        StorageError: it is damaged before its end, or where it was closed in order anywhere: what follows
            would be cut off.
    """
    damage: list[tuple[int, int, int]] = []
    for base in bases:
        segment = FileSegment.existing(directory, base, LogConfig(), -1, writable=False)
        at = base

        def damaged(position: int, size: int, at: int = at) -> None:
            damage.append((at, position, size))

        for batch, magic in sound_batches(segment, damaged):
            if damage or magic < 2:
                raise _damaged(path, damage or [(base, 0, 0)])
            yield base, batch, read_header(batch)
    if damage and (
        len(damage) > 1 or damage[0][0] != bases[-1] or os.path.exists(f"{path}/{CLEAN_SHUTDOWN}")
    ):
        raise _damaged(path, damage)


def _damaged(path: str, damage: list[tuple[int, int, int]]) -> StorageError:
    segment, position, _ = damage[0]
    return _refusal(
        path,
        f"its metadata log is damaged at position {position} of segment {segment}, and what follows would be "
        "lost",
        _REPAIR,
    )


_COPY = "let Apache Kafka serve it, and copy its topics into a new directory"

_REPAIR = (
    f"restore {METADATA_TOPIC}-0 from a copy, or remove it: topics are then taken in from their directories, "
    "without their settings"
)
