"""The greatest compression ratio of each codec, in a module that does not load the codecs."""

from __future__ import annotations

GZIP_RATIO_MAX = 1032
"""The maximum ratio of gzip: deflate encodes at most 258 bytes in two bits."""

SNAPPY_RATIO_MAX = 22
"""The maximum ratio of snappy: a reference to 64 earlier bytes takes three bytes."""

LZ4_RATIO_MAX = 255
"""The maximum ratio of lz4: a byte that extends the length of a match adds at most 255 repeated bytes."""

ZSTD_BLOCK_BYTES = 128 * 1024
ZSTD_RATIO_MAX = ZSTD_BLOCK_BYTES // 4
"""The maximum ratio of zstd: a block of four bytes can encode 128 KiB of one repeated byte."""

RATIO_MAX = (1, GZIP_RATIO_MAX, SNAPPY_RATIO_MAX, LZ4_RATIO_MAX, ZSTD_RATIO_MAX)
"""The greatest ratio of each codec, indexed by the codec's number in the attributes of a batch."""
