"""Limits on the bytes that one request may decompress, and on the records that it may read.

A few kilobytes can hold gigabytes, and a gigabyte hundreds of millions of records. Code that decompresses
foreign data does it within a budget, and raises `UnpackLimitError` before it allocates more than the budget.
Imports nothing that is slow to load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from penstock.errors import UnpackLimitError
from penstock.records.compression.codecs import CompressionCodec, decompress

UNPACKED_BYTES_MAX = 128 << 20
"""Default of a reader's `penstock.unpack.max.bytes`, for each batch: 128 times `max.message.bytes`."""

UNPACKED_RECORDS_MAX = 1_000_000
"""Default of a reader's `penstock.unpack.max.records`: seven times what fits into 1 MiB uncompressed."""

BYTES_OPTION = "penstock.unpack.max.bytes"
RECORDS_OPTION = "penstock.unpack.max.records"

CHUNK_RECORDS = 1_000
"""The number of records that are read between two checks of a budget: less than a millisecond of work."""

NESTING_MAX = 16
"""The greatest nesting depth of wrappers (compressed messages) of magic 0. Clients usually nest none."""


class UnpackLimits(NamedTuple):
    """The limits of a reader for one compressed batch: decompressed bytes, and records."""

    max_bytes: int = UNPACKED_BYTES_MAX
    max_records: int = UNPACKED_RECORDS_MAX


DEFAULT_LIMITS = UnpackLimits()


@contextmanager
def naming_place(place: object, advice: str = "") -> Iterator[None]:
    """Add `place` and `advice` to the text of an `UnpackLimitError` that is raised in the block."""
    try:
        yield
    except UnpackLimitError as error:
        raise UnpackLimitError(f"{place}: {error}{advice}") from None


class UnpackBudget:
    """The bytes and records that one request may still unpack.

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
        """Return a copy of this budget for an attempt that may fail; `settle` then subtracts what it used."""
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
        """Subtract `size` bytes that are about to be written in another format.

        Raises:
            UnpackLimitError: fewer bytes than `size` are left.
        """
        if size > self.written_left:
            raise self._too_many_bytes()
        self.written_left -= size

    def take_records(self, count: int) -> None:
        """Subtract `count` records that are about to be read.

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
