"""Finds records without a key in a batch for a compacted topic, which does not accept them.

At first, records are checked in Python, at about half a microsecond each. After very many records, a thread
imports the compiled decoder of `penstock.records`, if numpy and the compiled kernels are installed. From then
on this decoder, which is fifty times as fast, checks the larger batches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from penstock.common.logs import logger_named
from penstock.errors import CorruptRecordError
from penstock.records.batch import encode_batch
from penstock.records.checking import walk_batch
from penstock.records.compression.codecs import CompressionCodec, UnpackBudget
from penstock.records.format.batch_header import BatchHeader, read_header

logger = logger_named("penstock.broker")

LOAD_AFTER_RECORDS = 1_000_000

COMPILED_FROM_RECORDS = 64
"""The minimum number of records in a batch for which the compiled decoder is used. For smaller batches
the decoder is slower than Python, because of its fixed cost per call.
"""

_BEFORE_ANY_OFFSET = -(1 << 32)
"""A start offset below the offset of every record, so that the decoder skips no record."""

Finder = Callable[[memoryview, BatchHeader, UnpackBudget], list[int]]
"""A function that returns the indexes of records without a key. It raises the same errors as
`KeyCheck.keyless`.
"""


class KeyCheck:
    """Finds the records without a key in batches, in compiled code once it has checked very many records."""

    def __init__(self, load_after_records: int = LOAD_AFTER_RECORDS) -> None:
        self._left = load_after_records
        self._compiled: Finder | None = None
        self.loader: threading.Thread | None = None
        """The thread that imports the compiled decoder; None until the decoder is needed."""

    def keyless(self, batch: memoryview, header: BatchHeader, budget: UnpackBudget) -> list[int]:
        """Return the indexes of the records in `batch` without a key, counted from 0.

        Raises:
            CorruptRecordError: the records cannot be read, or are not numbered one by one.
            UnpackLimitError: the records are too much for `budget`.
        """
        count = header.record_count
        if self._compiled is not None and count >= COMPILED_FROM_RECORDS:
            return self._compiled(batch, header, budget)
        if self.loader is None:
            self._left -= count
            if self._left < 0:
                self.loader = threading.Thread(target=self._load, name="penstock-kernels", daemon=True)
                self.loader.start()
        return find_in_python(batch, header, budget)

    @property
    def is_compiled(self) -> bool:
        return self._compiled is not None

    def _load(self) -> None:
        try:
            from penstock.records.kernels.compiled import COMPILED

            if COMPILED:
                find = compiled_finder()
                for codec in (
                    CompressionCodec.NONE,
                    CompressionCodec.GZIP,
                ):  # so that no request waits for imports
                    batch = encode_batch([(b"k", b"v", (("h", b"v"),), 0)], codec=codec)
                    find(memoryview(bytearray(batch)), read_header(batch), UnpackBudget())
                self._compiled = find
        except ImportError:
            pass  # there is no numpy: Python it is
        except Exception:
            logger.exception("the compiled decoder cannot be used; keys are looked for in Python")


def find_in_python(batch: memoryview, header: BatchHeader, budget: UnpackBudget) -> list[int]:
    return [index for chunk in walk_batch(batch, header, budget) for index in chunk.keyless]


def compiled_finder() -> Finder:
    """Import the column decoder, which needs numpy, and return a `Finder` that uses it."""
    import numpy as np

    from penstock.records.decode import decode_columns

    def find(batch: memoryview, header: BatchHeader, budget: UnpackBudget) -> list[int]:
        columns = decode_columns(
            batch,
            columns=("offset", "key", "headers"),
            start_offset=_BEFORE_ANY_OFFSET,
            verify_crcs=False,
            limit_bytes=budget.bytes_left,
            limit_records=budget.records_max,
        )
        offsets, key = columns.offsets, columns.key
        assert offsets is not None
        assert key is not None
        if not np.array_equal(offsets, np.arange(header.base_offset, header.base_offset + len(offsets))):
            raise CorruptRecordError("the records of a batch are not numbered one by one")
        if key.validity is None:
            return []
        bits = np.unpackbits(key.validity, bitorder="little")[key.validity_offset :][: len(key)]
        found: list[int] = np.flatnonzero(bits == 0).tolist()
        return found

    return find


keyless = KeyCheck().keyless
"""The method `keyless` of the process's only `KeyCheck`: returns the indexes of a batch's records
without a key.
"""
