"""Tests of landing in an Iceberg REST catalog, with OAuth and with commits whose response is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lake.places import Place, land, polled
from lake.s3_server import Store
from penstock import write_topic
from penstock.errors import PenstockError, StorageError
from penstock.lake.lander import Lander, LandSettings
from penstock.lake.shapes import ShapeSettings

if TYPE_CHECKING:
    from lake.rest_catalog import Catalog

JSON = ShapeSettings("json")


@contextmanager
def rest_catalog(directory: Path) -> Iterator[Catalog]:
    """Start a REST catalog with its tables in `directory`, and yield its state.

    PyIceberg is imported in this function, because importing it takes half a second.
    """
    from pyiceberg.catalog.sql import SqlCatalog

    from lake import rest_catalog

    behind = SqlCatalog("b", uri=f"sqlite:///{directory}/catalog.db", warehouse=f"file://{directory}/wh")
    with rest_catalog.rest_catalog(behind) as catalog:
        yield catalog


def test_a_topic_goes_into_a_rest_catalog(store: Store, servers: str, tmp_path: Path) -> None:
    with rest_catalog(tmp_path) as catalog:
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


def test_tokens_expire_while_a_topic_is_landed(store: Store, servers: str, tmp_path: Path) -> None:
    with rest_catalog(tmp_path) as catalog:
        # A landing makes several requests for each commit: tokens expire before, between and after them.
        catalog.token_requests = 3
        options = {"type": "rest", "uri": catalog.url, "credential": catalog.credential}
        options["oauth2-server-uri"] = f"{catalog.url}/v1/oauth/tokens"
        there = Place("iceberg://c/sales.orders", options, store, tmp_path)
        settings = LandSettings("orders", servers, JSON)
        write_topic(pa.table({"value": [b'{"n": 0}']}), "orders", bootstrap_servers=servers)
        with Lander(settings, there.table(), there.dead) as lander:
            lander.run(follow=False)
            for n in range(1, 8):
                write_topic(pa.table({"value": [b'{"n": %d}' % n]}), "orders", bootstrap_servers=servers)
                lander.take(polled(lander))
                lander.commit()
            assert lander.written.commits == 8
        assert catalog.refused >= 5
        assert catalog.tokens > catalog.refused
        there.table().tidy(small_bytes=1 << 20, keep_snapshots_s=0, orphan_s=0)
        assert sorted(there.rows().column("n").to_pylist()) == list(range(8))
        # A token that was good once, given as such, is not exchanged for another one.
        stale = {"type": "rest", "uri": catalog.url, "token": catalog.token}
        catalog.tokens += 1
        with pytest.raises(StorageError) as caught:
            Lander(settings, Place(there.where, stale, store, tmp_path).table())
        assert stale["token"] not in str(caught.value)
