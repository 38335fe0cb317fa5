"""Scalar types of the definition language: their Python types, defaults and JSON form.

One class for each kind of type, and one object in `SCALARS` for each name. The wire types define how values
become bytes (`penstock.protocol.compiler.wire_types`).
"""

from __future__ import annotations

import binascii
import math
from abc import ABC, abstractmethod
from types import NoneType
from typing import Any

from penstock.protocol.uuid import ZERO_UUID, uuid_from_text, uuid_to_text

_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_JSON_KINDS = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}


def json_kind(value: object) -> str:
    """Return the name of a JSON value's kind for an error message: "a list", "null", "true"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return repr(value).lower()
    return _JSON_KINDS.get(type(value), type(value).__name__)


class ScalarType(ABC):
    """A type of the definition language whose values have no parts, such as an integer or a string."""

    name: str
    """The name of the type in definitions."""

    python_type: str
    """The Python type annotation of message attributes of this type, without ``| None``."""

    can_be_null = False
    """True if a definition may declare fields of the type nullable."""

    is_optional = False
    """True if a Python attribute of the type may be None, although the wire format has no null for it."""

    can_be_element = True
    """True if a definition may have arrays of the type."""

    default_is_fixed = False
    """True if the only defaults that a definition may give are the empty value and null."""

    json_is_same = False
    """True if values are equal to their JSON form, so that `to_json` need not be called."""

    @abstractmethod
    def default(self, source: object) -> object:
        """Return a field's default as a Python value; `source` is the default in the definition, or None.

        Raises:
            ValueError, OverflowError: the default is no value of this type.
        """

    @abstractmethod
    def to_json(self, value: Any) -> object:
        """Return the JSON form of a value that is not null."""

    @abstractmethod
    def from_json(self, source: Any) -> object:
        """Return the value whose JSON form is `source`, which is not null.

        Raises:
            ValueError: `source` is no value of this type; the message is the reason.
        """


def _plain(source: object) -> str | int | float | None:
    if not isinstance(source, (str, int, float, NoneType)):
        raise ValueError("write a number or a text")
    return source


class Integer(ScalarType):
    """The type of a whole number with a given number of bits."""

    python_type = "int"
    json_is_same = True

    def __init__(self, name: str, bits: int) -> None:
        self.name = name
        self.bits = bits
        is_signed = not name.startswith("u")
        self.lowest = -(1 << (bits - 1)) if is_signed else 0
        self.highest = (1 << (bits - is_signed)) - 1

    def default(self, source: object) -> object:
        plain = _plain(source)
        if isinstance(plain, (bool, float)):
            raise ValueError("not a whole number")
        whole = int(plain, 0) if isinstance(plain, str) else int(plain or 0)
        if not self.lowest <= whole <= self.highest:
            raise ValueError(f"out of range {self.lowest} … {self.highest}")
        return whole

    def to_json(self, value: Any) -> object:
        return value

    def from_json(self, source: Any) -> object:
        if type(source) is not int:
            found = repr(source) if type(source) is float else json_kind(source)
            raise ValueError(f"a whole number was expected, not {found}")
        if not self.lowest <= source <= self.highest:
            # As a float in the text, because digits without end have no place in a line.
            shown = source if abs(source) < 2**70 else f"{source.bit_length()} bits"
            raise ValueError(
                f"{shown} is out of range: {self.name} goes from {self.lowest} to {self.highest}"
            )
        return source


class Bool(ScalarType):
    """The type of a boolean: True or False."""

    name = python_type = "bool"
    json_is_same = True

    def default(self, source: object) -> object:
        if source is not None and not isinstance(source, bool) and source not in ("true", "false"):
            raise ValueError("write true or false")
        return source is True or source == "true"

    def to_json(self, value: Any) -> object:
        return value

    def from_json(self, source: Any) -> object:
        if type(source) is not bool:
            raise ValueError(f"true or false was expected, not {json_kind(source)}")
        return source


class Float64(ScalarType):
    """The type of a 64-bit float. In JSON, ``"NaN"``, ``"Infinity"`` and ``"-Infinity"`` are strings."""

    name = "float64"
    python_type = "float"

    def default(self, source: object) -> object:
        number = float(_plain(source) or 0)
        if not math.isfinite(number):
            raise ValueError("not finite")
        return number

    def to_json(self, value: Any) -> object:
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"

    def from_json(self, source: Any) -> object:
        try:
            if type(source) in (float, int):
                return float(source)
            if type(source) is str and source in _NOT_FINITE:
                return _NOT_FINITE[source]
        except OverflowError:
            raise ValueError("out of the range of float64") from None
        raise ValueError(f"a number was expected, not {json_kind(source)}")


def _json_text(source: Any) -> str:
    if type(source) is not str:
        raise ValueError(f"a string was expected, not {json_kind(source)}")
    return source


class UuidType(ScalarType):
    """The type of a UUID: 16 bytes; in JSON and definitions the 22 characters that Kafka prints."""

    name = "uuid"
    python_type = "bytes"

    def default(self, source: object) -> object:
        plain = _plain(source)
        return uuid_from_text(str(plain)) if plain else ZERO_UUID

    def to_json(self, value: Any) -> object:
        return uuid_to_text(value)

    def from_json(self, source: Any) -> object:
        return uuid_from_text(_json_text(source))


class String(ScalarType):
    """The type of a string."""

    name = "string"
    python_type = "str"
    can_be_null = True
    json_is_same = True

    def default(self, source: object) -> object:
        text = str(_plain(source) or "")
        text.encode()  # what has no UTF-8 is a ValueError
        return text

    def to_json(self, value: Any) -> object:
        return value

    def from_json(self, source: Any) -> object:
        return _json_text(source)


class Bytes(ScalarType):
    """The type of bytes whose contents the protocol does not define; base64 in JSON."""

    name = python_type = "bytes"
    can_be_null = True
    default_is_fixed = True

    def default(self, source: object) -> object:
        return b""

    def to_json(self, value: Any) -> object:
        data = b"".join(value) if isinstance(value, (list, tuple)) else value
        return binascii.b2a_base64(data, newline=False).decode("ascii")

    def from_json(self, source: Any) -> object:
        if type(source) is not str:
            raise ValueError(f"bytes in base64 were expected, not {json_kind(source)}")
        try:
            return binascii.a2b_base64(source.encode("ascii"), strict_mode=True)
        except ValueError as error:
            raise ValueError(f"no base64: {error}") from None


class RecordBatches(Bytes):
    """The type of record batches. Any object with a length can be encoded; decoding returns a memoryview."""

    name = "records"
    python_type = "Records"
    is_optional = True
    can_be_element = False

    def default(self, source: object) -> object:
        return None


INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}

RECORDS = RecordBatches()

SCALARS: dict[str, ScalarType] = {
    **{name: Integer(name, bits) for name, bits in INTEGER_BITS.items()},
    **{each.name: each for each in (Bool(), Float64(), UuidType(), String(), Bytes(), RECORDS)},
}
"""A dict from the name of a scalar type in definitions to the type."""
