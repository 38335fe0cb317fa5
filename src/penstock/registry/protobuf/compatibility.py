"""Checks if a reader's Protobuf schema can read messages of a writer's, and lists the reasons if not.

The rules are those of Confluent's checker: field numbers keep types of the same wire format, messages are not
removed, required fields are neither added nor removed, and a oneof neither loses fields nor combines older
ones.
"""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

_F = FieldDescriptor
_GROUPS = {
    **dict.fromkeys(
        (_F.TYPE_INT32, _F.TYPE_UINT32, _F.TYPE_INT64, _F.TYPE_UINT64, _F.TYPE_BOOL, _F.TYPE_ENUM), "varint"
    ),
    **dict.fromkeys((_F.TYPE_SINT32, _F.TYPE_SINT64), "zigzag"),
    **dict.fromkeys((_F.TYPE_FIXED32, _F.TYPE_SFIXED32), "fixed32"),
    **dict.fromkeys((_F.TYPE_FIXED64, _F.TYPE_SFIXED64), "fixed64"),
    **dict.fromkeys((_F.TYPE_STRING, _F.TYPE_BYTES), "bytes"),
}
PROBLEMS_MAX = 100


def incompatibilities(reader: FileDescriptor, writer: FileDescriptor) -> list[str]:
    """Return the reasons why `reader` misreads messages of `writer`; an empty list if it reads all."""
    found: list[str] = []
    wanted = dict(_messages(reader))
    for name, message in _messages(writer):
        match = wanted.get(name)
        if match is None:
            found.append(_said("MESSAGE_REMOVED", f"#/{name}", "is missing a message of the old schema"))
        else:
            _compare(match, message, f"#/{name}", found)
    return found[:PROBLEMS_MAX]


def _messages(file: FileDescriptor) -> list[tuple[str, Descriptor]]:
    """Return a dict of all messages except map entries, by their names without the package."""
    found: list[tuple[str, Descriptor]] = []

    def collect(prefix: str, messages: list[Descriptor]) -> None:
        for each in messages:
            if not each.GetOptions().map_entry:
                found.append((f"{prefix}{each.name}", each))
                collect(f"{prefix}{each.name}/", list(each.nested_types))

    collect("", list(file.message_types_by_name.values()))
    return found


def _said(kind: str, place: str, description: str) -> str:
    return f'{{errorType:"{kind}", description:"The new schema {description} at path \'{place}\'"}}'


def _compare(reader: Descriptor, writer: Descriptor, place: str, found: list[str]) -> None:
    before = {each.number: each for each in writer.fields}
    after = {each.number: each for each in reader.fields}
    for number, old in before.items():
        new = after.get(number)
        inner = f"{place}/{number}"
        if new is None:
            if old.is_required:
                found.append(_said("REQUIRED_FIELD_REMOVED", inner, "lacks a required field"))
            elif _real_oneof(old) is not None and _real_oneof(old) in {
                _real_oneof(each) for each in reader.fields
            }:
                found.append(_said("ONEOF_FIELD_REMOVED", inner, "lacks a field of a oneof"))
            continue
        _compare_types(new, old, inner, found)
    for number, new in after.items():
        if number not in before and new.is_required:
            found.append(_said("REQUIRED_FIELD_ADDED", f"{place}/{number}", "has a new required field"))
    joined: dict[str, int] = {}
    for number, new in after.items():
        name = _real_oneof(new)
        if name is not None and number in before and _real_oneof(before[number]) is None:
            joined[name] = joined.get(name, 0) + 1
    for name, count in joined.items():
        grew = any(_real_oneof(each) == name for each in writer.fields)
        if count > 1 or grew:
            kind = "FIELDS_MOVED_TO_EXISTING_ONEOF" if grew else "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
            found.append(_said(kind, f"{place}/{name}", "has older fields in a oneof"))


def _real_oneof(field: FieldDescriptor) -> str | None:
    oneof = field.containing_oneof
    return None if oneof is None or oneof.name == f"_{field.name}" else str(oneof.name)


def _compare_types(new: FieldDescriptor, old: FieldDescriptor, place: str, found: list[str]) -> None:
    if new.is_repeated != old.is_repeated and "bytes" not in (_GROUPS.get(new.type), _GROUPS.get(old.type)):
        is_packed = _GROUPS.get(new.type) is not None or new.type in (_F.TYPE_FLOAT, _F.TYPE_DOUBLE)
        if is_packed:
            found.append(
                _said("FIELD_SCALAR_KIND_CHANGED", place, "repeats a field that did not, or the other way")
            )
    if new.message_type is not None and old.message_type is not None:
        if new.message_type.GetOptions().map_entry and old.message_type.GetOptions().map_entry:
            for name in ("key", "value"):
                pair = new.message_type.fields_by_name[name], old.message_type.fields_by_name[name]
                _compare_types(*pair, f"{place}/{name}", found)
        elif new.message_type.name != old.message_type.name:
            found.append(_said("FIELD_NAMED_TYPE_CHANGED", place, "has another message type"))
        return
    one, other = _GROUPS.get(new.type, str(new.type)), _GROUPS.get(old.type, str(old.type))
    if one != other:
        kind = (
            "FIELD_KIND_CHANGED"
            if None in (new.message_type, old.message_type)
            else "FIELD_NAMED_TYPE_CHANGED"
        )
        if new.message_type is None and old.message_type is None:
            kind = "FIELD_SCALAR_KIND_CHANGED"
        found.append(_said(kind, place, "has a field of another kind"))
