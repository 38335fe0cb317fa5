"""Shows and changes the `metadata.version` level of a data directory that no running broker uses.

A snapshot of the metadata log replaces the records below its offset: the next start, of this broker or of
Apache Kafka, reads the snapshot and the log after it. So a release can start on a directory even if it does
not accept the level of the first records. Nothing is removed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.broker.metadata.image import METADATA_FEATURE, ClusterImage, metadata_level
from penstock.broker.metadata.levels import LEVELS, OTHER_FEATURES_SINCE, features_at, level_of
from penstock.broker.metadata.metadata_log import VOTERS_SINCE, RecordReader, frame
from penstock.broker.metadata.takeover import MetadataRecords, check_takeover, metadata_of
from penstock.broker.partitions.internal_topics import METADATA_TOPIC
from penstock.errors import ConfigError, DecodeError, StorageError
from penstock.log.directory.files import sync_directory
from penstock.log.directory.identity_files import read_meta_properties
from penstock.log.directory.metadata_snapshots import (
    QuorumVoters,
    SnapshotFile,
    first_voters,
    write_snapshot,
)
from penstock.log.disk.data_directory import CLEAN_SHUTDOWN, DataDirectory
from penstock.model import TopicPartition
from penstock.protocol.field_values import TOPIC_RESOURCE
from penstock.protocol.messages.config_record import ConfigRecord

SEGMENT_BYTES_MIN = 1_048_576
"""The minimum of `segment.bytes`: Apache Kafka 4.0 and later do not start if a topic has less (KIP-1030)."""

_SEGMENT_BYTES = "segment.bytes"
_METADATA = TopicPartition(METADATA_TOPIC, 0)


class DirectoryState(NamedTuple):
    """The metadata of a data directory. `features` is a dict from name to level; `topics` has names."""

    cluster_id: str
    node_id: int
    directory_id: str | None
    features: dict[str, int]
    topics: Sequence[str]
    was_clean: bool
    small_segments: Sequence[str] = ()
    """The topics whose `segment.bytes` is too small for Apache Kafka 4.x, sorted."""

    @property
    def level(self) -> int:
        """The directory's level of `metadata.version`; 0 if the metadata do not contain the feature."""
        return self.features.get(METADATA_FEATURE, 0)

    @property
    def releases(self) -> list[str]:
        """The releases of Apache Kafka that can start on the directory with its levels and topic settings."""
        return [
            name.partition("-")[0]
            for name, level in LEVELS.items()
            if level >= self.level
            and (not self.small_segments if level >= OTHER_FEATURES_SINCE else len(self.features) == 1)
        ]


def describe(path: str) -> DirectoryState:
    """Return the state of one or more data directories of a broker, without changing them.

    `path` has one directory, or several separated by commas, as in `log.dirs`.

    Raises:
        ConfigError: `path` is not a data directory.
        StorageError: the metadata cannot be read.
    """
    first, others = _metadata_first(path)
    state, _, _ = _read(first)
    was_clean = all(os.path.exists(f"{each}/{CLEAN_SHUTDOWN}") for each in (first, *others))
    return state._replace(was_clean=was_clean)


def set_level(path: str, release: str) -> DirectoryState:
    """Set the metadata of a directory to the level of a release; return the new state.

    `path` has one directory of a broker, or all of them separated by commas, as in `log.dirs`.

    A lower level drops features that the release does not have, and a level below 3.9 drops the voters. A
    higher level adds the features that new directories of the release have. For 4.0 and later, topics whose
    `segment.bytes` is below `SEGMENT_BYTES_MIN` get that value.

    Raises:
        ConfigError: the release does not exist, or `path` is not a data directory.
        StorageError: the directory is in use, has contents that this broker cannot use, or cannot be written.
    """
    level = level_of(release)
    first, others = _metadata_first(path)
    check_takeover(first, others, has_authorizer=True, has_token_secret=True)
    before, _, _ = _read(first)
    directory = DataDirectory(first, node_id=before.node_id)
    try:
        _, image, records = _read(first)
        if before.level > level:
            lower(image, features_at(level))
        else:
            image.features |= features_at(level)
        if level >= OTHER_FEATURES_SINCE:
            _raise_segments(image)
        if level < VOTERS_SINCE:
            records.quorum = QuorumVoters()
        elif records.quorum.voters is None:
            records.quorum = first_voters(f"{first}/{_METADATA}")
        _write(first, image, records, time.time_ns() // 1_000_000)
        directory.broker_epoch = image.brokers.epoch_of(before.node_id)
        directory.close()
    finally:
        directory.abandon()
    return describe(path)


def lower(image: ClusterImage, features: Mapping[str, int]) -> None:
    """Lower `metadata.version` and the other features to `features`, the highest levels of a release.

    Features that are not in `features` are removed. Registrations of brokers and controllers are removed as
    well, since they contain features: every broker registers again when it starts.
    """
    image.features = {
        name: min(level, features[name]) for name, level in image.features.items() if name in features
    }
    image.brokers.by_id.clear()
    image.controllers.clear()


def _small_segments(image: ClusterImage) -> list[str]:
    """Return the sorted names of the topics whose `segment.bytes` is below `SEGMENT_BYTES_MIN`."""
    return sorted(
        name for name, topic in image.topics.items() if _is_small(topic.overrides.get(_SEGMENT_BYTES, ""))
    )


def _is_small(text: str) -> bool:
    return len(text) <= len(str(SEGMENT_BYTES_MIN)) and text.isdecimal() and int(text) < SEGMENT_BYTES_MIN


def _raise_segments(image: ClusterImage) -> None:
    """Raise `segment.bytes` of the topics in `small_segments` to the minimum of Apache Kafka 4.x."""
    for topic in _small_segments(image):
        least = str(SEGMENT_BYTES_MIN)
        image.apply(
            ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic, name=_SEGMENT_BYTES, value=least)
        )


def _metadata_first(path: str) -> tuple[str, list[str]]:
    """Return the directory in `path` that has the metadata log, and a list of the other directories."""
    paths = [path] if os.path.isdir(path) else [each.strip() for each in path.split(",")]
    first = next((each for each in paths if os.path.isdir(f"{each}/{_METADATA}")), paths[0])
    return first, [each for each in paths if each != first]


def write_snapshot_of(
    path: str, now_ms: int, *, end_offset: int, between: Callable[[int], None]
) -> SnapshotFile:
    """Write a snapshot of the metadata in a directory that this process uses; do not change the log.

    The snapshot replaces the log below `end_offset`. The function `between` is called with the number of each
    record that is read; if it raises an exception, no snapshot is written.

    Raises:
        StorageError: the metadata cannot be read, or the snapshot cannot be written or read back.
    """
    _, image, records = _read(path, end_offset, between)
    return _write(path, image, records, now_ms)


def _write(path: str, image: ClusterImage, records: MetadataRecords, now_ms: int) -> SnapshotFile:
    """Write a snapshot, read it back, and return its file.

    Raises:
        StorageError: the snapshot cannot be written, or its contents differ when read back.
    """
    level = metadata_level(image.features)
    file = write_snapshot(
        f"{path}/{_METADATA}",
        records.end_offset,
        max(records.epoch, 0),
        (frame(record, level) for record in image.records()),
        quorum=records.quorum,
        last_timestamp_ms=now_ms,
        now_ms=now_ms,
        read_back=True,
    )
    sync_directory(f"{path}/{_METADATA}")
    return file


def _read(
    path: str, end_offset: int | None = None, between: Callable[[int], None] = lambda count: None
) -> tuple[DirectoryState, ClusterImage, MetadataRecords]:
    """Read the metadata records of a directory below `end_offset`; return its state and metadata.

    Raises:
        ConfigError: `path` is not a data directory.
        StorageError: the metadata cannot be read.
    """
    meta = read_meta_properties(path) if os.path.isdir(path) else None
    metadata = f"{path}/{_METADATA}"
    records = metadata_of(path, metadata, written_by_any=True) if os.path.isdir(metadata) else None
    if meta is None or records is None:
        raise ConfigError(f"{path} is no data directory with metadata; name one that a broker has written")

    def values() -> Iterator[bytes]:
        for count, value in enumerate(records.values(end_offset)):
            between(count)
            yield value

    image = ClusterImage()
    try:
        for record in RecordReader(is_strict=True).records(values()):
            image.apply(record)
    except DecodeError as error:
        raise StorageError(f"the metadata of {path} cannot be read: {error}") from error
    was_clean = os.path.exists(f"{path}/{CLEAN_SHUTDOWN}")
    state = DirectoryState(
        meta.cluster_id,
        meta.node_id,
        meta.directory_id,
        image.features,
        sorted(image.topics),
        was_clean,
        _small_segments(image),
    )
    return state, image, records
