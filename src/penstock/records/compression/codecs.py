"""The codecs of record batches, in every framing seen on the wire.

Promises bounded memory: nothing is allocated beyond `limit_bytes`, nor far beyond what the
compressed bytes can possibly hold. Does not know what it compresses.

Writing: gzip members; snappy as xerial streams of 32 KiB blocks, as Java does; lz4 frames of
independent 64 KiB blocks without checksums (FLG 0x60, BD 0x40), which is all that Java reads;
zstd frames with their content size.
Reading: several gzip members; raw snappy (librdkafka) and xerial streams, also several in a row; lz4
frames with any flags, linked blocks included; zstd frames with or without a content size.
The checksum inside an lz4 frame's header is not looked at: for magic 0 it is computed wrongly on
purpose (KAFKA-3160), and the batch has a checksum of its own.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING

from penstock.errors import CorruptRecordError, EncodeError, UnpackLimitError

if TYPE_CHECKING:
    from typing_extensions import Buffer

# cramjam is imported by the functions that call it: a broker starts without it.


class Codec(IntEnum):
    """How a batch is compressed: bits 0-2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def from_name(cls, name: str | None) -> Codec:
        """Return the codec that Kafka's configuration calls `name` ("none", "gzip", "snappy", ...).

        Raises:
            ValueError: no such codec.
        """
        try:
            return cls[(name or "none").upper()]
        except KeyError:
            raise ValueError(f"no codec is called {name!r}; known: none, gzip, snappy, lz4, zstd") from None


def compress(
    codec: int, data: Buffer, level: int | None = None, *, broken_lz4_checksum: bool = False
) -> bytes:
    """Compress `data`.

    `level` is the codec's own scale: gzip 0-9 (default 6), zstd 1-22 (default 3), lz4 from 3 on its
    slower high-compression mode (default the fast one); snappy has none.
    `broken_lz4_checksum` writes the frame header that messages of magic 0 need.

    Raises:
        EncodeError: no such codec or level.
    """
    try:
        return _COMPRESSORS[codec](memoryview(data).cast("B"), level, broken_lz4_checksum)
    except KeyError:
        raise EncodeError(f"unknown compression codec {codec}") from None
    except (ValueError, OverflowError, RuntimeError) as error:
        raise EncodeError(f"{Codec(codec).name.lower()} cannot compress at level {level}: {error}") from error


def decompress(codec: int, data: Buffer, limit_bytes: int) -> memoryview:
    """Decompress `data`, in whichever framing of the codec it comes.

    Raises:
        CorruptRecordError: unknown codec, or broken data.
        UnpackLimitError: more than `limit_bytes` come out; they are not allocated.
    """
    view = memoryview(data).cast("B")
    if codec == Codec.NONE:
        return view
    if codec == Codec.GZIP:
        return _gunzip(view, max(limit_bytes, 0))
    room = room_for(codec, view, limit_bytes)
    target = bytearray(room)
    return memoryview(target)[: decompress_into(codec, view, memoryview(target), limit_bytes)]


def room_for(codec: int, data: memoryview, limit_bytes: int) -> int:
    """Return the bytes to allocate for what comes out of `data`: the limit, where it may be more.

    Raises:
        CorruptRecordError: unknown codec, or the framing is broken.
        UnpackLimitError: `data` say themselves that more than `limit_bytes` come out.
    """
    size = decompressed_size_max(codec, data)
    if size <= limit_bytes:
        return size
    if limit_bytes <= 0 or codec == Codec.SNAPPY:  # the only one whose framing always tells the size
        raise _too_large(codec, limit_bytes)
    return limit_bytes


def _too_large(codec: int, limit_bytes: int) -> UnpackLimitError:
    return UnpackLimitError(
        f"{Codec(codec).name.lower()} data are longer than {max(limit_bytes, 0)} bytes when decompressed"
    )


def begins_as(codec: int, data: memoryview) -> bool:
    """Whether `data` begin as everything in that codec does. Looks at a few bytes."""
    head = bytes(data[:_HEAD_BYTES])
    if codec == Codec.GZIP:
        return head.startswith(_GZIP_MAGIC)
    if codec == Codec.LZ4:
        return head.startswith(_LZ4_MAGIC)
    if codec == Codec.ZSTD:
        magic = int.from_bytes(head[:4], "little")
        return magic == _ZSTD_MAGIC or magic & ~0x0F == _ZSTD_SKIPPABLE
    if head == _XERIAL_MAGIC:
        return True
    try:
        return _snappy_block_size(data) >= 0
    except (IndexError, CorruptRecordError):
        return False


def decompressed_size_max(codec: int, data: memoryview) -> int:
    """Return how many bytes can come out of `data` at most, judged by its framing alone.

    A true upper bound for snappy, lz4 and zstd. Gzip has none: its value is what the last member
    claims, which is right for a single one.

    Raises:
        CorruptRecordError: unknown codec, or the framing is broken.
    """
    try:
        return _SIZES[codec](data)
    except KeyError:
        raise CorruptRecordError(f"unknown compression codec {codec}") from None
    except IndexError:
        raise CorruptRecordError(f"{Codec(codec).name.lower()} data are cut short") from None


def decompress_into(codec: int, data: memoryview, target: memoryview, limit_bytes: int = -1) -> int:
    """Decompress `data` to the beginning of `target` and return how many bytes came out.

    A `target` of `limit_bytes` bytes (-1: there is no such limit) is as large as it may be.

    Raises:
        CorruptRecordError: unknown codec, broken data, or `target` is too small.
        UnpackLimitError: `target` has `limit_bytes` bytes, and more may come out.
    """
    import cramjam

    try:
        return _DECOMPRESSORS[codec](data, target)
    except KeyError:
        raise CorruptRecordError(f"unknown compression codec {codec}") from None
    except IndexError:
        raise CorruptRecordError(f"{Codec(codec).name.lower()} data are cut short") from None
    except (cramjam.DecompressionError, CorruptRecordError) as error:
        if limit_bytes == len(target) < decompressed_size_max(codec, data):
            raise _too_large(codec, limit_bytes) from None
        if isinstance(error, CorruptRecordError):
            raise
        raise CorruptRecordError(
            f"{Codec(codec).name.lower()} data are broken or longer than {len(target)} bytes: {error}"
        ) from None


# --- none ---------------------------------------------------------------------------------------------


def _copy(data: memoryview, target: memoryview) -> int:
    if len(data) > len(target):
        raise CorruptRecordError(f"{len(data)} bytes do not fit into {len(target)}")
    target[: len(data)] = data
    return len(data)


# --- gzip ---------------------------------------------------------------------------------------------

_GZIP_MAGIC = b"\x1f\x8b\x08"
_GZIP_RATIO_MAX = 1032
"""Deflate cannot do better than 258 bytes for two bits."""

_GZIP_PIECE_BYTES = 16 * 1024
"""zlib copies what lies behind a member out of the piece it was given: many small members, small copies."""


def _gzip(data: memoryview, level: int | None, _: bool) -> bytes:
    import cramjam

    return bytes(cramjam.gzip.compress(data, level=6 if level is None or level < 0 else level))


def _gzip_size(data: memoryview) -> int:
    """Return the size that the last member claims (modulo 4 GiB), as far as it is possible at all."""
    if len(data) < 18:
        raise CorruptRecordError(f"a gzip member has at least 18 bytes, not {len(data)}")
    return min(int.from_bytes(data[-4:], "little"), _GZIP_RATIO_MAX * len(data))


def _gunzip_into(data: memoryview, target: memoryview) -> int:
    import cramjam

    return int(cramjam.gzip.decompress_into(data, target))


def _gunzip(data: memoryview, limit_bytes: int) -> memoryview:
    """Try the one-member case in one go, then member by member as zlib streams them."""
    import cramjam

    size = _gzip_size(data)
    if 0 < size <= limit_bytes:
        target = bytearray(size)
        try:
            if _gunzip_into(data, memoryview(target)) == size:
                return memoryview(target)
        except cramjam.DecompressionError:
            pass  # several members, something behind them, or broken: zlib will tell
    out = bytearray()
    position = 0
    try:
        while position < len(data):
            if not data[position]:
                position += 1  # padding behind a member
                continue
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                piece = data[position : position + _GZIP_PIECE_BYTES]
                if not piece:
                    raise CorruptRecordError("gzip data are cut short")
                position += len(piece)
                out += member.decompress(piece, limit_bytes - len(out) + 1)
                if len(out) > limit_bytes:
                    raise _too_large(Codec.GZIP, limit_bytes)
            position -= len(member.unused_data)
    except zlib.error as error:
        raise CorruptRecordError(f"gzip data are broken: {error}") from None
    return memoryview(out)


# --- snappy -------------------------------------------------------------------------------------------

_HEAD_BYTES = 8
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\0\0\0\1\0\0\0\1"
_XERIAL_BLOCK_BYTES = 32 * 1024
_SNAPPY_RATIO_MAX = 22
"""A copy of 64 bytes takes three."""


def _snappy(data: memoryview, _level: int | None, _: bool) -> bytes:
    import cramjam

    out = [_XERIAL_HEADER]
    for position in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[position : position + _XERIAL_BLOCK_BYTES]))
        out.append(len(block).to_bytes(4, "big"))
        out.append(block)
    return b"".join(out)


def _snappy_blocks(data: memoryview) -> Iterator[memoryview]:
    """Yield the raw blocks of a xerial stream, or of several in a row; a raw block is its own only one."""
    if data[:8] != _XERIAL_MAGIC:
        yield data
        return
    position = 0
    while position < len(data):
        if data[position : position + 8] == _XERIAL_MAGIC:
            position += 16
            continue
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if size > len(data) - position:
            raise CorruptRecordError(f"a snappy block of {size} bytes, {len(data) - position} are left")
        yield data[position : position + size]
        position += size


def _snappy_block_size(block: memoryview) -> int:
    """Return the decompressed size that a raw block announces: an unsigned varint in front."""
    size = shift = position = 0
    while True:
        byte = block[position]
        position += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise CorruptRecordError("a snappy block whose size is no 32-bit number")
    if size > _SNAPPY_RATIO_MAX * len(block):
        raise CorruptRecordError(f"a snappy block of {len(block)} bytes cannot hold {size}")
    return size


def _snappy_size(data: memoryview) -> int:
    return sum(map(_snappy_block_size, _snappy_blocks(data)))


def _unsnappy_into(data: memoryview, target: memoryview) -> int:
    import cramjam

    end = 0
    for block in _snappy_blocks(data):
        size = _snappy_block_size(block)
        if size > len(target) - end:
            raise CorruptRecordError(f"snappy data are longer than {len(target)} bytes")
        if size:
            end += cramjam.snappy.decompress_raw_into(block, target[end : end + size])
    return end


# --- lz4 ----------------------------------------------------------------------------------------------

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_HEADER = _LZ4_MAGIC + b"\x60\x40\x82"
_LZ4_HEADER_BROKEN = _LZ4_MAGIC + b"\x60\x40\x1a"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 1 << 31
_LZ4_RATIO_MAX = 255
_LZ4_HC_LEVEL_MIN = 3


def _lz4(data: memoryview, level: int | None, broken_checksum: bool) -> bytes:
    import cramjam

    out = [_LZ4_HEADER_BROKEN if broken_checksum else _LZ4_HEADER]
    block_compress = cramjam.lz4.compress_block
    for position in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[position : position + _LZ4_BLOCK_BYTES]
        if level is None or level < _LZ4_HC_LEVEL_MIN:
            small = bytes(block_compress(block, store_size=False))
        else:
            small = bytes(block_compress(block, store_size=False, mode="high_compression", compression=level))
        if len(small) < len(block):
            out.append(len(small).to_bytes(4, "little"))
            out.append(small)
        else:
            out.append((len(block) | _LZ4_STORED).to_bytes(4, "little"))
            out.append(bytes(block))
    out.append(b"\0\0\0\0")
    return b"".join(out)


class _Lz4Frame:
    """Where the blocks of one lz4 frame lie. Skips checksums and the content size unread."""

    __slots__ = ("block_size_max", "blocks", "end", "linked")

    def __init__(self, data: memoryview, start: int) -> None:
        if data[start : start + 4] != _LZ4_MAGIC:
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
            end = position + (word & ~_LZ4_STORED)
            if end + trailer > len(data) or end - position > self.block_size_max:
                raise CorruptRecordError(
                    f"an lz4 block of {end - position} bytes, {len(data) - position} are left"
                )
            self.blocks.append((position, end, bool(word & _LZ4_STORED)))
            position = end + trailer
        self.end = position + (4 if flags & 0x04 else 0)
        if self.end > len(data):
            raise CorruptRecordError("lz4 data are cut short")

    def size_max(self) -> int:
        return sum(
            end - start if stored else min(self.block_size_max, _LZ4_RATIO_MAX * (end - start))
            for start, end, stored in self.blocks
        )


def _lz4_frames(data: memoryview) -> Iterator[tuple[int, _Lz4Frame]]:
    start = 0
    while start < len(data) or start == 0:
        frame = _Lz4Frame(data, start)
        yield start, frame
        start = frame.end


def _lz4_size(data: memoryview) -> int:
    return sum(frame.size_max() for _, frame in _lz4_frames(data))


def _unlz4_into(data: memoryview, target: memoryview) -> int:
    import cramjam

    filled = 0
    block_decompress = cramjam.lz4.decompress_block_into
    for start, frame in _lz4_frames(data):
        if frame.linked:
            # Java refuses linked blocks, but other people's libraries write them by default.
            filled += cramjam.lz4.decompress_into(data[start : frame.end], target[filled:])
            continue
        for position, end, stored in frame.blocks:
            if stored:
                filled += _copy(data[position:end], target[filled:])
            else:
                filled += block_decompress(data[position:end], target[filled : filled + frame.block_size_max])
    return filled


# --- zstd ---------------------------------------------------------------------------------------------

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50
_ZSTD_BLOCK_BYTES = 128 * 1024
_ZSTD_RAW, _ZSTD_RLE, _ZSTD_COMPRESSED = 0, 1, 2


def _zstd(data: memoryview, level: int | None, _: bool) -> bytes:
    import cramjam

    return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))


def _zstd_size(data: memoryview) -> int:
    """Walk the headers of all frames and blocks (RFC 8878, 3.1.1) and add up what each can hold."""
    total = position = 0
    while position < len(data) or position == 0:
        magic = int.from_bytes(data[position : position + 4], "little")
        if magic & ~0x0F == _ZSTD_SKIPPABLE:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            continue
        if magic != _ZSTD_MAGIC:
            raise CorruptRecordError("no zstd frame: the magic number is missing")
        size, position = _zstd_frame_size(data, position)
        total += size
    return total


def _zstd_frame_size(data: memoryview, start: int) -> tuple[int, int]:
    """Return (largest possible content, position behind the frame)."""
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
        total += _ZSTD_BLOCK_BYTES if kind == _ZSTD_COMPRESSED else size
        position += 1 if kind == _ZSTD_RLE else size
        if header & 0x01:
            break
    return (min(total, announced) if size_bytes else total), position + (4 if flags & 0x04 else 0)


def _unzstd_into(data: memoryview, target: memoryview) -> int:
    import cramjam

    return int(cramjam.zstd.decompress_into(data, target))


_COMPRESSORS: dict[int, Callable[[memoryview, int | None, bool], bytes]] = {
    Codec.NONE: lambda data, _level, _broken: bytes(data),
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_DECOMPRESSORS: dict[int, Callable[[memoryview, memoryview], int]] = {
    Codec.NONE: _copy,
    Codec.GZIP: _gunzip_into,
    Codec.SNAPPY: _unsnappy_into,
    Codec.LZ4: _unlz4_into,
    Codec.ZSTD: _unzstd_into,
}
_SIZES: dict[int, Callable[[memoryview], int]] = {
    Codec.NONE: len,
    Codec.GZIP: _gzip_size,
    Codec.SNAPPY: _snappy_size,
    Codec.LZ4: _lz4_size,
    Codec.ZSTD: _zstd_size,
}
