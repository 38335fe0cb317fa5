"""Tests of reading a landed table's files through its manifests, for readers that take lists of files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.errors import ConfigError
from penstock.landing.files import TaskFiles
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import LandedFile
from penstock.landing.table import LandingTable
from penstock.tables import landed_dataset, landed_files

LAYOUT = TableLayout(
    columns=(("n", "bigint"), ("code", "string"), ("timestamp", "timestamp")),
    partition_by=("code", "date", "hour"),
)


def write(table: LandingTable, batch: int) -> list[LandedFile]:
    times = pa.array([batch * 3_600_000_000] * 3, pa.timestamp("us", "UTC"))
    rows = pa.record_batch(
        {
            "n": pa.array(range(batch * 3, batch * 3 + 3), pa.int64()),
            "code": ["007", None, "a/b"],
            "timestamp": times,
        }
    )
    files = TaskFiles(table.root, table.staging("w", batch), LAYOUT, str(batch))
    return [*files.add(rows), *files.finish()]


@pytest.fixture
def table(tmp_path: Path) -> LandingTable:
    """Create a landed table with two committed batches and the files of an uncommitted one."""
    table = LandingTable(tmp_path / "t")
    for batch in range(2):
        table.commit("w", batch, LAYOUT, write(table, batch))
    write(table, 7)
    return table


def test_what_counts_is_found_in_either_place(table: LandingTable) -> None:
    assert len(landed_files(table.root)) == 6
    found = table.newest("w")
    assert found is not None
    # As after an interruption between the manifest and the names.
    file = found.files[0]
    (table.root / file.staged).parent.mkdir(parents=True)
    (table.root / file.path).rename(table.root / file.staged)
    assert sorted(landed_dataset(table.root).to_table()["n"].to_pylist()) == [*range(6)]
    by_duckdb = duckdb.sql(f"select n from read_parquet({landed_files(table.root)!r}) order by n").fetchall()
    assert by_duckdb == [(n,) for n in range(6)]


def test_partition_columns_have_their_types(table: LandingTable) -> None:
    dataset = landed_dataset(table.root)
    assert dict(zip(dataset.schema.names, map(str, dataset.schema.types), strict=True)) == {
        "n": "int64",
        "timestamp": "timestamp[us, tz=UTC]",
        "code": "string",
        "date": "date32[day]",
        "hour": "int32",
    }
    rows = dataset.to_table(filter=(pc.field("code") == "007") & (pc.field("hour") == 1)).to_pylist()
    assert [(row["n"], row["code"], str(row["date"]), row["hour"]) for row in rows] == [
        (3, "007", "1970-01-01", 1)
    ]
    assert dataset.to_table(filter=pc.field("code").is_null())["n"].to_pylist() == [1, 4]


def test_where_nothing_has_been_landed(tmp_path: Path) -> None:
    for call in (landed_files, landed_dataset):
        with pytest.raises(ConfigError, match="nothing has been landed in"):
            call(tmp_path)
    LandingTable(tmp_path).declare(LAYOUT)
    assert landed_files(tmp_path) == []
    with pytest.raises(ConfigError, match="no batch has a file"):
        landed_dataset(tmp_path)
