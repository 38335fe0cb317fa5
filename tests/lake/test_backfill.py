"""Tests of a backfill, which lands the records before a live stream's start in its table, each once."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lake.places import Place, land, place, polled
from lake.s3_server import Store
from penstock import Admin, Broker, write_topic
from penstock.cli import main
from penstock.errors import ConfigError
from penstock.lake.backfill import BACKFILL_SUFFIX, backfill_source
from penstock.lake.lander import Lander, LandSettings
from penstock.lake.shapes import ShapeSettings

KINDS = ("directory", "object", "delta", "iceberg")
PARTITIONS = 3


class Topic:
    """The topic ``orders`` of a test: each record holds the next number."""

    def __init__(self, servers: str, where: Place) -> None:
        self.settings = LandSettings("orders", servers, ShapeSettings("json"), start="latest")
        self._servers = servers
        self._where = where
        self.count = 0
        with Admin(servers) as admin:
            admin.create_topic("orders", partitions=PARTITIONS)

    def fill(self, count: int) -> None:
        numbers = range(self.count, self.count + count)
        self.count += count
        values = [json.dumps({"n": n}).encode() for n in numbers]
        partitions = pa.array([n % PARTITIONS for n in numbers], pa.int32())
        write_topic(
            pa.table({"value": values, "partition": partitions}), "orders", bootstrap_servers=self._servers
        )

    def follow(self) -> None:
        """Land the records that arrived after the live stream had stopped."""
        land(self._where, self._servers, ShapeSettings("json"), start="latest")

    def begin_live(self, count: int) -> None:
        """Start a live stream at the topic's present end, write `count` records, and land them."""
        with Lander(self.settings, self._where.table(), self._where.dead) as live:
            self.fill(count)
            live._reader.look()  # type: ignore[attr-defined]  # or the end is that of before
            live.run(follow=False)

    def backfill(self, directory: str | None = None) -> Lander:
        """Return a new backfill, as a new process would start it."""
        source = backfill_source(self.settings, self._where.table(), directory)
        return Lander(
            self.settings, self._where.table(writer=f"orders{BACKFILL_SUFFIX}"), self._where.dead, source
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_backfill_goes_beside_the_live_stream(
    kind: str, store: Store, servers: str, tmp_path: Path
) -> None:
    there = place(kind, store, tmp_path)
    topic = Topic(servers, there)
    topic.fill(60)
    with pytest.raises(ConfigError, match="does not say where the landing of 'orders' has begun"):
        topic.backfill()
    topic.begin_live(30)
    assert sorted(there.rows().column("n").to_pylist()) == list(range(60, 90))
    with topic.backfill() as killed:
        records = polled(killed)
        killed.take(records)
        killed.commit()
        killed.take(polled(killed))
    topic.fill(30)
    topic.follow()
    with topic.backfill() as second:
        assert 0 < second.run(follow=False).rows < 60
        assert second.lag == 0
    topic.fill(30)
    topic.follow()
    with topic.backfill() as third:
        assert third.run(follow=False).commits == 0
    assert sorted(there.rows().column("n").to_pylist()) == list(range(topic.count))


@pytest.mark.parametrize("kind", ["directory", "iceberg"])
def test_a_backfill_reads_the_directory_of_a_log(kind: str, store: Store, tmp_path: Path) -> None:
    there = place(kind, store, tmp_path)
    log = tmp_path / "log"
    with Broker(data_dir=log) as broker:
        servers = broker.bootstrap_servers
        topic = Topic(servers, there)
        topic.fill(60)
        topic.begin_live(30)
    with topic.backfill(str(log)) as whole:
        records = whole._reader.poll(0)
        whole.take(records)
        whole.commit()
    with topic.backfill(str(log)) as again:
        assert again.run(follow=False).rows == 60 - records.num_rows
    assert sorted(there.rows().column("n").to_pylist()) == list(range(90))
    (log / "orders-1" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    with pytest.raises(ConfigError, match="has partitions of 2 topics named 'orders'"):
        topic.backfill(str(log))


def test_the_command_backfills(store: Store, servers: str, tmp_path: Path) -> None:
    there = place("directory", store, tmp_path)
    topic = Topic(servers, there)
    topic.fill(20)
    topic.begin_live(10)
    words = ["land", "orders", "--to", there.where, "-b", servers, "--format", "json", "--backfill"]
    assert main(words) == 0
    assert main(words) == 0
    assert sorted(there.rows().column("n").to_pylist()) == list(range(30))
    assert main([*words, "--upsert"]) == 2
    assert main([*words, "-f"]) == 2
    assert main([word for word in words if word != "--backfill"] + ["--from-log", str(tmp_path)]) == 2
