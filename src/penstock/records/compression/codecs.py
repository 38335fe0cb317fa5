"""The codecs of record batches, in every framing seen on the wire, and limits of decompressed sizes.

Memory is bounded: at most `limit_bytes` is allocated, and not much more than the compressed bytes can
decompress to. A few kilobytes can hold gigabytes, and a gigabyte hundreds of millions of records: code that
decompresses foreign data does it within an `UnpackBudget`, which raises `UnpackLimitError` before more is
allocated. The codecs do not depend on the format of the data.

Writing: gzip members; snappy as xerial streams of 32 KiB blocks, as Java does; lz4 frames of independent 64
KiB blocks without checksums (FLG 0x60, BD 0x40), the only kind that Java reads; zstd frames with their
content size. Reading: several gzip members; raw snappy (librdkafka) and xerial streams, also several in a
row; lz4 frames with any flags, linked blocks included; zstd frames with or without a content size. The
checksum inside an lz4 frame's header is not verified: for magic 0 it is computed wrongly on purpose
(KAFKA-3160), and the batch has a checksum of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import CorruptRecordError, EncodeError, UnpackLimitError

if TYPE_CHECKING:
    from typing_extensions import Buffer

# cramjam is imported by the functions that call it, and the module of a codec when it is first used: a broker
# starts without them.

_HEAD_BYTES = 8
"""The number of bytes that is enough to recognise any codec: the length of xerial's magic number."""


GZIP_QUICK_LEVEL = 1

UNPACKED_BYTES_MAX = 128 << 20
"""Default of a reader's `penstock.unpack.max.bytes`, for each batch: 128 times `max.message.bytes`."""

UNPACKED_RECORDS_MAX = 1_000_000
"""Default of a reader's `penstock.unpack.max.records`: seven times as many as fit into an uncompressed batch
of 1 MiB.
"""

BYTES_OPTION = "penstock.unpack.max.bytes"
RECORDS_OPTION = "penstock.unpack.max.records"

CHUNK_RECORDS = 1_000
"""The number of records that are processed between two checks of a budget. They take less than a
millisecond.
"""

NESTING_MAX = 16
"""The greatest nesting depth of wrappers (compressed messages) of magic 0. Clients usually nest none."""


class CompressionCodec(IntEnum):
    """A compression codec of batches, with its number in bits 0-2 of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def from_name(cls, name: str | None) -> CompressionCodec:
        """Return the codec with this name in Kafka's configuration ("none", "gzip", "snappy", ...).

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
    """Compress `data` with a codec.

    `level` is on the codec's own scale: gzip 0-9 (default 6); zstd 1-22 (default 3); lz4 from 3 on in its
    slower high-compression mode (default: the fast mode); snappy has no levels. `broken_lz4_checksum` writes
    the frame header that messages of magic 0 need.

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

    For gzip data of up to `quick_bytes` this is level 1, which takes a fifth to a tenth of the time of level
    6 and gives up to a quarter more bytes. Otherwise the result is None: the codec's default level.
    """
    return GZIP_QUICK_LEVEL if codec == CompressionCodec.GZIP and size <= quick_bytes else None


def decompress(codec: int, data: Buffer, limit_bytes: int) -> memoryview:
    """Decompress `data`, in any of the codec's framings.

    Raises:
        CorruptRecordError: unknown codec, or broken data.
        UnpackLimitError: the result has more than `limit_bytes`; no memory is allocated for the excess.
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
    """Return the size in bytes of the buffer to allocate for decompressing `data`, at most `limit_bytes`.

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
    """Return True if data compressed with this codec can have the same first bytes as `data`."""
    begins: bool = _CODECS[codec].begins(bytes(data[:_HEAD_BYTES]), data)
    return begins


def decompressed_size_max(codec: int, data: memoryview) -> int:
    """Return the maximum decompressed size of `data`, computed from its framing alone.

    This is a true upper bound for snappy, lz4 and zstd. For gzip there is no such bound: the result is the
    size in the last member's trailer, which is correct for data of a single member.

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
    """A dict from codec number to the codec's module, which is imported on first use."""

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


class UnpackLimits(NamedTuple):
    """The limits of a reader for one compressed batch: decompressed bytes, and records."""

    max_bytes: int = UNPACKED_BYTES_MAX
    max_records: int = UNPACKED_RECORDS_MAX


DEFAULT_LIMITS = UnpackLimits()


@contextmanager
def naming_place(place: object, advice: str = "") -> Iterator[None]:
    """Return a context manager that adds details to an `UnpackLimitError` raised in its block.

    The message begins with `place`, such as a partition, and ends with `advice`.
    """
    try:
        yield
    except UnpackLimitError as error:
        raise UnpackLimitError(f"{place}: {error}{advice}") from None


class UnpackBudget:
    """The numbers of bytes and records that one request may still decompress.

    Decompressed data and data converted to another format may have `bytes_max` bytes each, so that all that
    was decompressed can be converted. `pause` is called after every `CHUNK_RECORDS` records, so that a thread
    can let other threads run.
    """

    __slots__ = ("bytes_left", "bytes_max", "pause", "records_left", "records_max", "written_left")

    def __init__(
        self,
        bytes_max: int = UNPACKED_BYTES_MAX,
        records_max: int = UNPACKED_RECORDS_MAX,
        pause: Callable[[], object] | None = None,
    ) -> None:
        self.bytes_max = self.bytes_left = self.written_left = bytes_max
        self.records_max = self.records_left = records_max
        self.pause = pause

    @property
    def is_untouched(self) -> bool:
        """True if nothing of the budget has been used yet."""
        return (
            self.bytes_left == self.written_left == self.bytes_max and self.records_left == self.records_max
        )

    def trial(self) -> UnpackBudget:
        """Return a copy of this budget for an attempt that may fail. After a success, pass it to `settle`."""
        trial = UnpackBudget(self.bytes_max, self.records_max, self.pause)
        trial.settle(self)
        return trial

    def settle(self, other: UnpackBudget) -> None:
        """Adopt the remaining bytes and records of `other`, the `trial` copy of an attempt that succeeded."""
        self.bytes_left, self.records_left = other.bytes_left, other.records_left
        self.written_left = other.written_left

    def unpack(self, codec: int, data: memoryview) -> memoryview:
        """Return `data` decompressed, and subtract its size from the budget.

        Raises:
            CorruptRecordError: unknown codec, or broken data.
            UnpackLimitError: the decompressed data has more bytes than are left.
        """
        if codec == CompressionCodec.NONE:
            return data
        try:
            unpacked = decompress(codec, data, self.bytes_left)
        except UnpackLimitError:
            raise self._too_many_bytes() from None
        self.bytes_left -= len(unpacked)
        return unpacked

    def take_bytes(self, size: int) -> None:
        """Subtract `size` bytes from the budget, before these bytes are written in another format.

        Raises:
            UnpackLimitError: fewer bytes than `size` are left.
        """
        if size > self.written_left:
            raise self._too_many_bytes()
        self.written_left -= size

    def take_records(self, count: int) -> None:
        """Subtract `count` records from the budget, before these records are read.

        Raises:
            UnpackLimitError: fewer records than `count` are left.
        """
        if count > self.records_left:
            raise UnpackLimitError(
                f"more than {self.records_max} records to read at once; the limit is {RECORDS_OPTION}"
            )
        self.records_left -= count
        if self.pause is not None:
            self.pause()

    def _too_many_bytes(self) -> UnpackLimitError:
        return UnpackLimitError(
            f"more than {self.bytes_max} bytes of records when decompressed; the limit is {BYTES_OPTION}"
        )
