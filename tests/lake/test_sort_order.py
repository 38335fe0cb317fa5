"""Tests that Iceberg data files have their table's sort order after writing and after compaction."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.places import Place, land, place
from lake.s3_server import Store
from penstock import write_topic
from penstock.cli import main
from penstock.errors import ConfigError
from penstock.lake.arrow_types import fields_of
from penstock.lake.shapes import ShapeSettings

JSON = ShapeSettings("json", fields_of("city string, n bigint"))


def fill(servers: str, seed: str) -> None:
    drawn = random.Random(seed)
    rows = [{"city": drawn.choice(["Oslo", "Bergen", None]), "n": drawn.randrange(100)} for _ in range(60)]
    rows = [{name: each for name, each in row.items() if each is not None} for row in rows]
    write_topic(
        pa.table({"value": [json.dumps(row).encode() for row in rows]}), "orders", bootstrap_servers=servers
    )


def check_files(there: Place, *, files: int, order_id: int) -> None:
    """Raise AssertionError unless every file is sorted by city, nulls first, and by descending n."""
    from pyiceberg.catalog import load_catalog

    table = load_catalog("c", **there.options).load_table("sales.orders")
    found = [task.file for task in table.scan().plan_files()]
    assert len(found) == files
    for file in found:
        assert file.sort_order_id == order_id
        rows = pq.read_table(file.file_path.removeprefix("file://")).select(["city", "n"]).to_pylist()
        assert len(rows) > 10
        assert rows == sorted(rows, key=lambda row: (row["city"] is not None, row["city"] or "", -row["n"]))


@pytest.mark.parametrize("partitions", [(), ("bucket(2, n)",)])
def test_files_are_sorted_when_written_and_put_together(
    partitions: tuple[str, ...], store: Store, servers: str, tmp_path: Path
) -> None:
    there = place("iceberg", store, tmp_path)
    table = there.table(sort_by=("city", "n desc"), partition_by=partitions)
    fill(servers, "first")
    land(there, servers, JSON, table=table)
    fill(servers, "second")
    # The order is the table's: whoever lands into it keeps it.
    land(there, servers, JSON, table=there.table(partition_by=partitions))
    parts = 2 if partitions else 1
    check_files(there, files=2 * parts, order_id=1)
    there.table().tidy(small_bytes=1 << 20, keep_snapshots_s=0, orphan_s=0)
    check_files(there, files=parts, order_id=1)


def test_an_order_is_set_for_a_table_that_is_there(store: Store, servers: str, tmp_path: Path) -> None:
    there = place("iceberg", store, tmp_path)
    fill(servers, "first")
    land(there, servers, JSON)
    options = [f"--store={name}={value}" for name, value in there.options.items()]
    fill(servers, "second")
    words = ["land", "orders", "--to", there.where, "-b", servers, "--format", "json", *options]
    assert (
        main([*words, "--fields", "city string, n bigint", "--sort-by", "city", "--sort-by", "n desc"]) == 0
    )
    there.table().tidy(small_bytes=1 << 20, keep_snapshots_s=0, orphan_s=0)
    check_files(there, files=1, order_id=1)
    fill(servers, "third")
    with pytest.raises(ConfigError, match="no column 'town' among"):
        land(there, servers, JSON, table=there.table(sort_by=("town",)))
    with pytest.raises(ConfigError, match="only tables of Iceberg have a sort order"):
        place("delta", store, tmp_path).table(sort_by=("city",))
