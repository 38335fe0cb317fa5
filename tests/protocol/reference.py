"""The reference tables in `facts/`, and a program that makes them from Kafka's own message definitions.

    python tests/protocol/reference.py DIRECTORY

The program writes the tables from a directory with the definition files of several releases
(`kafka-messages`, the newest, `kafka-messages-3.x`, and `kafka-internal-records`). The tests need only the
tables.

A signature names the wire types in order: ``b h i q`` integers of 1, 2, 4, 8 bytes, ``H I`` unsigned, ``o``
bool, ``d`` float64, ``u`` uuid, ``s`` string, ``B`` bytes, ``R`` records, ``[…]`` an array, ``(…)`` a struct,
``?`` after a nullable type, ``!`` after a type that is not compact in a flexible version, ``{0=…}`` tagged
fields; a struct without braces has no section of tagged fields.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

FACTS = Path(__file__).with_name("facts")
LAYOUTS = FACTS / "layouts.txt"
FIELDS = FACTS / "fields.txt"
ERROR_CODES = FACTS / "error_codes.txt"
RELEASES = FACTS / "api-versions-by-release.json"

CODES = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint16": "H", "uint32": "I", "bool": "o",
    "float64": "d", "uuid": "u", "string": "s", "bytes": "B", "records": "R",
}  # fmt: skip

EDITIONS = ("kafka-messages", "kafka-messages-3.x", "kafka-internal-records")


def read_edition(directory: Path) -> dict[str, dict]:
    """Return a dict from name to Kafka's definition, for all definitions in one directory."""
    edition = {}
    for path in sorted(directory.rglob("*.json")):
        lines = path.read_text("utf-8").splitlines()
        source = json.loads("\n".join(line for line in lines if not line.strip().startswith("//")))
        if source["validVersions"] != "none":
            edition[source["name"]] = source
    return edition


def bounds(text: str | None) -> tuple[int, int]:
    if text in (None, "none"):
        return 1, 0
    if text.endswith("+"):
        return int(text[:-1]), 32767
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def inside(version: int, text: str | None) -> bool:
    low, high = bounds(text)
    return low <= version <= high


def signature(source: dict, version: int) -> str:
    """Return the signature of a definition at a version: its wire types in order."""
    common = {each["name"]: each["fields"] for each in source.get("commonStructs", ())}
    flexible = inside(version, source["flexibleVersions"])

    def struct(fields: list[dict]) -> str:
        here = [
            field for field in fields if inside(version, field.get("versions", field.get("taggedVersions")))
        ]
        tagged = [field for field in here if inside(version, field.get("taggedVersions"))]
        plain = " ".join(one(field) for field in here if field not in tagged)
        if not flexible:
            return plain
        known = " ".join(
            f"{field['tag']}={one(field)}" for field in sorted(tagged, key=lambda each: int(each["tag"]))
        )
        return f"{plain}{{{known}}}"

    def one(field: dict) -> str:
        name, is_array = field["type"].removeprefix("[]"), field["type"].startswith("[]")
        code = CODES.get(name) or f"({struct(field.get('fields') or common[name])})"
        if is_array:
            code = f"[{code}]"
        null = "?" if inside(version, field.get("nullableVersions")) else ""
        overridden = (
            flexible and "flexibleVersions" in field and not inside(version, field["flexibleVersions"])
        )
        return code + null + ("!" if overridden else "")

    return struct(source["fields"])


def fields_at(source: dict, version: int) -> list[tuple[str, str, object]]:
    """Return the path, type and default of every field of a version, except defaults that are structs."""
    common = {each["name"]: each["fields"] for each in source.get("commonStructs", ())}

    def walk(fields: list[dict], path: str):
        for field in fields:
            if inside(version, field.get("versions", field.get("taggedVersions"))):
                yield path + field["name"], field["type"], default(field)
                inner = field.get("fields") or common.get(field["type"].removeprefix("[]"), [])
                yield from walk(inner, path + field["name"] + ".")

    return list(walk(source["fields"], ""))


def default(field: dict) -> object:
    field_type, text = field["type"], field.get("default")
    if text == "null" or field_type == "records":
        return None
    if field_type.startswith("[]"):
        return ()
    if field_type[0].isupper():
        return "new"
    if field_type in ("string", "bytes"):
        return (text or "") if field_type == "string" else b""
    if field_type == "bool":
        return text in (True, "true")
    if field_type == "uuid":
        assert not text
        return bytes(16)
    return float(text or 0) if field_type == "float64" else int(str(text or 0), 0)


def newest_first(directory: Path) -> dict[str, list[dict]]:
    """Return a dict from each message name to Kafka's definitions of it, newest first."""
    new, old, records = (read_edition(directory / edition) for edition in EDITIONS)
    renamed = {
        "ListClientMetricsResources" + end: "ListConfigResources" + end for end in ("Request", "Response")
    }
    found: dict[str, list[dict]] = {}
    for edition in (new, old, records):
        for name, source in edition.items():
            found.setdefault(renamed.get(name, name), []).append(source)
    return found


def layout_lines(directory: Path) -> list[str]:
    """Return the lines of the layout table: name, versions and signature.

    Consecutive versions with equal signatures share a line.
    """
    lines = []
    for name, low, high, text in _runs(directory, signature):
        lines.append(f"{name} {low}-{high} {text}".rstrip())
    return lines


def field_lines(directory: Path) -> list[str]:
    """Return the lines of the field table: name, versions, and path, type and default of each field.

    Each line is JSON.
    """
    return [
        json.dumps([name, low, high, [[path, kind, shown(value)] for path, kind, value in fields]])
        for name, low, high, fields in _runs(directory, fields_at)
    ]


def shown(value: object) -> object:
    """Return a field's default in a form that JSON can hold."""
    return value.hex() if isinstance(value, bytes) else list(value) if isinstance(value, tuple) else value


def _runs(directory: Path, fact_of):
    """Yield a message's ranges of versions with an equal result of `fact_of`.

    Each item is (name, first version, last version, result).
    """
    for name, sources in sorted(newest_first(directory).items()):
        low = min(bounds(each["validVersions"])[0] for each in sources)
        run: list | None = None
        for version in range(low, 100):
            source = next((each for each in sources if inside(version, each["validVersions"])), None)
            if source is None:
                break
            fact = fact_of(source, version)
            if run is not None and run[3] == fact:
                run[2] = version
                continue
            if run is not None:
                yield run
            run = [name, version, version, fact]
        if run is not None:
            yield run


if __name__ == "__main__":
    source_directory = Path(sys.argv[1])
    LAYOUTS.write_text("\n".join([*layout_lines(source_directory), ""]), "utf-8")
    FIELDS.write_text("\n".join([*field_lines(source_directory), ""]), "utf-8")
