"""Tests of the quick JSON Schema checks: a value that they accept is valid by jsonschema, in every draft."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from for_each import for_each
from penstock.errors import DecodeError, EncodeError
from penstock.registry import JSONDeserializer, JSONSerializer, Schema, SerializationContext
from penstock.registry.json_schema.checks import check_of
from registry.fake_registry import FakeRegistry

DRAFTS = [
    jsonschema.Draft3Validator,
    jsonschema.Draft4Validator,
    jsonschema.Draft6Validator,
    jsonschema.Draft7Validator,
    jsonschema.Draft201909Validator,
    jsonschema.Draft202012Validator,
]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
VALUES = [
    None,
    True,
    False,
    0,
    1,
    -3,
    1.0,
    2.5,
    float("nan"),
    "",
    "a",
    "abc",
    [],
    [1],
    ["a", None],
    {},
    {"a": 1},
]


class Maker:
    """A generator of random schemas with the checked keywords, and of values, determined by a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def schema(self, depth: int = 0) -> Any:
        chance = self.chance
        found: dict[str, Any] = {"title": "T"} if chance.random() < 0.2 else {}
        if chance.random() < 0.8:
            found["type"] = chance.choice([chance.choice(TYPES), chance.sample(TYPES, 2)])
        if chance.random() < 0.15:
            found["enum"] = ["a", "abc"]
        for word in ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"):
            if chance.random() < 0.1:
                found[word] = chance.randint(0, 2)
        if depth < 3 and chance.random() < 0.5:
            found["properties"] = {name: self.schema(depth + 1) for name in chance.sample("abc", 2)}
        if chance.random() < 0.2:
            found["required"] = ["a"]
        if depth < 3 and chance.random() < 0.3:
            found["additionalProperties"] = chance.choice([True, False, self.schema(depth + 1)])
        if depth < 3 and chance.random() < 0.3:
            found["items"] = self.schema(depth + 1)
        return found

    def value(self, depth: int = 0) -> Any:
        choice = self.chance.random()
        if depth < 3 and choice < 0.3:
            return {
                name: self.value(depth + 1) for name in self.chance.sample("abcd", self.chance.randint(0, 3))
            }
        if depth < 3 and choice < 0.4:
            return [self.value(depth + 1) for _ in range(self.chance.randint(0, 3))]
        return self.chance.choice(VALUES)


@for_each(range(60))
def test_a_value_of_which_a_check_says_yes_is_valid(seed: int) -> None:
    maker = Maker(seed)
    schema = maker.schema()
    check = check_of(schema)
    assert check is not None
    for _ in range(25):
        value = maker.value()
        if check(value):
            for draft in DRAFTS[1:] if "required" in json.dumps(schema) else DRAFTS:
                assert draft(schema).is_valid(value), (draft, schema, value)


@for_each(
    [
        {"$ref": "#/$defs/a"},
        {"oneOf": [{}]},
        {"type": "any"},
        {"type": "number", "exclusiveMinimum": True, "minimum": 0},
        {"properties": {"a": {"required": True}}},
        {"enum": [1, "a"]},
        {"items": [{"type": "string"}]},
        {"pattern": "a"},
        {"format": "date"},
        {"minimum": "1"},
        {"properties": []},
        False,
    ]
)
def test_schemas_of_other_words_have_no_check(schema: Any) -> None:
    assert check_of(schema) is None


def test_schemas_that_are_deep_or_large_have_no_check() -> None:
    schema: Any = {"type": "string"}
    for _ in range(50):
        schema = {"items": schema}
    assert check_of(schema) is None
    assert check_of({"properties": {str(number): {"type": "string"} for number in range(3_000)}}) is None


ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}},
    "required": ["id"],
    "additionalProperties": False,
}


def test_usual_rows_are_valid_by_the_check_and_others_by_jsonschema() -> None:
    check = check_of(ORDER)
    assert check is not None
    assert check({"id": 1, "name": None})
    assert not check({"id": 1.0})  # valid, and for jsonschema to say so
    assert not check({"id": True})
    assert not check({"id": 1, "more": 1})
    assert not check({"name": "x"})
    registry = FakeRegistry()
    number = registry.add("t-value", Schema(json.dumps(ORDER), "JSON"))
    write = JSONSerializer(json.dumps(ORDER), registry, conf={"use.schema.id": number})  # type: ignore[arg-type]
    read = JSONDeserializer(json.dumps(ORDER))
    context = SerializationContext("t")
    for row in ({"id": 1}, {"id": 1.0}):
        data = write(row, context)
        assert data == b"\0\0\0\0\1" + json.dumps(row).encode()
        assert write(row, context) == data
        assert read(data, context) == row
    with pytest.raises(EncodeError, match=r"\$.id: True is not of type 'integer'"):
        write({"id": True}, context)
    with pytest.raises(DecodeError, match="'id' is a required property"):
        read(b"\0\0\0\0\1{}", context)
