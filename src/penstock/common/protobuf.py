"""The wire format of Protocol Buffers: fields of a message one by one, and the bytes of fields.

https://protobuf.dev/programming-guides/encoding/. Numbers of fields and wire types only: what a field means
is known where it is read. Groups, which have been out of use since 2008, are refused.
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
    """The bytes are no message in the wire format, or not the one that was expected."""


class TooManyFieldsError(PenstockError):
    """There are more fields than the reader may look at."""


class FieldBudget:
    """How many fields of one payload, of all nested messages together, are read at most.

    A field takes two bytes at least: without a number of its own, the size of the payload is the limit.
    """

    __slots__ = ("left",)

    def __init__(self, fields_max: int = sys.maxsize) -> None:
        self.left = fields_max


class Fields:
    """The fields of one message, read from the front.

    After `advance` has returned true, `number` and `wire_type` are those of a field. What it holds is read by
    the method for its type: `integer` is a varint, other values lie between `begin` and `end`.
    """

    __slots__ = ("_budget", "_data", "_end", "_position", "begin", "end", "integer", "number", "wire_type")

    def __init__(self, data: bytes, budget: FieldBudget, begin: int = 0, end: int | None = None) -> None:
        """The message lies in `data` from `begin` to `end`."""
        self._data = data
        self._budget = budget
        self._position = begin
        self._end = len(data) if end is None else end
        self.number = self.wire_type = self.integer = 0
        self.begin = self.end = begin

    def advance(self) -> bool:
        """Read the next field; False at the end.

        Raises:
            ProtobufError: the bytes end inside a field, or are none.
            TooManyFieldsError: the budget is spent.
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
        """Return the fields of the message that this field holds.

        Raises:
            ProtobufError: the field holds none.
        """
        self._check(LENGTH)
        return Fields(self._data, self._budget, self.begin, self.end)

    def data(self) -> bytes:
        """Return the bytes of this field.

        Raises:
            ProtobufError: it has another wire type.
        """
        self._check(LENGTH)
        return self._data[self.begin : self.end]

    def text(self) -> str:
        """Return the text of this field.

        Raises:
            ProtobufError: it is no text, or not UTF-8.
        """
        self._check(LENGTH)
        try:
            return str(self._data[self.begin : self.end], "utf-8")
        except UnicodeDecodeError as error:
            raise ProtobufError(f"field {self.number} is not UTF-8: {error.reason}") from None

    def fixed(self) -> int:
        """Return the fixed number of 64 bits of this field, as unsigned.

        Raises:
            ProtobufError: it has another wire type.
        """
        self._check(FIXED64)
        return int.from_bytes(self._data[self.begin : self.end], "little")

    def signed_fixed(self) -> int:
        """Return the fixed number of 64 bits of this field, as signed.

        Raises:
            ProtobufError: it has another wire type.
        """
        return _signed(self.fixed())

    def double(self) -> float:
        """Return the floating-point number of 64 bits of this field.

        Raises:
            ProtobufError: it has another wire type.
        """
        self._check(FIXED64)
        value: float = _DOUBLE.unpack_from(self._data, self.begin)[0]
        return value

    def varint(self) -> int:
        """Return the varint of this field, as unsigned.

        Raises:
            ProtobufError: it has another wire type.
        """
        self._check(VARINT)
        return self.integer

    def signed(self) -> int:
        """Return the varint of this field, as signed (int64).

        Raises:
            ProtobufError: it has another wire type.
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
    """Return a field with bytes, a text or a message."""
    return varint_bytes(number << 3 | LENGTH) + varint_bytes(len(data)) + data


def varint_field(number: int, value: int) -> bytes:
    """Return a field with a varint."""
    return varint_bytes(number << 3 | VARINT) + varint_bytes(value)


def fixed64_field(number: int, value: int) -> bytes:
    """Return a field with a fixed number of 64 bits, unsigned or signed."""
    return varint_bytes(number << 3 | FIXED64) + (value & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little")


def double_field(number: int, value: float) -> bytes:
    """Return a field with a floating-point number of 64 bits."""
    return varint_bytes(number << 3 | FIXED64) + _DOUBLE.pack(value)
