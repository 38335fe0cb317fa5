"""Locations to which tests land topics, and readers of the landed tables from other libraries."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lake.s3_server import Store
from penstock.lake.contract import LakeTable, TableSettings
from penstock.lake.credentials import StoreOptions
from penstock.lake.lander import Lander, LandSettings
from penstock.lake.shapes import ShapeSettings
from penstock.lake.targets import dead_letters_of, dead_settings, open_table

KINDS = ("directory", "object", "delta", "delta-s3", "iceberg", "iceberg-s3")


@dataclass(frozen=True)
class Place:
    """The location of a table, the options for its object store or catalog, and the object store."""

    where: str
    options: Mapping[str, str]
    store: Store
    directory: Path

    def table(self, topic: str = "orders", **settings: object) -> LakeTable:
        """Open the table again, as a new process would do."""
        made = TableSettings(**{"writer": topic, **settings})  # type: ignore[arg-type]
        return open_table(self.where, topic, made, StoreOptions(self.options))

    def dead(self, topic: str = "orders") -> LakeTable:
        """Open the table's dead letter table."""
        made = dead_settings(TableSettings(topic))
        return open_table(dead_letters_of(self.where), topic, made, StoreOptions(self.options))

    def rows(self, *, dead: bool = False) -> pa.Table:
        """Read the table, or its dead letter table, with the table format's own library."""
        where = dead_letters_of(self.where) if dead else self.where
        if where.startswith("iceberg://"):
            from pyiceberg.catalog import load_catalog

            return load_catalog("c", **self.options).load_table(where.rpartition("/")[2]).scan().to_arrow()
        if where.startswith("delta://"):
            from deltalake import DeltaTable

            url = where.removeprefix("delta://")
            return pa.table(DeltaTable(url, storage_options=dict(self.options)).to_pyarrow_table())
        if where.startswith("s3://"):
            prefix = where.removeprefix("s3://")
            found = []
            for name in self.store.names(f"{prefix}_penstock/manifests/"):
                manifest = json.loads(self.store.objects[name][0])
                paths = [prefix + file["path"] for file in manifest["files"]]
                found += [pq.read_table(io.BytesIO(self.store.objects[path][0])) for path in paths]
            return pa.concat_tables(found)
        import duckdb

        return duckdb.sql(f"from read_parquet('{where}/**/*.parquet')").to_arrow_table()

    def files(self) -> set[str]:
        """Return the names of all data files at the location, including those that no table lists."""
        if self.store.url in self.options.values():
            return {name for name in self.store.names("lake/") if name.endswith((".parquet", ".unfinished"))}
        found = (str(each) for each in self.directory.rglob("*.parquet*"))
        return {name for name in found if "_delta_log" not in name}


def place(kind: str, store: Store, directory: Path) -> Place:
    """Return a location of the given kind, such as a directory, an S3 prefix or a Delta table."""
    s3 = {"endpoint": store.url, "access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
    catalog = {"type": "sql", "uri": f"sqlite:///{directory}/catalog.db"}
    if kind == "directory":
        return Place(str(directory / "orders"), {}, store, directory)
    if kind == "object":
        return Place("s3://lake/orders/", s3, store, directory)
    if kind == "delta":
        return Place(f"delta://{directory}/delta", {}, store, directory)
    if kind == "delta-s3":
        delta = {
            "AWS_ENDPOINT_URL": store.url,
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
        return Place("delta://s3://lake/delta", delta, store, directory)
    if kind == "iceberg":
        return Place(
            "iceberg://c/sales.orders", {**catalog, "warehouse": f"file://{directory}/wh"}, store, directory
        )
    remote = {
        "warehouse": "s3://lake/wh",
        "s3.endpoint": store.url,
        "s3.access-key-id": "a",
        "s3.secret-access-key": "b",
        "s3.region": "us-east-1",
    }
    return Place("iceberg://c/sales.orders", {**catalog, **remote}, store, directory)


def land(
    where: Place,
    servers: str,
    shape: ShapeSettings | None = None,
    *,
    table: LakeTable | None = None,
    **more: object,
) -> Lander:
    """Land all records of the topic ``orders`` in the table, as a new process would do."""
    upserts = {"upserts": True} if more.pop("key", None) else {}
    settings = LandSettings("orders", servers, shape or ShapeSettings(), **{**upserts, **more})  # type: ignore[arg-type]
    with Lander(settings, where.table() if table is None else table, where.dead) as lander:
        lander.run(follow=False)
    return lander


def polled(lander: Lander) -> pa.RecordBatch:
    """Wait for the next records that a `Lander` reads from its topic, and return them."""
    while True:
        records: pa.RecordBatch | None = lander._reader.poll(5000)  # type: ignore[attr-defined]
        if records is not None and records.num_rows:
            return records
