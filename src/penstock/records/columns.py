"""Records as columns: numpy arrays whose layout is that of Arrow's buffers.

`decode` makes the columns from batches; `arrow` makes them from Arrow arrays and back without copying.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.records.kernels.compiled import Bytes, Int32s, Ints

COLUMN_BYTES_MAX = (1 << 31) - 1
"""The most bytes in a column, because Arrow's `binary` and `string` have 32-bit offsets."""

NO_BYTES: Bytes = np.empty(0, dtype=np.uint8)


@dataclass(slots=True)
class BytesColumn:
    """A column of byte strings: row `i` is ``data[offsets[i]:offsets[i + 1]]``.

    `validity` is Arrow's bitmap, least significant bit first, or None if the column has no nulls;
    the bit of row 0 is the bit `validity_offset` of the bitmap.
    """

    data: Bytes
    offsets: Int32s
    validity: Bytes | None = None
    null_count: int = 0
    validity_offset: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def is_valid(self, row: int) -> bool:
        if self.validity is None:
            return True
        bit = row + self.validity_offset
        return bool(self.validity[bit >> 3] >> (bit & 7) & 1)

    def __getitem__(self, row: int) -> bytes | None:
        """Return one row as bytes, or None for null; slow, for tests and inspection."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)
        if not self.is_valid(row):
            return None
        return self.data[self.offsets[row] : self.offsets[row + 1]].tobytes()

    def to_list(self) -> list[bytes | None]:
        return [self[row] for row in range(len(self))]


@dataclass(slots=True)
class HeadersColumn:
    """A column of header lists: row `i` has headers ``offsets[i]`` to ``offsets[i + 1]``.

    Names are valid UTF-8 (U+FFFD replaces invalid bytes); a name may occur more than once.
    """

    offsets: Int32s
    names: BytesColumn
    values: BytesColumn

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> list[tuple[str, bytes | None]]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return [
            ((self.names[header] or b"").decode(), self.values[header])
            for header in range(self.offsets[row], self.offsets[row + 1])
        ]

    def to_list(self) -> list[list[tuple[str, bytes | None]]]:
        return [self[row] for row in range(len(self))]


@dataclass(slots=True)
class RecordColumns:
    """`row_count` records of one partition, in offset order; a column that was not requested is None.

    Timestamps are milliseconds since 1970, -1 for a record without one. `next_offset` is the offset to read
    next: after every batch that was read, including skipped ones.
    """

    row_count: int
    offsets: Ints | None = None
    timestamps: Ints | None = None
    timestamp_types: Int32s | None = None
    key: BytesColumn | None = None
    value: BytesColumn | None = None
    headers: HeadersColumn | None = None
    partitions: Int32s | None = None
    next_offset: int = 0

    def __len__(self) -> int:
        return self.row_count
