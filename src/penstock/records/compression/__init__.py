"""Compression codecs of record batches, and the budget that limits decompression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.records.compression.codecs import CompressionCodec as CompressionCodec

_HOMES = {"CompressionCodec": "codecs"}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
