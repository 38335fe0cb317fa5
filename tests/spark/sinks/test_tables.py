from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pytest

from penstock.errors import ConfigError, StorageError
from penstock.spark.sinks.tables import ParquetTable


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64())})


def read_all(path: Path) -> list[int]:
    """Return the numbers in the Parquet files, which Arrow and DuckDB must read alike."""
    by_arrow = sorted(pyarrow.dataset.dataset(path, format="parquet").to_table()["n"].to_pylist())
    by_duck = duckdb.sql(f"select n from '{path}/*.parquet' order by n").fetchall()
    assert by_arrow == [n for (n,) in by_duck]
    return by_arrow


def test_every_batch_once_however_often_it_runs(tmp_path: Path) -> None:
    table = ParquetTable(tmp_path / "new" / "table")
    table.commit(0, rows(1, 2))
    table.commit(1, rows(3))
    table.commit(1, rows(3))
    ParquetTable(table.path).commit(0, rows(1, 2))
    assert read_all(table.path) == [1, 2, 3]
    assert table.read()["n"].to_pylist() == [1, 2, 3]
    assert [file.name for file in table.files()] == [
        "batch-000000000000.parquet",
        "batch-000000000001.parquet",
    ]


def test_two_queries_share_a_directory_by_prefix(tmp_path: Path) -> None:
    left, right = ParquetTable(tmp_path, prefix="left"), ParquetTable(tmp_path, prefix="right")
    left.commit(0, rows(1))
    right.commit(0, rows(2))
    assert read_all(tmp_path) == [1, 2]
    assert left.read()["n"].to_pylist() == [1]
    assert right.read()["n"].to_pylist() == [2]


def test_empty_batches_leave_only_the_columns(tmp_path: Path) -> None:
    table = ParquetTable(tmp_path)
    table.commit(0, rows())
    assert read_all(tmp_path) == []
    assert table.read().schema == rows().schema
    table.commit(1, rows())
    assert len(list(table.files())) == 1
    table.commit(1, rows(7))
    table.commit(1, rows())
    assert read_all(tmp_path) == []


def test_leftovers_are_hidden_and_then_removed(tmp_path: Path) -> None:
    table = ParquetTable(tmp_path)
    table.commit(0, rows(1))
    leftover = tmp_path / ".batch-000000000001.parquet.123.unfinished"
    leftover.write_bytes(b"PAR1 torn")
    assert read_all(tmp_path) == [1]
    ParquetTable(tmp_path)
    assert not leftover.exists()
    assert read_all(tmp_path) == [1]


def test_killed_at_any_moment_no_reader_sees_a_part(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys
        import pyarrow as pa
        from penstock.spark.sinks.tables import ParquetTable
        table = ParquetTable(sys.argv[1])
        for batch in range(10**6):
            first = batch % 5 * 1000
            table.commit(batch % 5, pa.table({"n": pa.array(range(first, first + 1000))}))
            print(batch, flush=True)
    """)
    for commits in (1, 3, 12):
        process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        for batch in range(commits):
            assert process.stdout.readline() == b"%d\n" % batch
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        seen = read_all(tmp_path)
        batches = {number // 1000 for number in seen}
        assert batches >= set(range(min(commits, 5)))
        assert seen == [
            number for batch in sorted(batches) for number in range(batch * 1000, batch * 1000 + 1000)
        ]


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="hidden from readers"):
        ParquetTable(tmp_path, prefix="_x")
    with pytest.raises(ConfigError, match="counts from 0"):
        ParquetTable(tmp_path).commit(-1, rows(1))
    with pytest.raises(ConfigError, match="no batch has been written"):
        ParquetTable(tmp_path).read()
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        ParquetTable(tmp_path / "file" / "table")


def test_a_vanished_directory_is_one_clear_line(tmp_path: Path) -> None:
    table = ParquetTable(tmp_path / "t")
    (tmp_path / "t").rmdir()
    with pytest.raises(StorageError, match=r"cannot write .*batch-000000000000\.parquet: ") as caught:
        table.commit(0, rows(1))
    assert "\n" not in str(caught.value)
