"""Random Avro schemas and values for tests, and the value expected in Penstock's Arrow columns."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import struct
from typing import Any

import fastavro
from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
LOGICAL = [
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
]


class Names:
    """A generator of type names that are unique in a schema."""

    def __init__(self) -> None:
        self.count = 0

    def next(self) -> str:
        self.count += 1
        return f"T{self.count}"


@st.composite
def schemas(draw: Any, names: Names | None = None, depth: int = 3) -> Any:
    names = names or Names()
    kinds = ["plain", "plain", "logical", "enum", "fixed"]
    if depth:
        kinds += ["record", "record", "array", "map", "option", "union"]
    kind = draw(st.sampled_from(kinds))
    if kind == "plain":
        return draw(st.sampled_from(PRIMITIVES))
    if kind == "logical":
        return draw(st.sampled_from(LOGICAL))
    if kind == "enum":
        return {"type": "enum", "name": names.next(), "symbols": ["RED", "GREEN", "BLUE"]}
    if kind == "fixed":
        return {"type": "fixed", "name": names.next(), "size": draw(st.integers(1, 9))}
    if kind == "record":
        labels = draw(st.lists(NAMES, max_size=4, unique=True))
        fields = [{"name": label, "type": draw(schemas(names, depth - 1))} for label in labels]
        return {"type": "record", "name": names.next(), "fields": fields}
    if kind == "array":
        return {"type": "array", "items": draw(schemas(names, depth - 1))}
    if kind == "map":
        return {"type": "map", "values": draw(schemas(names, depth - 1))}
    if kind == "option":
        inner = draw(
            schemas(names, depth - 1).filter(lambda made: made != "null" and not isinstance(made, list))
        )
        return draw(st.permutations(["null", inner]))
    branches = draw(
        st.lists(st.sampled_from([*PRIMITIVES, "record", "array"]), min_size=2, max_size=4, unique=True)
    )
    return [
        draw(schemas(names, 0).map(lambda made: {"type": "array", "items": made}))
        if each == "array"
        else {"type": "record", "name": names.next(), "fields": [{"name": "x", "type": "long"}]}
        if each == "record"
        else each
        for each in branches
    ]


def single(number: float) -> float:
    """Return a number rounded to a 32-bit float."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def values(made: Any) -> st.SearchStrategy[Any]:
    """Return a hypothesis strategy for values of a schema, as fastavro takes them.

    A value of a union is a pair of branch index and value.
    """
    if isinstance(made, list):
        return st.integers(0, len(made) - 1).flatmap(
            lambda number: values(made[number]).map(lambda value: (number, value))
        )
    kind = made if isinstance(made, str) else made["type"]
    if isinstance(made, dict) and "logicalType" in made:
        bound = {"date": 100_000, "time-millis": 86_400_000, "time-micros": 86_400_000_000}
        if made["logicalType"] == "decimal":
            return st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: decimal.Decimal(n).scaleb(-3))
        return st.integers(0, bound.get(made["logicalType"], 4_000_000_000_000) - 1)
    if kind == "record":
        return st.fixed_dictionaries({each["name"]: values(each["type"]) for each in made["fields"]})
    if kind == "array":
        return st.lists(values(made["items"]), max_size=3)
    if kind == "map":
        return st.dictionaries(st.text(max_size=3), values(made["values"]), max_size=3)
    if kind == "enum":
        return st.sampled_from(made["symbols"])
    if kind == "fixed":
        return st.binary(min_size=made["size"], max_size=made["size"])
    return {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": st.integers(-(2**31), 2**31 - 1),
        "long": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "bytes": st.binary(max_size=40),
        "string": st.text(max_size=40),
    }[kind]


def plain(made: Any) -> Any:
    """Return a schema without logical types except decimal, so that fastavro uses plain numbers."""
    if isinstance(made, list):
        return [plain(each) for each in made]
    if isinstance(made, dict):
        keep = made.get("logicalType") in (None, "decimal")
        return {
            key: plain(each)
            if key in ("type", "items", "values")
            else [plain_field(f) for f in each]
            if key == "fields"
            else each
            for key, each in made.items()
            if keep or key != "logicalType"
        }
    return made


def plain_field(field: dict[str, Any]) -> dict[str, Any]:
    return {**field, "type": plain(field["type"])}


def encode(made: Any, value: Any, out: io.BytesIO | None = None) -> bytes:
    """Return a value's Avro bytes; fastavro encodes all types except unions, whose branch is given."""
    out = out if out is not None else io.BytesIO()
    if isinstance(made, list):
        branch, inner = value
        write(out, "long", branch)
        encode(made[branch], inner, out)
    elif isinstance(made, dict) and made["type"] == "record":
        for each in made["fields"]:
            encode(each["type"], value[each["name"]], out)
    elif isinstance(made, dict) and made["type"] in ("array", "map"):
        if value:
            write(out, "long", len(value))
        for each in value:
            if made["type"] == "map":
                write(out, "string", each)
            encode(
                made["values"] if made["type"] == "map" else made["items"],
                value[each] if isinstance(value, dict) else each,
                out,
            )
        write(out, "long", 0)
    else:
        write(out, plain(made), value)
    return out.getvalue()


def write(out: io.BytesIO, made: Any, value: Any) -> None:
    fastavro.schemaless_writer(out, fastavro.parse_schema(made, _force=True), value)


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def expected(made: Any, value: Any) -> Any:
    """Return the value that a row of the Arrow array must have."""
    if isinstance(made, list):
        branch, inner = value
        others = [each for each in made if each != "null"]
        if made[branch] == "null":
            return None
        found = expected(made[branch], inner)
        if len(others) == 1:
            return found
        labels = [each if isinstance(each, str) else each.get("name", each["type"]) for each in others]
        return {
            label: found if others[number] is made[branch] else None for number, label in enumerate(labels)
        }
    if isinstance(made, dict) and "logicalType" in made:
        return as_time(made["logicalType"], value)
    if isinstance(made, dict) and made["type"] == "record":
        return {each["name"]: expected(each["type"], value[each["name"]]) for each in made["fields"]}
    if isinstance(made, dict) and made["type"] == "array":
        return [expected(made["items"], each) for each in value]
    if isinstance(made, dict) and made["type"] == "map":
        return [(key, expected(made["values"], each)) for key, each in value.items()]
    return value


def as_time(logical: str, number: Any) -> Any:
    if logical == "decimal":
        return number
    if logical == "date":
        return EPOCH.date() + dt.timedelta(days=number)
    unit = "milliseconds" if logical.endswith("millis") else "microseconds"
    moment = EPOCH + dt.timedelta(**{unit: number})
    if logical.startswith("time-"):
        return moment.time()
    return moment.replace(tzinfo=None) if logical.startswith("local") else moment
