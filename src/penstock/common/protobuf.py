"""The wire format of Protocol Buffers: read the fields of a message, and encode fields.

https://protobuf.dev/programming-guides/encoding/. This module has only field numbers and wire types;
callers give fields a meaning. Groups, which have been deprecated since 2008, are refused.
"""

from __future__ import annotations

import struct
import sys

from penstock.errors import PenstockError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

_FIELD_MAX = (1 << 29) - 1
_VARINT_BYTES_MAX = 10
_DOUBLE = struct.Struct("<d")


class ProtobufError(PenstockError):
    """The bytes are not a message in the wire format, or not a message of the expected type."""


class TooManyFieldsError(PenstockError):
    """A message has more fields than the reader's budget."""


class FieldBudget:
    """The number of fields that may be read of one payload, including all nested messages.

    A field takes at least two bytes: without a budget, the size of the payload is the limit.
    """

    __slots__ = ("left",)

    def __init__(self, fields_max: int = sys.maxsize) -> None:
        self.left = fields_max


class Fields:
    """The fields of one message, read from the front.

    After `advance` has returned True, `number` and `wire_type` are those of a field. The method for its type
    reads its value: the value of a varint is `integer`, other values are the bytes from `begin` to `end`.
    """

    __slots__ = ("_budget", "_data", "_end", "_position", "begin", "end", "integer", "number", "wire_type")

    def __init__(self, data: bytes, budget: FieldBudget, begin: int = 0, end: int | None = None) -> None:
        """Prepare to read the message in the bytes of `data` from `begin` to `end`."""
        self._data = data
        self._budget = budget
        self._position = begin
        self._end = len(data) if end is None else end
        self.number = self.wire_type = self.integer = 0
        self.begin = self.end = begin

    def advance(self) -> bool:
        """Read the next field; return False at the end of the message.

        Raises:
            ProtobufError: the bytes end inside a field, or are not a field.
            TooManyFieldsError: the budget is used up.
        """
        position = self._position
        if position == self._end:
            return False
        budget = self._budget
        if budget.left <= 0:
            raise TooManyFieldsError("more fields than are read of one message")
        budget.left -= 1
        key = self._data[position]
        if key < 0x80:
            self._position = position + 1
        else:
            key = self._varint()
        self.number, self.wire_type = number, wire_type = key >> 3, key & 7
        if not 1 <= number <= _FIELD_MAX:
            raise ProtobufError(f"{number} is no number of a field")
        if wire_type == VARINT:
            self.integer = self._varint()
            return True
        if wire_type == LENGTH:
            size = self._varint()
        elif wire_type == FIXED64:
            size = 8
        elif wire_type == FIXED32:
            size = 4
        else:
            raise ProtobufError(f"field {number} has wire type {wire_type}, which is out of use")
        self.begin = self._position
        self.end = self._position = self.begin + size
        if self.end > self._end:
            raise ProtobufError(f"field {number} ends {self.end - self._end} bytes too late")
        return True

    def _varint(self) -> int:
        data, position = self._data, self._position
        found = shift = 0
        for byte in data[position : min(position + _VARINT_BYTES_MAX, self._end)]:
            position += 1
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                self._position = position
                return found & 0xFFFF_FFFF_FFFF_FFFF
            shift += 7
        raise ProtobufError("the bytes end in the middle of a number, or it has more than 64 bits")

    # --- values ------------------------------------------------------------------------------------------

    def message(self) -> Fields:
        """Return a reader for the nested message in this field.

        Raises:
            ProtobufError: the field has another wire type.
        """
        self._check(LENGTH)
        return Fields(self._data, self._budget, self.begin, self.end)

    def data(self) -> bytes:
        """Return the bytes of this field.

        Raises:
            ProtobufError: the field has another wire type.
        """
        self._check(LENGTH)
        return self._data[self.begin : self.end]

    def text(self) -> str:
        """Return the text of this field.

        Raises:
            ProtobufError: the field has another wire type, or is not UTF-8.
        """
        self._check(LENGTH)
        try:
            return str(self._data[self.begin : self.end], "utf-8")
        except UnicodeDecodeError as error:
            raise ProtobufError(f"field {self.number} is not UTF-8: {error.reason}") from None

    def fixed(self) -> int:
        """Return the fixed 64-bit integer of this field, as unsigned.

        Raises:
            ProtobufError: the field has another wire type.
        """
        self._check(FIXED64)
        return int.from_bytes(self._data[self.begin : self.end], "little")

    def signed_fixed(self) -> int:
        """Return the fixed 64-bit integer of this field, as signed.

        Raises:
            ProtobufError: the field has another wire type.
        """
        return _signed(self.fixed())

    def double(self) -> float:
        """Return the 64-bit floating-point number of this field.

        Raises:
            ProtobufError: the field has another wire type.
        """
        self._check(FIXED64)
        value: float = _DOUBLE.unpack_from(self._data, self.begin)[0]
        return value

    def varint(self) -> int:
        """Return the varint of this field, as unsigned.

        Raises:
            ProtobufError: the field has another wire type.
        """
        self._check(VARINT)
        return self.integer

    def signed(self) -> int:
        """Return the varint of this field, as signed (int64).

        Raises:
            ProtobufError: the field has another wire type.
        """
        return _signed(self.varint())

    def _check(self, wire_type: int) -> None:
        if self.wire_type != wire_type:
            raise ProtobufError(f"field {self.number} has wire type {self.wire_type}, not {wire_type}")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


_ONE_BYTE = [bytes([value]) for value in range(0x80)]


def varint_bytes(value: int) -> bytes:
    """Return a number of at most 64 bits as a varint."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    value &= 0xFFFF_FFFF_FFFF_FFFF
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def length_field(number: int, data: bytes) -> bytes:
    """Return the encoding of a field that holds bytes, a text or a message."""
    return varint_bytes(number << 3 | LENGTH) + varint_bytes(len(data)) + data


def varint_field(number: int, value: int) -> bytes:
    """Return the encoding of a field that holds a varint."""
    return varint_bytes(number << 3 | VARINT) + varint_bytes(value)


def fixed64_field(number: int, value: int) -> bytes:
    """Return the encoding of a field that holds a fixed 64-bit integer, unsigned or signed."""
    return varint_bytes(number << 3 | FIXED64) + (value & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little")


def double_field(number: int, value: float) -> bytes:
    """Return the encoding of a field that holds a 64-bit floating-point number."""
    return varint_bytes(number << 3 | FIXED64) + _DOUBLE.pack(value)
