"""Build responses that refuse a request: the error code in every field that an API has for it.

Apache Kafka has a method for each API (`getErrorResponse`); this module derives the response from the
definitions of request and response. A response mirrors its request: each entry of a list in the request has
an entry in a list of the response, which repeats the name. The code is at the top of a response that has a
field for it there, and otherwise in each entry.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, TypeAlias

from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.message import Struct
from penstock.protocol.schema.definition import Definition, FieldSpec, StructSpec
from penstock.protocol.schema.loader import load_definition

ERROR_CODES = ("error_code", "partition_error_code")
"""The names that an error code field can have; AddPartitionsToTxn uses the second one in its entries."""

PARTITION_FIELDS = frozenset(
    ("index", "partition", "partition_id", "partition_index", "partition_indexes", "partitions")
)
"""The names of fields with the number of a partition, or a list of such numbers."""

_ON_FAILURE: dict[str, object] = {
    "base_offset": -1,
    "log_append_time_ms": -1,
    "log_start_offset": -1,
    "high_watermark": -1,
    "records": b"",
    "committed_offset": -1,
    "timestamp": -1,
    "offset": -1,
    "leader_epoch": -1,
    "end_offset": -1,
    "low_watermark": -1,
    "num_partitions": -1,
    "replication_factor": -1,
    "node_id": -1,
    "port": -1,
}
"""The values that fields beside an error code have, such as -1 for an offset, where these are not the
fields' defaults.
"""

_ON_FAILURE_OF_ALL: dict[str, object] = {
    "generation_id": -1,
    "producer_id": -1,
    "producer_epoch": -1,
    "protocol_name": None,
}
"""Values of further fields at the top of a response that has its error code there. None becomes "" in
versions without null.
"""

_HOLDERS = {ApiKey.ALTER_REPLICA_LOG_DIRS: "topics"}
"""A dict from an API whose request items contain a further list to the name of that list. The items of the
list, not the request items, have entries in the response.
"""

_ALSO_IN_ENTRIES = (ApiKey.ELECT_LEADERS, ApiKey.ALTER_PARTITION_REASSIGNMENTS)
"""APIs whose error responses have the error code both at the top and in each entry."""

_WITHOUT_ENTRIES = (ApiKey.DESCRIBE_LOG_DIRS,)
"""APIs whose response lists other items than the request: their error responses have no entries."""

Maker: TypeAlias = Callable[[Any, int, "str | None"], Any]
"""A function that builds a part of an error response from a request item, an error code and an error
message.
"""


@cache
def definition_of(name: str) -> Definition:
    """Return the definition of one of Kafka's messages, such as ``ProduceRequest``."""
    return load_definition(name)


def fields_at(spec: StructSpec, version: int) -> Iterator[FieldSpec]:
    """Yield the fields that a struct has in a version of its message."""
    return (field for field in spec.fields if version in field.versions)


def error_response(api_key: int, version: int, request: Struct, code: int, message: str | None = None) -> Any:
    """Return the response to a request that fails as a whole.

    Args:
        api_key: the API.
        version: the version of request and response.
        request: the decoded request.
        code: the error code.
        message: the error message, if the response has a field for it.
    """
    return _maker_of_all(api_key, version)(request, code, message)


def error_entries(
    api_key: int, version: int, field: str, items: Iterable[Any], code: int, message: str | None = None
) -> list[Any]:
    """Return response entries for items of a request that fail, in their order.

    Args:
        api_key: the API.
        version: the version of request and response.
        field: the path of the list in the response; ``groups.topics`` is a list in each entry of `groups`.
        items: structs, names or numbers from one list of the request.
        code: the error code.
        message: the error message, if an entry has a field for it.
    """
    make = _maker_of_entry(api_key, version, field)
    return [make(item, code, message) for item in items]


def error_arrays(definition: Definition, spec: StructSpec, version: int) -> list[FieldSpec]:
    """Return the lists of a response struct whose entries, at any depth, have an error code."""
    found = []
    for field in fields_at(spec, version):
        kind = field.type_at(version)
        if kind.is_array and kind.is_struct:
            inner = definition.structs[kind.base]
            if _has_code(inner, version) or error_arrays(definition, inner, version):
                found.append(field)
    return found


@cache
def _maker_of_all(api_key: int, version: int) -> Maker:
    made = ResponseParts(api_key, version)
    root = made.response.root
    top = made.top()
    arrays: list[tuple[str, Maker, list[str]]] = []
    has_entries = not _has_code(root, version) or api_key in _ALSO_IN_ENTRIES
    if has_entries and api_key not in _WITHOUT_ENTRIES:
        sources = [each for each in fields_at(made.request.root, version) if each.type_at(version).is_array]
        for field in error_arrays(made.response, root, version):
            spec = made.response.structs[field.type_at(version).base]
            arrays.append((field.attribute, made.any_item(spec), [each.attribute for each in sources]))
    holder = _HOLDERS.get(ApiKey(api_key))

    def make(request: Any, code: int, message: str | None) -> Any:
        response = top(request, code, message)
        for attribute, entry, sources in arrays:
            items = [item for source in sources for item in getattr(request, source) or ()]
            if holder is not None:
                items = [inner for item in items for inner in getattr(item, holder)]
            setattr(response, attribute, [entry(item, code, message) for item in items])
        return response

    return make


@cache
def _maker_of_entry(api_key: int, version: int, attribute: str) -> Maker:
    parts = ResponseParts(api_key, version)
    spec = parts.response.root
    for name in attribute.split("."):
        field = next(each for each in fields_at(spec, version) if each.attribute == name)
        spec = parts.response.structs[field.type_at(version).base]
    return parts.any_item(spec)


def _has_code(spec: StructSpec, version: int) -> bool:
    return any(field.attribute in ERROR_CODES for field in fields_at(spec, version))


class ResponseParts:
    """Makes functions that build the parts of one API's error responses at one version."""

    def __init__(self, api_key: int, version: int) -> None:
        api = API_TABLE[api_key]
        self.version = version
        self.request = definition_of(f"{api.name}Request")
        self.response = definition_of(f"{api.name}Response")
        self._classes = importlib.import_module(api.response.__module__)

    def any_item(self, spec: StructSpec) -> Maker:
        """Return a function that builds an entry from a request item: a name, a number or any struct."""
        makers: dict[type, Maker] = {}

        def make(item: Any, code: int, message: str | None) -> Any:
            maker = makers.get(type(item))
            if maker is None:
                maker = makers[type(item)] = self.entry(spec, type(item))
            return maker(item, code, message)

        return make

    def entry(self, spec: StructSpec, item: type) -> Maker:
        """Return a function that builds an entry from request items of class `item`, such as names."""
        if not issubclass(item, Struct):
            return self._scalar(spec, "string" if issubclass(item, str) else "int")
        return self.struct(spec, self.request.structs[item.__name__])

    def top(self, *, repeats: bool = False) -> Maker:
        """Return a function that builds a response without entries.

        With `repeats`, fields of the request that the response has too are copied.
        """
        return self.struct(self.response.root, self.request.root if repeats else None, is_top=True)

    def struct(self, spec: StructSpec, asked: StructSpec | None, *, is_top: bool = False) -> Maker:
        """Return a function that builds the struct `spec`, and copies the fields that `asked` has too."""
        codes, has_message, constants = self._fixed(spec, is_top=is_top)
        copied: list[tuple[str, str]] = []
        nested: list[tuple[str, str, Maker]] = []
        for field in fields_at(spec, self.version):
            if asked is None or field.attribute in codes or field.attribute in constants:
                continue
            if not (field.type_at(self.version).is_array or field.type_at(self.version).is_struct):
                source = self._source(field, asked)
                if source is not None:
                    copied.append((field.attribute, source))
            elif field.attribute == "entity" or (
                not codes and field in error_arrays(self.response, spec, self.version)
            ):
                array = next(
                    each for each in fields_at(asked, self.version) if each.type_at(self.version).is_array
                )
                inner = self.response.structs[field.type_at(self.version).base]
                nested.append((field.attribute, array.attribute, self.any_item(inner)))
        make_struct = getattr(self._classes, spec.name)

        def make(item: Any, code: int, message: str | None) -> Any:
            made = make_struct(**constants)
            for attribute, source in copied:
                setattr(made, attribute, getattr(item, source))
            for attribute, source, inner in nested:
                setattr(made, attribute, [inner(each, code, message) for each in getattr(item, source)])
            return _with_error(made, codes, has_message, code, message)

        return make

    def _scalar(self, spec: StructSpec, kind: str) -> Maker:
        """Return a function that builds an entry from a name, or from the number of a partition."""
        codes, has_message, constants = self._fixed(spec)
        named = next(
            field.attribute
            for field in fields_at(spec, self.version)
            if field.attribute != "error_message"
            and (
                field.type_at(self.version).base == kind
                if kind == "string"
                else field.attribute in PARTITION_FIELDS
            )
        )
        make_struct = getattr(self._classes, spec.name)

        def make(item: Any, code: int, message: str | None) -> Any:
            made = make_struct(**constants)
            setattr(made, named, item)
            return _with_error(made, codes, has_message, code, message)

        return make

    def _fixed(self, spec: StructSpec, *, is_top: bool = False) -> tuple[list[str], bool, dict[str, object]]:
        """Return (a struct's fields for the error code, True if it has a message, constant field values)."""
        values = _ON_FAILURE | _ON_FAILURE_OF_ALL if is_top else _ON_FAILURE
        codes, has_message, constants = [], False, {}
        empty = getattr(self._classes, spec.name)()
        for field in fields_at(spec, self.version):
            attribute = field.attribute
            if attribute in ERROR_CODES:
                codes.append(attribute)
            elif attribute == "error_message":
                has_message = True
                continue
            value = values.get(attribute, getattr(empty, attribute))
            if value is None and self.version not in field.nullable:
                value = "" if field.type_at(self.version).base == "string" else b""
            if attribute in values or value != getattr(empty, attribute):
                constants[attribute] = value
        return codes, has_message, constants

    def _source(self, field: FieldSpec, asked: StructSpec) -> str | None:
        """Return the name of the field in the request struct `asked` whose value `field` repeats, or None."""
        scalars = [
            each
            for each in fields_at(asked, self.version)
            if not (each.type_at(self.version).is_array or each.type_at(self.version).is_struct)
        ]
        for each in scalars:
            if each.attribute == field.attribute:
                return each.attribute
        for each in scalars:
            if field.entity_type is not None and each.entity_type == field.entity_type:
                return each.attribute
            if field.attribute in PARTITION_FIELDS and each.attribute in PARTITION_FIELDS:
                return each.attribute
        return (
            "name"
            if field.attribute == "user" and any(each.attribute == "name" for each in scalars)
            else None
        )


def _with_error(made: Any, codes: list[str], has_message: bool, code: int, message: str | None) -> Any:
    for attribute in codes:
        setattr(made, attribute, code)
    if has_message:
        made.error_message = message
    return made
