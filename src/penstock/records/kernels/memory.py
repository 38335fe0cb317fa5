"""Allocate the arrays of a decode, from Arrow's memory pool if pyarrow is installed.

Arrow's allocator keeps its pages; the C library's returns large blocks to the system at once, and the next
block costs a page fault for every 4 KiB, which takes longer than decoding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from pyarrow import allocate_buffer as _allocate
except ImportError:
    _allocate = None

_WASTE_SHARE_MAX = 4


def empty(size: int, dtype: type) -> NDArray[Any]:
    """Return an uninitialized array of `size` entries."""
    if _allocate is None or not size:
        return np.empty(size, dtype=dtype)
    return np.frombuffer(_allocate(size * np.dtype(dtype).itemsize), dtype=dtype)


def cut(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the first `size` entries: a view, or a copy if the view would waste a quarter or more."""
    if (len(array) - size) * _WASTE_SHARE_MAX < len(array):
        return array[:size]
    smaller = empty(size, array.dtype.type)
    smaller[:] = array[:size]
    return smaller
