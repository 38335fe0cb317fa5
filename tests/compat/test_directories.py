"""Data directories of a killed Apache Kafka: `read_log` reads them, and Penstock's broker starts on them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat.peers import real_kafka
from penstock import Admin, Broker, read_log, read_topic

pytestmark = pytest.mark.compat

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COUNT = 500
"""The number of records per codec."""


def fill(servers: str) -> None:
    """Write two partitions of several segments each, in every codec, with an idempotent producer."""
    admin = AdminClient({"bootstrap.servers": servers})
    topic = NewTopic("flights", 2, 1, config={"segment.bytes": "1048576", "index.interval.bytes": "500"})
    admin.create_topics([topic])["flights"].result(180)
    rng = random.Random(7)
    for codec in CODECS:
        producer = Producer(
            {
                "bootstrap.servers": servers,
                "compression.type": codec,
                "enable.idempotence": True,
                "batch.num.messages": 50,
                "log_level": 0,
            }
        )
        for number in range(COUNT):
            value = None if number % 100 == 7 else b"%s %d " % (codec.encode(), number) + rng.randbytes(3000)
            producer.produce(
                "flights", value, key=b"k%d" % number, headers=[("h", b"1")], partition=number % 2
            )
        assert producer.flush(180) == 0


def plain(table: pa.Table) -> list[dict[str, object]]:
    return table.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist()


@pytest.mark.parametrize("version", ["4.3.0", pytest.param("3.9.1", marks=pytest.mark.soak)])
def test_a_directory_changes_hands(version: str, tmp_path: Path) -> None:
    with real_kafka(version, directory=tmp_path) as servers:
        fill(servers)
        theirs = plain(read_topic("flights", servers))
    assert len(theirs) == COUNT * len(CODECS)
    assert len(list((tmp_path / "data" / "flights-0").glob("*.log"))) > 2

    # Nothing but what is read may change: a copy is for our broker.
    directory = tmp_path / "ours"
    shutil.copytree(tmp_path / "data", directory)
    assert plain(read_log(str(tmp_path / "data"), "flights")) == theirs
    with Broker(data_dir=str(directory)) as broker:
        assert plain(read_topic("flights", broker.bootstrap_servers)) == theirs
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            assert admin.describe_config("flights")["segment.bytes"].value == "1048576"
        fill_on(broker.bootstrap_servers)
        assert len(plain(read_topic("flights", broker.bootstrap_servers))) == len(theirs) + 10
    assert len(plain(read_log(str(directory), "flights"))) == len(theirs) + 10


def fill_on(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
    offsets: list[int] = []
    for _ in range(10):
        producer.produce(
            "flights", b"ours", partition=0, on_delivery=lambda _, message: offsets.append(message.offset())
        )
    assert producer.flush(180) == 0
    half = COUNT * len(CODECS) // 2
    assert offsets == list(range(half, half + 10))
