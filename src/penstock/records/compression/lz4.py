"""LZ4 frames in batches: written with independent blocks, read with any flags.

Format: lz4_Frame_format.md of the LZ4 project. The header's checksum is not verified: for magic 0 it is
computed wrongly on purpose (KAFKA-3160), and a batch has a checksum of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import CorruptRecordError
from penstock.records.compression.ratios import LZ4_RATIO_MAX

# cramjam is imported by the functions that call it: a broker starts without it.

MAGIC = b"\x04\x22\x4d\x18"
_HEADER = MAGIC + b"\x60\x40\x82"
_HEADER_BROKEN = MAGIC + b"\x60\x40\x1a"
_BLOCK_BYTES = 64 * 1024
_STORED = 1 << 31
_HC_LEVEL_MIN = 3


def compress(data: memoryview, level: int | None, broken_checksum: bool) -> bytes:
    import cramjam

    out = [_HEADER_BROKEN if broken_checksum else _HEADER]
    block_compress = cramjam.lz4.compress_block
    for position in range(0, len(data), _BLOCK_BYTES):
        block = data[position : position + _BLOCK_BYTES]
        if level is None or level < _HC_LEVEL_MIN:
            small = bytes(block_compress(block, store_size=False))
        else:
            small = bytes(block_compress(block, store_size=False, mode="high_compression", compression=level))
        if len(small) < len(block):
            out.append(len(small).to_bytes(4, "little"))
            out.append(small)
        else:
            out.append((len(block) | _STORED).to_bytes(4, "little"))
            out.append(bytes(block))
    out.append(b"\0\0\0\0")
    return b"".join(out)


class _Frame:
    """The positions of the blocks of one lz4 frame. The frame's checksums and content size are not read."""

    __slots__ = ("block_size_max", "blocks", "end", "linked")

    def __init__(self, data: memoryview, start: int) -> None:
        if data[start : start + 4] != MAGIC:
            raise CorruptRecordError("no lz4 frame: the magic number is missing")
        flags, descriptor = data[start + 4], data[start + 5]
        if flags >> 6 != 1 or flags & 0x01:
            raise CorruptRecordError(f"an lz4 frame with flags {flags:#04x}: other version, or a dictionary")
        size_code = descriptor >> 4 & 0x07
        if size_code < 4:
            raise CorruptRecordError(f"an lz4 frame with block size code {size_code}")
        self.linked = not flags & 0x20
        self.block_size_max = 1 << (8 + 2 * size_code)
        self.blocks: list[tuple[int, int, bool]] = []
        position = start + 7 + (8 if flags & 0x08 else 0)
        trailer = 4 if flags & 0x10 else 0
        while True:
            if position + 4 > len(data):
                raise CorruptRecordError("lz4 data are cut short")
            word = int.from_bytes(data[position : position + 4], "little")
            position += 4
            if not word:
                break
            end = position + (word & ~_STORED)
            if end + trailer > len(data) or end - position > self.block_size_max:
                raise CorruptRecordError(
                    f"an lz4 block of {end - position} bytes, {len(data) - position} are left"
                )
            self.blocks.append((position, end, bool(word & _STORED)))
            position = end + trailer
        self.end = position + (4 if flags & 0x04 else 0)
        if self.end > len(data):
            raise CorruptRecordError("lz4 data are cut short")

    def size_max(self) -> int:
        return sum(
            end - start if stored else min(self.block_size_max, LZ4_RATIO_MAX * (end - start))
            for start, end, stored in self.blocks
        )


def _frames(data: memoryview) -> Iterator[tuple[int, _Frame]]:
    start = 0
    while start < len(data) or start == 0:
        frame = _Frame(data, start)
        yield start, frame
        start = frame.end


def begins(head: bytes, _: memoryview) -> bool:
    """Return True if `head`, the first bytes of some data, is the beginning of an lz4 frame."""
    return head.startswith(MAGIC)


def size_max(data: memoryview) -> int:
    return sum(frame.size_max() for _, frame in _frames(data))


def decompress_into(data: memoryview, target: memoryview) -> int:
    import cramjam

    filled = 0
    block_decompress = cramjam.lz4.decompress_block_into
    for start, frame in _frames(data):
        if frame.linked:
            # Java refuses linked blocks, but other people's libraries write them by default.
            filled += cramjam.lz4.decompress_into(data[start : frame.end], target[filled:])
            continue
        for position, end, stored in frame.blocks:
            if stored:
                size = end - position
                if size > len(target) - filled:
                    raise CorruptRecordError(f"{size} bytes do not fit into {len(target) - filled}")
                target[filled : filled + size] = data[position:end]
                filled += size
            else:
                filled += block_decompress(data[position:end], target[filled : filled + frame.block_size_max])
    return filled
