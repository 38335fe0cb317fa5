"""Snappy in batches: written as a xerial stream, read as a xerial stream or as one raw block.

Format: snappy's format_description.txt; the framing is that of xerial's snappy-java, which Kafka uses.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import CorruptRecordError
from penstock.records.compression.ratios import SNAPPY_RATIO_MAX
from penstock.records.format.varint import read_unsigned

# cramjam is imported by the functions that call it: a broker starts without it.

XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER = XERIAL_MAGIC + b"\0\0\0\1\0\0\0\1"
_XERIAL_BLOCK_BYTES = 32 * 1024


def compress(data: memoryview, _level: int | None, _: bool) -> bytes:
    import cramjam

    out = [_XERIAL_HEADER]
    for position in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[position : position + _XERIAL_BLOCK_BYTES]))
        out.append(len(block).to_bytes(4, "big"))
        out.append(block)
    return b"".join(out)


def _blocks(data: memoryview) -> Iterator[memoryview]:
    """Yield the raw blocks of one or several xerial streams. If `data` is a raw block, yield all of it."""
    if data[:8] != XERIAL_MAGIC:
        yield data
        return
    position = 0
    while position < len(data):
        if data[position : position + 8] == XERIAL_MAGIC:
            position += 16
            continue
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if size > len(data) - position:
            raise CorruptRecordError(f"a snappy block of {size} bytes, {len(data) - position} are left")
        yield data[position : position + size]
        position += size


def block_size(block: memoryview) -> int:
    """Return the decompressed size of a raw block, from the unsigned varint at the block's beginning."""
    try:
        size, _ = read_unsigned(block, 0)
    except CorruptRecordError:
        raise CorruptRecordError("a snappy block whose size is no 32-bit number") from None
    if size > SNAPPY_RATIO_MAX * len(block):
        raise CorruptRecordError(f"a snappy block of {len(block)} bytes cannot hold {size}")
    return size


def begins(head: bytes, data: memoryview) -> bool:
    """Return True if `head`, the first bytes of `data`, can start a xerial stream or a raw block."""
    if head == XERIAL_MAGIC:
        return True
    try:
        return block_size(data) >= 0
    except (IndexError, CorruptRecordError):
        return False


def size_max(data: memoryview) -> int:
    return sum(map(block_size, _blocks(data)))


def decompress_into(data: memoryview, target: memoryview) -> int:
    import cramjam

    end = 0
    for block in _blocks(data):
        size = block_size(block)
        if size > len(target) - end:
            raise CorruptRecordError(f"snappy data are longer than {len(target)} bytes")
        if size:
            end += cramjam.snappy.decompress_raw_into(block, target[end : end + size])
    return end
