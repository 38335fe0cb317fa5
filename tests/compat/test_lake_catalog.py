"""`penstock land` writes Iceberg tables that PyIceberg, DuckDB and Spark can read.

The tables are in Iceberg's own REST catalog, with OAuth.

Delta tables are tested as well. The topics are random, and their fields change in every way that a table
supports.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.evolving_topic import CHANGES, PARTITIONS, EvolvingTopic, as_rows, in_order
from compat.faulty_proxy import faulty_proxy
from compat.iceberg_rest import CREDENTIAL, IcebergRest
from compat.lake_kills import land_the_rest, land_through_kills
from compat.lake_readers import READERS, read_by
from penstock import Admin, Broker
from penstock.lake.arrow_types import fields_of
from penstock.lake.contract import LakeTable, TableSettings
from penstock.lake.credentials import StoreOptions
from penstock.lake.lander import Lander, LandSettings
from penstock.lake.shapes import ShapeSettings
from penstock.lake.targets import open_table

pytestmark = [pytest.mark.compat, pytest.mark.soak, pytest.mark.timeout(3000)]

SEEDS = 6
PARTS = 8


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[IcebergRest]:
    """Provide a running catalog server without tables."""
    directory = tmp_path / "catalog"
    directory.mkdir()
    found = IcebergRest(directory)
    try:
        found.start()
        yield found
    finally:
        found.kill()


def options_of(url: str) -> dict[str, str]:
    """Return the connection options for the catalog at a URL."""
    return {
        "type": "rest",
        "uri": url,
        "credential": CREDENTIAL,
        "oauth2-server-uri": f"{url}/v1/oauth/tokens",
    }


def test_drawn_topics_are_read_back_by_all_readers(catalog: IcebergRest, tmp_path: Path) -> None:
    expected, tables = {}, {}
    options = StoreOptions(options_of(catalog.url))
    for number in range(SEEDS):
        is_delta, upserts = number % 3 == 2, number % 2 == 1
        name = f"t{number}"
        tables[name] = where = f"delta://{tmp_path}/{name}" if is_delta else f"iceberg://c/drawn.{name}"
        with Broker() as broker:
            servers = broker.bootstrap_servers
            with Admin(servers) as admin:
                admin.create_topic("orders", partitions=PARTITIONS)
            topic = EvolvingTopic(f"lake {number}", servers, ("add",) if is_delta else CHANGES)
            for part in range(PARTS):
                changed: dict[str, object] = topic.change() if part else {}
                topic.write()
                shape = ShapeSettings("json", fields_of(topic.fields))
                settings = LandSettings("orders", servers, shape, upserts=upserts)
                made = TableSettings("orders", key=("key",) if upserts else (), **changed)  # type: ignore[arg-type]
                with Lander(settings, open_table(where, "orders", made, options)) as lander:
                    lander.run(follow=False)
        expected[name] = in_order(topic.latest if upserts else topic.rows)
        table = open_table(where, "orders", TableSettings("orders"), options)
        table.tidy(small_bytes=1 << 20, keep_snapshots_s=0, orphan_s=0)
    from pyiceberg.catalog import load_catalog

    found = load_catalog("c", **options_of(catalog.url))
    for name, where in tables.items():
        if where.startswith("iceberg"):
            assert as_rows(found.load_table(f"drawn.{name}").scan().to_arrow()) == expected[name], name
    for reader in READERS:
        for name, table_of in read_by(reader, tables, tmp_path, catalog.url).items():
            assert as_rows(table_of) == expected[name], (reader, name)


def test_writer_and_catalog_are_killed_and_answers_are_lost(catalog: IcebergRest, tmp_path: Path) -> None:
    drawn = random.Random("REST")
    where = "iceberg://c/sales.orders"
    with Broker() as broker, faulty_proxy(catalog.port) as proxy:
        servers = broker.bootstrap_servers

        count = land_through_kills(
            where,
            options_of(proxy.url),
            servers,
            catalog,
            proxy,
            drawn,
            methods=("POST",),
            odds=0.3,
            directory=tmp_path,
        )
        assert proxy.authorizations == {"Bearer client-credentials-token:sub=me"}

        def table() -> LakeTable:
            return open_table(where, "orders", TableSettings("orders"), StoreOptions(options_of(catalog.url)))

        land_the_rest(servers, table())
        for _ in range(2):
            table().tidy(small_bytes=1 << 20, keep_snapshots_s=0, orphan_s=0)
            for reader in READERS:
                found = read_by(reader, {"orders": where}, tmp_path, catalog.url)["orders"]
                assert sorted(found.column("n").to_pylist()) == list(range(count)), reader
        left = list((tmp_path / "catalog" / "warehouse").rglob("*.parquet"))
        assert len(left) == table().state().files
