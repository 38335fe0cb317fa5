"""Tests that columns are encoded to the bytes that rows give, and split into batches at the right records."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import EncodeError
from penstock.model import TimestampType
from penstock.records.arrow import HEADERS_TYPE, from_arrow, to_arrow
from penstock.records.batch import encode_batch
from penstock.records.columns import RecordColumns
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.decode import decode_columns
from penstock.records.encode import encode_columns
from penstock.records.format.batch_header import read_header, verify_crc
from penstock.records.row_format import RowLike

pytestmark = pytest.mark.usefixtures("engine")


def sample_rows(count: int, seed: int = 0) -> list[RowLike]:
    rng = random.Random(seed)

    def content() -> bytes | None:
        size = rng.choice([-1, 0, 1, 20, 63, 64, 200, 9000 if rng.random() < 0.05 else 5])
        return None if size < 0 else rng.randbytes(size)

    return [
        (
            content(),
            content(),
            [(rng.choice(["", "id", "größe"]), content()) for _ in range(rng.choice([0, 0, 1, 3, 70]))],
            1_700_000_000_000 + rng.randint(-100_000, 100_000_000),
        )
        for _ in range(count)
    ]


def arrow_of(rows: list[RowLike]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row[0] for row in rows], pa.binary()),
            pa.array([row[1] for row in rows], pa.binary()),
            pa.array([[{"key": k, "value": v} for k, v in row[2]] for row in rows], HEADERS_TYPE),
            pa.array([row[3] * 1000 for row in rows], pa.timestamp("us", tz="UTC")),
        ],
        names=["key", "value", "headers", "timestamp"],
    )


@pytest.mark.parametrize("codec", list(CompressionCodec))
def test_same_bytes_as_from_rows(codec: CompressionCodec) -> None:
    rows = sample_rows(80)
    options = {
        "codec": codec,
        "producer_id": 9,
        "producer_epoch": 2,
        "base_sequence": 5,
        "is_transactional": True,
    }
    batches = encode_columns(from_arrow(arrow_of(rows)), batch_bytes_max=1 << 24, **options)
    assert [bytes(batch) for batch in batches] == [encode_batch(rows, **options)]


def test_slices_of_arrow_batches() -> None:
    rows = sample_rows(50)
    for start, count in ((0, 50), (1, 20), (13, 37), (49, 1), (8, 8)):
        batches = encode_columns(from_arrow(arrow_of(rows).slice(start, count)), batch_bytes_max=1 << 24)
        assert [bytes(batch) for batch in batches] == [encode_batch(rows[start : start + count])]


@pytest.mark.parametrize("limit", [1, 500, 2000, 20_000])
def test_batches_keep_to_the_limit(limit: int) -> None:
    rows = sample_rows(120)
    batches = encode_columns(
        from_arrow(arrow_of(rows)), batch_bytes_max=limit, base_offset=1000, base_sequence=7
    )
    offset = 1000
    for batch in batches:
        header = read_header(batch)
        verify_crc(batch, 0, len(batch))
        assert header.base_offset == offset
        assert header.base_sequence == offset - 993
        first = offset - 1000
        expected = rows[first : first + header.record_count]
        assert bytes(batch) == encode_batch(expected, base_offset=offset, base_sequence=offset - 993)
        assert len(batch) <= limit or header.record_count == 1
        offset += header.record_count
        if offset < 1120:  # the next record would not have fitted
            assert len(encode_batch(rows[first : offset - 1000 + 1])) > limit
    assert offset == 1120
    assert sum(read_header(batch).record_count for batch in encode_columns(from_arrow(arrow_of(rows)))) == 120


def test_more_batches_than_one_table_plans() -> None:
    rows: list[RowLike] = [(None, b"%d" % n, (), 0) for n in range(2500)]
    batches = encode_columns(from_arrow(arrow_of(rows)), batch_bytes_max=1, base_offset=0)
    assert len(batches) == 2500
    back = decode_columns(batches, columns=["value", "offset"])
    assert back.value is not None
    assert back.value.to_list() == [row[1] for row in rows]
    assert back.next_offset == 2500


def test_rows_selected_and_ordered() -> None:
    rows = sample_rows(40)
    columns = from_arrow(arrow_of(rows))
    for chosen in ([5, 3, 3, 39, 0], list(range(0, 40, 2)), [7]):
        batches = encode_columns(columns, rows=np.array(chosen), batch_bytes_max=1 << 24)
        assert [bytes(batch) for batch in batches] == [encode_batch([rows[n] for n in chosen])]
    assert encode_columns(columns, rows=np.array([], dtype=np.int64)) == []
    for outside in ([40], [-1]):
        with pytest.raises(EncodeError, match="outside"):
            encode_columns(columns, rows=np.array(outside))


def test_columns_that_are_absent() -> None:
    columns = from_arrow(
        pa.RecordBatch.from_arrays([pa.array([b"a", None])], names=["value"]), timestamp_ms=77
    )
    (batch,) = encode_columns(columns, timestamp_type=TimestampType.CREATE_TIME)
    assert bytes(batch) == encode_batch([(None, b"a", (), 77), (None, None, (), 77)])
    (batch,) = encode_columns(RecordColumns(1, timestamps=np.array([5])))
    assert bytes(batch) == encode_batch([(None, None, (), 5)])
    assert encode_columns(RecordColumns(0, timestamps=np.array([], dtype=np.int64))) == []
    with pytest.raises(EncodeError, match="timestamps"):
        encode_columns(RecordColumns(1))


def test_extreme_timestamps() -> None:
    rows: list[RowLike] = [(None, None, (), time) for time in (0, (1 << 63) - 1, -1)]
    columns = RecordColumns(3, timestamps=np.array([row[3] for row in rows]))
    assert [bytes(batch) for batch in encode_columns(columns)] == [encode_batch(rows)]


def test_sequence_numbers_wrap() -> None:
    columns = RecordColumns(3, timestamps=np.zeros(3, dtype=np.int64))
    batches = encode_columns(
        columns, batch_bytes_max=1, base_sequence=0x7FFFFFFF, producer_id=1, producer_epoch=0
    )
    assert [read_header(batch).base_sequence for batch in batches] == [0x7FFFFFFF, 0, 1]


def test_what_cannot_be_written() -> None:
    columns = RecordColumns(1, timestamps=np.array([5]))
    for options in ({"codec": 6}, {"producer_epoch": 1 << 20}, {"codec": 1, "level": 1 << 40}):
        with pytest.raises(EncodeError):
            encode_columns(columns, **options)


def test_batches_decode_to_what_was_encoded() -> None:
    batch = arrow_of(sample_rows(200))
    back = to_arrow(
        decode_columns(encode_columns(from_arrow(batch), codec=CompressionCodec.LZ4)),
        "t",
        0,
        batch.schema.names,
    )
    assert back.equals(batch)
