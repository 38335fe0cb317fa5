"""Tables in a REST catalog, with OAuth, and commits whose answer is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from lake.places import Place, land
from lake.rest_catalog import rest_catalog
from lake.s3_server import Store
from penstock import write_topic
from penstock.errors import PenstockError
from penstock.lake.shapes import ShapeSettings

JSON = ShapeSettings("json")


def test_a_topic_goes_into_a_rest_catalog(store: Store, servers: str, tmp_path: Path) -> None:
    behind = SqlCatalog("b", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/wh")
    with rest_catalog(behind) as catalog:
        options = {"type": "rest", "uri": catalog.url, "credential": catalog.credential}
        options["oauth2-server-uri"] = f"{catalog.url}/v1/oauth/tokens"
        there = Place("iceberg://c/sales.orders", options, store, tmp_path)
        for part in range(3):
            values = [json.dumps({"n": n}).encode() for n in range(10 * part, 10 * part + 10)]
            write_topic(pa.table({"value": values}), "orders", bootstrap_servers=servers)
            # Every second commit is refused or answered wrongly.
            drawn = {2: "before", 4: "after", 6: "before"}
            catalog.fault = drawn.get
            for _ in range(10):
                try:
                    land(there, servers, JSON)
                    break
                except PenstockError as error:
                    print(error)
        catalog.fault = lambda number: None
        rows = there.rows().column("n").to_pylist()
        assert sorted(rows) == list(range(30))
        there.table().tidy(small_bytes=1, keep_snapshots_s=0, orphan_s=0)
        assert len(there.files()) == there.table().state().files
        wrong = Place(there.where, {**options, "credential": "me:wrong-hush"}, store, tmp_path)
        with pytest.raises(PenstockError) as caught:
            land(wrong, servers, JSON)
        assert "hush" not in str(caught.value)
