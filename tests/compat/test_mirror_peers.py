"""``penstock mirror`` between Apache Kafka and Penstock, there and back: the same records, each once."""

from __future__ import annotations

import pytest

from compat.peers import shared_kafka
from penstock import Admin, Broker, Producer
from penstock.tables.topic_mirror import TopicMirror
from tables.test_topic_mirror import RECORDS, contents, copy, fill

pytestmark = pytest.mark.compat


def test_a_topic_goes_to_apache_kafka_and_back() -> None:
    apache = shared_kafka("4.3.0")
    with Broker(log_retention_ms=-1) as broker, Broker(log_retention_ms=-1) as third:
        ours = broker.bootstrap_servers
        fill(ours, rounds=50)
        names = {"target_topic": "mirrored", "name": "mirror-there"}
        with TopicMirror("t", ours, apache, **names) as interrupted:
            assert interrupted.step(5_000) > 0
        copy(ours, apache, **names)
        assert contents(apache, "mirrored") == contents(ours, "t")
        with Producer(apache, transactional_id="mirror-aborts") as producer:
            producer.begin_transaction()
            producer.send("mirrored", b"aborted", partition=1).result()
            producer.abort_transaction()
        assert copy(ours, apache, **names) == 0
        with TopicMirror("mirrored", apache, third.bootstrap_servers) as back:
            while not back.is_at_end:
                back.step()
            assert back.is_exactly_once
            assert sum(part.copied for part in back.progress()) == 50 * len(RECORDS)
        assert contents(third.bootstrap_servers, "mirrored") == contents(ours, "t")
        with Admin(apache) as admin:
            admin.delete_topics(["mirrored"])
            admin.delete_groups(["mirror-there"])
