"""Encodes rows given as JSON text to Avro, JSON or Protobuf, with a schema from a registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.errors import ConfigError, EncodeError
from penstock.registry import framing
from penstock.registry.client import RegistryClient
from penstock.registry.decoding import FORMATS, reader_version
from penstock.registry.schemas import AVRO, JSON, RegisteredSchema, Schema
from penstock.registry.serializers import AvroSerializer, JSONSerializer, SerializationContext
from penstock.registry.subjects import KEY, VALUE, topic_subject

Write = Callable[[bytes], bytes | None]
"""A function that encodes a row, given as JSON text, and returns its bytes."""


class JsonRows:
    """Encodes rows given as JSON text.

    >>> rows = JsonRows("avro", RegistryClient("http://localhost:8081"))
    >>> rows.encode(b'{"id": 1}', "orders")
    """

    def __init__(
        self,
        format: str,
        registry: RegistryClient,
        *,
        schema: Schema | None = None,
        subject: str | None = None,
        is_key: bool = False,
        message: str | None = None,
    ) -> None:
        """Set up an encoder for a format.

        Args:
            format: ``"avro"``, ``"json"`` or ``"protobuf"``.
            registry: the registry that has the schema, or in which it is registered.
            schema: the schema to encode with, which is registered; by default the subject's newest.
            subject: the subject of the schema; by default ``<topic>-value`` or ``<topic>-key``.
            is_key: True if the rows are record keys.
            message: the full name of a Protobuf message; by default the file's first.

        Raises:
            ConfigError: the format is unknown, or the schema has another type.
        """
        if format not in FORMATS:
            raise ConfigError(f"the format is {format!r}: it is one of {', '.join(FORMATS)}")
        self._type = FORMATS[format]
        if schema is not None and schema.type != self._type:
            raise ConfigError(f"the schema is of type {schema.type}, the format is {format!r}")
        self._registry = registry
        self._schema = schema
        self._subject = subject
        self._field = KEY if is_key else VALUE
        self._message = message
        self._writes: dict[str, Write] = {}

    def encode(self, text: bytes | None, topic: str) -> bytes | None:
        """Return a row as bytes, with its schema's id in front; None stays None.

        Raises:
            EncodeError: the text is not JSON, or does not fit the schema.
            ConfigError, DecodeError: the registry has no schema for the topic, or an invalid one.
            RegistryError, NetworkError: the registry refuses the schema, or cannot be reached.
        """
        if text is None:
            return None
        write = self._writes.get(topic)
        if write is None:
            write = self._writes[topic] = self._write_for(topic)
        return write(text)

    def _write_for(self, topic: str) -> Write:
        found = self._chosen(topic)
        if found.schema.type != self._type:
            raise ConfigError(f"subject {found.subject!r} has a schema of type {found.schema.type}")
        if self._type not in (AVRO, JSON):
            return self._protobuf(found)
        context = SerializationContext(topic, self._field)
        conf: Mapping[str, Any] = {"use.schema.id": found.id}
        if self._type == JSON:
            json_serializer = JSONSerializer(found.schema, self._registry, lambda row, _: row, conf)
            return lambda text: json_serializer(_row(text), context)
        from penstock.registry.avro.plain_rows import avro_row
        from penstock.registry.avro.schema import parse_avro

        referenced = self._registry.referenced(found.schema)
        kind = parse_avro(found.schema.text, [each.text for each in referenced.values()])
        serializer = AvroSerializer(self._registry, found.schema, lambda row, _: avro_row(row, kind), conf)
        return lambda text: serializer(_row(text), context)

    def _chosen(self, topic: str) -> RegisteredSchema:
        subject = self._subject or topic_subject(topic, self._field)
        if self._schema is None:
            return reader_version(self._registry, subject)
        number = self._registry.register(subject, self._schema)
        return RegisteredSchema(subject, 0, number, self._schema)

    def _protobuf(self, found: RegisteredSchema) -> Write:
        from google.protobuf import json_format
        from google.protobuf.message_factory import GetMessageClass

        from penstock.registry.protobuf.schema import message_at, message_named, parse_protobuf, path_of

        referenced = self._registry.referenced(found.schema)
        file = parse_protobuf(found.schema.text, {name: each.text for name, each in referenced.items()})
        kind = message_at(file, (0,)) if self._message is None else message_named(file, self._message)
        prefix = framing.id_prefix(found.id, self._registry.id_bytes) + framing.message_indexes(path_of(kind))
        make = GetMessageClass(kind)

        def write(text: bytes) -> bytes | None:
            row = _row(text)
            if row is None:
                return None
            try:
                return bytes(prefix + json_format.ParseDict(row, make()).SerializeToString())
            except json_format.ParseError as error:
                raise EncodeError(f"the value does not fit message {kind.full_name}: {error}") from None

        return write


def _row(text: bytes) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EncodeError(f"the value is no JSON: {error}") from None
