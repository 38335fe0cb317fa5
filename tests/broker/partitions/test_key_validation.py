"""Tests of the two searches for records without a key, in Python and compiled: both find the same.

The compiled one is loaded in the background once batches are large enough.
"""

from __future__ import annotations

import random

import pytest

from penstock.broker.partitions.key_validation import (
    COMPILED_FROM_RECORDS,
    KeyCheck,
    compiled_finder,
    find_in_python,
)
from penstock.errors import CorruptRecordError
from penstock.records.batch import encode_batch
from penstock.records.compression.codecs import CompressionCodec, UnpackBudget
from penstock.records.format.batch_header import read_header, refresh_crc


def batch_of(keys: list[bytes | None], codec: CompressionCodec = CompressionCodec.NONE) -> memoryview:
    rows = [(key, b"v" * 9, (("h", None),) if key == b"h" else (), 5) for key in keys]
    return memoryview(bytearray(encode_batch(rows, codec=codec)))


@pytest.mark.parametrize("codec", list(CompressionCodec))
def test_both_ways_find_the_same(codec: CompressionCodec) -> None:
    dice = random.Random(7)
    for count in (1, 2, 7, 8, 9, 64, 1000):
        for share in (0, 0.1, 1):
            keys = [
                None if dice.random() < share else dice.choice((b"", b"h", b"k" * 200)) for _ in range(count)
            ]
            batch = batch_of(keys, codec)
            missing = [place for place, key in enumerate(keys) if key is None]
            header, budget = read_header(batch), UnpackBudget()
            assert find_in_python(batch, header, budget) == missing
            assert compiled_finder()(batch, header, budget) == missing


def test_both_ways_refuse_the_same() -> None:
    """Every byte of the records is replaced with several values in turn.

    The Python and the compiled search either both find the same records, or both raise CorruptRecordError.
    """
    whole = bytes(batch_of([b"k", None, b"h"]))
    compiled = compiled_finder()
    for position in range(61, len(whole)):
        for value in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            batch = bytearray(whole)
            batch[position] = value
            refresh_crc(batch, 0, len(batch))
            outcomes = []
            for find in (find_in_python, compiled):
                try:
                    outcomes.append(find(memoryview(batch), read_header(batch), UnpackBudget()))
                except CorruptRecordError:
                    outcomes.append(None)
            assert outcomes[0] == outcomes[1], (position, value)


def test_the_compiled_way_is_fetched_once_there_is_reason_to() -> None:
    check = KeyCheck(load_after_records=COMPILED_FROM_RECORDS)
    large = batch_of([b"k"] * (COMPILED_FROM_RECORDS - 1) + [None])
    small = batch_of([None])
    for _ in range(3):
        assert check.keyless(large, read_header(large), UnpackBudget()) == [COMPILED_FROM_RECORDS - 1]
        assert check.keyless(small, read_header(small), UnpackBudget()) == [0]
    assert check.loader is not None
    check.loader.join()
    assert check.is_compiled
    assert check.keyless(large, read_header(large), UnpackBudget()) == [COMPILED_FROM_RECORDS - 1]
    assert check.keyless(small, read_header(small), UnpackBudget()) == [0]
