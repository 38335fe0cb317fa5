"""Iterates over the structs of messages, each with its topic and partition, and over records as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from penstock.model import Record
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.wire_type import StructLayout
from penstock.protocol.message import Message
from penstock.protocol.uuid import ZERO_UUID
from penstock.records.batch import decode_batch
from penstock.records.format.batch_header import read_header, split_batches

PARTITIONS = ("partition", "partition_index", "index", "partition_id")
"""Names of attributes that have a partition's number. Their struct is inside a struct that has the topic."""

Names = Mapping[bytes, str]
"""A dict from topic id to the topic's name."""


class StructField(NamedTuple):
    """A field of a struct that exists in the version of its message."""

    attribute: str
    layout: StructLayout | None
    """The layout of the struct in the field, or of each struct in its array; None for other values."""
    is_array: bool
    holds_records: bool
    names_topic: bool


class StructPlace(NamedTuple):
    """A struct inside a message, with the topic and partition it is about (None if it is about none)."""

    struct: Any
    fields: list[StructField]
    topic: str | None
    partition: int | None


_FIELDS: dict[int, tuple[StructLayout, list[StructField]]] = {}


def fields_of(layout: StructLayout) -> list[StructField]:
    """Return the fields of a struct, including tagged fields."""
    found = _FIELDS.get(id(layout))
    if found is None:  # the layout is kept beside its fields, so that its id stays its own
        placed = [*layout.fields, *(each for _, each in layout.tagged)]
        fields = [
            StructField(
                each.spec.attribute,
                each.wire.struct,
                each.wire.is_array,
                each.wire.holds_records,
                each.spec.entity_type == "topicName" and not each.wire.is_array,
            )
            for each in placed
        ]
        found = _FIELDS[id(layout)] = (layout, fields)
    return found[1]


def layout_of(message: Message, version: int) -> StructLayout:
    """Return the layout of a message in a version."""
    layout: StructLayout = codec_for(type(message), version).layout
    return layout


def places(message: Message, version: int, names: Names) -> Iterator[StructPlace]:
    """Yield every struct of a message, outer structs first. `names` is a dict from topic id to topic name."""
    yield from _places(layout_of(message, version), message, names, None, None)


def _places(
    layout: StructLayout, struct: Any, names: Names, topic: str | None, partition: int | None
) -> Iterator[StructPlace]:
    fields = fields_of(layout)
    for field in fields:
        value = getattr(struct, field.attribute) if field.layout is None else None
        if field.names_topic and value:
            topic = value
        elif field.attribute == "topic_id" and value and value != ZERO_UUID:
            topic = names.get(value, topic)
        elif field.attribute in PARTITIONS and isinstance(value, int):
            partition = value
    yield StructPlace(struct, fields, topic, partition)
    for field in fields:
        if field.layout is None:
            continue
        inner = getattr(struct, field.attribute)
        if inner is None:
            continue
        for each in inner if field.is_array else (inner,):
            yield from _places(field.layout, each, names, topic, partition)


def rows_of(data: Any, topic: str = "", partition: int = -1) -> list[Record]:
    """Return the records in a records field, except in control batches and in an incomplete last batch.

    Raises:
        CorruptRecordError: a batch is damaged.
        UnpackLimitError: a batch unpacks to more than the limit for one batch.
    """
    if not data:
        return []
    view = memoryview(data)
    rows: list[Record] = []
    for start, end, magic in split_batches(view):
        if magic == 2 and read_header(view, start).is_control:
            continue
        rows += decode_batch(view, start, end, topic, partition)
    return rows
