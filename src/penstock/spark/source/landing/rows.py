"""The rows of a landing source: one for each file that a task has written, and one for its offset ranges."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.errors import ConfigError
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import LandedFile
from penstock.model import OffsetRange
from penstock.protocol.uuid import uuid_to_text

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.lake.contract import HandedFile

FILES_SCHEMA = StructType(
    [
        StructField("file", StringType()),
        StructField("rows", LongType()),
        StructField("bytes", LongType()),
        StructField("entry", StringType()),
    ]
)
"""The columns of a landing source. `file` is the final path of a file, or null in the row that reports the
ranges read; `entry` is JSON for the sink.
"""


@dataclass(frozen=True, slots=True)
class TaskEntries:
    """The combined contents of the rows of some landing tasks: files written, and offset ranges read."""

    writer: str | None
    layout: TableLayout | None
    files: tuple[LandedFile, ...] = ()
    ranges: tuple[OffsetRange, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    handed: tuple[str, ...] = ()
    """Descriptions of the files written for a lake table, in the text form of `HandedFile.text`."""

    def with_entry(self, text: str) -> TaskEntries:
        """Return these entries with the content of one more row. Raises ConfigError for a malformed row."""
        try:
            found: dict[str, Any] = json.loads(text)
            files = tuple(LandedFile.from_object(each) for each in found.get("files", []))
            ranges = tuple(OffsetRange(*each) for each in found.get("ranges", []))
            topic_ids = {str(name): str(each) for name, each in found.get("topicIds", {}).items()}
            handed = tuple(map(str, found.get("handed", [])))
            layout = TableLayout.from_json(found["layout"])
            writer = found["writer"]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ConfigError(f"{NOT_LANDED}: a row has the entry {text[:80]!r}") from None
        if self.layout is not None and (layout != self.layout or writer != self.writer):
            raise ConfigError(f"{NOT_LANDED}: the rows come from more than one source")
        return TaskEntries(
            writer,
            layout,
            self.files + files,
            self.ranges + ranges,
            {**self.topic_ids, **topic_ids},
            self.handed + handed,
        )


NOT_LANDED = "a sink with the option landing takes the rows of one source with that option, unchanged"


def file_row(writer: str | None, layout: TableLayout, file: LandedFile) -> tuple[str | None, int, int, str]:
    """Return the row that reports a file of a directory table."""
    return file.path, file.rows, file.size_bytes, _entry(writer, layout, files=[file.to_object()])


def handed_row(writer: str | None, layout: TableLayout, file: HandedFile) -> tuple[str | None, int, int, str]:
    """Return the row that reports a file of a lake table."""
    return file.path, file.rows, file.size_bytes, _entry(writer, layout, handed=[file.text])


def ranges_row(
    writer: str | None, layout: TableLayout, ranges: Sequence[OffsetRange], topic_ids: Mapping[str, bytes]
) -> tuple[str | None, int, int, str]:
    """Return the row that reports the ranges that a task has read, and the ids of their topics."""
    ids = {name: uuid_to_text(each) for name, each in topic_ids.items()}
    return None, 0, 0, _entry(writer, layout, ranges=[list(each) for each in ranges], topicIds=ids)


def _entry(writer: str | None, layout: TableLayout, **parts: object) -> str:
    return json.dumps({"writer": writer, "layout": layout.to_json(), **parts})


def batch_of(rows: Iterable[tuple[str | None, int, int, str]]) -> pa.RecordBatch:
    """Return rows of a landing source as an Arrow batch with the schema `FILES_SCHEMA`."""
    import pyarrow as pa

    from penstock.spark.runtime.releases import arrow_schema_of

    schema = arrow_schema_of(FILES_SCHEMA)
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
