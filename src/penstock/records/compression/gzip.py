"""Gzip in batches: written as one member, read as one or several.

Format: RFC 1952.
"""

from __future__ import annotations

import zlib

from penstock.errors import CorruptRecordError, UnpackLimitError
from penstock.records.compression.ratios import GZIP_RATIO_MAX

# cramjam is imported by the functions that call it: a broker starts without it.

MAGIC = b"\x1f\x8b\x08"

_PIECE_BYTES = 16 * 1024
"""The size in bytes of the input chunks for zlib. At the end of a member, zlib copies the unused part of
the chunk: small chunks keep that copy small."""


def compress(data: memoryview, level: int | None, _: bool) -> bytes:
    import cramjam

    return bytes(cramjam.gzip.compress(data, level=6 if level is None or level < 0 else level))


def begins(head: bytes, _: memoryview) -> bool:
    """Return True if `head`, the first bytes of some data, is the beginning of gzip data."""
    return head.startswith(MAGIC)


def size_max(data: memoryview) -> int:
    """Return the decompressed size in the last member's trailer, or gzip's maximum for `data` if less.

    The trailer has the size modulo 4 GiB.
    """
    if len(data) < 18:
        raise CorruptRecordError(f"a gzip member has at least 18 bytes, not {len(data)}")
    return min(int.from_bytes(data[-4:], "little"), GZIP_RATIO_MAX * len(data))


def decompress_into(data: memoryview, target: memoryview) -> int:
    import cramjam

    return int(cramjam.gzip.decompress_into(data, target))


def decompress(data: memoryview, limit_bytes: int) -> memoryview:
    """Decompress gzip data of one or several members, at most `limit_bytes`.

    A single member is decompressed in one call if the size in its trailer is correct; otherwise zlib
    decompresses one member after another.
    """
    import cramjam

    size = size_max(data)
    if 0 < size <= limit_bytes:
        target = bytearray(size)
        try:
            if decompress_into(data, memoryview(target)) == size:
                return memoryview(target)
        except cramjam.DecompressionError:
            pass  # several members, something behind them, or broken: zlib finds out
    out = bytearray()
    position = 0
    try:
        while position < len(data):
            if not data[position]:
                position += 1  # padding behind a member
                continue
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                piece = data[position : position + _PIECE_BYTES]
                if not piece:
                    raise CorruptRecordError("gzip data are cut short")
                position += len(piece)
                out += member.decompress(piece, limit_bytes - len(out) + 1)
                if len(out) > limit_bytes:
                    raise UnpackLimitError(f"gzip data are longer than {limit_bytes} bytes when decompressed")
            position -= len(member.unused_data)
    except zlib.error as error:
        raise CorruptRecordError(f"gzip data are broken: {error}") from None
    return memoryview(out)
