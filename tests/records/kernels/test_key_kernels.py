"""Tests that the compiled search for a key finds and refuses the records that the plain Python one does."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.errors import CorruptRecordError
from penstock.records.batch import encode_batch
from penstock.records.format import key_scan
from penstock.records.format.batch_header import HEADER_BYTES
from penstock.records.format.key_scan import RecordSpan
from penstock.records.kernels import key_kernels
from penstock.records.kernels.compiled import COMPILED
from penstock.records.kernels.key_scanner import Scanner, fast_scanner

ROWS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=300),
        st.none() | st.binary(max_size=300),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=3),
        st.integers(0, 1 << 50),
    ),
    min_size=1,
    max_size=20,
)


def outcome(scan: Scanner, data: bytes, count: int) -> list[RecordSpan] | str:
    try:
        return scan(data, count)
    except CorruptRecordError:
        return "refused"


def records(rows: list[tuple[object, ...]]) -> bytes:
    return bytes(encode_batch(rows))[HEADER_BYTES:]  # type: ignore[arg-type]


@given(ROWS)
def test_the_same_is_found(rows: list[tuple[object, ...]]) -> None:
    data = records(rows)
    found = key_kernels.scan_keys(data, len(rows))
    assert found == key_scan.scan_keys(data, len(rows))
    assert [(span.key, span.has_value) for span in found] == [(row[0], row[1] is not None) for row in rows]


@for_each(range(10))
def test_the_same_is_refused(seed: int) -> None:
    rng = random.Random(seed)
    rows = [(b"k%d" % n if n % 5 else None, b"v" * n, ((str(n), b"h"),), 10**12 + n * n) for n in range(12)]
    good = records(rows)
    refused = 0
    for _ in range(300):
        data = bytearray(good)
        for _ in range(rng.randint(0, 3)):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        del data[len(data) - rng.choice([0, 0, rng.randrange(len(data))]) :]
        count = rng.choice([12, 12, 11, 13, 1 << 30])
        plain = outcome(key_scan.scan_keys, bytes(data), count)
        assert outcome(key_kernels.scan_keys, bytes(data), count) == plain
        refused += plain == "refused"
    assert 50 < refused < 300


def test_the_fast_one_is_compiled_where_that_can_be() -> None:
    assert fast_scanner() is (key_kernels.scan_keys if COMPILED else key_scan.scan_keys)
