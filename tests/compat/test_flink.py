"""Apache Flink's exactly-once source and sink in a Penstock cluster, with a job that fails and restarts.

Flink commits a transaction with another producer than the one that wrote it. It sets that producer's private
producer id and epoch to the values in a checkpoint.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.peers import HERE, java, maven_classpath
from penstock import Admin, Producer, read_topic
from penstock.testing import KafkaCluster

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

ROWS, PARTITIONS = 6_000, 4
OPENED = tuple(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("util", "lang", "time", "net"))
"""JVM options that open Java packages whose private fields Flink accesses."""


@pytest.mark.parametrize("release", [pytest.param("1.20", marks=pytest.mark.again), "2.1"])
def test_each_record_is_written_once_by_a_job_that_fails(release: str, tmp_path: Path) -> None:
    with KafkaCluster(3) as cluster, Admin(cluster.bootstrap_servers) as admin:
        for topic in ("in", "out"):
            admin.create_topic(topic, PARTITIONS)
        rows = sorted(b"%d" % number for number in range(ROWS))
        with Producer(cluster.bootstrap_servers) as producer:
            for row in rows:
                producer.send("in", row, key=row)
        place = f"file://{tmp_path}/checkpoints"
        arguments = (cluster.bootstrap_servers, place, ROWS // 4)
        done = java(
            maven_classpath(f"flink-{release}"),
            HERE / "java" / "flink" / "ExactlyOnce.java",
            *map(str, arguments),
            timeout_s=300,
            check=True,
            options=OPENED,
        )
        assert "failures 4" in done.stdout
        written = read_topic("out", cluster.bootstrap_servers, isolation="read_committed")
        assert sorted(written["value"].to_pylist()) == rows
        # Flink commits offsets after a checkpoint, to show progress: a job that ends does not wait for it.
        committed = admin.list_group_offsets("flink")
        ends = admin.list_offsets(dict.fromkeys(committed, -1))
        assert committed
        for place, each in committed.items():
            end = ends[place]
            assert end is not None
            assert 0 < each.offset <= end.offset
