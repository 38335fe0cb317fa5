"""The two checksums of Kafka's record formats.

CRC-32C (Castagnoli) guards batches of magic 2, CRC-32 (IEEE, zlib's) the messages of magic 0 and 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32 as _crc32

from crc32c import crc32c as _crc32c

if TYPE_CHECKING:
    from typing_extensions import Buffer


def crc32c(data: Buffer) -> int:
    """Return the CRC-32C of `data`, any contiguous buffer, as an unsigned 32-bit number."""
    return _crc32c(data)


def crc32(data: Buffer) -> int:
    """Return the CRC-32 (IEEE) of `data`, as an unsigned 32-bit number."""
    return _crc32(data)
