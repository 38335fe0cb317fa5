"""Checks of a consumer at a broker of 0.8 or 0.9, used with Penstock's brokers and with Apache Kafka's."""

from __future__ import annotations

import re
import time

import pytest

from penstock import Admin, Consumer, Producer
from penstock.client import OffsetAndMetadata
from penstock.errors import UnsupportedVersionError
from penstock.model import TopicPartition

NO_OFFSETS = r"broker \S+ is of Kafka 0\.8\.0, which stores no offsets of groups: leave group\.id out"
NO_GROUPS = r"broker \S+ is of Kafka 0\.8, which has no groups that share partitions: assign\(\) partitions"
OPTIONS = {"enable_auto_commit": False, "auto_offset_reset": "earliest"}


def fill(servers: str, topic: str) -> None:
    with Producer(servers) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=0).result(60)


def check_commits(servers: str, topic: str, group: str) -> None:
    """Check that offsets can be committed and fetched, and that another consumer continues there."""
    place = TopicPartition(topic, 0)
    with Consumer(servers, group_id=group, **OPTIONS) as consumer:
        consumer.assign([place])
        assert consumer.committed([place]) == {place: None}
        assert [record.offset for record in consumer.poll(30_000, max_records=10)][:1] == [0]
        consumer.commit({place: 3})
        consumer.commit({place: OffsetAndMetadata(4)})
        assert consumer.committed([place]) == {place: OffsetAndMetadata(4)}
    with Consumer(servers, group_id=group, **OPTIONS) as consumer:
        consumer.assign([place])
        assert consumer.poll(30_000, max_records=1)[0].offset == 4
    with Admin(servers) as admin:
        assert admin.list_group_offsets(group, [place]) == {place: OffsetAndMetadata(4)}
        admin.alter_group_offsets(group, {place: 7})
        assert admin.list_group_offsets(group, [place]) == {place: OffsetAndMetadata(7)}


def check_automatic_commits(servers: str, topic: str, group: str) -> None:
    place = TopicPartition(topic, 0)
    with Consumer(servers, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.assign([place])
        read = 0
        while read < 10:
            read += len(consumer.poll(30_000))
    with Admin(servers) as admin:
        assert admin.list_group_offsets(group, [place]) == {place: OffsetAndMetadata(10)}


def check_no_groups(servers: str, topic: str, *, has_offsets: bool) -> None:
    """Check that each poll of a subscribed consumer raises UnsupportedVersionError at once."""
    begin = time.monotonic()
    with Consumer(servers, group_id="members") as consumer:
        consumer.subscribe([topic])
        for _ in range(2):
            with pytest.raises(UnsupportedVersionError, match=NO_GROUPS) as caught:
                consumer.poll(60_000)
            assert bool(re.search("group.id is for commits only$", str(caught.value))) == has_offsets
    assert time.monotonic() - begin < 60


def check_no_offsets(servers: str, topic: str) -> None:
    place = TopicPartition(topic, 0)
    with Consumer(servers, group_id="g", **OPTIONS) as consumer:
        consumer.assign([place])
        for call in (
            lambda: consumer.poll(60_000),
            lambda: consumer.commit({place: 3}),
            lambda: consumer.committed([place]),
        ):
            with pytest.raises(UnsupportedVersionError, match=NO_OFFSETS):
                call()
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([place])
        assert consumer.poll(30_000, max_records=1)[0].value == b"0"
