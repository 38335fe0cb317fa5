"""Each Apache Kafka release that tests use starts, stores a record, and returns it."""

from __future__ import annotations

import pytest

from compat.peers import PATIENCE_S, RELEASES, real_kafka
from penstock import Consumer, Producer, TopicPartition

pytestmark = pytest.mark.compat


BETWEEN = ("3.8.1", "3.6.2", "3.3.2")
"""Releases that only `make soak` tests here, since `test_older_directories` uses them anyway."""


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(version, marks=pytest.mark.soak if version in BETWEEN else ())
        for version in RELEASES
        if version >= "2"
    ],
)
def test_real_kafka_keeps_a_record(version: str) -> None:
    with real_kafka(version) as servers:
        with Producer(servers) as producer:
            producer.send("first", b"value", key=b"key").result(PATIENCE_S)
        with Consumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("first", 0)])
            assert [record.value for record in consumer.poll(1000 * PATIENCE_S)] == [b"value"]
