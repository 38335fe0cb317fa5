"""Protobuf schemas: converts ``.proto`` text, or base64 descriptors, to descriptors of messages.

The package proto-schema-parser parses text; Google's library resolves names.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import DecodeError as ProtobufDecodeError

from penstock.errors import DecodeError

SCHEMA_BYTES_MAX = 1 << 20
NESTING_MAX = 32
MAIN = "schema.proto"
_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    name: getattr(_FIELD, f"TYPE_{name.upper()}")
    for name in [
        "double",
        "float",
        "int64",
        "uint64",
        "int32",
        "fixed64",
        "fixed32",
        "bool",
        "string",
        "bytes",
        "uint32",
        "sfixed32",
        "sfixed64",
        "sint32",
        "sint64",
    ]
}
_WELL_KNOWN = frozenset(
    [
        "any",
        "api",
        "descriptor",
        "duration",
        "empty",
        "field_mask",
        "source_context",
        "struct",
        "timestamp",
        "type",
        "wrappers",
    ]
)


class ProtobufSchemaError(DecodeError):
    """Raised if a text is not a valid Protobuf schema; the message has the reason."""


def parse_protobuf(text: str, referenced: Mapping[str, str] | None = None) -> FileDescriptor:
    """Return the descriptor of a file, which can import the files `referenced` by name.

    Raises:
        ProtobufSchemaError: the text is not a schema, or refers to a name that does not exist.
    """
    pool = descriptor_pool.DescriptorPool()
    known: set[str] = set()
    try:
        for name, each in (referenced or {}).items():
            _add(pool, file_of(each, name), known)
        main = file_of(text, MAIN)
        _add(pool, main, known)
        return pool.FindFileByName(main.name)
    except (TypeError, KeyError, ValueError, RecursionError) as error:
        raise ProtobufSchemaError(f"the Protobuf schema cannot be resolved: {error}") from None


def _add(
    pool: descriptor_pool.DescriptorPool, file: descriptor_pb2.FileDescriptorProto, known: set[str]
) -> None:
    for name in file.dependency:
        _add_well_known(pool, name, known)
    pool.Add(file)
    known.add(file.name)


def _add_well_known(pool: descriptor_pool.DescriptorPool, name: str, known: set[str]) -> None:
    stem = name.removeprefix("google/protobuf/").removesuffix(".proto")
    if name in known or stem not in _WELL_KNOWN:
        return
    known.add(name)
    module = importlib.import_module(f"google.protobuf.{stem}_pb2")
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    for each in file.dependency:
        _add_well_known(pool, each, known)
    pool.Add(file)


def file_of(text: str, name: str) -> descriptor_pb2.FileDescriptorProto:
    """Return the descriptor of a file with the name `name`; `text` is ``.proto`` text or a base64 descriptor.

    Raises:
        ProtobufSchemaError: the text is neither a schema nor a descriptor.
    """
    if len(text) > SCHEMA_BYTES_MAX:
        raise ProtobufSchemaError(
            f"the schema has {len(text):,} characters: {SCHEMA_BYTES_MAX:,} are allowed"
        )
    data = (_kept if len(text) <= KEPT_TEXT_MAX else _serialized)(text)
    file = descriptor_pb2.FileDescriptorProto.FromString(data)
    file.name = name
    return file


def _serialized(text: str) -> bytes:
    """Return the serialized file descriptor of a schema that is given as ``.proto`` text or as base64."""
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, ProtobufDecodeError):
        file = _parsed(text)
    return bytes(file.SerializePartialToString())


KEPT_TEXT_MAX = 64 << 10
"""The greatest length, in characters, of a schema whose parsed form is cached, since parsing takes some 10
ms."""

_kept = lru_cache(maxsize=64)(_serialized)


def _parsed(text: str) -> descriptor_pb2.FileDescriptorProto:
    from antlr4.error.ErrorListener import ErrorListener
    from proto_schema_parser import ast
    from proto_schema_parser.parser import Parser

    class RefusingListener(ErrorListener):  # type: ignore[misc]
        """An error listener that raises the errors that the parser would otherwise print and ignore."""

        def syntaxError(self, _recognizer, _symbol, line, column, message, _error):  # type: ignore[no-untyped-def] # noqa: N802
            raise ProtobufSchemaError(
                f"the text is no Protobuf schema: line {line}, {column}: {message:.100}"
            )

    def refuse(reader: Any) -> None:
        reader.removeErrorListeners()
        reader.addErrorListener(RefusingListener())

    try:
        tree = Parser(setup_lexer=refuse, setup_parser=refuse).parse(text)
    except ProtobufSchemaError:
        raise
    except RecursionError:
        raise ProtobufSchemaError("the Protobuf schema is nested too deeply") from None
    except Exception as error:  # the parser has no error of its own to catch
        raise ProtobufSchemaError(f"the text is no Protobuf schema: {error}") from None
    file = descriptor_pb2.FileDescriptorProto(syntax=tree.syntax or "proto2")
    for element in tree.file_elements:
        if isinstance(element, ast.Package):
            file.package = element.name
        elif isinstance(element, ast.Import):
            if element.public:
                file.public_dependency.append(len(file.dependency))
            file.dependency.append(element.name)
        elif isinstance(element, ast.Message):
            _message(element, file.message_type.add(), file.syntax, 0)
        elif isinstance(element, ast.Enum):
            _enum(element, file.enum_type.add())
    if not file.message_type and not file.enum_type:
        raise ProtobufSchemaError("the Protobuf schema has no message")
    if file.syntax == "proto2":
        file.ClearField("syntax")
    _resolve(file)
    return file


def _message(tree: Any, made: Any, syntax: str, depth: int) -> None:
    from proto_schema_parser import ast

    if depth > NESTING_MAX:
        raise ProtobufSchemaError(f"messages are nested deeper than {NESTING_MAX}")
    made.name = tree.name
    optional = []
    for element in tree.elements:
        if isinstance(element, ast.Field):
            field = made.field.add()
            _field(element, field)
            if syntax == "proto3" and element.cardinality == ast.FieldCardinality.OPTIONAL:
                optional.append(field)
        elif isinstance(element, ast.MapField):
            _map(element, made)
        elif isinstance(element, ast.OneOf):
            index = len(made.oneof_decl)
            made.oneof_decl.add().name = element.name
            for each in element.elements:
                if isinstance(each, ast.Field):
                    field = made.field.add(oneof_index=index)
                    _field(each, field)
        elif isinstance(element, ast.Message):
            _message(element, made.nested_type.add(), syntax, depth + 1)
        elif isinstance(element, ast.Enum):
            _enum(element, made.enum_type.add())
        elif isinstance(element, ast.Group):
            raise ProtobufSchemaError(f"message {tree.name} has a group, which is out of use")
    for field in optional:  # these come behind all others
        field.proto3_optional = True
        field.oneof_index = len(made.oneof_decl)
        made.oneof_decl.add().name = f"_{field.name}"


def _field(tree: Any, made: Any) -> None:
    made.name, made.number = tree.name, tree.number
    label = (tree.cardinality.value if tree.cardinality is not None else "OPTIONAL").upper()
    made.label = getattr(_FIELD, f"LABEL_{label}")
    if tree.type in _SCALARS:
        made.type = _SCALARS[tree.type]
    else:
        made.type_name = tree.type
    for option in tree.options:
        if option.name == "packed":
            made.options.packed = option.value is True or option.value == "true"
        elif option.name == "json_name" and isinstance(option.value, str):
            made.json_name = option.value


def _map(tree: Any, made: Any) -> None:
    name = "".join(part[:1].upper() + part[1:] for part in tree.name.split("_")) + "Entry"
    entry = made.nested_type.add(name=name)
    entry.options.map_entry = True
    for number, (label, kind) in enumerate((("key", tree.key_type), ("value", tree.value_type)), 1):
        field = entry.field.add(name=label, number=number, label=_FIELD.LABEL_OPTIONAL)
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type_name = kind
    field = made.field.add(name=tree.name, number=tree.number, label=_FIELD.LABEL_REPEATED)
    field.type_name = name


def _enum(tree: Any, made: Any) -> None:
    from proto_schema_parser import ast

    made.name = tree.name
    for element in tree.elements:
        if isinstance(element, ast.EnumValue):
            made.value.add(name=element.name, number=element.number)
        elif isinstance(element, ast.Option) and element.name == "allow_alias":
            made.options.allow_alias = element.value is True or element.value == "true"


def _resolve(file: descriptor_pb2.FileDescriptorProto) -> None:
    """Insert the full names of types defined in the file; Google's library resolves imported types."""
    own: dict[str, int] = {}

    def collect(prefix: str, messages: Iterable[Any], enums: Iterable[Any]) -> None:
        for enum in enums:
            own[f"{prefix}.{enum.name}"] = _FIELD.TYPE_ENUM
        for message in messages:
            name = f"{prefix}.{message.name}"
            own[name] = _FIELD.TYPE_MESSAGE
            collect(name, message.nested_type, message.enum_type)

    def settle(scope: str, messages: Iterable[Any]) -> None:
        for message in messages:
            name = f"{scope}.{message.name}"
            for field in message.field:
                if field.type_name and not field.type_name.startswith("."):
                    place = name
                    while place and f"{place}.{field.type_name}" not in own:
                        place = place.rpartition(".")[0]
                    if f"{place}.{field.type_name}" in own:
                        field.type_name = f"{place}.{field.type_name}"
                if field.type_name in own:
                    field.type = own[field.type_name]
            settle(name, message.nested_type)

    root = f".{file.package}" if file.package else ""
    collect(root, file.message_type, file.enum_type)
    settle(root, file.message_type)


def message_at(file: FileDescriptor, path: Iterable[int]) -> Descriptor:
    """Return the message type at a path of message indexes.

    Raises:
        ProtobufSchemaError: there is no message type at the path.
    """
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    level: Any = proto.message_type
    name = file.package
    for index in path:
        if not 0 <= index < len(level):
            raise ProtobufSchemaError(f"the schema has no message of index {index} where the value says so")
        name = f"{name}.{level[index].name}" if name else level[index].name
        level = level[index].nested_type
    return file.pool.FindMessageTypeByName(name)


def message_named(file: FileDescriptor, name: str) -> Descriptor:
    """Return a message type by its full name, or by its name within the file's package.

    Raises:
        ProtobufSchemaError: there is no message type with the name.
    """
    for full in (name, f"{file.package}.{name}"):
        try:
            return file.pool.FindMessageTypeByName(full)
        except KeyError:
            continue
    raise ProtobufSchemaError(f"the schema has no message {name!r}")


def path_of(message: Descriptor) -> tuple[int, ...]:
    """Return the path of message indexes of a message type."""
    found: list[int] = []
    current: Descriptor | None = message
    while current is not None:
        above = current.containing_type
        siblings = (
            above.nested_types if above is not None else list(current.file.message_types_by_name.values())
        )
        found.append([each.full_name for each in siblings].index(current.full_name))
        current = above
    return tuple(reversed(found))


def as_text(file: FileDescriptor) -> str:
    """Return a file's descriptor in base64, which registries accept instead of its text."""
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    return base64.b64encode(proto.SerializeToString()).decode()


_LABELS = {_FIELD.LABEL_REQUIRED: "required ", _FIELD.LABEL_REPEATED: "repeated "}
_NAMES = {number: name for name, number in _SCALARS.items()}


def proto_text(file: FileDescriptor) -> str:
    """Return a file as canonical text: equal descriptors give equal text. Most options are left out."""
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    is_proto3 = proto.syntax == "proto3"
    lines = [f'syntax = "{proto.syntax or "proto2"}";']
    if proto.package:
        lines.append(f"package {proto.package};")
    public = set(proto.public_dependency)
    lines += [
        f'import {"public " if number in public else ""}"{name}";'
        for number, name in enumerate(proto.dependency)
    ]
    for message in proto.message_type:
        lines += ["", *_message_lines(message, "", is_proto3)]
    for enum in proto.enum_type:
        lines += ["", *_enum_lines(enum, "")]
    return "\n".join(lines) + "\n"


def _message_lines(message: Any, indent: str, is_proto3: bool) -> list[str]:
    lines = [f"{indent}message {message.name} {{"]
    inner = indent + "  "
    maps = {each.name: each for each in message.nested_type if each.options.map_entry}
    written: set[int] = set()
    for field in message.field:
        if not field.HasField("oneof_index") or field.proto3_optional:
            lines.append(inner + _field_line(field, maps, is_proto3))
        elif field.oneof_index not in written:
            written.add(field.oneof_index)
            lines.append(f"{inner}oneof {message.oneof_decl[field.oneof_index].name} {{")
            lines += [
                f"{inner}  {_field_line(each, maps, True)}"
                for each in message.field
                if each.HasField("oneof_index") and each.oneof_index == field.oneof_index
            ]
            lines.append(f"{inner}}}")
    for nested in message.nested_type:
        if nested.name not in maps:
            lines += ["", *_message_lines(nested, inner, is_proto3)]
    for enum in message.enum_type:
        lines += ["", *_enum_lines(enum, inner)]
    return [*lines, f"{indent}}}"]


def _field_line(field: Any, maps: Mapping[str, Any], is_proto3: bool) -> str:
    entry = maps.get(field.type_name.rpartition(".")[2]) if field.type_name else None
    if entry is not None:
        key, value = (_NAMES.get(each.type) or each.type_name for each in entry.field)
        return f"map<{key}, {value}> {field.name} = {field.number};"
    label = _LABELS.get(field.label, "")
    if not label and (field.proto3_optional or not is_proto3):
        label = "optional "
    options = []
    if field.HasField("default_value"):
        is_text = field.type in (_FIELD.TYPE_STRING, _FIELD.TYPE_BYTES)
        options.append(f"default = {json.dumps(field.default_value) if is_text else field.default_value}")
    if field.options.HasField("packed"):
        options.append(f"packed = {str(field.options.packed).lower()}")
    tail = f" [{', '.join(options)}]" if options else ""
    return f"{label}{_NAMES.get(field.type) or field.type_name} {field.name} = {field.number}{tail};"


def _enum_lines(enum: Any, indent: str) -> list[str]:
    lines = [f"{indent}enum {enum.name} {{"]
    if enum.options.allow_alias:
        lines.append(f"{indent}  option allow_alias = true;")
    lines += [f"{indent}  {each.name} = {each.number};" for each in enum.value]
    return [*lines, f"{indent}}}"]
