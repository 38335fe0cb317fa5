"""Tests of landed data files: partition directories, unusual values, file sizes and full disks."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import ConfigError, EncodeError, StorageError
from penstock.landing.files import FileSettings, TaskFiles
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import LandedFile
from penstock.landing.partitioning import directory, escaped, split
from penstock.landing.table import LandingTable

PLAIN = TableLayout(columns=(("n", "bigint"), ("kind", "string")))
BY_KIND = TableLayout(columns=(("n", "bigint"), ("kind", "string")), partition_by=("kind",))
BY_TIME = TableLayout(columns=(("n", "bigint"), ("timestamp", "timestamp")), partition_by=("date", "hour"))

ODD = [
    "a/b",
    "a=b",
    "..",
    ".",
    "%41",
    "50%",
    "ü",
    "日本",
    "a b",
    "a\nb",
    "'\"",
    "+&?#",
    "__HIVE_DEFAULT_PARTITION__",
]


def rows(kinds: list[str | None]) -> pa.RecordBatch:
    return pa.record_batch(
        {"n": pa.array(range(len(kinds)), pa.int64()), "kind": pa.array(kinds, pa.string())}
    )


def landed(
    tmp_path: Path, batch: pa.RecordBatch, layout: TableLayout, **settings: object
) -> list[LandedFile]:
    """Write one batch of rows as landed files, and return them."""
    table = LandingTable(tmp_path)
    files = TaskFiles(
        tmp_path,
        table.staging("w", 0),
        layout,
        "0",
        FileSettings(**settings),  # type: ignore[arg-type]
    )
    found = [*files.add(batch), *files.finish()]
    table.commit("w", 0, layout, found)
    return found


def test_odd_values_come_back_by_three_readers(tmp_path: Path) -> None:
    landed(tmp_path, rows([*ODD, None, ""]), BY_KIND)
    partitioning = ds.partitioning(pa.schema([("kind", pa.string())]), flavor="hive")
    table = ds.dataset(tmp_path, format="parquet", partitioning=partitioning).to_table()
    by_arrow = dict(zip(table["n"].to_pylist(), table["kind"].to_pylist(), strict=True))
    expected = {n: kind or None for n, kind in enumerate([*ODD, None, ""])}
    odd = ODD.index("__HIVE_DEFAULT_PARTITION__")
    assert by_arrow | {odd: ODD[odd]} == expected
    listed = duckdb.sql(
        f"select n, kind from read_parquet('{tmp_path}/**/*.parquet', hive_partitioning=true, "
        "hive_types={'kind': VARCHAR}) order by n"
    ).fetchall()
    assert dict(listed) | {odd: ODD[odd]} == expected


def test_rows_of_a_partition_keep_their_order_and_its_columns_leave_the_file(tmp_path: Path) -> None:
    files = landed(tmp_path, rows(["b", "a", None, "a", "b"]), BY_KIND)
    found = {
        file.partition["kind"]: pq.ParquetFile(tmp_path / file.path).read().to_pydict() for file in files
    }
    assert found == {"a": {"n": [1, 3]}, "b": {"n": [0, 4]}, None: {"n": [2]}}
    assert {file.path.split("/")[0] for file in files} == {
        "kind=a",
        "kind=b",
        "kind=__HIVE_DEFAULT_PARTITION__",
    }
    assert sum(file.rows for file in files) == 5
    assert all((tmp_path / file.path).stat().st_size == file.size_bytes for file in files)


def test_dates_and_hours_are_those_of_the_time_in_utc(tmp_path: Path) -> None:
    times = [
        datetime(2026, 1, 31, 23, 59, 59, 999_999, UTC),
        datetime(2026, 2, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        None,
    ]
    batch = pa.record_batch(
        {"n": pa.array(range(4), pa.int64()), "timestamp": pa.array(times, pa.timestamp("us", "UTC"))}
    )
    files = landed(tmp_path, batch, BY_TIME)
    assert sorted(file.path.rpartition("/")[0] for file in files) == [
        "date=1969-12-31/hour=23",
        "date=2026-01-31/hour=23",
        "date=2026-02-01/hour=0",
        "date=__HIVE_DEFAULT_PARTITION__/hour=__HIVE_DEFAULT_PARTITION__",
    ]


@settings(max_examples=60, deadline=None)
@given(
    kinds=st.lists(st.sampled_from(["a", "b", "", None]), min_size=1, max_size=30),
    seconds=st.lists(st.integers(-(10**5), 10**5), min_size=30, max_size=30),
)
def test_splitting_keeps_every_row_in_its_partition(kinds: list[str | None], seconds: list[int]) -> None:
    layout = TableLayout(
        columns=(("n", "bigint"), ("kind", "string"), ("timestamp", "timestamp")),
        partition_by=("kind", "date", "hour"),
    )
    times = pa.array([second * 1_000_000 for second in seconds[: len(kinds)]], pa.timestamp("us", "UTC"))
    batch = pa.RecordBatch.from_arrays([*rows(kinds).columns, times], ["n", "kind", "timestamp"])
    found = {}
    for values, part in split(batch, layout):
        numbers = part["n"].to_pylist()
        assert numbers == sorted(numbers)
        found |= dict.fromkeys(numbers, values)
    moments = [datetime.fromtimestamp(second, UTC) for second in seconds]
    assert found == {
        n: (kind, moments[n].date().isoformat(), str(moments[n].hour)) for n, kind in enumerate(kinds)
    }


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20))
def test_names_of_directories(text: str) -> None:
    name = escaped(text)
    assert not set(name) & set("/=\x00\n ")
    unescaped = name
    if "%" in name:
        from urllib.parse import unquote

        unescaped = unquote(name)
    assert unescaped == text


def test_limits_of_partitions(tmp_path: Path) -> None:
    table = LandingTable(tmp_path)
    files = TaskFiles(tmp_path, table.staging("w", 0), BY_KIND, "0", FileSettings(partitions_max=3))
    list(files.add(rows(["a", "b", "c"])))
    with pytest.raises(ConfigError, match=r"more than 3 partitions by kind: .*landing\.maxPartitions"):
        list(files.add(rows(["d"])))
    files.abandon()
    assert not list(tmp_path.rglob("*.unfinished"))
    with pytest.raises(EncodeError, match=r"'kind' has 300 characters, too many for the name of a directory"):
        landed(tmp_path, rows(["ö" * 300]), BY_KIND)
    assert directory({"kind": "ö" * 120})


def test_a_file_that_is_large_enough_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.landing.files.ROW_GROUP_BYTES", 10_000)
    files = TaskFiles(tmp_path, tmp_path / "s", PLAIN, "0", FileSettings("none", file_bytes=50_000))
    batch = rows([f"{n:050d}" for n in range(300)])
    found = [file for _ in range(20) for file in files.add(batch)]
    assert len(found) > 3
    assert all(50_000 <= file.size_bytes < 100_000 for file in found)
    found += files.finish()
    assert sum(file.rows for file in found) == 6000
    assert len({file.path for file in found}) == len(found)


def test_what_is_held_for_many_partitions_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.landing.files.BUFFERED_BYTES_MAX", 20_000)
    files = TaskFiles(tmp_path, tmp_path / "s", BY_KIND, "0")
    for n in range(50):
        list(files.add(rows([f"{m % 7}" for m in range(n, n + 300)])))
        assert sum(file.buffered_bytes for file in files._open.values()) <= 20_000
    found = list(files.finish())
    assert len(found) == 7
    assert sum(file.rows for file in found) == 15_000


def test_texts_that_are_not_utf_8_do_not_spoil_the_file(tmp_path: Path) -> None:
    kinds = pa.array([b"good", b"b\xffd", None], pa.binary()).view(pa.string())
    batch = pa.RecordBatch.from_arrays([pa.array([0, 1, 2], pa.int64()), kinds], ["n", "kind"])
    (file,) = landed(tmp_path, batch, PLAIN)
    assert duckdb.sql(f"select kind from '{tmp_path / file.path}' order by n").fetchall() == [
        ("good",),
        ("b\ufffdd",),
        (None,),
    ]


@contextmanager
def room_for(size_bytes: int) -> Iterator[None]:
    """Limit the size of files, so that a larger write fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_one_clear_line_and_leaves_nothing(tmp_path: Path) -> None:
    table = LandingTable(tmp_path)
    files = TaskFiles(tmp_path, table.staging("w", 0), PLAIN, "0", FileSettings("none"))
    with room_for(10_000):
        with pytest.raises(StorageError, match=r"cannot write .*\.parquet: ") as caught:
            list(chain(files.add(rows([f"{n:050d}" for n in range(5000)])), files.finish()))
        files.abandon()
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.rglob("*.unfinished"))
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_manifest_that_cannot_be_written_decides_nothing(tmp_path: Path) -> None:
    table = LandingTable(tmp_path)
    files = TaskFiles(tmp_path, table.staging("w", 0), PLAIN, "0")
    found = [*files.add(rows(["a"])), *files.finish()]
    table.declare(PLAIN)
    with room_for(50), pytest.raises(StorageError, match=r"cannot write .*00\.json: "):
        table.commit("w", 0, PLAIN, found)
    assert list(table.files()) == []
    assert table.commit("w", 0, PLAIN, found).files == tuple(found)


@pytest.mark.parametrize(
    ("columns", "partition_by", "why"),
    [
        ((("n", "bigint"),), ("kind",), "no column 'kind' among n; date and hour are made of"),
        ((("key", "binary"), ("n", "int")), ("key",), "say 'key string' in landing.columns"),
        ((("n", "bigint"),), ("date",), "'date' is made of the column 'timestamp', which landing.columns"),
        ((("n", "bigint"),), ("n",), "there is nothing left for the files"),
        ((("n", "bigint"), ("m", "int")), ("n", "n"), "names a column twice"),
        ((("h", "map<string,string>"), ("m", "int")), ("h",), "can be named after string, int, bigint"),
    ],
)
def test_partition_columns_that_make_no_sense(
    columns: tuple[tuple[str, str], ...], partition_by: tuple[str, ...], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        TableLayout(columns=columns, partition_by=partition_by).check()
