"""Where the arrays of a decode come from.

Arrow's allocator keeps the pages it has been given; the C library's returns large blocks to the system
at once, and the next block costs a page fault for every 4 KiB: more than decoding does. So arrays
come from Arrow's pool where pyarrow is installed.
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
    """Return an array of `size` entries with anything in it."""
    if _allocate is None or not size:
        return np.empty(size, dtype=dtype)
    return np.frombuffer(_allocate(size * np.dtype(dtype).itemsize), dtype=dtype)


def cut(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the first `size` entries; a copy of them where the rest would waste a quarter or more."""
    if (len(array) - size) * _WASTE_SHARE_MAX < len(array):
        return array[:size]
    smaller = empty(size, array.dtype.type)
    smaller[:] = array[:size]
    return smaller
