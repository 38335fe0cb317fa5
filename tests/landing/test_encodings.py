"""Tests of the encoding and compression of landed Parquet columns, which a sample of rows decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.landing.encodings import (
    REPEATS_ROWS,
    SAMPLED_BYTES_LEAST,
    columns_with_dictionary,
    columns_with_statistics,
    compressions,
)
from penstock.landing.files import FileSettings, TaskFiles
from penstock.landing.layout import TableLayout

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
EXTENSIONS = pa.map_(pa.string(), pa.string())
ROWS = 16_384


def noise(rows: int = ROWS, size: int = 100) -> pa.Array:
    data = np.random.default_rng(7).bytes(rows * size)
    return pa.array([data[at : at + size] for at in range(0, rows * size, size)], pa.binary())


def texts(rows: int = ROWS) -> pa.Array:
    return pa.array([b'{"order":%d,"place":"store-%03d"}' % (n, n % 500) * 3 for n in range(rows)])


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4"])
def test_what_does_not_get_smaller_is_stored_as_it_is(codec: str) -> None:
    batch = pa.record_batch({"key": texts(), "value": noise()})
    assert compressions([batch], codec) == {"key": codec, "value": "none"}


def test_a_small_column_is_compressed_untried() -> None:
    few = noise(SAMPLED_BYTES_LEAST // 200)
    assert compressions([pa.record_batch({"value": few})], "zstd") == {"value": "zstd"}


def test_samples_are_taken_from_all_of_the_row_group() -> None:
    pieces = [pa.record_batch({"value": piece}) for piece in (noise(), texts(), texts(), texts())]
    assert compressions(pieces, "zstd") == {"value": "zstd"}


def test_a_sample_of_a_slice_is_of_its_own_rows() -> None:
    both = pa.record_batch({"value": pa.chunked_array([texts(), noise()]).combine_chunks()})
    assert compressions([both.slice(0, ROWS)], "zstd") == {"value": "zstd"}
    assert compressions([both.slice(ROWS)], "zstd") == {"value": "none"}


def test_nulls_and_no_bytes_at_all_are_no_obstacle() -> None:
    rows = SAMPLED_BYTES_LEAST
    batch = pa.record_batch({"key": pa.nulls(rows, pa.binary()), "value": pa.array([b""] * rows)})
    assert compressions([batch], "zstd") == {"key": "zstd", "value": "zstd"}


def test_without_a_codec_no_column_has_one() -> None:
    assert compressions([pa.record_batch({"value": texts()})], "none") == {"value": "none"}


def test_a_dictionary_is_for_values_that_repeat() -> None:
    rows = REPEATS_ROWS
    batch = pa.record_batch(
        {
            "key": pa.array([b"store-%d" % (n % 500) for n in range(rows)]),
            "id": pa.array([str(n) for n in range(rows)]),
            "value": pa.array([b"alike"] * rows),
            "partition": pa.array([1] * rows, pa.int32()),
            "offset": pa.array(range(rows)),
        }
    )
    assert columns_with_dictionary([batch]) == ["key", "partition"]
    assert columns_with_statistics(batch.schema.names) == ["id", "partition", "offset"]


def test_a_file_has_each_column_in_its_way_and_all_rows(tmp_path: Path) -> None:
    table = pa.table(
        {
            "key": pa.array([b"k%d" % (n % 9) for n in range(ROWS)]),
            "value": noise(),
            "headers": pa.array([[{"key": "a", "value": b"b"}]] * ROWS, HEADERS),
            "extensions": pa.array([[("hue", "red")]] * ROWS, EXTENSIONS),
        }
    )
    kinds = ("binary", "binary", "array<struct<key:string,value:binary>>", "map<string,string>")
    layout = TableLayout(tuple(zip(table.column_names, kinds, strict=True)), (), "timestamp", "parquet")
    files = TaskFiles(tmp_path, tmp_path / "staging", layout, "0", FileSettings())
    for batch in table.to_batches(max_chunksize=1000):
        assert not [*files.add(batch)]
    (landed,) = files.finish()
    file = pq.ParquetFile(tmp_path / landed.staged)
    columns = [file.metadata.row_group(0).column(i) for i in range(file.metadata.num_columns)]
    codecs = {column.path_in_schema: column.compression for column in columns}
    assert codecs.pop("value") == "UNCOMPRESSED"
    assert len(codecs) == 5
    assert set(codecs.values()) == {"ZSTD"}
    encodings = {column.path_in_schema: set(column.encodings) for column in columns}
    assert "RLE_DICTIONARY" in encodings["key"]
    assert encodings["value"] == {"PLAIN", "RLE"}
    assert file.read() == table
