"""Messages as JSON, in the form of Kafka's own JSON converters and its request log.

Fields have their names as in the definitions, bytes and records are base64, ids the 22 characters
that Kafka prints. A field is present exactly if its version has it, a tagged one only if it is
not at its default; null is null. A float that JSON numbers cannot represent is `"NaN"`, `"Infinity"` or
`"-Infinity"`. Tagged fields that are not in the definition are left out.

Reading is strict: a field that is missing, unknown, of another type or out of range is an error that names
its path. A field that the definition has, but not this version, is accepted as in Kafka; encoding then
decides whether it may be dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from penstock.errors import DecodeError, EncodeError
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.compile import classes_of
from penstock.protocol.compiler.struct_types import not_default, struct_problem
from penstock.protocol.compiler.wire_type import StructLayout
from penstock.protocol.message import Message
from penstock.protocol.schema.definition import FieldSpec, StructSpec
from penstock.protocol.schema.scalar_types import SCALARS, ScalarType, json_kind

M = TypeVar("M", bound=Message)

Write = Callable[[Any], Any]
Read = Callable[[Any], Any]


def to_json(message: Message, version: int) -> dict[str, Any]:
    """Return the JSON form of a message at `version`, as objects that `json.dumps` accepts.

    Raises:
        EncodeError: a value does not fit its type, or the version lacks a field that is set.
        UnsupportedVersionError: there is no such version.
    """
    return json_form(type(message), version).to_json(message)


def from_json(message_class: type[M], source: object, version: int) -> M:
    """Return the message whose JSON form at `version` is `source`, an object that `json.loads` returned.

    Raises:
        DecodeError: `source` is not the form of such a message; the error names the field.
        UnsupportedVersionError: there is no such version.
    """
    made: M = json_form(message_class, version).from_json(source)
    return made


class JsonForm:
    """Converts messages of one class and version to JSON and back, by functions made on first use."""

    __slots__ = ("_layout", "_plan", "_read", "_title", "_write")

    def __init__(self, message_class: type[Message], version: int) -> None:
        self._layout: StructLayout = codec_for(message_class, version).layout
        self._title = message_class.NAME
        self._plan = _Plan(self._layout, classes_of(message_class))
        self._write: Write | None = None
        self._read: Read | None = None

    def to_json(self, message: Any) -> dict[str, Any]:
        if self._write is None:
            self._write = self._plan.struct_writer(self._layout.spec)
        try:
            written: dict[str, Any] = self._write(message)
            return written
        except Exception as error:
            problem = struct_problem(self._layout, message) or f": {error}"
            raise EncodeError(f"{self._title} v{self._layout.version}{problem}") from error

    def from_json(self, source: object) -> Any:
        if self._read is None:
            self._read = self._plan.struct_reader(self._layout.spec)
        try:
            return self._read(source)
        except _Problem as problem:
            raise DecodeError(f"{self._title}{problem.path}: {problem.reason}") from None


_FORMS: dict[tuple[type[Message], int], JsonForm] = {}


def json_form(message_class: type[Message], version: int) -> JsonForm:
    """Return the `JsonForm` of a message class at a version, made on first use.

    Raises:
        UnsupportedVersionError: the message has no such version.
    """
    form = _FORMS.get((message_class, version))
    if form is None:
        form = _FORMS[message_class, version] = JsonForm(message_class, version)
    return form


class _Problem(Exception):
    """The reason why a value is invalid. As it propagates, each caller adds a part of the field's path."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


class _Plan:
    """Creates the functions that convert the fields of a message and its structs to JSON and back."""

    def __init__(self, layout: StructLayout, classes: Mapping[str, Any]) -> None:
        self._layout = layout
        self._version = layout.version
        self._classes = classes

    # To JSON

    def struct_writer(self, spec: StructSpec) -> Write:
        fields: list[tuple[str, str, Write | None, Callable[[Any], Any] | None]] = []
        strict = []
        for field in spec.fields:
            if self._version not in field.versions:
                if not field.ignorable:
                    strict.append(self._not_default(field))
                continue
            is_set = None
            if self._version in field.tagged:
                is_set = _compiled(self._not_default(field))
            fields.append((camel_case(field.name), field.attribute, self._writer(field), is_set))
        refuses = _compiled(" or ".join(strict)) if strict else None

        def write(struct: Any) -> dict[str, Any]:
            if refuses is not None and refuses(struct):
                raise ValueError("a field is set that this version does not have")
            written = {}
            for name, attribute, convert, is_set in fields:
                if is_set is None or is_set(struct):
                    value = getattr(struct, attribute)
                    written[name] = value if convert is None or value is None else convert(value)
            return written

        return write

    def _not_default(self, field: FieldSpec) -> str:
        return not_default(self._layout, field, "struct")

    def _writer(self, field: FieldSpec) -> Write | None:
        """Return a function that converts non-null values of a field to JSON; None if they stay unchanged."""
        field_type = field.type_at(self._version)
        if field_type.is_struct:
            one: Write | None = self.struct_writer(self._layout.structs[field_type.base])
        else:
            scalar = SCALARS[field_type.base]
            one = None if scalar.json_is_same else scalar.to_json
        if not field_type.is_array:
            return one
        if one is None:
            return list
        return _list_writer(one)

    # From JSON

    def struct_reader(self, spec: StructSpec) -> Read:
        make = self._classes[spec.name]
        fields = [
            (
                camel_case(field.name),
                field.attribute,
                self._reader(field),
                self._version in field.versions and self._version not in field.tagged,
            )
            for field in spec.fields
        ]
        known = {name for name, _, _, _ in fields}
        version = self._version

        def read(source: Any) -> Any:
            if type(source) is not dict:
                raise _Problem(f"an object was expected, not {json_kind(source)}")
            struct = make()
            found = 0
            for name, attribute, convert, is_needed in fields:
                if name in source:
                    found += 1
                    try:
                        setattr(struct, attribute, convert(source[name]))
                    except _Problem as problem:
                        raise _Problem(problem.reason, f".{name}{problem.path}") from None
                elif is_needed:
                    raise _Problem(f"the field is missing, and version {version} needs it", f".{name}")
            if found != len(source):
                name = next(each for each in source if each not in known)
                raise _Problem("there is no such field in any version", f".{name}")
            return struct

        return read

    def _reader(self, field: FieldSpec) -> Read:
        is_here = self._version in field.versions
        field_type = field.type_at(self._version) if is_here else field.widest
        if field_type.is_struct:
            one = self.struct_reader(self._layout.structs[field_type.base])
        else:
            one = _scalar_reader(SCALARS[field_type.base])
        if field_type.is_array:
            one = _list_reader(one)
        nullable = self._version in field.nullable if is_here else bool(field.nullable)
        return _or_null(one) if nullable or (not is_here and field.default is None) else _not_null(one)


def camel_case(name: str) -> str:
    """Return the JSON name of a field: ``NodeId`` is ``nodeId``."""
    return name[:1].lower() + name[1:]


def _compiled(condition: str) -> Callable[[Any], Any]:
    """Compile a Python condition about the fields of `struct` to a function with that argument."""
    namespace: dict[str, Any] = {}
    exec(f"def condition(struct):\n    return {condition}", namespace)
    made: Callable[[Any], Any] = namespace["condition"]
    return made


def _list_writer(one: Write) -> Write:
    return lambda values: [one(each) for each in values]


def _list_reader(one: Read) -> Read:
    def read(source: Any) -> list[Any]:
        if type(source) is not list:
            raise _Problem(f"a list was expected, not {json_kind(source)}")
        values = []
        for index, each in enumerate(source):
            try:
                values.append(one(each))
            except _Problem as problem:
                raise _Problem(problem.reason, f"[{index}]{problem.path}") from None
        return values

    return read


def _or_null(one: Read) -> Read:
    return lambda source: None if source is None else one(source)


def _not_null(one: Read) -> Read:
    def read(source: Any) -> Any:
        if source is None:
            raise _Problem("null is not allowed in this version")
        return one(source)

    return read


def _scalar_reader(scalar: ScalarType) -> Read:
    convert = scalar.from_json

    def read(source: Any) -> Any:
        try:
            return convert(source)
        except ValueError as error:
            raise _Problem(str(error)) from None

    return read
