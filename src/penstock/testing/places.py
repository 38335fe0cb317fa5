"""What a request is about: the topics, partitions and groups in it, read off its definition.

A *place* is the smallest thing that a request names and its answer can give an error code of its own: a
partition, a topic, a group, or a plain key. Definitions say which fields hold topics and groups
(`entityType`), so every API is covered without a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from penstock.protocol.schema.definition import Definition, FieldSpec, StructSpec
from penstock.protocol.schema.loader import load_definition
from penstock.protocol.uuid import ZERO_UUID

PARTITION_FIELDS = frozenset(
    ("index", "partition", "partition_id", "partition_index", "partition_indexes", "partitions")
)
NAMED = ("topicName", "groupId", "transactionalId")
"""Entities whose names, in an array, each have an entry of the answer."""

NAMING_FIELDS = ("topic_id", "resource_name", "resource_name_filter", "member_id", "entity")
"""So do structs with one of these."""

TOPIC_RESOURCE = 2


class Place(NamedTuple):
    """Where in a request something stands. What it does not say is None."""

    topic: str | None = None
    partition: int | None = None
    group: str | None = None


NOWHERE = Place()

TopicNames = Callable[[bytes], "str | None"]
"""The name of the topic with an id, None where there is none."""


@cache
def definition_of(name: str) -> Definition:
    """The definition of a message, such as ``ProduceRequest``."""
    return load_definition(name)


def fields_at(spec: StructSpec, version: int) -> Iterator[FieldSpec]:
    return (field for field in spec.fields if version in field.versions)


class Guide:
    """Finds places in one request at one version."""

    def __init__(self, definition: Definition, version: int, topic_name: TopicNames) -> None:
        self.definition = definition
        self.version = version
        self._topic_name = topic_name

    def place_of(self, item: Any, field: FieldSpec, outer: Place) -> Place:
        """The place of one item of an array."""
        if isinstance(item, str):
            return _scalar_place(item, field, outer)
        if isinstance(item, int):
            return outer._replace(partition=item)
        return self.place_of_struct(item, self.definition.structs[field.type_at(self.version).base], outer)

    def place_of_struct(self, item: Any, spec: StructSpec, outer: Place) -> Place:
        place = outer
        for field in fields_at(spec, self.version):
            kind = field.type_at(self.version)
            if kind.is_array or kind.is_struct:
                continue
            value = getattr(item, field.attribute)
            if kind.base == "string" and isinstance(value, str):
                place = _scalar_place(value, field, place)
            elif kind.base == "uuid" and field.attribute == "topic_id" and value != ZERO_UUID:
                place = place._replace(topic=self._topic_name(value))
            elif field.attribute in PARTITION_FIELDS and place.topic is not None:
                place = place._replace(partition=value)
        if getattr(item, "resource_type", None) == TOPIC_RESOURCE:
            place = place._replace(topic=item.resource_name)
        return place

    def places(self, message: Any) -> list[Place]:
        """Every place that the request names; one that says nothing where it names none."""
        root = self.definition.root
        return list(self._places(message, root, self.place_of_struct(message, root, NOWHERE)))

    def places_below(self, item: Any, field: FieldSpec, outer: Place) -> list[Place]:
        """The places in one item of an array."""
        place = self.place_of(item, field, outer)
        if isinstance(item, (str, int)):
            return [place]
        spec = self.definition.structs[field.type_at(self.version).base]
        return list(self._places(item, spec, place))

    def _places(self, item: Any, spec: StructSpec, place: Place) -> Iterator[Place]:
        found = False
        for field in self.array_fields(spec):
            for each in getattr(item, field.attribute) or ():
                found = True
                yield from self.places_below(each, field, place)
        if not found:
            yield place

    def array_fields(self, spec: StructSpec) -> list[FieldSpec]:
        """The arrays of a struct that can hold places; topics to be removed from a session are left out."""
        fields = []
        for field in fields_at(spec, self.version):
            kind = field.type_at(self.version)
            if not kind.is_array or field.attribute == "forgotten_topics_data":
                continue
            named = field.entity_type in NAMED or field.attribute in PARTITION_FIELDS
            if (
                named
                or field.attribute == "coordinator_keys"
                or (kind.is_struct and self._holds_place(kind.base))
            ):
                fields.append(field)
        return fields

    def _holds_place(self, name: str) -> bool:
        spec = self.definition.structs[name]
        scalars = {field.attribute for field in fields_at(spec, self.version)}
        named = any(field.entity_type in ("topicName", "groupId") for field in fields_at(spec, self.version))
        return (
            named
            or not scalars.isdisjoint((*NAMING_FIELDS, *PARTITION_FIELDS))
            or bool(self.array_fields(spec))
        )


def _scalar_place(text: str, field: FieldSpec, outer: Place) -> Place:
    if field.entity_type == "topicName":
        return outer._replace(topic=text)
    if field.entity_type == "groupId":
        return outer._replace(group=text)
    return outer
