"""Zstandard frames in batches, with or without a content size.

Format: RFC 8878.
"""

from __future__ import annotations

from penstock.errors import CorruptRecordError
from penstock.records.compression.ratios import ZSTD_BLOCK_BYTES

# cramjam is imported by the functions that call it: a broker starts without it.

MAGIC = 0xFD2FB528
SKIPPABLE_MAGIC = 0x184D2A50

_RAW, _RLE, _COMPRESSED = 0, 1, 2


def compress(data: memoryview, level: int | None, _: bool) -> bytes:
    import cramjam

    return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))


def begins(head: bytes, _: memoryview) -> bool:
    """Return True if `head`, the first bytes of some data, can begin a zstd frame or a skippable frame."""
    magic = int.from_bytes(head[:4], "little")
    return magic == MAGIC or magic & ~0x0F == SKIPPABLE_MAGIC


def size_max(data: memoryview) -> int:
    """Return the maximum decompressed size that the frame and block headers allow (RFC 8878, 3.1.1)."""
    total = position = 0
    while position < len(data) or position == 0:
        magic = int.from_bytes(data[position : position + 4], "little")
        if magic & ~0x0F == SKIPPABLE_MAGIC:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            continue
        if magic != MAGIC:
            raise CorruptRecordError("no zstd frame: the magic number is missing")
        size, position = _frame_size(data, position)
        total += size
    return total


def _frame_size(data: memoryview, start: int) -> tuple[int, int]:
    """Return (greatest content size, position after the frame) of the frame at `start`."""
    flags = data[start + 4]
    single_segment = bool(flags & 0x20)
    position = start + 5 + (not single_segment) + (0, 1, 2, 4)[flags & 0x03]
    size_bytes = (int(single_segment), 2, 4, 8)[flags >> 6]
    announced = int.from_bytes(data[position : position + size_bytes], "little") + (
        256 if size_bytes == 2 else 0
    )
    position += size_bytes
    total = 0
    while True:
        if position + 3 > len(data):
            raise CorruptRecordError("zstd data are cut short")
        header = int.from_bytes(data[position : position + 3], "little")
        position += 3
        kind, size = header >> 1 & 0x03, header >> 3
        total += ZSTD_BLOCK_BYTES if kind == _COMPRESSED else size
        position += 1 if kind == _RLE else size
        if header & 0x01:
            break
    return (min(total, announced) if size_bytes else total), position + (4 if flags & 0x04 else 0)


def decompress_into(data: memoryview, target: memoryview) -> int:
    import cramjam

    return int(cramjam.zstd.decompress_into(data, target))
