"""Tests that a new scalar type in message definitions takes two classes and no other change.

The type of this test is ASCII text that ends with a zero byte. It can be compiled and decoded, has a JSON
form and defaults, and the checks of request limits skip it.
"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.broker.requests.request_limits import has_more_entries
from penstock.errors import DecodeError, EncodeError
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.decode_emitter import DecodeEmitter
from penstock.protocol.compiler.encode_emitter import EncodeEmitter
from penstock.protocol.compiler.wire_type import Step, StepKind, WireType
from penstock.protocol.compiler.wire_types import WIRE_TYPES
from penstock.protocol.inspect.json_form import from_json, to_json
from penstock.protocol.inspect.printer import rows
from penstock.protocol.loaded_classes import message_class
from penstock.protocol.message import Message
from penstock.protocol.schema.class_writer import module_source
from penstock.protocol.schema.definition import DefinitionError
from penstock.protocol.schema.parser import parse_definition
from penstock.protocol.schema.scalar_types import SCALARS, ScalarType


class ZeroEnded(ScalarType):
    name = "zstring"
    python_type = "str"

    def default(self, source: object) -> object:
        if source is not None and not isinstance(source, str):
            raise ValueError("write a text")
        return source or ""

    def to_json(self, value: Any) -> object:
        return f"z:{value}"

    def from_json(self, source: Any) -> object:
        if not isinstance(source, str) or not source.startswith("z:"):
            raise ValueError("a text behind z: was expected")
        return source[2:]


def write(value: str) -> bytes:
    if "\0" in value:
        raise ValueError("a zero inside")
    return value.encode("ascii") + b"\0"


def skip(frame: memoryview, position: int) -> int:
    while frame[position]:
        position += 1
    return position + 1


def read(data: memoryview, position: int) -> tuple[str, int]:
    end = skip(data, position)
    return str(data[position : end - 1], "ascii"), end


class ZeroEndedWire(WireType):
    guide_name = "ZSTRING"
    shape = ("zstring",)

    def decode(self, out: DecodeEmitter, target: str) -> None:
        out.flush()
        out.line(f"{target}, pos = {out.shared('read_zstring', lambda: read)}(data, pos)")

    def encode(self, out: EncodeEmitter, value: str) -> None:
        out.flush()
        out.line(f"append({out.shared('write_zstring', lambda: write)}({value}))")

    def problem(self, value: Any) -> str | None:
        return ": a zero inside" if "\0" in value else None

    def steps(self) -> list[Step]:
        return [Step(StepKind.OTHER, skip=skip)]


DEFINITION = {
    "name": "MadeUpRequest",
    "apiKey": 7777,
    "type": "request",
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [
        {"name": "Before", "type": "int32", "versions": "0+"},
        {"name": "Title", "type": "zstring", "versions": "0+", "default": "none"},
        {"name": "Words", "type": "[]zstring", "versions": "0+"},
        {"name": "Note", "type": "zstring", "versions": "1+", "taggedVersions": "1+", "tag": 0},
        {"name": "After", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    ],
}


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> type[Message]:
    monkeypatch.setitem(SCALARS, "zstring", ZeroEnded())
    monkeypatch.setitem(WIRE_TYPES, "zstring", lambda compact, nullable: ZeroEndedWire())
    return message_class(parse_definition(DEFINITION, "MadeUpRequest.json"))


def test_it_is_no_type_without_its_classes() -> None:
    with pytest.raises(DefinitionError, match="no type and no struct called 'zstring'"):
        parse_definition(DEFINITION, "MadeUpRequest.json")


def test_it_is_written_and_read_as_its_class_says(made_up: type[Any]) -> None:
    message = made_up(before=5, title="ab", words=["", "xyz"], after=None)
    data = b"\0\0\0\5" + b"ab\0" + b"\0\0\0\2" + b"\0" + b"xyz\0" + b"\xff\xff"
    codec = codec_for(made_up, 0)
    assert codec.encode(message) == data
    read_back, end = codec.decode(data)
    assert (read_back, end) == (message, len(data))
    tagged = made_up(before=5, note="n")
    assert codec_for(made_up, 1).decode(codec_for(made_up, 1).encode(tagged))[0] == tagged
    assert made_up().title == "none"


def test_its_errors_name_the_field(made_up: type[Any]) -> None:
    with pytest.raises(EncodeError, match=r"MadeUpRequest v0\.Words\[1\]: a zero inside"):
        codec_for(made_up, 0).encode(made_up(words=["a", "b\0"]))
    with pytest.raises(DecodeError):
        codec_for(made_up, 0).decode(b"\0\0\0\5endless")


def test_its_json_form_is_that_of_its_class(made_up: type[Any]) -> None:
    message = made_up(before=1, title="t", words=["w"], after="a")
    form = {"before": 1, "title": "z:t", "words": ["z:w"], "after": "a"}
    assert to_json(message, 0) == form
    assert from_json(made_up, form, 0) == message
    with pytest.raises(DecodeError, match=r"\.words\[0\]: a text behind z: was expected"):
        from_json(made_up, {**form, "words": ["w"]}, 0)


def test_its_definition_is_printed_and_written_as_source(made_up: type[Any]) -> None:
    definition = made_up.DEFINITION
    assert ("words", "[]zstring") in [(row.field, row.type) for row in rows(definition)]
    source = module_source(definition)
    assert 'title: str = "none",' in source
    assert "words: list[str] | None = None," in source


@pytest.mark.parametrize("version", [0, 1])
def test_limits_on_requests_step_over_it(made_up: type[Any], version: int) -> None:
    message = made_up(title="t" * 50, words=["w" * size for size in range(20)], after="behind")
    codec = codec_for(made_up, version)
    frame = memoryview(b"abc" + codec.encode(message))
    assert not has_more_entries(codec.layout, frame, 3, 20)
    assert has_more_entries(codec.layout, frame, 3, 19)
    assert not has_more_entries(codec.layout, frame[:20], 3, 19), "what is cut is left to the decoder"
