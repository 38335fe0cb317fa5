"""Decodes fetched records for the application: as records, or as Arrow batches.

`RowReading` and `ColumnReading` both have the offset after the last record that they have returned. The
application may switch between records and Arrow batches at that offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.client.fetch.cursors import FetchedPart
from penstock.model import Record
from penstock.records.compression.codecs import DEFAULT_LIMITS, UnpackLimits, naming_place
from penstock.records.rows import iter_rows

if TYPE_CHECKING:
    import pyarrow as pa


class RowReading:
    """Decodes the records of one partition in one response, and returns them record by record.

    The constructor and `load` raise:
        CorruptRecordError: a batch is damaged.
        UnpackLimitError: a compressed batch holds more than `unpack` allows.
    """

    def __init__(
        self, part: FetchedPart, position: int, *, check_crcs: bool, unpack: UnpackLimits = DEFAULT_LIMITS
    ) -> None:
        self.part = part
        self.next_offset = position
        self.rows: list[Record] = []
        """The decoded records. A large response is decoded in pieces: these are the records of one piece."""
        self.index = 0
        self._pieces = iter_rows(
            part.records,
            *part.tp,
            start_offset=position,
            aborted=part.aborted,
            verify=check_crcs,
            limit_bytes=unpack.max_bytes,
            limit_records=unpack.max_records,
        )
        self._is_exhausted = False
        self.load()

    def load(self) -> bool:
        """Decode the next records if none are left; return True if there are records to take."""
        with naming_place(self.part.tp):
            while self.index >= len(self.rows) and not self._is_exhausted:
                piece = next(self._pieces, None)
                if piece is None:
                    self._is_exhausted = True
                else:
                    self.rows, self.next_offset = piece[0], piece[1]
                    self.index = 0
        return self.index < len(self.rows)

    def take(self, count: int) -> list[Record]:
        """Return the next records, at most `count` of them."""
        first, self.index = self.index, min(self.index + count, len(self.rows))
        return self.rows[first : self.index] if self.index - first < len(self.rows) else self.rows

    @property
    def is_done(self) -> bool:
        """True if all records in `rows` have been taken."""
        return self.index >= len(self.rows)

    @property
    def position(self) -> int:
        """The offset of the next record.

        If all records in `rows` were taken, it is the offset after the last.
        """
        return self.rows[self.index].offset if self.index < len(self.rows) else self.next_offset


class ColumnReading:
    """Decodes the records of one partition in one response, and returns them as Arrow batches."""

    def __init__(
        self,
        part: FetchedPart,
        position: int,
        columns: Sequence[str],
        batch_bytes: int,
        *,
        check_crcs: bool,
        unpack: UnpackLimits = DEFAULT_LIMITS,
    ) -> None:
        from penstock.records.decode import iter_columns

        self.part = part
        self.columns = columns
        self.position = position
        self._pieces = iter_columns(
            part.records,
            columns=columns,
            start_offset=position,
            aborted=part.aborted,
            verify_crcs=check_crcs,
            limit_bytes=unpack.max_bytes,
            limit_records=unpack.max_records,
            batch_bytes=batch_bytes,
        )

    def take(self) -> pa.RecordBatch | None:
        """Return the next Arrow batch, or None if nothing is left."""
        from penstock.records.arrow import to_arrow

        with naming_place(self.part.tp):
            piece = next(self._pieces, None)
        if piece is None:
            self.position = self.part.next_offset
            return None
        self.position = piece.next_offset
        return to_arrow(piece, *self.part.tp, self.columns)
