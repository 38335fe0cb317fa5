"""Check that a definition evolves compatibly: a version that has been released never changes.

The rules are those of Kafka for its own messages. Of a released definition, the bytes of every version, the
versions themselves, and the meaning of a tag must stay. New versions may be added, and an existing flexible
version may get a tagged field with an unused tag. A version that `latestVersionUnstable` marks has not been
released yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.protocol.compiler.layout import resolve
from penstock.protocol.compiler.wire_type import PlacedField, StructLayout
from penstock.protocol.schema.definition import Definition, FieldSpec, NewStruct
from penstock.protocol.schema.versions import Versions


class DefinitionFinding(NamedTuple):
    """A difference between two definitions. `breaks` is True if peers, or code that uses it, stop working."""

    path: str
    what: str
    versions: tuple[int, ...] = ()
    breaks: bool = True

    def __str__(self) -> str:
        where = f" ({_ranges(self.versions)})" if self.versions else ""
        return f"{self.path}: {self.what}{where}"


def compare(old: Definition, new: Definition) -> list[DefinitionFinding]:
    """Return the changes from the definition `old` to `new`, breaking ones first, without additions."""
    found = list(_messages(old, new))
    seen: dict[tuple[str, str, bool], list[int]] = {}
    for version in _released(old):
        if version in new.valid:
            for finding in _versions(old, new, version):
                seen.setdefault((finding.path, finding.what, finding.breaks), []).append(version)
    found += [
        DefinitionFinding(path, what, tuple(each), breaks) for (path, what, breaks), each in seen.items()
    ]
    found += _fields(old, new)
    return sorted(found, key=lambda finding: not finding.breaks)


def is_compatible(findings: list[DefinitionFinding]) -> bool:
    """Return True if none of the findings breaks peers or code."""
    return not any(finding.breaks for finding in findings)


def _released(definition: Definition) -> range:
    low, high = definition.valid
    return range(low, high + 1 - definition.latest_unstable)


# --- the message ------------------------------------------------------------------------------------------


def _messages(old: Definition, new: Definition) -> Iterator[DefinitionFinding]:
    for what, before, after in (
        ("name", old.name, new.name),
        ("type", old.type, new.type),
        ("apiKey", old.api_key, new.api_key),
    ):
        if before != after:
            yield DefinitionFinding(old.name, f"{what} was {before} and is {after}")
    released, still = _released(old), _released(new)
    if lost := [version for version in released if version not in new.valid]:
        yield DefinitionFinding(old.name, "validVersions shrank: peers may speak what is gone", tuple(lost))
    if unsettled := [version for version in released if version in new.valid and version not in still]:
        yield DefinitionFinding(
            old.name, "latestVersionUnstable marks what has been released", tuple(unsettled)
        )
    common = [version for version in released if version in new.valid]
    if changed := [each for each in common if (each in old.flexible) != (each in new.flexible)]:
        yield DefinitionFinding(
            old.name, f"flexibleVersions were {old.flexible} and are {new.flexible}", tuple(changed)
        )
    if old.listeners != new.listeners:
        before, after = (", ".join(each) or "none" for each in (old.listeners, new.listeners))
        yield DefinitionFinding(old.name, f"listeners were {before} and are {after}", breaks=False)


# --- the bytes of one version -----------------------------------------------------------------------------


def _versions(old: Definition, new: Definition, version: int) -> Iterator[DefinitionFinding]:
    if (version in old.flexible) != (version in new.flexible):
        return  # every length changes: that has been reported
    yield from _structs(resolve(old, version), resolve(new, version), old.name)


def _structs(old: StructLayout, new: StructLayout, path: str) -> Iterator[DefinitionFinding]:
    yield from _in_order(old, new, path)
    before = dict(old.tagged)
    after = dict(new.tagged)
    moved = {field.spec.name: tag for tag, field in new.tagged}
    for tag, field in before.items():
        here = f"{path}.{field.spec.name}"
        if tag not in after:
            name = field.spec.name
            what = (
                f"tag {tag} became tag {moved[name]}" if name in moved else f"tagged field {tag} was removed"
            )
            yield DefinitionFinding(here, what)
        elif after[tag].spec.name != field.spec.name:
            yield DefinitionFinding(here, f"tag {tag} is used again, for {after[tag].spec.name}")
        else:
            yield from _types(field, after[tag], here)


def _in_order(old: StructLayout, new: StructLayout, path: str) -> Iterator[DefinitionFinding]:
    """Yield differences between the untagged fields of two definitions, which must have the same order."""
    before = {field.spec.name: field for field in old.fields}
    after = {field.spec.name: field for field in new.fields}
    old_tags = {field.spec.name for _, field in old.tagged}
    new_tags = {field.spec.name for _, field in new.tagged}
    renamed = _renamed(old, new)
    for name, field in before.items():
        if name in renamed:
            what = f"was renamed {renamed[name]}: the bytes stay, JSON and classes do not"
            yield DefinitionFinding(f"{path}.{name}", what)
            yield from _types(field, after[renamed[name]], f"{path}.{name}")
        elif name in after:
            yield from _types(field, after[name], f"{path}.{name}")
        elif name in new_tags:
            yield DefinitionFinding(f"{path}.{name}", "is tagged now, and was not")
        else:
            yield DefinitionFinding(f"{path}.{name}", "was removed from a version that has it")
    for name in after:
        if name in old_tags:
            yield DefinitionFinding(f"{path}.{name}", "is no longer tagged, and was")
        elif name not in before and name not in renamed.values():
            yield DefinitionFinding(f"{path}.{name}", "is new in a version that was there before")
    kept_before = [name for name in before if name in after]
    if kept_before != [name for name in after if name in before]:
        yield DefinitionFinding(path, "the order of the fields changed")


def _renamed(old: StructLayout, new: StructLayout) -> dict[str, str]:
    """Return a dict from old to new names of renamed fields.

    It is empty unless both versions have the same types in the same order.
    """
    pairs = list(zip(old.fields, new.fields, strict=False))
    if len(old.fields) != len(new.fields) or any(
        each.wire.shape != other.wire.shape for each, other in pairs
    ):
        return {}
    known, now = ({field.spec.name for field in layout.fields} for layout in (old, new))
    found = {each.spec.name: other.spec.name for each, other in pairs if each.spec.name != other.spec.name}
    # Names that are there before and after have changed places, and not their name.
    return found if not (found.keys() & now or set(found.values()) & known) else {}


def _types(old: PlacedField, new: PlacedField, path: str) -> Iterator[DefinitionFinding]:
    before, after = old.wire, new.wire
    if before.shape != after.shape:
        yield DefinitionFinding(path, f"type was {before.guide_name} and is {after.guide_name}")
    elif before.struct is not None and after.struct is not None:
        yield from _structs(before.struct, after.struct, path)


# --- what fields mean where they are not on the wire ------------------------------------------------------


def _fields(old: Definition, new: Definition) -> Iterator[DefinitionFinding]:
    after = {field.path: field for field in _all_fields(new)}
    released = Versions(old.valid.lowest, max(_released(old), default=old.valid.lowest))
    for field in _all_fields(old):
        same = after.get(field.path)
        if same is None or not field.versions.intersect(released):
            continue
        path = f"{old.name}.{field.path}" if not field.path.startswith(old.name) else field.path
        if _default(field) != _default(same):
            always = field.versions.covers(released) and not field.tagged
            # Without a tag and in every version the value is always sent.
            what = f"default was {_default(field)} and is {_default(same)}"
            yield DefinitionFinding(path, what, breaks=not always)
        if field.ignorable and not same.ignorable:
            yield DefinitionFinding(
                path, "is no longer ignorable: writing older versions may fail now", breaks=False
            )
        if field.map_key != same.map_key:
            yield DefinitionFinding(path, f"is {'now' if same.map_key else 'no longer'} a key", breaks=False)
        if field.entity_type != same.entity_type:
            yield DefinitionFinding(
                path, f"entityType was {field.entity_type} and is {same.entity_type}", breaks=False
            )


def _all_fields(definition: Definition) -> Iterator[FieldSpec]:
    yield from definition.root.fields
    for struct in definition.structs.values():
        yield from struct.fields


def _default(field: FieldSpec) -> str:
    if field.default is None:
        return "null"
    if field.default is NewStruct or field.default == ():
        return "empty"
    return repr(field.default).lower() if isinstance(field.default, bool) else repr(field.default)


def _ranges(versions: tuple[int, ...]) -> str:
    """Return versions as a text with ranges: ``versions 1-3, 7``."""
    parts: list[str] = []
    start = previous = versions[0]
    for version in (*versions[1:], None):
        if version == previous + 1:
            previous += 1
            continue
        parts.append(str(start) if start == previous else f"{start}-{previous}")
        if version is not None:
            start = previous = version
    return f"version{'s' * (len(versions) > 1)} {', '.join(parts)}"
