"""Varints as in records: seven bits per byte, the least significant first, zig-zag for signed numbers.

Pure Python, for the row API and the broker; `kernels` has compiled versions.
"""

from __future__ import annotations

from penstock.errors import CorruptRecordError

SHORT_MAX = 1 << 13
"""The exclusive upper limit of the numbers whose encodings `short_varints` contains."""

TEN_BYTES = 70
"""The number of bits in a varint of ten bytes, the longest that a 64-bit number needs: 7 × 10."""


def encode_varint(number: int) -> bytes:
    """Return a signed number of up to 64 bits as a zig-zag varint."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_short: list[bytes] = []


def short_varints() -> list[bytes]:
    """Return a list of the varints for 0 to 8191; its last element (index -1) is the varint for -1."""
    if not _short:
        one_byte = bytes(range(0, 0x80, 2))
        lower = bytes(range(0x80, 0x100, 2))
        two_bytes = bytearray(2 * len(lower)) * 0x7F
        two_bytes[::2] = lower * 0x7F
        two_bytes[1::2] = b"".join(bytes((upper,)) * len(lower) for upper in range(1, 0x80))
        data = bytes(two_bytes)  # cut up: a call for each number would be felt when a broker starts
        _short.extend(one_byte[i : i + 1] for i in range(len(one_byte)))
        _short.extend([data[i : i + 2] for i in range(0, len(data), 2)])
        _short.append(encode_varint(-1))
    return _short


def read_unsigned(data: bytes | bytearray | memoryview, position: int, bits: int = 32) -> tuple[int, int]:
    """Read an unsigned varint of at most `bits` bits; return (number, next position).

    Raises:
        IndexError: the bytes end within the number.
        CorruptRecordError: the number has more than `bits` bits.
    """
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            raise CorruptRecordError(f"a varint of more than {bits} bits")
    if result >> bits:
        raise CorruptRecordError(f"a varint of more than {bits} bits")
    return result, position


def read_varint(data: bytes | bytearray | memoryview, position: int, bits: int = 32) -> tuple[int, int]:
    """Read a zig-zag varint; return (number, next position). Errors: as in `read_unsigned`."""
    result, position = read_unsigned(data, position, bits)
    return (result >> 1) ^ -(result & 1), position
