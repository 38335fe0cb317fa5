"""``penstock mirror`` between Apache Kafka and Penstock, in both directions: each record once.

Group offsets are mirrored too, so Apache Kafka's own consumer continues at the corresponding offset.
"""

from __future__ import annotations

import random

import pytest

from compat.peers import shared_kafka
from penstock import Admin, Broker, Producer
from penstock.errors import ConfigError
from penstock.tables.mirroring.record_check import check_copy
from penstock.tables.topic_mirror import TopicMirror
from tables.mirroring.test_group_moves import Source, commit, committed, records, to_end, unread
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
            admin.delete_topics(["mirrored", "mirror-there-offsets"])
            admin.delete_groups(["mirror-there"])


def test_groups_go_to_apache_kafka_and_back() -> None:
    apache = shared_kafka("4.3.0")
    with Broker(log_retention_ms=-1) as broker, Broker(log_retention_ms=-1) as third:
        ours = broker.bootstrap_servers
        source = Source(ours, random.Random(3))
        for _ in range(4):
            source.grow()
        here = records(ours)
        ends = [part[-1][0] + 1 for part in here]
        groups = {f"moved-{number}": number for number in range(0, max(ends), 2)}
        for group, offset in groups.items():
            for partition, end in enumerate(ends):
                commit(ours, group, partition, min(offset, end), group)
        names = {"target_topic": "groups-mirrored", "name": "groups-there"}
        with TopicMirror("t", ours, apache, groups=["moved-*"], **names) as there:
            to_end(there)
            assert there.move_groups() == len(groups) * len(ends)
        found = records(apache, "groups-mirrored")
        for group, offset in groups.items():
            for partition, (at, note) in committed(apache, group, "groups-mirrored").items():
                assert note == group
                assert unread(found[partition], at) == unread(here[partition], offset)
        assert all(each.different == 0 for each in check_copy("t", ours, apache, **names))
        with pytest.raises(ConfigError, match="only brokers of Penstock keep offsets"):
            TopicMirror("t", ours, apache, target_topic="kept", keep_offsets=True).__enter__()
        # And back, with the offsets and the markers of Apache Kafka.
        with TopicMirror(
            "groups-mirrored", apache, third.bootstrap_servers, groups=["moved-*"], keep_offsets=True
        ) as back:
            to_end(back)
            back.move_groups()
        assert records(third.bootstrap_servers, "groups-mirrored") == found
        for group in groups:
            for partition, (at, _) in committed(apache, group, "groups-mirrored").items():
                kept = committed(third.bootstrap_servers, group, "groups-mirrored")[partition][0]
                assert unread(found[partition], kept) == unread(found[partition], at)
        with Admin(apache) as admin:
            admin.delete_topics(["groups-mirrored", "groups-there-offsets"])
            admin.delete_groups(["groups-there", *groups])
