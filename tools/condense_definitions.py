"""Condense Kafka's message definition files to the data that code generation needs, a file per message.

    condense_definitions.py --output DIR SOURCE...

Each SOURCE is a directory of definitions, searched recursively. The first is that of the newest Kafka
release. The others are of older releases, and supply messages and versions that newer releases no longer
define. If two releases define a version, the newer release's definition is used.

Comments, descriptions and licence headers are removed. The output has the properties that determine bytes and
default values: names, types, versions, tags, defaults.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from penstock.protocol.schema.versions import NO_VERSIONS, OPEN_END, Versions

Json = dict[str, Any]

MESSAGE_KEYS = (
    "apiKey",
    "type",
    "name",
    "listeners",
    "validVersions",
    "flexibleVersions",
    "latestVersionUnstable",
)
FIELD_KEYS = (
    "name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "flexibleVersions",
    "ignorable", "default", "mapKey", "entityType",
)  # fmt: skip
RANGE_KEYS = ("versions", "nullableVersions", "taggedVersions", "flexibleVersions")
INTEGER_TYPES = ("int8", "int16", "int32", "int64", "uint16", "uint32")


class ConflictError(Exception):
    """Definitions of two Kafka releases contradict each other, and no rule of this tool resolves that."""


def read_definition(path: Path) -> Json:
    """Parse one file; lines that begin with ``//`` are comments."""
    lines = path.read_text("utf-8").splitlines()
    content: Json = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
    return content


def read_edition(directory: Path) -> dict[object, Json]:
    """Return the condensed definitions of one Kafka release, keyed by identity.

    Requests and responses are identified by API key, so that a renamed API keeps its identity.
    """
    edition: dict[object, Json] = {}
    for path in sorted(directory.rglob("*.json")):
        definition = condense_message(read_definition(path))
        is_api = definition["type"] in ("request", "response")
        identity = (definition["type"], definition["apiKey"]) if is_api else definition["name"]
        if identity in edition:
            raise ConflictError(f"{path}: {identity} is described twice in {directory}")
        edition[identity] = definition
    return edition


def condense_message(source: Json) -> Json:
    message = {key: source[key] for key in MESSAGE_KEYS if source.get(key)}
    if "apiKey" in source:
        message["apiKey"] = source["apiKey"]
    message.setdefault("flexibleVersions", "none")
    message["fields"] = [condense_field(field) for field in source.get("fields", ())]
    if source.get("commonStructs"):
        message["commonStructs"] = [
            {
                "name": each["name"],
                "versions": each["versions"],
                "fields": list(map(condense_field, each["fields"])),
            }
            for each in source["commonStructs"]
        ]
    return message


def condense_field(source: Json) -> Json:
    field = {key: source[key] for key in FIELD_KEYS if source.get(key) not in (None, False, "")}
    field.setdefault("versions", source.get("taggedVersions"))
    field = {key: field[key] for key in FIELD_KEYS if key in field}
    if "tag" in source:
        field["tag"] = int(source["tag"])
    if "default" in field and (default := condense_default(field["type"], field["default"])) is not None:
        field["default"] = default
    else:
        field.pop("default", None)
    if source.get("fields"):
        field["fields"] = [condense_field(each) for each in source["fields"]]
    return field


def condense_default(field_type: str, default: Any) -> Any:
    """Return a field's default in its JSON type, or None if it is the type's own default."""
    if default == "null":
        return default
    if field_type in INTEGER_TYPES:
        return (default if isinstance(default, int) else int(default, 0)) or None
    if field_type == "bool":
        return True if default in (True, "true") else None
    if field_type == "float64":
        return float(default) or None
    return default or None


def merge_editions(editions: list[dict[object, Json]]) -> list[Json]:
    merged: dict[object, Json] = {}
    for edition in editions:
        for identity, definition in edition.items():
            newer = merged.get(identity)
            merged[identity] = definition if newer is None else merge_messages(newer, definition)
    return [definition for definition in merged.values() if definition["validVersions"] != "none"]


def merge_messages(new: Json, old: Json) -> Json:
    """Return the definition `new`, extended by the versions that only `old` defines."""
    new_valid, old_valid = Versions.parse(new["validVersions"]), Versions.parse(old["validVersions"])
    if not new_valid:
        return {**old, "name": new["name"]}
    if old_valid.highest > new_valid.highest:
        raise ConflictError(f"{new['name']}: the older edition knows newer versions")
    if old_valid.lowest >= new_valid.lowest:
        return new
    lost = Versions(old_valid.lowest, new_valid.lowest - 1)
    if old_valid.highest < lost.highest:
        raise ConflictError(f"{new['name']}: versions between the editions are missing")
    message = dict(new)
    message["validVersions"] = str(old_valid.join(new_valid))
    message["flexibleVersions"] = merge_ranges("flexibleVersions", new, old, new_valid, lost)
    message["fields"] = merge_fields(new["name"], new["fields"], old["fields"], new_valid, lost)
    if "commonStructs" in new or "commonStructs" in old:
        message["commonStructs"] = merge_common_structs(new, old, new_valid, lost)
    return message


def merge_common_structs(new: Json, old: Json, new_valid: Versions, lost: Versions) -> list[Json]:
    news = {each["name"]: each for each in new.get("commonStructs", ())}
    olds = {each["name"]: each for each in old.get("commonStructs", ())}
    structs = []
    for name in [*news, *(name for name in olds if name not in news)]:
        new_struct = news.get(name, {"versions": "none", "fields": []})
        old_struct = olds.get(name, {"versions": "none", "fields": []})
        versions = merge_ranges("versions", new_struct, old_struct, new_valid, lost)
        if versions != "none":
            fields = merge_fields(name, new_struct["fields"], old_struct["fields"], new_valid, lost)
            structs.append({"name": name, "versions": versions, "fields": fields})
    return structs


def merge_fields(
    where: str, new: list[Json], old: list[Json], new_valid: Versions, lost: Versions
) -> list[Json]:
    """Return the fields of both definitions, in an order that fits both."""
    old_by_name = {field["name"]: field for field in old}
    absent: Json = {"versions": "none"}
    merged = [
        merge_field(where, field, old_by_name.get(field["name"], absent), new_valid, lost) for field in new
    ]
    new_names = {field["name"] for field in new}
    place = 0
    for field in old:
        if field["name"] in new_names:
            place = 1 + next(i for i, each in enumerate(merged) if each["name"] == field["name"])
        elif Versions.parse(field["versions"]).intersect(lost):
            merged.insert(place, merge_field(where, absent, field, new_valid, lost))
            place += 1
    return [field for field in merged if field["versions"] != "none"]


def merge_field(where: str, new: Json, old: Json, new_valid: Versions, lost: Versions) -> Json:
    # A field may be left out of a lost version when the edition that knew this version said so.
    ignorable = old.get("ignorable") or new.get("ignorable")
    if not Versions.parse(old["versions"]).intersect(lost):
        old = {"versions": "none"}
    if not Versions.parse(new["versions"]).intersect(new_valid):
        new = {"versions": "none"}
    known = {**old, **new, "ignorable": ignorable}
    for key in ("type", "default", "tag"):
        if "name" in new and "name" in old and new.get(key) != old.get(key):
            raise ConflictError(f"{where}.{new['name']}: {key} differs between editions")
    field = {key: known[key] for key in FIELD_KEYS if known.get(key) is not None}
    for key in RANGE_KEYS:
        if key in known:
            field[key] = merge_ranges(key, new, old, new_valid, lost)
            if field[key] == "none" and key not in ("versions", "flexibleVersions"):
                del field[key]
    if "fields" in known:
        name = f"{where}.{known['name']}"
        field["fields"] = merge_fields(name, new.get("fields", []), old.get("fields", []), new_valid, lost)
    return field


def merge_ranges(key: str, new: Json, old: Json, new_valid: Versions, lost: Versions) -> str:
    new_range, old_range = Versions.parse(new.get(key, "none")), Versions.parse(old.get(key, "none"))
    union = new_range.intersect(new_valid).join(old_range.intersect(lost))
    if union and union.highest == new_valid.highest and new_range.highest == OPEN_END:
        return str(Versions(union.lowest, OPEN_END))
    return str(union or NO_VERSIONS)


def write_definition(definition: Json) -> str:
    """Return a definition as JSON with one field per line."""
    known = [key for key in MESSAGE_KEYS if key in definition]
    lines = ["{", *(f'  "{key}": {json.dumps(definition[key])},' for key in known)]
    lines.append(f'  "fields": {write_fields(definition["fields"], "  ")}')
    if "commonStructs" in definition:
        lines[-1] += ","
        lines.append('  "commonStructs": [')
        for struct in definition["commonStructs"]:
            name, versions = json.dumps(struct["name"]), json.dumps(struct["versions"])
            head = f'    {{"name": {name}, "versions": {versions}'
            lines.append(f'{head}, "fields": {write_fields(struct["fields"], "    ")}}},')
        lines[-1] = lines[-1].removesuffix(",")
        lines.append("  ]")
    return "\n".join([*lines, "}\n"])


def write_fields(fields: list[Json], indent: str) -> str:
    if not fields:
        return "[]"
    lines = []
    for field in fields:
        line = json.dumps({key: value for key, value in field.items() if key != "fields"})
        if "fields" in field:
            line = f'{line[:-1]}, "fields": {write_fields(field["fields"], indent + "  ")}}}'
        lines.append(f"{indent}  {line}")
    return "[\n" + ",\n".join(lines) + f"\n{indent}]"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", nargs="+", type=Path, metavar="SOURCE")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    definitions = merge_editions([read_edition(source) for source in options.sources])
    if not definitions:
        sys.exit("no definitions found")
    options.output.mkdir(parents=True, exist_ok=True)
    for definition in definitions:
        (options.output / f"{definition['name']}.json").write_text(write_definition(definition), "utf-8")
    print(f"{len(definitions)} definitions in {options.output}")


if __name__ == "__main__":
    main()
