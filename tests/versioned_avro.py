"""Random Avro schemas, values and later schema versions, and conversions to and from Avro's JSON encoding."""

from __future__ import annotations

import copy
import random
import struct
from typing import Any

PLAIN = ["boolean", "int", "long", "float", "double", "bytes", "string"]
PROMOTIONS = {
    "int": ["long", "float", "double"],
    "long": ["float", "double"],
    "float": ["double"],
    "string": ["bytes"],
}
"""A dict from an Avro type to the types it may be promoted to.

Promotion of bytes to string is left out: for bytes that are not UTF-8, Penstock makes a dead letter and Java
other text.
"""
TEXTS = ["", "a", "Zürich", "日本語", "\U0001f600", 'quote " and \\ and \n', "x" * 40]
SYMBOLS = ["RED", "GREEN", "BLUE"]


class Drawn:
    """A generator of random schemas and values for one seed.

    Longs have at most `long_bits` bits.
    """

    def __init__(self, seed: int, long_bits: int = 63) -> None:
        self.dice = random.Random(seed)
        self._long_bits = long_bits
        self._names = 0

    def _name(self) -> str:
        self._names += 1
        return f"T{self._names}"

    def record(self, depth: int = 2) -> dict[str, Any]:
        """Return a random record schema with one to five fields."""
        labels = self.dice.sample("abcdefgh", self.dice.randint(1, 5))
        fields = [{"name": label, "type": self.schema(depth)} for label in labels]
        return {"type": "record", "name": self._name(), "fields": fields}

    def schema(self, depth: int) -> Any:
        """Return a random schema; its unions have only null and one other type."""
        kinds = ["plain"] * 4 + ["enum", "fixed"]
        kind = self.dice.choice(kinds + (["record", "array", "map", "option", "option"] if depth else []))
        if kind == "enum":
            return {"type": "enum", "name": self._name(), "symbols": SYMBOLS}
        if kind == "fixed":
            return {"type": "fixed", "name": self._name(), "size": self.dice.randint(1, 9)}
        if kind == "record":
            return self.record(depth - 1)
        if kind == "array":
            return {"type": "array", "items": self.schema(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": self.schema(depth - 1)}
        if kind == "option":
            inner = self.schema(depth - 1)
            return inner if isinstance(inner, list) else ["null", inner]
        return self.dice.choice(PLAIN)

    def value(self, schema: Any) -> Any:
        """Return a random value of a schema, in the form that rows have."""
        dice = self.dice
        if isinstance(schema, list):
            return None if dice.random() < 0.3 else self.value(schema[1])
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind == "record":
            return {each["name"]: self.value(each["type"]) for each in schema["fields"]}
        if kind == "array":
            return [self.value(schema["items"]) for _ in range(dice.randrange(4))]
        if kind == "map":
            return {key: self.value(schema["values"]) for key in dice.sample(TEXTS, dice.randrange(3))}
        if kind == "enum":
            return dice.choice(schema["symbols"])
        if kind == "fixed":
            return dice.randbytes(schema["size"])
        if kind == "boolean":
            return dice.random() < 0.5
        if kind in ("int", "long"):
            bits = 31 if kind == "int" else self._long_bits
            return dice.choice([0, -1, dice.getrandbits(bits), -dice.getrandbits(bits), 1 - (1 << bits)])
        if kind == "float":
            return struct.unpack("<f", struct.pack("<f", dice.uniform(-1e6, 1e6)))[0]
        if kind == "double":
            return dice.choice([0.0, 0.5, dice.uniform(-1e300, 1e300), dice.random()])
        return dice.randbytes(dice.randrange(12)) if kind == "bytes" else dice.choice(TEXTS)

    def later(self, schema: Any) -> Any:
        """Return a later version of a schema; most of them can read what the first one wrote."""
        return self._changed(copy.deepcopy(schema))

    def _changed(self, schema: Any) -> Any:
        dice = self.dice
        if isinstance(schema, list):
            return ["null", self._changed(schema[1])]
        if isinstance(schema, str):
            if dice.random() < 0.25 and schema in PROMOTIONS:
                return dice.choice(PROMOTIONS[schema])
            if dice.random() < 0.15:
                return ["null", schema]
            return dice.choice(PLAIN) if dice.random() < 0.02 else schema
        kind = schema["type"]
        if kind == "record":
            self._change_fields(schema)
        elif kind in ("array", "map"):
            name = "items" if kind == "array" else "values"
            schema[name] = self._changed(schema[name])
        elif kind == "enum":
            schema["symbols"] = dice.sample([*SYMBOLS, "BLACK"], dice.randint(2, 4))
            if dice.random() < 0.5:
                schema["default"] = schema["symbols"][0]
        return schema

    def _change_fields(self, record: dict[str, Any]) -> None:
        dice = self.dice
        kept = [each for each in record["fields"] if dice.random() < 0.85]
        for field in kept:
            field["type"] = self._changed(field["type"])
            if dice.random() < 0.1:
                field["aliases"], field["name"] = [field["name"]], f"{field['name']}_new"
        if dice.random() < 0.5:
            made = self.schema(1)
            field = {"name": "added", "type": made}
            if dice.random() < 0.95:
                field["default"] = None if isinstance(made, list) else as_default(made, self.value(made))
            kept.append(field)
        dice.shuffle(kept)
        record["fields"] = kept


def as_default(schema: Any, value: Any) -> Any:
    """Return a value in the form of a schema's default; for a union this is null, its first branch."""
    if isinstance(schema, list):
        return None
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return {each["name"]: as_default(each["type"], value[each["name"]]) for each in schema["fields"]}
    if kind == "array":
        return [as_default(schema["items"], each) for each in value]
    if kind == "map":
        return {key: as_default(schema["values"], each) for key, each in value.items()}
    return value.decode("latin-1") if isinstance(value, bytes) else value


def to_json(schema: Any, value: Any) -> Any:
    """Return a value in Avro's JSON encoding: unions name their branch, bytes are characters 0 to 255."""
    if isinstance(schema, list):
        return None if value is None else {branch_name(schema[1]): to_json(schema[1], value)}
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return {each["name"]: to_json(each["type"], value[each["name"]]) for each in schema["fields"]}
    if kind == "array":
        return [to_json(schema["items"], each) for each in value]
    if kind == "map":
        return {key: to_json(schema["values"], each) for key, each in value.items()}
    return value.decode("latin-1") if isinstance(value, bytes) else value


def from_json(schema: Any, found: Any) -> Any:
    """Return the value of a document in Avro's JSON encoding."""
    if isinstance(schema, list):
        return None if found is None else from_json(schema[1], found[branch_name(schema[1])])
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return {each["name"]: from_json(each["type"], found[each["name"]]) for each in schema["fields"]}
    if kind == "array":
        return [from_json(schema["items"], each) for each in found]
    if kind == "map":
        return {key: from_json(schema["values"], each) for key, each in found.items()}
    if kind in ("bytes", "fixed"):
        return found.encode("latin-1")
    if kind == "float":
        return struct.unpack("<f", struct.pack("<f", found))[0]
    return float(found) if kind == "double" else found


def branch_name(schema: Any) -> str:
    """Return the name of a union's branch in Avro's JSON encoding."""
    return str(schema if isinstance(schema, str) else schema.get("name", schema["type"]))


def as_row(schema: Any, found: Any) -> Any:
    """Return a value from a column's row in the form of the drawn values; maps are pairs in the row."""
    if found is None:
        return None
    if isinstance(schema, list):
        return as_row(schema[1], found)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return {each["name"]: as_row(each["type"], found[each["name"]]) for each in schema["fields"]}
    if kind == "array":
        return [as_row(schema["items"], each) for each in found]
    if kind == "map":
        return {key: as_row(schema["values"], each) for key, each in found}
    return found
