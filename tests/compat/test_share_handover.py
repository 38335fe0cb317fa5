"""A share group (KIP-932) continues when its data directory moves from Apache Kafka to Penstock and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.handover import Turns
from compat.peers import HERE, java, maven_classpath
from compat.test_share_groups import begin_at_the_start
from penstock import Admin, Producer

pytestmark = [pytest.mark.compat, pytest.mark.soak, pytest.mark.timeout(600)]

KAFKA = "4.3.0"
SETTINGS = {
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 3,
    "group.share.assignment.interval.ms": 0,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.heartbeat.interval.ms": 500,
}


def take(servers: str, count: int) -> list[str]:
    """Let Java's share consumer accept `count` records; return their values."""
    program = HERE / "java/share/ShareMember.java"
    classpath = maven_classpath(f"kafka-{KAFKA}")
    found = java(classpath, program, servers, "g", "t", "record_limit", count, check=True)
    return [line.split()[0] for line in found.stdout.splitlines()]


def test_a_share_group_goes_on_in_the_same_directory(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    ours = [f"{name}={value}" for name, value in SETTINGS.items()]
    with turns.kafka(KAFKA, SETTINGS):
        with Admin(turns.servers) as admin:
            admin.create_topic("t")
        begin_at_the_start(turns.servers, "g")
        with Producer(turns.servers) as producer:
            for number in range(28):
                producer.send("t", b"accept-%d" % number)
        assert take(turns.servers, 7) == [f"accept-{n}" for n in range(7)]
    with turns.ours(*ours):
        assert take(turns.servers, 7) == [f"accept-{n}" for n in range(7, 14)]
    with turns.kafka(KAFKA, SETTINGS):
        assert take(turns.servers, 7) == [f"accept-{n}" for n in range(14, 21)]
    with turns.ours(*ours, killed=True):
        assert take(turns.servers, 7) == [f"accept-{n}" for n in range(21, 28)]
