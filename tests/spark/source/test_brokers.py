from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest

from penstock import Admin, Broker
from penstock.errors import ConfigError, NetworkError
from penstock.model import EARLIEST, LATEST, TopicPartition
from penstock.spark.source.brokers import MetadataConnection
from penstock.spark.source.options import Selection

T0 = TopicPartition("t", 0)


def test_partitions_and_offsets() -> None:
    with Broker() as broker, closing(MetadataConnection(broker.bootstrap_servers, {})) as brokers:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topic("t", partitions=2)
        assert brokers.partition_counts(Selection(topics=("t", "nowhere"))) == {"t": 2}
        assert brokers.partition_counts(Selection(pattern="t|u")) == {"t": 2}
        assert brokers.partition_counts(Selection(partitions=(T0,))) == {"t": 2}
        assert brokers.lookup({T0: EARLIEST}) == {T0: 0}
        assert brokers.lookup({T0: LATEST}) == {T0: 0}
        assert brokers.lookup({T0: 5}) == {T0: None}
        assert brokers.lookup({}) == {}


def test_a_broker_that_restarts_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.source.brokers.METADATA_AGE_MAX_S", 0.0)
    with Broker(tmp_path) as broker:
        port = broker.port
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topic("t")
        brokers = MetadataConnection(broker.bootstrap_servers, {})
        assert brokers.partition_counts(Selection(topics=("t",))) == {"t": 1}
    again = Broker(tmp_path, port=port)
    timer = threading.Timer(0.3, again.__enter__)
    timer.start()
    try:
        assert brokers.partition_counts(Selection(topics=("t",))) == {"t": 1}
        assert brokers.lookup({T0: LATEST}) == {T0: 0}
    finally:
        timer.join()
        brokers.close()
        again.close()


def test_partitions_that_are_gone_have_no_offsets() -> None:
    gone = TopicPartition("gone", 0)
    with (
        Broker() as broker,
        closing(MetadataConnection(broker.bootstrap_servers, {})) as brokers,
        Admin(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        for topic, partitions in (("t", 1), ("gone", 1), ("less", 2)):
            admin.create_topic(topic, partitions)
        less = [TopicPartition("less", number) for number in range(2)]
        questions = dict.fromkeys([T0, gone, *less], LATEST)
        assert brokers.lookup(questions) == dict.fromkeys(questions, 0)
        admin.delete_topics(["gone", "less"])
        admin.create_topic("less", 1)
        assert brokers.lookup(questions) == {T0: 0, less[0]: 0}
        assert brokers.lookup({gone: LATEST}) == {}


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match=r"fetch\.max\.byte"):
        MetadataConnection("127.0.0.1:1", {"fetch.max.byte": "1"})
    with (
        pytest.raises(NetworkError, match=r"127\.0\.0\.1:1"),
        closing(MetadataConnection("127.0.0.1:1", {})) as brokers,
    ):
        brokers.partition_counts(Selection(topics=("t",)))
