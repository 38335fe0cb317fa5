"""The codecs of record batches, in every framing seen on the wire.

Memory is bounded: no more than `limit_bytes` is allocated, and not much more than the compressed bytes can
possibly hold. The codecs do not depend on the format of the data.

Writing: gzip members; snappy as xerial streams of 32 KiB blocks, as Java does; lz4 frames of independent 64
KiB blocks without checksums (FLG 0x60, BD 0x40), the only kind that Java reads; zstd frames with their
content size. Reading: several gzip members; raw snappy (librdkafka) and xerial streams, also several in a
row; lz4 frames with any flags, linked blocks included; zstd frames with or without a content size. The
checksum inside an lz4 frame's header is not verified: for magic 0 it is computed wrongly on purpose
(KAFKA-3160), and the batch has a checksum of its own.
"""

from __future__ import annotations

from enum import IntEnum
from types import ModuleType
from typing import TYPE_CHECKING

from penstock.errors import CorruptRecordError, EncodeError, UnpackLimitError

if TYPE_CHECKING:
    from typing_extensions import Buffer

# cramjam is imported by the functions that call it, and the module of a codec when it is first used: a broker
# starts without them.

_HEAD_BYTES = 8
"""The number of bytes that suffices to recognise any codec: the length of xerial's magic."""


GZIP_QUICK_LEVEL = 1


class CompressionCodec(IntEnum):
    """The compression codec of a batch, as its attributes have it in bits 0-2."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def from_name(cls, name: str | None) -> CompressionCodec:
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
        view = memoryview(data).cast("B")
        packed: bytes = _CODECS[codec].compress(view, level, broken_lz4_checksum) if codec else bytes(view)
        return packed
    except KeyError:
        raise EncodeError(f"unknown compression codec {codec}") from None
    except (ValueError, OverflowError, RuntimeError) as error:
        raise EncodeError(
            f"{CompressionCodec(codec).name.lower()} cannot compress at level {level}: {error}"
        ) from error


def quick_level(codec: int, size: int, quick_bytes: int) -> int | None:
    """Return the compression level for recompressing data that arrived compressed in `size` bytes.

    Gzip data of up to `quick_bytes` gets level 1, which takes a fifth to a tenth of the time of level 6 and
    up to a quarter more bytes. Otherwise the result is None, the codec's default level.
    """
    return GZIP_QUICK_LEVEL if codec == CompressionCodec.GZIP and size <= quick_bytes else None


def decompress(codec: int, data: Buffer, limit_bytes: int) -> memoryview:
    """Decompress `data`, in any of the codec's framings.

    Raises:
        CorruptRecordError: unknown codec, or broken data.
        UnpackLimitError: the result has more than `limit_bytes`; no memory is allocated for it.
    """
    view = memoryview(data).cast("B")
    if codec == CompressionCodec.NONE:
        return view
    if codec == CompressionCodec.GZIP:
        unpacked: memoryview = _CODECS[codec].decompress(view, max(limit_bytes, 0))
        return unpacked
    room = room_for(codec, view, limit_bytes)
    target = bytearray(room)
    return memoryview(target)[: decompress_into(codec, view, memoryview(target), limit_bytes)]


def room_for(codec: int, data: memoryview, limit_bytes: int) -> int:
    """Return the number of bytes to allocate to decompress `data`, at most `limit_bytes`.

    Raises:
        CorruptRecordError: unknown codec, or the framing is broken.
        UnpackLimitError: the framing of `data` announces more than `limit_bytes`.
    """
    size = decompressed_size_max(codec, data)
    if size <= limit_bytes:
        return size
    if limit_bytes <= 0 or codec == CompressionCodec.SNAPPY:  # the only one whose framing always has the size
        raise _too_large(codec, limit_bytes)
    return limit_bytes


def _too_large(codec: int, limit_bytes: int) -> UnpackLimitError:
    return UnpackLimitError(
        f"{CompressionCodec(codec).name.lower()} data are longer than {max(limit_bytes, 0)} bytes "
        "when decompressed"
    )


def begins_as(codec: int, data: memoryview) -> bool:
    """Return True if the first bytes of `data` can start data that is compressed in this codec."""
    begins: bool = _CODECS[codec].begins(bytes(data[:_HEAD_BYTES]), data)
    return begins


def decompressed_size_max(codec: int, data: memoryview) -> int:
    """Return the greatest size that the decompressed `data` can have, judged by its framing alone.

    This is a true upper bound for snappy, lz4 and zstd. For gzip, there is none: the result is the size that
    the last member states, which is right for data of a single member.

    Raises:
        CorruptRecordError: unknown codec, or the framing is broken.
    """
    try:
        size: int = _CODECS[codec].size_max(data) if codec else len(data)
        return size
    except KeyError:
        raise CorruptRecordError(f"unknown compression codec {codec}") from None
    except IndexError:
        raise CorruptRecordError(f"{CompressionCodec(codec).name.lower()} data are cut short") from None


def decompress_into(codec: int, data: memoryview, target: memoryview, limit_bytes: int = -1) -> int:
    """Decompress `data` to the beginning of `target`; return the number of bytes written.

    If `target` has `limit_bytes` bytes (-1: no limit), overflow raises UnpackLimitError.

    Raises:
        CorruptRecordError: unknown codec, broken data, or `target` is too small.
        UnpackLimitError: `target` has `limit_bytes` bytes, and the data may need more.
    """
    import cramjam

    try:
        size: int = _CODECS[codec].decompress_into(data, target) if codec else _copy(data, target)
        return size
    except KeyError:
        raise CorruptRecordError(f"unknown compression codec {codec}") from None
    except IndexError:
        raise CorruptRecordError(f"{CompressionCodec(codec).name.lower()} data are cut short") from None
    except (cramjam.DecompressionError, CorruptRecordError) as error:
        if limit_bytes == len(target) < decompressed_size_max(codec, data):
            raise _too_large(codec, limit_bytes) from None
        if isinstance(error, CorruptRecordError):
            raise
        raise CorruptRecordError(
            f"{CompressionCodec(codec).name.lower()} data are broken or longer than "
            f"{len(target)} bytes: {error}"
        ) from None


def _copy(data: memoryview, target: memoryview) -> int:
    if len(data) > len(target):
        raise CorruptRecordError(f"{len(data)} bytes do not fit into {len(target)}")
    target[: len(data)] = data
    return len(data)


class _Codecs(dict[int, ModuleType]):
    """The modules of the codecs by number, each imported on its first use."""

    def __missing__(self, codec: int) -> ModuleType:
        if codec == CompressionCodec.GZIP:
            from penstock.records.compression import gzip

            self[codec] = gzip
        elif codec == CompressionCodec.SNAPPY:
            from penstock.records.compression import snappy

            self[codec] = snappy
        elif codec == CompressionCodec.LZ4:
            from penstock.records.compression import lz4

            self[codec] = lz4
        elif codec == CompressionCodec.ZSTD:
            from penstock.records.compression import zstd

            self[codec] = zstd
        else:
            raise KeyError(codec)
        return self[codec]


_CODECS = _Codecs()
