"""Penstock serves data directories of releases before 3.9 at their metadata level.

The old release can therefore take them back.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from compat.handover import Turns, again
from compat.peers import until
from penstock import Admin, read_topic
from penstock.broker.metadata.directory_levels import describe

pytestmark = [pytest.mark.compat, pytest.mark.soak, pytest.mark.timeout(900)]


def add(servers: str, tag: str) -> None:
    """Add a topic with a configuration, idempotent records, a transaction, and a group offset."""
    with Admin(servers) as admin:
        admin.create_topic(tag, 2, config={"retention.ms": "86400000"})
    for more in ({"enable.idempotence": True}, {"transactional.id": "x"}):
        producer = Producer({"bootstrap.servers": servers, "log_level": 0, **more})
        if "transactional.id" in more:
            producer.init_transactions(60)
            producer.begin_transaction()
        for number in range(10):
            producer.produce(tag, b"%d" % number, key=b"k", partition=number % 2, headers=[("h", b"1")])
        assert producer.flush(60) == 0
        if "transactional.id" in more:
            producer.commit_transaction(60)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": tag, "log_level": 0})
    again(lambda: consumer.commit(offsets=[Place(tag, 0, 7)], asynchronous=False))
    consumer.close()


def seen(servers: str) -> dict[str, object]:
    found: dict[str, object] = {}
    with Admin(servers) as admin:
        until(
            lambda: not any(each.state.startswith("Prepare") for each in admin.list_transactions()), "markers"
        )
        for topic in admin.describe_topics(sorted(admin.list_topics())):
            rows = read_topic(topic.name, servers, isolation="read_committed")
            found[topic.name] = (
                topic.topic_id,
                admin.describe_config(topic.name)["retention.ms"].value,
                rows.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist(),
                {place: each.offset for place, each in admin.list_group_offsets(topic.name).items()},
            )
    return found


@pytest.mark.parametrize(("version", "level"), [("3.3.2", 7), ("3.6.2", 14), ("3.8.1", 20)])
def test_a_directory_of_an_older_release(version: str, level: int, tmp_path: Path) -> None:
    """The old release and Penstock take turns, once after a kill.

    At the end Apache Kafka 4.3 accepts the directory too.
    """
    turns = Turns(tmp_path)
    with turns.kafka(version) as servers:
        add(servers, "theirs")
        before = seen(servers)
    for number in range(2):
        assert describe(str(turns.directory)).level == level
        with turns.ours() as servers:
            assert seen(servers) == before
            add(servers, f"ours-{number}")
            before = seen(servers)
        with turns.kafka(version, killed=number == 0) as servers:
            assert seen(servers) == before
            add(servers, f"theirs-{number}")
            before = seen(servers)
    with turns.kafka("4.3.0") as servers:
        assert seen(servers) == before
    log = (tmp_path / "server.log").read_text(errors="replace")
    assert "stray" not in log.lower()
