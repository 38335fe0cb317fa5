"""`penstock land` writes tables to an S3 store while both are killed and requests fail.

The store is SeaweedFS.

It is built from the sources on Go's module proxy, in the versions of tests/compat/seaweedfs/go.sum.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from compat.faulty_proxy import faulty_proxy
from compat.lake_kills import land_the_rest, land_through_kills
from compat.seaweed_store import ACCESS_KEY, REGION, SECRET_KEY, SeaweedFS
from penstock import Broker
from penstock.lake.contract import LakeTable, TableSettings
from penstock.lake.credentials import StoreOptions
from penstock.lake.targets import open_table

pytestmark = [pytest.mark.compat, pytest.mark.soak]


@pytest.fixture
def seaweed(tmp_path: Path) -> Iterator[SeaweedFS]:
    """Provide a running store with the bucket ``lake``."""
    directory = tmp_path / "seaweed"
    directory.mkdir()
    store = SeaweedFS(directory)
    try:
        store.start()
        yield store
    finally:
        store.kill()


def options_of(kind: str, url: str, directory: Path) -> tuple[str, dict[str, str]]:
    """Return the location of a table of this kind, and the options of its store."""
    if kind == "object":
        own = {"endpoint": url, "access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY}
        return "s3://lake/orders/", {**own, "region": REGION}
    if kind == "delta":
        own = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        return "delta://s3://lake/delta", {**own, "AWS_REGION": REGION, "AWS_ALLOW_HTTP": "true"}
    return "iceberg://c/sales.orders", {
        "type": "sql",
        "uri": f"sqlite:///{directory}/catalog.db",
        "warehouse": "s3://lake/wh",
        "s3.endpoint": url,
        "s3.access-key-id": ACCESS_KEY,
        "s3.secret-access-key": SECRET_KEY,
        "s3.region": REGION,
    }


def rows_of(kind: str, where: str, options: dict[str, str], store: SeaweedFS) -> list[int]:
    """Return the sorted values that another library reads from the table."""
    found: pa.Table
    if kind == "object":
        files = store.files()
        there = files.get_file_info(pa.fs.FileSelector("lake/orders/_penstock/manifests", recursive=True))
        manifests = [json.loads(files.open_input_file(each.path).read()) for each in there if each.is_file]
        paths = [f"lake/orders/{file['path']}" for each in manifests for file in each["files"]]
        found = pa.concat_tables([pq.read_table(path, filesystem=files) for path in paths])
    elif kind == "delta":
        from deltalake import DeltaTable

        url = where.removeprefix("delta://")
        found = pa.table(DeltaTable(url, storage_options=options).to_pyarrow_table())
    else:
        from pyiceberg.catalog import load_catalog

        found = load_catalog("c", **options).load_table("sales.orders").scan().to_arrow()
    return sorted(found.column("n").to_pylist())


@pytest.mark.parametrize("kind", ["object", "delta", "iceberg"])
def test_writer_and_store_are_killed_and_requests_fail(kind: str, seaweed: SeaweedFS, tmp_path: Path) -> None:
    drawn = random.Random(f"seaweed {kind}")
    with Broker() as broker, faulty_proxy(seaweed.port) as proxy:
        servers = broker.bootstrap_servers

        where, options = options_of(kind, proxy.url, tmp_path)
        count = land_through_kills(
            where,
            options,
            servers,
            seaweed,
            proxy,
            drawn,
            methods=("PUT", "POST"),
            odds=0.15,
            directory=tmp_path,
        )
        straight, own = options_of(kind, f"http://127.0.0.1:{seaweed.port}", tmp_path)

        def table() -> LakeTable:
            return open_table(straight, "orders", TableSettings("orders"), StoreOptions(own))

        land_the_rest(servers, table())
        assert rows_of(kind, where, own, seaweed) == list(range(count))
        for _ in range(2):
            table().tidy(small_bytes=1, keep_snapshots_s=0, orphan_s=0)
        assert rows_of(kind, where, own, seaweed) == list(range(count))
        listed = seaweed.files().get_file_info(pa.fs.FileSelector("lake", recursive=True))
        left = [each.path for each in listed if each.path.endswith(".parquet")]
        assert len(left) == table().state().files
