"""The entities in a request: its topics, partitions and groups, found by the message definition.

An *entity* is the smallest part of a request for which the response can have its own error code: a
partition, a topic, a group, or a plain key. Message definitions mark the fields that hold topics and groups
(`entityType`), so every API is covered without a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from penstock.protocol.error_response import PARTITION_FIELDS, fields_at
from penstock.protocol.field_values import TOPIC_RESOURCE
from penstock.protocol.schema.definition import Definition, FieldSpec, StructSpec
from penstock.protocol.uuid import ZERO_UUID

NAMED = ("topicName", "groupId", "transactionalId")
"""Entity types of names: if a request has an array of such names, each name has its own entry in the
response.
"""

NAMING_FIELDS = ("topic_id", "resource_name", "resource_name_filter", "member_id", "entity")
"""Names of fields. A struct in a request's array that has one of these fields has its own entry in the
response.
"""


class Entity(NamedTuple):
    """The topic, partition and group that a part of a request names; each is None if it is not named."""

    topic: str | None = None
    partition: int | None = None
    group: str | None = None


NO_ENTITY = Entity()

TopicNames = Callable[[bytes], "str | None"]
"""A function that returns the name of the topic with an id, or None if the topic does not exist."""


class Guide:
    """Finds the entities in requests of one API version, from the API's message definition."""

    def __init__(self, definition: Definition, version: int, topic_name: TopicNames) -> None:
        self.definition = definition
        self.version = version
        self._topic_name = topic_name

    def entity_of(self, item: Any, field: FieldSpec, outer: Entity) -> Entity:
        """Return the entity that one item of a request's array names; `outer` has the names around it."""
        if isinstance(item, str):
            return _scalar_entity(item, field, outer)
        if isinstance(item, int):
            return outer._replace(partition=item)
        return self.entity_of_struct(item, self.definition.structs[field.type_at(self.version).base], outer)

    def entity_of_struct(self, item: Any, spec: StructSpec, outer: Entity) -> Entity:
        entity = outer
        for field in fields_at(spec, self.version):
            kind = field.type_at(self.version)
            if kind.is_array or kind.is_struct:
                continue
            value = getattr(item, field.attribute)
            if kind.base == "string" and isinstance(value, str):
                entity = _scalar_entity(value, field, entity)
            elif kind.base == "uuid" and field.attribute == "topic_id" and value != ZERO_UUID:
                entity = entity._replace(topic=self._topic_name(value))
            elif field.attribute in PARTITION_FIELDS and entity.topic is not None:
                entity = entity._replace(partition=value)
        if getattr(item, "resource_type", None) == TOPIC_RESOURCE:
            entity = entity._replace(topic=item.resource_name)
        return entity

    def entities(self, message: Any) -> list[Entity]:
        """Return every entity that the request names, or a single empty entity if it names none."""
        root = self.definition.root
        return list(self._entities(message, root, self.entity_of_struct(message, root, NO_ENTITY)))

    def entities_below(self, item: Any, field: FieldSpec, outer: Entity) -> list[Entity]:
        """Return all entities that one item of a request's array, or an item nested in it, names."""
        entity = self.entity_of(item, field, outer)
        if isinstance(item, (str, int)):
            return [entity]
        spec = self.definition.structs[field.type_at(self.version).base]
        return list(self._entities(item, spec, entity))

    def _entities(self, item: Any, spec: StructSpec, entity: Entity) -> Iterator[Entity]:
        found = False
        for field in self.array_fields(spec):
            for each in getattr(item, field.attribute) or ():
                found = True
                yield from self.entities_below(each, field, entity)
        if not found:
            yield entity

    def array_fields(self, spec: StructSpec) -> list[FieldSpec]:
        """Return a struct's array fields that can hold entities, except Fetch's `forgotten_topics_data`."""
        fields = []
        for field in fields_at(spec, self.version):
            kind = field.type_at(self.version)
            if not kind.is_array or field.attribute == "forgotten_topics_data":
                continue
            named = field.entity_type in NAMED or field.attribute in PARTITION_FIELDS
            if (
                named
                or field.attribute == "coordinator_keys"
                or (kind.is_struct and self._holds_entity(kind.base))
            ):
                fields.append(field)
        return fields

    def _holds_entity(self, name: str) -> bool:
        spec = self.definition.structs[name]
        scalars = {field.attribute for field in fields_at(spec, self.version)}
        named = any(field.entity_type in ("topicName", "groupId") for field in fields_at(spec, self.version))
        return (
            named
            or not scalars.isdisjoint((*NAMING_FIELDS, *PARTITION_FIELDS))
            or bool(self.array_fields(spec))
        )


def _scalar_entity(text: str, field: FieldSpec, outer: Entity) -> Entity:
    if field.entity_type == "topicName":
        return outer._replace(topic=text)
    if field.entity_type == "groupId":
        return outer._replace(group=text)
    return outer
