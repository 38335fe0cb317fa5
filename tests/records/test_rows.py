"""Rows for applications: pure Python and kernels give the same, and both what columns give."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from penstock.errors import CorruptRecordError
from penstock.model import Record, TimestampType
from penstock.records import rows
from penstock.records.aborted import AbortedTransactions
from penstock.records.batch import ABORT_MARKER, COMMIT_MARKER, encode_batch, encode_marker
from penstock.records.batch import decode_batch as decode_one
from penstock.records.compression.codecs import Codec
from penstock.records.decode import decode_columns
from penstock.records.format.batch_header import split_batches
from penstock.records.kernels import compiled
from penstock.records.legacy import encode_message_set
from penstock.records.row_format import RowLike
from penstock.records.rows import decode_rows, rows_of


@pytest.fixture(params=["pure", "columns", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Rows one by one, out of columns by Python, and out of columns by compiled code."""
    if request.param == "columns":
        monkeypatch.setattr(compiled, "records_of", None)
    for name in ("COMPILED_FROM_BYTES", "LOAD_FROM_BYTES"):
        monkeypatch.setattr(rows, name, 1 << 40 if request.param == "pure" else 0)
    monkeypatch.setattr(rows, "has_kernels", lambda: True)
    return str(request.param)


def sample_log() -> bytes:
    rng = random.Random(5)

    def content() -> bytes | None:
        size = rng.choice([-1, 0, 1, 70, 300])
        return None if size < 0 else rng.randbytes(size)

    def batch(offset: int, codec: int) -> bytes:
        records: list[RowLike] = [
            (content(), content(), [("h", content())] * rng.choice([0, 0, 2]), 1000 + n) for n in range(10)
        ]
        return encode_batch(records, base_offset=offset, codec=codec)

    old = encode_message_set([(content(), content(), 500 + n) for n in range(10)], 1, codec=Codec.GZIP)
    oldest = encode_message_set([(b"k", b"v", 0)] * 3, 0, offsets=range(10, 13))
    return old + oldest + b"".join(batch(20 + 10 * n, codec) for n, codec in enumerate(Codec))


def all_records(data: bytes) -> list[Record]:
    return [r for start, end, _ in split_batches(data) for r in decode_one(data, start, end, "t", 4)]


def test_rows(way: str) -> None:
    data = sample_log()
    found, next_offset = decode_rows(data, "t", 4)
    assert found == all_records(data)
    assert all(type(record) is Record for record in found)
    assert next_offset == 70
    assert decode_rows(data[:-1], "t", 4)[1] == 60


@pytest.mark.parametrize(
    ("start", "end"), [(0, None), (5, 12), (12, 25), (33, 55), (70, None), (69, 70), (0, 0)]
)
def test_range(way: str, start: int, end: int | None) -> None:
    data = sample_log()
    found, next_offset = decode_rows(data, "t", 4, start_offset=start, end_offset=end)
    stop = 1 << 62 if end is None else end
    assert found == [record for record in all_records(data) if start <= record.offset < stop]
    assert next_offset == max(start, min(stop, 70))


def test_transactions(way: str) -> None:
    def written(offset: int, producer_id: int) -> bytes:
        return encode_batch(
            [(None, b"x", (), 0)], base_offset=offset, producer_id=producer_id, is_transactional=True
        )

    def ended(kind: int, offset: int, producer_id: int) -> bytes:
        return encode_marker(
            kind,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp=0,
        )

    data = b"".join(
        (
            written(0, 1),
            written(1, 2),
            ended(ABORT_MARKER, 2, 1),
            written(3, 1),
            ended(COMMIT_MARKER, 4, 1),
            written(5, 2),
            ended(COMMIT_MARKER, 6, 2),
        )
    )
    everything, next_offset = decode_rows(data, "t", 0)
    assert ([record.offset for record in everything], next_offset) == ([0, 1, 3, 5], 7)
    committed, next_offset = decode_rows(data, "t", 0, aborted=[(1, 0)])
    assert ([record.offset for record in committed], next_offset) == ([1, 3, 5], 7)
    later, _ = decode_rows(data, "t", 0, aborted=[(1, 0)], start_offset=3)
    assert [record.offset for record in later] == [3, 5]


def test_aborted_transactions_by_themselves() -> None:
    aborted = AbortedTransactions([(7, 50), (7, 10), (8, 20)])
    assert not aborted.is_aborted(7, 9)
    assert aborted.is_aborted(7, 10)
    assert not aborted.is_aborted(8, 19)
    aborted.end_transaction(7, 30)
    assert aborted.is_aborted(8, 31)
    assert not aborted.is_aborted(7, 49)
    assert aborted.is_aborted(7, 55)  # a batch that ends behind the transaction's first offset


def test_header_names_beyond_ascii(way: str) -> None:
    pairs = [("größe", b"1"), ("", None), ("größe", b"")]
    found, _ = decode_rows(encode_batch([(None, None, pairs, 0), (None, None, (), 0)]), "t", 0)
    assert [list(record.headers) for record in found] == [pairs, []]


def test_damage(way: str) -> None:
    damaged = bytearray(encode_batch([(None, b"x" * 50, (), 0)]))
    damaged[-5] ^= 1
    with pytest.raises(CorruptRecordError, match="checksum"):
        decode_rows(damaged, "t", 0)
    assert decode_rows(damaged, "t", 0, verify=False)[0][0].offset == 0


def test_rows_need_every_column() -> None:
    with pytest.raises(ValueError, match="every column"):
        rows_of(decode_columns([b""], columns=["key"]), "t", 0)


def test_few_rows_of_a_large_batch_load_no_kernels() -> None:
    program = """
import sys
from penstock.records.batch import encode_batch
from penstock.records.rows import LOAD_FROM_BYTES, decode_rows, few_rows
batch = encode_batch([(None, b"v" * 1_000, [], 0)] * 100)
assert len(batch) > LOAD_FROM_BYTES
with few_rows():
    assert len(decode_rows(batch, "t", 0)[0]) == 100
assert "numpy" not in sys.modules
assert len(decode_rows(batch, "t", 0)[0]) == 100
assert "numpy" in sys.modules
"""
    subprocess.run(
        [sys.executable, "-c", program], check=True, env=os.environ | {"PENSTOCK_PURE_PYTHON": "1"}
    )


@pytest.mark.skipif(compiled.records_of is None, reason="the package was installed without a C compiler")
def test_compiled_rows_refuse_columns_that_do_not_fit_together() -> None:
    def build(**changed: object) -> list[Record]:
        given: dict[str, object] = {
            "record_class": Record,
            "topic": "t",
            "partition": 0,
            "kinds": tuple(TimestampType),
            "first": 0,
            "last": 2,
            "offsets": np.arange(2),
            "times": np.arange(2),
            "types": np.zeros(2, np.int32),
            "key": np.zeros(4, np.uint8),
            "key_ends": np.array([0, 2, 4], np.int32),
            "key_bits": b"",
            "value": np.zeros(4, np.uint8),
            "value_ends": np.array([0, 2, 4], np.int32),
            "value_bits": b"",
            "header_ends": np.zeros(3, np.int32),
        }
        nothing = (np.zeros(0, np.uint8), np.zeros(1, np.int32), b"")
        assert compiled.records_of is not None
        return compiled.records_of(*(given | changed).values(), *nothing, *nothing)

    before = sys.getrefcount(None)
    assert [record.key for record in build()] == [bytes(2)] * 2
    for changed in (
        {"last": 3},
        {"first": -1},
        {"offsets": np.arange(1)},
        {"types": np.zeros(1, np.int32)},
        {"key_ends": np.array([0, 2, 5], np.int32)},
        {"key_ends": np.array([2, 0, 4], np.int32)},
        {"value_ends": np.array([-1, 2, 4], np.int32)},
        {"header_ends": np.array([0, 0, 1], np.int32)},
    ):
        with pytest.raises(ValueError, match="columns of different lengths"):
            build(**changed)
    with pytest.raises(IndexError):
        build(types=np.full(2, 7, np.int32))
    with pytest.raises(TypeError):
        build(record_class=Record, offsets="none")
    assert abs(sys.getrefcount(None) - before) < 20
    assert gc.isenabled()


@pytest.mark.skipif(compiled.records_of is None, reason="the package was installed without a C compiler")
def test_compiled_rows_leave_nothing_behind() -> None:
    columns = decode_columns([sample_log()])
    rows_of(columns, "t", 0)
    tracemalloc.start()
    try:
        rows_of(columns, "t", 0)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            rows_of(columns, "t", 0)
        assert tracemalloc.get_traced_memory()[0] - before < 10_000
    finally:
        tracemalloc.stop()
