"""Generate the Python source of message classes from a definition.

The source is used twice: `tools/generate_messages.py` writes it into `penstock.protocol.messages` for Kafka's
own messages, and `penstock.protocol.loaded_classes` runs it for a definition of the user.
"""

from __future__ import annotations

from penstock.protocol.quoting import identifier, literal
from penstock.protocol.schema.definition import Definition, FieldSpec, NewStruct, StructSpec
from penstock.protocol.schema.scalar_types import RECORDS, SCALARS
from penstock.protocol.schema.versions import NO_VERSIONS, OPEN_END, Versions

LINE_MAX = 110
"""The maximum line length in characters in this project's source; the formatter breaks longer lines."""


def module_source(definition: Definition) -> str:
    """Return the source of a message's module: the class of the message, then those of its structs.

    Raises:
        ValueError: a name or default in the definition cannot be written as source.
    """
    structs = list(definition.structs.values())
    classes = [_class_source(struct, definition) for struct in (definition.root, *structs)]
    fields = [field for struct in (definition.root, *structs) for field in struct.fields]
    uses = {
        "MadeLate": any(field.is_made_late for field in fields),
        "Records": any(attribute_type(field) == RECORDS.python_type for field in fields),
        "Struct": bool(structs),
    }
    imported = ("MadeLate", "Message", "Records", "Struct", "UnknownTags")
    names = [name for name in imported if uses.get(name, True)]
    head = [
        f'"""{_title(definition)}. Generated from the definition: do not edit."""',
        "",
        "from __future__ import annotations",
        "",
        f"from penstock.protocol.message import {', '.join(names)}",
    ]
    return "\n\n\n".join(["\n".join(head), *classes]) + "\n"


def _title(definition: Definition) -> str:
    key = "" if definition.api_key is None else f" (key {definition.api_key})"
    flexible = definition.flexible.intersect(definition.valid)
    suffix = f", flexible from version {flexible.lowest} on" if flexible else ""
    return f"{definition.name}{key}, {_shown(definition.valid)}{suffix}"


def _shown(versions: Versions) -> str:
    """Return a range of versions in words: ``version 3``, ``versions 0 to 4``, ``versions from 2 on``."""
    lowest, highest = versions.lowest, versions.highest
    if highest == OPEN_END:
        return f"versions from {lowest} on"
    return f"version {lowest}" if lowest == highest else f"versions {lowest} to {highest}"


def _struct_title(struct: StructSpec, definition: Definition) -> str:
    """Return the docstring of a struct's class, without the period: the struct's fields and versions."""
    owners = (definition.root, *definition.structs.values())
    places = [
        (owner.name, field) for owner in owners for field in owner.fields if field.widest.base == struct.name
    ]
    versions = _shown(struct.versions.intersect(definition.valid))
    title = f"A struct in {definition.name}, {versions}"
    if len(places) == 1:
        [(owner_name, field)] = places
        what = "An element" if field.widest.is_array else "The value"
        inside = owner_name if owner_name == definition.name else f"{owner_name} ({definition.name})"
        title = f"{what} of `{field.attribute}` in {inside}, {versions}"
    elif places:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(field.attribute for _, field in places))
        title = f"A struct in {definition.name}, for the fields {names}; {versions}"
    is_too_long = len(f'    """{title}."""') > LINE_MAX
    return f"A struct in {definition.name}, {versions}" if is_too_long else title


def _class_source(struct: StructSpec, definition: Definition) -> str:
    fields, is_message = struct.fields, struct is definition.root
    lines = [f"class {identifier(struct.name)}({'Message' if is_message else 'Struct'}):"]
    title = _title(definition) if is_message else _struct_title(struct, definition)
    lines.append(f'    """{title}."""')
    lines += ["", *_wrapped_slots(fields), ""]
    late = [field for field in fields if field.is_made_late]
    lines += [f"    {field.attribute} = MadeLate(lambda: {field.widest.base}())" for field in late]
    lines += [""] * bool(late)
    if is_message:
        lines += [
            f"    NAME = {literal(definition.name)}",
            f"    API_KEY = {literal(definition.api_key)}",
            f"    VERSIONS = ({definition.valid.lowest}, {definition.valid.highest})",
            "",
        ]
    lines += ["    def __init__(", "        self,", "        *,"]
    lines += [f"        {identifier(field.attribute)}: {_argument(field)}," for field in fields]
    lines += ["        unknown_tags: UnknownTags = None,", "    ) -> None:"]
    lines += [f"        self.{field.slot}{_assignment(field)}" for field in fields]
    lines.append("        self.unknown_tags = unknown_tags")
    return "\n".join(lines)


def _wrapped_slots(fields: list[FieldSpec]) -> list[str]:
    names = [f"{literal(field.slot)}," for field in fields]
    if not names:
        return ["    __slots__ = ()"]
    listed = " ".join(names) if len(names) == 1 else " ".join(names).removesuffix(",")
    one_line = f"    __slots__ = ({listed})"
    if len(one_line) <= LINE_MAX:
        return [one_line]
    return ["    __slots__ = (", *(f"        {name}" for name in names), "    )"]


def attribute_type(field: FieldSpec) -> str:
    """Return the Python type of a field's attribute, without ``| None``."""
    field_type = field.widest
    scalar = SCALARS.get(field_type.base)
    base = field_type.base if scalar is None else scalar.python_type
    return f"list[{base}]" if field_type.is_array else base


def _is_optional(field: FieldSpec) -> bool:
    if field.nullable != NO_VERSIONS:
        return True
    scalar = SCALARS.get(field.widest.base)
    return scalar is not None and scalar.is_optional and field.default is None


def _argument(field: FieldSpec) -> str:
    """Return the annotation and the default value of an `__init__` argument for a field, as source.

    For a field in which None means null, the argument () selects the field's default.
    """
    optional = " | None" if _is_optional(field) else ""
    if field.default == () or field.default is NewStruct:
        allowed, default = ("tuple[()] | None", "()") if optional else ("None", "None")
        return f"{attribute_type(field)} | {allowed} = {default}"
    if field.default is None:
        return f"{attribute_type(field)} | None = None"
    default = "bytes(16)" if field.default == bytes(16) else literal(field.default)
    return f"{attribute_type(field)}{optional} = {default}"


def _assignment(field: FieldSpec) -> str:
    name = field.attribute
    if (field.default != () and field.default is not NewStruct) or field.is_made_late:
        return f" = {name}"
    fresh = "[]" if field.default == () else f"{field.widest.base}()"
    if _is_optional(field):
        typed = f": {attribute_type(field)} | None"
        value = f"{fresh} if isinstance({name}, tuple) else {name}"
    else:
        typed = ""
        value = f"{fresh} if {name} is None else {name}"
    line = f"        self.{name}{typed} = {value}"
    return f"{typed} = {value}" if len(line) <= LINE_MAX else f"{typed} = (\n            {value}\n        )"
