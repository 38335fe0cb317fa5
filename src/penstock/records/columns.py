"""Records as columns: numpy arrays whose layout is that of Arrow's buffers, and their allocation.

`decode` makes the columns from batches; `arrow` makes them from Arrow arrays and back without copying.
`decode` allocates its arrays in Arrow's memory pool if pyarrow is installed. Arrow's allocator keeps its
pages; the C library's returns large blocks to the system at once, and the next block costs a page fault for
every 4 KiB, which takes longer than decoding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.records.kernels.compiled import Bytes, Int32s, Ints

try:
    from pyarrow import allocate_buffer as _allocate
except ImportError:
    _allocate = None

COLUMN_BYTES_MAX = (1 << 31) - 1
"""The maximum bytes in a column, because Arrow's `binary` and `string` have 32-bit offsets."""

NO_BYTES: Bytes = np.empty(0, dtype=np.uint8)

_WASTE_SHARE_MAX = 4


def empty(size: int, dtype: type) -> NDArray[Any]:
    """Return an uninitialized array of `size` entries."""
    if _allocate is None or not size:
        return np.empty(size, dtype=dtype)
    return np.frombuffer(_allocate(size * np.dtype(dtype).itemsize), dtype=dtype)


def cut(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the first `size` entries: a view, or a copy if a quarter or more would stay unused."""
    if (len(array) - size) * _WASTE_SHARE_MAX < len(array):
        return array[:size]
    smaller = empty(size, array.dtype.type)
    smaller[:] = array[:size]
    return smaller


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
