"""Serializers and deserializers of rows, with the names, arguments and settings of Confluent's for Python.

Serializers and deserializers are called with a value and a `SerializationContext`. Penstock's producers and
consumers call a function of one argument, which `bound` makes:

    Producer(..., value_serializer=AvroSerializer(registry, text).bound("orders"))

Nulls stay nulls. Rows are dictionaries, dataclasses, pydantic models, or objects that `to_dict` converts. A
dataclass or a model can be given instead of a schema: its type hints define the schema, and deserializers
return its instances.
"""

from __future__ import annotations

import io
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from penstock.errors import ConfigError, DecodeError, EncodeError
from penstock.registry import framing
from penstock.registry.avro.row_program import row_program, write_row
from penstock.registry.client import RegistryClient
from penstock.registry.json_schema.checks import check_of
from penstock.registry.models import (
    as_dict,
    as_json,
    avro_schema_of,
    is_model,
    json_schema_of,
    row_of,
)
from penstock.registry.schemas import AVRO, JSON, PROTOBUF, Reference, RegisteredSchema, Schema
from penstock.registry.subjects import VALUE, strategy_named


class SerializationContext(NamedTuple):
    """The origin or destination of a value: topic, ``key`` or ``value``, and the record's headers."""

    topic: str
    field: str = VALUE
    headers: list[tuple[str, bytes]] | dict[str, bytes] | None = None


_DEFAULTS: dict[str, Any] = {
    "auto.register.schemas": True,
    "normalize.schemas": False,
    "use.latest.version": False,
    "use.schema.id": None,
    "subject.name.strategy": "topic",
    "subject.name.strategy.type": None,
    "schema.id.serializer": "prefix",
}
_READER_DEFAULTS: dict[str, Any] = {
    "use.latest.version": False,
    "subject.name.strategy": "topic",
    "subject.name.strategy.type": None,
}


class _Settings:
    """The checked settings of a serializer or deserializer, such as its subject name strategy."""

    def __init__(self, conf: Mapping[str, Any] | None, defaults: Mapping[str, Any]) -> None:
        found = {**defaults, **(conf or {})}
        if unknown := found.keys() - defaults.keys():
            raise ConfigError(
                f"there is no setting {min(unknown)!r}; there are {', '.join(sorted(defaults))}"
            )
        self.registers = _truth(found, "auto.register.schemas")
        self.normalizes = _truth(found, "normalize.schemas")
        self.uses_latest = _truth(found, "use.latest.version")
        self.schema_id: int | None = found.get("use.schema.id")
        if self.registers and self.uses_latest and (conf or {}).get("auto.register.schemas"):
            raise ConfigError("use.latest.version and auto.register.schemas exclude each other")
        strategy = found["subject.name.strategy.type"] or found["subject.name.strategy"]
        # Confluent's strategies take a context and the name of the record.
        self._own = strategy if callable(strategy) else None
        self._named = None if callable(strategy) else strategy_named(strategy)
        self.is_by_name = self._own is None
        """True for one of the three built-in strategies, whose subject depends only on topic, field and
        record name."""
        self.in_header = found.get("schema.id.serializer", "prefix") == "header"
        if found.get("schema.id.serializer", "prefix") not in ("prefix", "header"):
            raise ConfigError("schema.id.serializer is prefix or header")

    def subject(self, context: SerializationContext, record: str | None) -> str:
        """Return the subject for a value, as the subject name strategy defines it."""
        if self._own is not None:
            return str(self._own(context, record))
        assert self._named is not None
        return self._named(context.topic, str(getattr(context.field, "value", context.field)), record)


def _truth(found: Mapping[str, Any], name: str) -> bool:
    value = found.get(name, False)
    if not isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}: True or False is needed")
    return value


GivenSchema = str | Schema | type
"""The type of a schema argument: schema text, a `Schema`, or a dataclass or pydantic model that defines it.
"""


def _given_schema(given: GivenSchema | None, kind: str) -> Schema | None:
    """Return the schema of an argument: a `Schema`, schema text, or a class from which a schema is derived.

    Raises:
        ConfigError: the argument has another type, or a field of the class has no type in the format.
    """
    if given is None or isinstance(given, Schema):
        return given
    if isinstance(given, str):
        return Schema(given, kind)
    if not is_model(given):
        raise ConfigError(f"{given!r} is no schema: its text, a dataclass or a pydantic model is needed")
    return Schema(avro_schema_of(given) if kind == AVRO else json_schema_of(given), kind)


def _maker_of(given: object) -> Callable[[Any, SerializationContext], Any] | None:
    """Return a function that converts dictionaries to instances of `given`, or None if it is not a model."""
    return (lambda found, _: row_of(given, found)) if is_model(given) else None


class _Serializer(ABC):
    """The base of all serializers: finds the schema of a subject, and writes its id in front of values."""

    type = AVRO

    def __init__(
        self, registry: RegistryClient | str, schema: Schema | None, record: str | None, settings: _Settings
    ) -> None:
        self._registry = RegistryClient(registry) if isinstance(registry, str) else registry
        self._schema = schema
        self._record = record
        self._settings = settings
        self._chosen: dict[str, tuple[Schema, int, str | None]] = {}
        self._known: dict[tuple[str, str], tuple[Schema, bytes]] = {}

    def bound(self, topic: str, field: str = VALUE) -> Callable[[Any], bytes | None]:
        """Return a function of one argument that serializes for a topic, as producers need it."""
        context = SerializationContext(topic, field)
        return lambda value: self(value, context)

    def __call__(self, value: Any, context: SerializationContext) -> bytes | None:
        """Return the bytes of a value, with its schema's id in front or in the headers.

        Raises:
            EncodeError: the value does not fit its schema.
            RegistryError, NetworkError: the registry refuses the schema, or cannot be reached.
        """
        if value is None:
            return None
        key = context.topic, context.field
        known = self._known.get(key)
        if known is not None:  # the usual case: the subject is that of a topic and a field
            payload, path = self._payload(value, known[0])
            return known[1] + (framing.message_indexes(path) + payload if path else payload)
        subject = self._settings.subject(context, self._record)
        chosen = self._chosen.get(subject)
        if chosen is None:
            chosen = self._chosen[subject] = self._choose(subject)
        schema, schema_id, guid = chosen
        payload, path = self._payload(value, schema)
        indexes = framing.message_indexes(path) if path else b""
        if not self._settings.in_header:
            prefix = framing.id_prefix(schema_id, self._registry.id_bytes)
            if self._settings.is_by_name:
                self._known[key] = schema, prefix
            return prefix + indexes + payload
        if guid is None:
            raise EncodeError("the registry gave no GUID of the schema, which schema.id.serializer needs")
        headers = context.headers
        name = framing.VALUE_HEADER if context.field == VALUE else framing.KEY_HEADER
        if isinstance(headers, list):
            headers.append((name, framing.guid_header(guid) + indexes))
        elif isinstance(headers, dict):
            headers[name] = framing.guid_header(guid) + indexes
        else:
            raise EncodeError("the context has no headers, into which the GUID of the schema belongs")
        return payload

    def framing(self, context: SerializationContext) -> tuple[Schema, bytes] | None:
        """Return (schema of a topic's values, prefix with its id), or None if ids go into headers.

        Raises:
            RegistryError, NetworkError: the registry refuses the schema, or cannot be reached.
        """
        if self._settings.in_header:
            return None
        subject = self._settings.subject(context, self._record)
        chosen = self._chosen.get(subject)
        if chosen is None:
            chosen = self._chosen[subject] = self._choose(subject)
        return chosen[0], framing.id_prefix(chosen[1], self._registry.id_bytes)

    def _choose(self, subject: str) -> tuple[Schema, int, str | None]:
        settings, registry = self._settings, self._registry
        if settings.schema_id is not None:
            return registry.schema_by_id(settings.schema_id), settings.schema_id, None
        if settings.uses_latest:
            latest = registry.version(subject)
            return latest.schema, latest.id, latest.guid
        schema = self._own_schema()
        if settings.registers:
            schema_id = registry.register(subject, schema, normalize=settings.normalizes)
            guid = None
            if settings.in_header:
                guid = registry.lookup(subject, schema, normalize=settings.normalizes).guid
            return schema, schema_id, guid
        found: RegisteredSchema = registry.lookup(subject, schema, normalize=settings.normalizes)
        return schema, found.id, found.guid

    def _own_schema(self) -> Schema:
        if self._schema is None:
            raise ConfigError("the serializer needs a schema, use.latest.version or use.schema.id")
        return self._schema

    @abstractmethod
    def _payload(self, value: Any, schema: Schema) -> tuple[bytes, tuple[int, ...]]:
        """Return (encoded value without prefix, path of its Protobuf message type or empty path)."""


class _Deserializer(ABC):
    """The base of all deserializers: finds a value's writer schema, and the start of the encoded data."""

    def __init__(self, registry: RegistryClient | str | None, settings: _Settings) -> None:
        self._registry = RegistryClient(registry) if isinstance(registry, str) else registry
        self._settings = settings
        self._parsed: dict[Schema, Any] = {}

    def bound(self, topic: str, field: str = VALUE) -> Callable[[bytes], Any]:
        """Return a function of one argument that deserializes values of a topic, as consumers need it."""
        context = SerializationContext(topic, field)
        return lambda data: self(data, context)

    @abstractmethod
    def __call__(self, data: bytes | None, context: SerializationContext) -> Any:
        """Return the value that is encoded in some bytes."""

    def _framing(self, data: bytes, context: SerializationContext) -> framing.Framed:
        id_bytes = 4 if self._registry is None else self._registry.id_bytes
        return framing.read_framing(data, context.headers, is_key=context.field != VALUE, id_bytes=id_bytes)

    def _writer(self, schema_id: framing.SchemaId) -> Schema:
        assert self._registry is not None
        if isinstance(schema_id, uuid.UUID):
            return self._registry.schema_by_guid(str(schema_id))
        return self._registry.schema_by_id(schema_id)

    def _cached(self, schema: Schema, parse: Callable[[Schema], Any]) -> Any:
        found = self._parsed.get(schema)
        if found is None:
            found = self._parsed[schema] = parse(schema)
        return found


# --- Avro ---


def _parsed_avro(registry: RegistryClient, schema: Schema) -> Any:
    from fastavro import parse_schema
    from fastavro.schema import SchemaParseException, UnknownType

    named: dict[str, Any] = {}
    try:
        for each in registry.referenced(schema).values():
            parse_schema(json.loads(each.text), named_schemas=named)
        text = schema.text.strip()
        return parse_schema(json.loads(text) if text[:1] in '[{"' else text, named_schemas=named)
    except (ValueError, SchemaParseException, UnknownType) as error:
        raise DecodeError(f"the schema is no Avro schema: {error}") from None


def _avro_name(text: str) -> str | None:
    from penstock.registry.avro.schema import loaded

    found = loaded(text)
    if isinstance(found, str):
        return found
    if not isinstance(found, dict):
        return None
    name, space = found.get("name"), found.get("namespace")
    if name is None:
        return found.get("type") if isinstance(found.get("type"), str) else None
    return f"{space}.{name}" if space and "." not in name else name


class AvroSerializer(_Serializer):
    """Encodes rows as Avro. Arguments and settings are those of ``confluent_kafka``'s class."""

    type = AVRO

    def __init__(
        self,
        schema_registry_client: RegistryClient | str,
        schema_str: GivenSchema | None = None,
        to_dict: Callable[[Any, SerializationContext], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        """Set up a serializer for a registry and a schema: its text, a dataclass or a pydantic model.

        Raises:
            ConfigError: a setting is unknown or invalid, or a field of a class has no type in Avro.
            DecodeError: the text is not a schema.
        """
        schema = _given_schema(schema_str, AVRO)
        name = None if schema is None else _avro_name(schema.text)
        super().__init__(schema_registry_client, schema, name, _Settings(conf, _DEFAULTS))
        self._to_dict = to_dict
        self._writers: dict[Schema, Any] = {}
        self._programs: dict[tuple[str, str], tuple[Any, bytes] | None] = {}

    def __call__(self, value: Any, context: SerializationContext) -> bytes | None:
        """Return the bytes of a row. Raises the errors of `_Serializer.__call__`."""
        if value is None:
            return None
        if self._to_dict is not None:
            value = self._to_dict(value, context)
        elif type(value) is not dict:
            value = as_dict(value)
        if value is not None and self._settings.is_by_name:
            key = context.topic, context.field
            if key not in self._programs:
                self._programs[key] = self._program(context)
            found = self._programs[key]
            if found is not None:
                data: bytes | None = write_row(found[0], value, found[1])
                if data is not None:
                    return data
        return super().__call__(value, context)

    def _program(self, context: SerializationContext) -> tuple[Any, bytes] | None:
        """Return (program with which `write_row` encodes a topic's rows, prefix), or None to use fastavro."""
        framed = self.framing(context)
        if framed is None:
            return None
        schema, prefix = framed
        referenced = self._registry.referenced(schema)
        program = row_program(schema.text, [each.text for each in referenced.values()])
        return None if program is None else (program, prefix)

    def _payload(self, value: Any, schema: Schema) -> tuple[bytes, tuple[int, ...]]:
        from fastavro import schemaless_writer

        parsed = self._writers.get(schema)
        if parsed is None:
            parsed = self._writers[schema] = _parsed_avro(self._registry, schema)
        out = io.BytesIO()
        try:
            schemaless_writer(out, parsed, value)
        except Exception as error:  # fastavro raises what the value's type raises
            raise EncodeError(f"the value does not fit its Avro schema: {error}") from error
        return out.getvalue(), ()


class AvroDeserializer(_Deserializer):
    """Decodes Avro to dictionaries in the writer's schema, or in the reader's schema `schema_str`."""

    def __init__(
        self,
        schema_registry_client: RegistryClient | str,
        schema_str: GivenSchema | None = None,
        from_dict: Callable[[Any, SerializationContext], Any] | None = None,
        return_record_name: bool = False,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        """Set up a deserializer; `from_dict` converts dictionaries to values.

        With a dataclass or a pydantic model as the schema, values are its instances.

        Raises:
            ConfigError: a setting is unknown or invalid, or a field of a class has no type in Avro.
        """
        super().__init__(schema_registry_client, _Settings(conf, _READER_DEFAULTS))
        self._reader = _given_schema(schema_str, AVRO)
        self._from_dict = from_dict or _maker_of(schema_str)
        self._names = return_record_name

    def __call__(self, data: bytes | None, context: SerializationContext) -> Any:
        """Return the decoded value of some bytes.

        Raises:
            DecodeError: the bytes do not fit the writer's schema, or cannot be resolved into the reader's.
            RegistryError, NetworkError: the registry has no such schema, or cannot be reached.
        """
        if data is None:
            return None
        from fastavro import schemaless_reader

        schema_id, begin = self._framing(data, context)
        writer_schema = self._writer(schema_id)
        reader_schema = self._reader
        if self._settings.uses_latest:
            assert self._registry is not None
            subject = self._settings.subject(context, _avro_name(writer_schema.text))
            reader_schema = self._registry.version(subject).schema
        writer = self._cached(writer_schema, self._parse)
        reader = None if reader_schema is None else self._cached(reader_schema, self._parse)
        try:
            found = schemaless_reader(
                io.BytesIO(data[begin:]), writer, reader, return_record_name=self._names
            )
        except Exception as error:  # fastavro raises what damaged bytes lead to
            raise DecodeError(f"the bytes are no value of schema {schema_id}: {error!r}") from error
        return found if self._from_dict is None else self._from_dict(found, context)

    def _parse(self, schema: Schema) -> Any:
        assert self._registry is not None
        return _parsed_avro(self._registry, schema)


# --- JSON ---


def _validator(registry: RegistryClient | None, schema: Schema) -> Any:
    from jsonschema.validators import validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

    found = json.loads(schema.text)
    known = {} if registry is None else registry.referenced(schema)
    resources = [
        (name, Resource.from_contents(json.loads(each.text), default_specification=DRAFT7))
        for name, each in known.items()
    ]
    kind = validator_for(found)
    return kind(found, registry=Registry().with_resources(resources))


class JSONSerializer(_Serializer):
    """Encodes rows as JSON, and validates them with their JSON Schema.

    Arguments are those of ``confluent_kafka``'s class.
    """

    type = JSON

    def __init__(
        self,
        schema_str: GivenSchema | None,
        schema_registry_client: RegistryClient | str,
        to_dict: Callable[[Any, SerializationContext], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        """Set up a serializer for a schema (or a class) and a registry.

        The setting ``validate`` is True by default.
        """
        schema = _given_schema(schema_str, JSON)
        settings = dict(conf or {})
        self._validates = settings.pop("validate", True)
        title = None if schema is None else json.loads(schema.text).get("title")
        super().__init__(schema_registry_client, schema, title, _Settings(settings, _DEFAULTS))
        self._to_dict = to_dict
        self._validators: dict[Schema, Any] = {}

    def __call__(self, value: Any, context: SerializationContext) -> bytes | None:
        """Return the bytes of a row. Raises the errors of `_Serializer.__call__`."""
        if value is not None:
            value = as_json(value) if self._to_dict is None else self._to_dict(value, context)
        return super().__call__(value, context)

    def _payload(self, value: Any, schema: Schema) -> tuple[bytes, tuple[int, ...]]:
        if self._validates:
            _validate(self._validators, self._registry, schema, value, EncodeError)
        try:
            return json.dumps(value).encode(), ()
        except (TypeError, ValueError) as error:
            raise EncodeError(f"the value is no JSON: {error}") from None


def _validate(
    cache: dict[Schema, Any],
    registry: RegistryClient | None,
    schema: Schema,
    value: Any,
    failure: type[EncodeError] | type[DecodeError],
) -> None:
    found = cache.get(schema)
    if found is None:
        validator = _validator(registry, schema)  # which refuses what is no schema
        found = cache[schema] = check_of(validator.schema), validator
    check, validator = found
    if check is not None and check(value):
        return
    from jsonschema.exceptions import ValidationError

    try:
        validator.validate(value)
    except ValidationError as error:
        raise failure(f"the value does not fit its JSON Schema: {error.json_path}: {error.message}") from None


class JSONDeserializer(_Deserializer):
    """Decodes JSON, and validates it with `schema_str` or with the writer's schema."""

    def __init__(
        self,
        schema_str: GivenSchema | None = None,
        from_dict: Callable[[Any, SerializationContext], Any] | None = None,
        schema_registry_client: RegistryClient | str | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        """Set up a deserializer for a reader's schema (or a class), or a registry, or both.

        `from_dict` converts dictionaries to values.
        """
        settings = dict(conf or {})
        self._validates = settings.pop("validate", True)
        super().__init__(schema_registry_client, _Settings(settings, _READER_DEFAULTS))
        self._reader = _given_schema(schema_str, JSON)
        if self._reader is None and self._registry is None:
            raise ConfigError("a JSONDeserializer needs a schema or a registry")
        self._from_dict = from_dict or _maker_of(schema_str)

    def __call__(self, data: bytes | None, context: SerializationContext) -> Any:
        """Return the decoded value of some bytes. Raises the errors of `AvroDeserializer.__call__`."""
        if data is None:
            return None
        from penstock.registry.json_schema.columns import loaded

        schema_id, begin = self._framing(data, context)
        found = loaded(bytes(data[begin:]))
        if self._validates:
            schema = self._reader if self._reader is not None else self._writer(schema_id)
            _validate(self._parsed, self._registry, schema, found, DecodeError)
        return found if self._from_dict is None else self._from_dict(found, context)


# --- Protobuf ---


class ProtobufSerializer(_Serializer):
    """Encodes messages of a generated class. Arguments are those of ``confluent_kafka``'s class.

    Dictionaries, dataclasses and pydantic models are converted to messages of that class by Protobuf's JSON
    mapping. The files that the class imports are registered under their own names, as references.
    """

    type = PROTOBUF

    def __init__(
        self,
        msg_type: Any,
        schema_registry_client: RegistryClient | str,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        """Set up a serializer for a generated message class and a registry."""
        from penstock.registry.protobuf.schema import path_of

        settings = dict(conf or {})
        settings.pop("use.deprecated.format", None)
        descriptor = msg_type.DESCRIPTOR
        super().__init__(schema_registry_client, None, descriptor.full_name, _Settings(settings, _DEFAULTS))
        self._class = msg_type
        self._descriptor = descriptor
        self._path = path_of(descriptor)

    def _own_schema(self) -> Schema:
        return self._schema_of(self._descriptor.file)

    def _schema_of(self, file: Any) -> Schema:
        from penstock.registry.protobuf.schema import as_text

        references = []
        for each in file.dependencies:
            if each.name.startswith("google/protobuf/"):
                continue
            schema = self._schema_of(each)
            if self._settings.registers:
                self._registry.register(each.name, schema)
            version = self._registry.lookup(each.name, schema).version
            references.append(Reference(each.name, each.name, version))
        return Schema(as_text(file), PROTOBUF, tuple(references))

    def _payload(self, value: Any, schema: Schema) -> tuple[bytes, tuple[int, ...]]:
        if getattr(value, "DESCRIPTOR", None) is not self._descriptor:
            value = self._message(value)
        return value.SerializeToString(), self._path

    def _message(self, value: Any) -> Any:
        from google.protobuf import json_format

        row = as_json(value)
        if not isinstance(row, dict):
            raise EncodeError(f"a {self._descriptor.full_name} is needed, not {type(value).__name__}")
        try:
            return json_format.ParseDict(row, self._class())
        except json_format.ParseError as error:
            raise EncodeError(f"the value does not fit {self._descriptor.full_name}: {error}") from None


class ProtobufRowSerializer(_Serializer):
    """Encodes dictionaries as Protobuf messages of a schema that is given as text."""

    type = PROTOBUF

    def __init__(
        self,
        schema: Schema | str,
        schema_registry_client: RegistryClient | str,
        message: str | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        """Set up a serializer; `message` is the full name of a message, by default the schema's first.

        Raises:
            ConfigError: a setting is unknown or invalid.
            DecodeError: the text is not a schema, or has no such message.
        """
        own = Schema(schema, PROTOBUF) if isinstance(schema, str) else schema
        super().__init__(schema_registry_client, own, None, _Settings(conf, _DEFAULTS))
        self._message = message
        self._made: dict[Schema, tuple[Any, tuple[int, ...]]] = {}
        self._record = self._class_of(own)[0].DESCRIPTOR.full_name

    def _class_of(self, schema: Schema) -> tuple[Any, tuple[int, ...]]:
        from google.protobuf.message_factory import GetMessageClass

        from penstock.registry.protobuf.schema import message_at, message_named, parse_protobuf, path_of

        found = self._made.get(schema)
        if found is None:
            referenced = self._registry.referenced(schema)
            file = parse_protobuf(schema.text, {name: each.text for name, each in referenced.items()})
            kind = message_at(file, (0,)) if self._message is None else message_named(file, self._message)
            found = self._made[schema] = GetMessageClass(kind), path_of(kind)
        return found

    def _payload(self, value: Any, schema: Schema) -> tuple[bytes, tuple[int, ...]]:
        made, path = self._class_of(schema)
        try:
            return made(**value).SerializeToString(), path
        except (TypeError, ValueError, AttributeError) as error:
            raise EncodeError(f"the value does not fit {made.DESCRIPTOR.full_name}: {error}") from None


class ProtobufDeserializer(_Deserializer):
    """Decodes messages of a generated class.

    The schema id in front is skipped, since Protobuf needs no schema."""

    def __init__(
        self,
        message_type: Any,
        conf: Mapping[str, Any] | None = None,
        schema_registry_client: RegistryClient | str | None = None,
    ) -> None:
        """Set up a deserializer for a generated message class."""
        settings = dict(conf or {})
        settings.pop("use.deprecated.format", None)
        super().__init__(schema_registry_client, _Settings(settings, _READER_DEFAULTS))
        self._class = message_type

    def __call__(self, data: bytes | None, context: SerializationContext) -> Any:
        """Return the decoded message of some bytes. Raises `DecodeError` if they are not such a message."""
        if data is None:
            return None
        from google.protobuf.message import DecodeError as ProtobufDecodeError

        _, begin = self._framing(data, context)
        if begin:
            _, begin = framing.read_message_indexes(data, begin)
        try:
            return self._class.FromString(bytes(data[begin:]))
        except ProtobufDecodeError as error:
            raise DecodeError(f"the bytes are no {self._class.DESCRIPTOR.full_name}: {error}") from None
