"""Tests that decoding records to rows gives equal results in Python, in compiled code, and with columns."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptRecordError, EncodeError
from penstock.model import Record, ShareRecord
from penstock.records import native, row_format
from penstock.records.aborted import AbortedTransactions
from penstock.records.batch import ABORT_MARKER, COMMIT_MARKER, encode_batch, encode_marker
from penstock.records.batch import decode_batch as decode_one
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import split_batches
from penstock.records.legacy import encode_message_set
from penstock.records.row_format import RowLike
from penstock.records.rows import decode_rows, iter_rows


@pytest.fixture(params=["plain", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with Python alone, and again with compiled code for records."""
    if request.param == "plain":
        monkeypatch.setattr(row_format, "_read_rows", None)
        monkeypatch.setattr(row_format, "_write_rows", None)
    elif native.LIBRARY is None:
        pytest.skip("the package was installed without a C compiler, or runs as plain Python")
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

    old = encode_message_set(
        [(content(), content(), 500 + n) for n in range(10)], 1, codec=CompressionCodec.GZIP
    )
    oldest = encode_message_set([(b"k", b"v", 0)] * 3, 0, offsets=range(10, 13))
    return old + oldest + b"".join(batch(20 + 10 * n, codec) for n, codec in enumerate(CompressionCodec))


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


BYTES = st.none() | st.binary(max_size=90) | st.binary(min_size=60, max_size=70)
PAIRS = st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), BYTES), max_size=3)
TIMES = st.integers(-(1 << 63), (1 << 63) - 1)
ROWS = st.lists(st.tuples(BYTES, BYTES, PAIRS | PAIRS.map(tuple), TIMES), min_size=1, max_size=70)


def without_library(function: Callable[[], object]) -> object:
    """Return the result of a call with Python alone, or the type and text of its error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_format, "_read_rows", None)
        patch.setattr(row_format, "_write_rows", None)
        return outcome(function)


def outcome(function: Callable[[], object]) -> object:
    try:
        return function()
    except (CorruptRecordError, EncodeError, IndexError) as error:
        return type(error), str(error)


@given(ROWS)
def test_compiled_code_writes_what_python_writes(given_rows: list[RowLike]) -> None:
    assert outcome(lambda: encode_batch(given_rows)) == without_library(lambda: encode_batch(given_rows))


@given(ROWS, st.data())
def test_compiled_code_reads_what_python_reads_of_any_bytes(
    given_rows: list[RowLike], data: st.DataObject
) -> None:
    """Complete and damaged records give equal rows, or an equal error."""
    written = bytearray(row_format.encode_records(given_rows, 0, None))
    count = len(given_rows) + data.draw(st.integers(-1, 1))
    for _ in range(data.draw(st.integers(0, 3))):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(written[: data.draw(st.integers(0, len(written)))] if data.draw(st.booleans()) else written)
    appended_at = data.draw(st.none() | st.just(77))

    def read() -> object:
        return row_format.decode_some(cut, 0, count, 1 << 40, 1_700_000_000_000, appended_at, "t", 3)

    assert outcome(read) == without_library(read)


@pytest.mark.parametrize(
    "row",
    [
        (b"k", "text", (), 0),
        (b"k", 5, (), 0),
        (b"k", b"v", [("h",)], 0),
        (b"k", b"v", [(b"h", b"v")], 0),
        (b"k", b"v", [("\ud800", b"v")], 0),
        (b"k", b"v", (), "now"),
        (b"k", b"v", (), 1.5),
        (b"k", b"v", 7, 0),
        (b"k", b"v"),
    ],
)
def test_a_row_that_cannot_be_written_is_the_same_error(row: tuple) -> None:  # type: ignore[type-arg]
    found = outcome(lambda: encode_batch([row, row]))  # type: ignore[list-item]
    assert found == without_library(lambda: encode_batch([row, row]))  # type: ignore[list-item]


class Text(bytes):
    """A subclass of bytes, for which the compiled code must leave the work to Python."""


def test_what_only_python_decides_is_written_as_well() -> None:
    rare: list[RowLike] = [(Text(b"k"), bytearray(b"v"), iter([("h", b"x")]), True)]  # type: ignore[list-item]
    batch = encode_batch(rare)
    assert decode_rows(batch, "t", 0)[0][0][5:] == (b"k", b"v", [("h", b"x")])


@pytest.mark.skipif(native.LIBRARY is None, reason="the package was installed without a C compiler")
def test_compiled_rows_leave_nothing_behind() -> None:
    data = sample_log()
    broken = encode_batch([(b"k", b"v" * 40, [("h", b"v")], 0)] * 5)[:-9]

    def work() -> None:
        for some, _ in iter_rows(data, "t", 0):
            encode_batch([record[5:8] + (record.timestamp,) for record in some])  # noqa: RUF005
        for _ in range(3):
            outcome(lambda: row_format.decode_some(broken[61:], 0, 5, 0, 0, None, "t", 0))

    def growth() -> int:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100):
            work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    work()
    tracemalloc.start()
    try:
        # tracemalloc counts every thread of the process, such as a broker of another test: what is left
        # behind is left behind in each window, what another thread took is not.
        assert any(growth() < 20_000 for _ in range(5))
        assert gc.isenabled()
    finally:
        tracemalloc.stop()


def test_the_collector_looks_only_at_compiled_rows_that_could_be_in_a_cycle() -> None:
    data = encode_batch([(b"k", b"v", (), 0), (b"k", b"v", [("h", b"v")], 0)])
    plain, with_headers = decode_rows(data, "t", 0)[0]
    is_plain_python = native.LIBRARY is None
    assert (gc.is_tracked(plain), gc.is_tracked(with_headers)) == (is_plain_python, True)
    ((shared, _), _), *_ = iter_rows(data, "t", 0, record_class=ShareRecord)
    assert gc.is_tracked(shared)  # it has a dictionary
