"""The greatest compression ratio of each codec, in a module that does not load the codecs."""

from __future__ import annotations

GZIP_RATIO_MAX = 1032
"""Deflate cannot do better than 258 bytes for two bits."""

SNAPPY_RATIO_MAX = 22
"""A copy of 64 bytes takes three."""

LZ4_RATIO_MAX = 255
"""A length goes on with bytes of 255, each of which stands for so many repeated bytes."""

ZSTD_BLOCK_BYTES = 128 * 1024
ZSTD_RATIO_MAX = ZSTD_BLOCK_BYTES // 4
"""A repeated byte: a block of four bytes stands for 128 KiB."""

RATIO_MAX = (1, GZIP_RATIO_MAX, SNAPPY_RATIO_MAX, LZ4_RATIO_MAX, ZSTD_RATIO_MAX)
"""The ratios by the number of the codec in a batch."""
