"""Converts between `Positions` and the manifests of tables in directories and object stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from penstock.errors import DecodeError
from penstock.lake.arrow_types import spark_type
from penstock.lake.contract import Positions, TableSettings
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import Manifest
from penstock.model import OffsetRange

TIME_COLUMNS = ("time", "timestamp")
"""Columns with a time from which the partition columns `date` and `hour` can be computed: the first that
the table has is used.
"""


def layout_of(schema: pa.Schema, settings: TableSettings, format: str = "parquet") -> TableLayout:
    """Return the `TableLayout` of a table whose rows have the columns `schema`.

    Raises:
        ConfigError: a column has a type that cannot be landed, or cannot name directories.
    """
    columns = tuple((field.name, spark_type(field.type)) for field in schema)
    time_column = next((name for name in TIME_COLUMNS if dict(columns).get(name) == "timestamp"), "timestamp")
    layout = TableLayout(columns, settings.partition_by, time_column, format)
    layout.check()
    return layout


def positions_of(manifest: Manifest) -> Positions:
    """Return the writer's positions after the batch that a manifest describes.

    Raises:
        DecodeError: the manifest does not have exactly one topic.
    """
    topics = {each.topic for each in manifest.ranges}
    if len(topics) != 1:
        raise DecodeError(
            f"batch {manifest.batch} of {manifest.writer} has records of {len(topics)} topics: another "
            "program wrote it. Choose another --name"
        )
    (topic,) = topics
    offsets = {each.partition: each.end for each in manifest.ranges}
    return Positions(topic, manifest.topic_ids.get(topic), offsets, manifest.batch, "")


def begins_of(manifests: Sequence[Manifest]) -> Mapping[int, int]:
    """Return a dict from partition to the offset where the writer began; empty if batch 0 is missing."""
    if not manifests or manifests[0].batch:
        return {}
    return {each.partition: each.start for each in manifests[0].ranges}


def ranges_between(before: Positions, after: Positions) -> list[OffsetRange]:
    """Return the offset ranges from `Positions` before a batch to those after it, also empty ranges."""
    return [
        OffsetRange(after.topic, partition, before.offsets.get(partition, 0), end)
        for partition, end in sorted(after.offsets.items())
    ]


def topic_ids_of(positions: Positions) -> Mapping[str, str]:
    """Return a dict from the topic of `positions` to its id, for a manifest; empty if the id is unknown."""
    return {} if positions.topic_id is None else {positions.topic: positions.topic_id}
