"""How much of compressed records may be unpacked, and how many records be read: one budget for one request.

A few kilobytes can hold gigabytes, and a gigabyte hundreds of millions of records. Code that unpacks what
others have packed does it within a budget, and raises `UnpackLimitError` before it allocates beyond that.
Imports nothing that is slow to load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from penstock.errors import UnpackLimitError
from penstock.records.compression.codecs import Codec, decompress

UNPACKED_BYTES_MAX = 128 << 20
"""Default of a reader's `penstock.unpack.max.bytes`, for each batch: 128 times `max.message.bytes`."""

UNPACKED_RECORDS_MAX = 1_000_000
"""Default of a reader's `penstock.unpack.max.records`: seven times what fits into a plain batch of 1 MiB."""

BYTES_OPTION = "penstock.unpack.max.bytes"
RECORDS_OPTION = "penstock.unpack.max.records"

CHUNK_RECORDS = 1_000
"""Records that a walk reads between two looks at its budget: less than a millisecond."""

NESTING_MAX = 16
"""Wrappers inside wrappers of messages of magic 0. A compression library nests none."""


class UnpackLimits(NamedTuple):
    """What a reader lets one compressed batch hold: bytes when decompressed, and records."""

    max_bytes: int = UNPACKED_BYTES_MAX
    max_records: int = UNPACKED_RECORDS_MAX


DEFAULT_LIMITS = UnpackLimits()


@contextmanager
def naming_place(place: object, advice: str = "") -> Iterator[None]:
    """Have an `UnpackLimitError` raised in the block say in which partition it was, and what to do."""
    try:
        yield
    except UnpackLimitError as error:
        raise UnpackLimitError(f"{place}: {error}{advice}") from None


class UnpackBudget:
    """What is left of the bytes and records that one request may unpack.

    What is decompressed and what is written in another format may each have `bytes_max` bytes, so that what
    has been taken can be converted. `pause` is called after every `CHUNK_RECORDS` records: a thread lets
    others run in it.
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
        """Whether nothing has been spent yet."""
        return (
            self.bytes_left == self.written_left == self.bytes_max and self.records_left == self.records_max
        )

    def trial(self) -> UnpackBudget:
        """Return a budget of what is left of this one, for an attempt that may come to nothing."""
        trial = UnpackBudget(self.bytes_max, self.records_max, self.pause)
        trial.settle(self)
        return trial

    def settle(self, other: UnpackBudget) -> None:
        """Take over what is left of another budget: of a trial that has come to something."""
        self.bytes_left, self.records_left = other.bytes_left, other.records_left
        self.written_left = other.written_left

    def unpack(self, codec: int, data: memoryview) -> memoryview:
        """Return `data` decompressed.

        Raises:
            CorruptRecordError: unknown codec, or broken data.
            UnpackLimitError: more comes out than may.
        """
        if codec == Codec.NONE:
            return data
        try:
            unpacked = decompress(codec, data, self.bytes_left)
        except UnpackLimitError:
            raise self._too_many_bytes() from None
        self.bytes_left -= len(unpacked)
        return unpacked

    def take_bytes(self, size: int) -> None:
        """Count bytes that are about to be written in another format.

        Raises:
            UnpackLimitError: they are more than may be.
        """
        if size > self.written_left:
            raise self._too_many_bytes()
        self.written_left -= size

    def take_records(self, count: int) -> None:
        """Count records that are about to be read.

        Raises:
            UnpackLimitError: they are more than may be.
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
