"""Tests of the codec's properties for random message definitions that hypothesis generates."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from penstock.errors import DecodeError
from penstock.protocol.codec import codec_for
from penstock.protocol.loaded_classes import message_class
from penstock.protocol.schema.definition import DefinitionError
from penstock.protocol.schema.parser import parse_definition
from protocol import oracle
from protocol.samples import sample

LAST = 3
SCALARS = (
    "bool",
    "int8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "float64",
    "uuid",
    "string",
    "bytes",
)
WHOLE = ("int16", "int32", "int64")
NULLABLE = ("string", "bytes", "records")


def version_ranges():
    ends = st.tuples(st.integers(0, LAST), st.integers(0, LAST))
    return st.one_of(
        st.integers(0, LAST).map(lambda first: f"{first}+"),
        ends.map(lambda pair: f"{min(pair)}-{max(pair)}"),
    )


@st.composite
def fields(draw, flexible_from: int, depth: int) -> list[dict]:
    made, tag = [], 0
    for number in range(draw(st.integers(1, 5))):
        field: dict = {"name": f"F{number}", "versions": draw(version_ranges())}
        shape = draw(st.sampled_from(("scalar", "scalar", "packed", "array", "struct", "structs", "records")))
        scalar = draw(st.sampled_from(SCALARS))
        if shape in ("struct", "structs") and depth < 2:
            field["type"] = "[]S" if shape == "structs" else "S"
            field["fields"] = draw(fields(flexible_from, depth + 1))
        elif shape == "packed":
            base = draw(st.sampled_from(WHOLE))
            prefix = draw(st.sampled_from(("", "[]")))
            cut = draw(st.integers(1, LAST))
            sign = draw(st.sampled_from(("", "unsigned_")))
            packed = f"{prefix}{sign}varint{base.removeprefix('int')}"
            field["type"] = {f"0-{cut - 1}": prefix + base, f"{cut}+": packed}
        else:
            field["type"] = {"array": f"[]{scalar}", "records": "records"}.get(shape, scalar)
        kind = field["type"] if isinstance(field["type"], str) else ""
        can_be_null = kind.startswith(("[]", "S")) or kind in NULLABLE
        if field["versions"].endswith("+") and draw(st.integers(0, 3)) == 0 and kind != "records":
            field.update(tag=tag, taggedVersions=f"{max(flexible_from, int(field['versions'][:-1]))}+")
            tag += 1
        if can_be_null and draw(st.booleans()):
            field["nullableVersions"] = "0+"
            if draw(st.booleans()):
                field["default"] = "null"
        if draw(st.integers(0, 3)) == 0:
            field["ignorable"] = True
        made.append(field)
    return made


def name_structs(made: list[dict], path: str) -> list[dict]:
    for number, field in enumerate(made):
        if "fields" in field:
            field["type"] += f"{path}{number}"
            name_structs(field["fields"], f"{path}{number}x")
    return made


@st.composite
def definitions(draw) -> dict:
    flexible_from = draw(st.integers(0, LAST))
    return {
        "name": "MadeUp",
        "type": "data",
        "validVersions": f"0-{LAST}",
        "flexibleVersions": f"{flexible_from}+",
        "fields": name_structs(draw(fields(flexible_from, 0)), "x"),
    }


@settings(
    max_examples=100,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(definitions(), st.integers(0, 1000), st.integers(0, 10**6), st.integers(1, 255))
def test_the_laws_hold_for_any_definition(source, seed, place, change):
    try:
        definition = parse_definition(source, "made up")
    except DefinitionError as error:
        assume("its elements have no fields" not in str(error))
        raise
    cls = message_class(definition)
    for version in range(LAST + 1):
        codec = codec_for(cls, version)
        message = sample(cls, definition, version, seed)
        data = codec.encode(message)
        assert data == oracle.encode(definition, version, message)
        assert codec.decode(data + b"more") == (message, len(data))
        if data:
            broken = bytearray(data)
            broken[place % len(data)] ^= change
            try:
                expected = oracle.decode(definition, version, cls, broken)
            except oracle.Malformed:
                expected = None
            try:
                found = codec.decode(broken)
            except DecodeError:
                found = None
            assert found == expected or repr(found) == repr(expected)
