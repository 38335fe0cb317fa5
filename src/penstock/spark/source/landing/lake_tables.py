"""Land into tables of the lake: tasks write files by the modules of `penstock.lake`, the driver commits them.

The commits of the table contain the offsets, under the same names as the commits of ``penstock land``. So a
micro-batch that Spark repeats is recognized by its offsets, and each program can continue where the other one
stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.errors import ConfigError
from penstock.lake.contract import Positions, TableSettings, Written
from penstock.lake.credentials import StoreOptions, without_secrets
from penstock.lake.targets import open_table
from penstock.landing.manifest import refuse_overlaps
from penstock.model import OffsetRange
from penstock.security.secrets import Secret

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.lake.contract import LakeTable

SCHEMES = ("iceberg", "delta", "s3", "s3a", "gs", "az", "abfs", "abfss", "hdfs", "http", "https")
"""The schemes of the URLs of lake tables. Some of them are refused, with the reason."""


@dataclass(frozen=True, slots=True)
class LakeTarget:
    """The lake table in the options of a query. `name` is the name of the writer, by default the topic's."""

    url: str
    name: str | None = None
    partition_by: tuple[str, ...] = ()
    compression: str = "zstd"
    file_bytes: int = 128 << 20
    store: Mapping[str, Secret] = field(default_factory=dict)
    store_file: str | None = None

    @property
    def title(self) -> str:
        """The URL of the lake table without passwords, for messages."""
        return without_secrets(self.url)

    def open(self, topic: str) -> LakeTable:
        """Return the table, which may not exist yet.

        Raises:
            ConfigError: the URL names no table, or an option does not apply to its kind.
            MissingDependencyError: a library is not installed.
        """
        settings = TableSettings(self.name or topic, self.partition_by, self.compression, self.file_bytes)
        given = {name: value.reveal() for name, value in self.store.items()}
        return open_table(self.url, topic, settings, StoreOptions(given, self.store_file))


def prepare(target: LakeTarget, topic: str, schema: pa.Schema) -> None:
    """Create the table, or check or extend its columns for `schema`.

    Raises the errors of `LakeTable.prepare`."""
    target.open(topic).prepare(schema)


def unread(target: LakeTarget, ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
    """Return the parts of the offset ranges `ranges` whose records the table does not have yet.

    All ranges are of one topic.

    Raises:
        StorageError: the table cannot be read.
    """
    if not ranges:
        return []
    found = target.open(ranges[0].topic).positions()
    known = {} if found is None else found.offsets
    return [
        each._replace(start=max(each.start, known.get(each.partition, 0)))
        for each in ranges
        if each.end > known.get(each.partition, 0)
    ]


def commit(
    target: LakeTarget,
    job: str,
    ranges: Sequence[OffsetRange],
    topic_ids: Mapping[str, str],
    files: Sequence[str],
) -> Written | None:
    """Commit the files of a micro-batch with its offsets; return None if the table has these offsets already.

    `job` names the micro-batch, to recognize its earlier commit attempts. `files` are descriptions that
    `LakeTable.hand_over` returns. If the table has the batch already, its files are left as orphans for
    upkeep to remove, because an earlier attempt may have committed these very files.

    Raises:
        ConfigError: the table has part of the batch already, or has records of another topic.
        OtherWriterError: another process has written to the table in the meantime.
        StorageError: the store refuses; Spark repeats the batch.
    """
    refuse_overlaps(ranges)
    cut = _joined(ranges)
    if not files or not cut:
        return None
    topic = ranges[0].topic
    table = target.open(topic)
    before = table.positions()
    topic_id = topic_ids.get(topic)
    if before is None:
        before = Positions(topic, topic_id, {partition: start for partition, (start, _) in cut.items()}, -1)
    else:
        _check(target, before, topic, topic_id)
        ahead = [
            partition for partition, (start, _) in cut.items() if before.offsets.get(partition, 0) > start
        ]
        if ahead and all(end <= before.offsets.get(partition, 0) for partition, (_, end) in cut.items()):
            return None
        if ahead:
            raise _behind(target, before, topic)
    after = replace(
        before,
        topic_id=topic_id or before.topic_id,
        offsets={**before.offsets, **{partition: end for partition, (_, end) in cut.items()}},
        batch=before.batch + 1,
        token=hashlib.sha256(job.encode()).hexdigest()[:32],
    )
    table.take_over(files)
    return table.commit(before, after)


def _joined(ranges: Sequence[OffsetRange]) -> dict[int, tuple[int, int]]:
    """Return (first offset, offset after the last) of each partition in `ranges`."""
    found: dict[int, tuple[int, int]] = {}
    for each in ranges:
        if each.end > each.start:
            start, end = found.get(each.partition, (each.start, each.end))
            found[each.partition] = min(start, each.start), max(end, each.end)
    return found


def _check(target: LakeTarget, before: Positions, topic: str, topic_id: str | None) -> None:
    if before.topic != topic:
        raise ConfigError(
            f"{target.title} has positions of topic {before.topic!r} under this name, not of {topic!r}: give "
            "the other topic another landing.name"
        )
    if None not in (before.topic_id, topic_id) and before.topic_id != topic_id:
        raise ConfigError(
            f"topic {topic!r} was deleted and created anew: {target.title} has records of the one with id "
            f"{before.topic_id}, the present one is {topic_id}. Land the present one under another "
            "landing.name: its records come behind those of the old one"
        )


def _behind(target: LakeTarget, before: Positions, topic: str) -> ConfigError:
    offsets = {str(partition): offset for partition, offset in sorted(before.offsets.items())}
    return ConfigError(
        f"{target.title} has records behind the start of this batch: another query, or penstock land, has "
        "written them. Begin a new checkpoint where the table is, by startingOffsets = "
        + json.dumps({topic: offsets})
    )
