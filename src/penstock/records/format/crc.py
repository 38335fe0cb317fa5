"""The two checksums of Kafka's record formats.

CRC-32C (Castagnoli) guards batches of magic 2, CRC-32 (IEEE, zlib's) the messages of magic 0 and 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32 as _crc32

from google_crc32c import extend as _extend
from google_crc32c import value as _value

if TYPE_CHECKING:
    from typing_extensions import Buffer

_CHUNK_BYTES = 128 * 1024
"""The library reads `bytes` only. Views are copied piecewise, so that each copy stays in the cache."""


def crc32c(data: Buffer) -> int:
    """Return the CRC-32C of `data`, as an unsigned 32-bit number."""
    if type(data) is bytes:
        return int(_value(data))
    view = memoryview(data)
    if view.nbytes <= _CHUNK_BYTES:
        return int(_value(view.tobytes()))
    if view.format != "B":
        view = view.cast("B")
    crc = 0
    for position in range(0, len(view), _CHUNK_BYTES):
        crc = _extend(crc, view[position : position + _CHUNK_BYTES].tobytes())
    return int(crc)


def crc32c_array(array: object) -> int:
    """Return the CRC-32C of a contiguous numpy array of bytes, without copying it."""
    return int(_value(array))


def crc32(data: Buffer) -> int:
    """Return the CRC-32 (IEEE) of `data`, as an unsigned 32-bit number."""
    return _crc32(data)
