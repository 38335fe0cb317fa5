"""Requests for tests whose fields have extreme values that are legal on the wire but that no client sends.

The values are derived from the layout of each request.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.struct_types import NullableStructure, Structure
from penstock.protocol.compiler.wire_type import SHORT, StructLayout, WireType
from penstock.protocol.compiler.wire_types import Array, Blob, Fixed, RecordSet, Text, Uuid, Varint
from penstock.protocol.message import Message

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}

NOT_UTF8_BYTES_MIN = 30_000
"""The shortest run of 1 bytes that `malformed` replaces with bytes that are not UTF-8.

Decoded with U+FFFD for each byte, such a string takes three times as many bytes.
"""

CONTROLS = "\x00\x1b[31m\r\n\u2028\x7f../%s{}\\'\""


def malformed(frame: bytes) -> bytes:
    """Return the frame with each long run of 1 bytes replaced with 0xFF bytes, which are not UTF-8."""
    return re.sub(rb"\x01{%d,}" % NOT_UTF8_BYTES_MIN, lambda found: b"\xff" * len(found[0]), frame)


class Place(NamedTuple):
    """A field of one struct in a request, which `set_extreme` and `at_random` can set."""

    holder: Any
    attribute: str
    wire: WireType
    path: str


def filled(request: Message, version: int) -> Message:
    """Add an element to each empty array of structs in a request, and return the request."""
    _fill(codec_for(type(request), version).layout, request)
    return request


def _fill(layout: StructLayout, holder: Any) -> None:
    for field in [*layout.fields, *(each for _, each in layout.tagged)]:
        wire, attribute = field.wire, field.spec.attribute
        if isinstance(wire, Array) and isinstance(wire.element, Structure):
            if not getattr(holder, attribute):
                setattr(holder, attribute, [_new(holder, wire.element.layout)])
            for each in getattr(holder, attribute):
                _fill(wire.element.layout, each)
        elif isinstance(wire, Array) and isinstance(wire.element, Fixed) and not getattr(holder, attribute):
            setattr(holder, attribute, [0])
        elif isinstance(wire, Array) and isinstance(wire.element, Text) and not getattr(holder, attribute):
            setattr(holder, attribute, ["t"])
        elif isinstance(wire, Structure) and getattr(holder, attribute) is not None:
            _fill(wire.layout, getattr(holder, attribute))


def _new(holder: Any, layout: StructLayout) -> Any:
    import sys

    return getattr(sys.modules[type(holder).__module__], layout.spec.name)()


def places(request: Message, version: int) -> list[Place]:
    """Return every field that the request encodes in a version."""
    return list(_places(codec_for(type(request), version).layout, request, ""))


def _places(layout: StructLayout, holder: Any, path: str) -> Iterator[Place]:
    for field in [*layout.fields, *(each for _, each in layout.tagged)]:
        wire, attribute = field.wire, field.spec.attribute
        here = f"{path}.{attribute}"
        yield Place(holder, attribute, wire, here)
        value = getattr(holder, attribute)
        if isinstance(wire, Structure) and value is not None:
            yield from _places(wire.layout, value, here)
        elif isinstance(wire, Array) and isinstance(wire.element, Structure):
            for each in (value or ())[:1]:
                yield from _places(wire.element.layout, each, here)


def extremes(wire: WireType) -> list[Any]:
    """Return the extreme values of a field of this wire type, such as the least and the greatest number."""
    if isinstance(wire, Fixed):
        return _numbers(wire.name)
    if isinstance(wire, Varint):
        return _numbers(f"int{wire.bits}")
    if isinstance(wire, Text):
        longest = 32_767 if wire.length is SHORT else 40_000
        texts: list[Any] = ["", CONTROLS, "x" * longest, "\u20ac" * (longest // 3), ".", "\x01" * longest]
        return [*texts, None] if wire.nullable else texts
    if isinstance(wire, RecordSet):
        return [None, memoryview(b""), memoryview(b"\xff" * 100), memoryview(bytes(70))]
    if isinstance(wire, Blob):
        return [b"", b"\xff" * 70_000, *([None] if wire.nullable else [])]
    if isinstance(wire, Uuid):
        return [bytes(16), b"\xff" * 16, bytes(15) + b"\x01"]
    if isinstance(wire, Array):
        return [[], *([None] if wire.nullable else []), *_arrays(wire.element)]
    if isinstance(wire, NullableStructure):
        return [None]
    return []


def _arrays(element: WireType) -> list[list[Any]]:
    if isinstance(element, (Structure, Array)):
        return []
    return [[each] for each in extremes(element)] + [list(extremes(element)) * 2]


def _numbers(name: str) -> list[Any]:
    if name == "bool":
        return [False, True]
    if name == "float64":
        return [0.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e308, 5e-324]
    if name.startswith("u"):
        top = (1 << int(name[4:])) - 1
        return [0, 1, top - 1, top]
    top = (1 << (BITS[name] - 1)) - 1
    return [-top - 1, -top, -2, -1, 0, 1, 2, top - 1, top]


def count(request: Message, version: int) -> int:
    """Return the number of different changes that `set_extreme` can make to a request."""
    return sum(len(extremes(place.wire)) for place in places(request, version))


def set_extreme(request: Message, version: int, number: int) -> str:
    """Set one field of a request to one of its extreme values.

    The number of the change selects the field and the value. Returns a text that names both.
    """
    for place in places(request, version):
        values = extremes(place.wire)
        if number < len(values):
            setattr(place.holder, place.attribute, values[number])
            return f"{place.path} = {str(values[number])[:60]}"
        number -= len(values)
    raise IndexError(number)


def at_random(request: Message, version: int, dice: random.Random) -> str:
    """Set about half of the number fields, and a tenth of the others, to extreme values.

    Returns a text that lists the changes.
    """
    done = []
    for place in places(request, version):
        is_number = isinstance(place.wire, (Fixed, Varint))
        if dice.random() < (0.5 if is_number else 0.1):
            values = extremes(place.wire)
            if values:
                value = dice.choice(values)
                setattr(place.holder, place.attribute, value)
                done.append(f"{place.path} = {str(value)[:40]}")
    return "; ".join(done)
