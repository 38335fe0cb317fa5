"""A streams group (KIP-1071) continues when its data directory moves to Penstock and back.

The instances of its application run all the time.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from compat.handover import Turns
from compat.peers import java, maven_classpath, until
from compat.streams_application import (
    BY_STREAMS_GROUPS,
    GROUP_SETTINGS,
    PATIENT,
    Application,
    Writer,
    numbers,
    read,
    starting,
)
from penstock import Admin
from penstock.client.admin.streams_groups import StreamsGroupDescription, StreamsTask

pytestmark = [pytest.mark.compat, pytest.mark.soak, pytest.mark.timeout(1800)]

KAFKA = "4.3.0"
GROUP = "handed"
TASKS = 6
SETTINGS = {**GROUP_SETTINGS, "group.streams.num.standby.replicas": "1", "num.partitions": "3"}
PATIENCE_S = 400.0


class Life:
    """A streams group of two instances, which is checked after each change of the broker."""

    def __init__(self, servers: str, instances: list[Application]) -> None:
        self._servers, self._instances = servers, instances
        self._writer = Writer(servers)
        self._last: StreamsGroupDescription | None = None

    def prepare(self) -> None:
        self._writer.prepare()

    def go_on(self) -> None:
        """Let the instances count more lines; check that the group and its members are unchanged."""
        self._writer.write(200)
        words = dict(self._writer.words)
        until(lambda: numbers(self._servers, "counts") == words, "every word, once", PATIENCE_S)
        until(lambda: set(read(self._servers, "named")) == self._writer.named, "the names", PATIENCE_S)
        until(lambda: all(each.is_running for each in self._instances), "both run", PATIENCE_S)
        with Admin(self._servers) as admin:
            until(lambda: self._is_stable(admin), "every task, once, with a copy", PATIENCE_S)
            [group] = admin.describe_streams_groups([GROUP])
            committed = {at.topic: 0 for at in admin.list_group_offsets(GROUP)}
            for at, offset in admin.list_group_offsets(GROUP).items():
                committed[at.topic] += offset.offset
        assert committed["lines"] >= self._writer.count
        last = self._last
        if last is not None:
            assert group.subtopologies == last.subtopologies
            assert group.topology_epoch == last.topology_epoch
            assert group.epoch >= last.epoch
            epochs = {member.member_id: member.epoch for member in group.members}
            for member in last.members:
                assert epochs[member.member_id] >= member.epoch
        self._last = group

    def is_as_it_was(self) -> None:
        """Assert that the current broker reports the same topology, members and processes as before."""
        assert self._last is not None
        with Admin(self._servers) as admin:
            [group] = admin.describe_streams_groups([GROUP])
        assert group.subtopologies == self._last.subtopologies
        assert {each.member_id for each in group.members} == {each.member_id for each in self._last.members}
        assert {each.process_id for each in group.members} == {each.process_id for each in self._last.members}

    def _is_stable(self, admin: Admin) -> bool:
        [group] = admin.describe_streams_groups([GROUP])
        active: Counter[StreamsTask] = Counter()
        standby: Counter[StreamsTask] = Counter()
        for member in group.members:
            active.update(member.active_tasks)
            standby.update(member.standby_tasks)
        assert set(active.values()) <= {1}, active
        return group.state == "Stable" and len(active) == TASKS and len(standby) == TASKS


def described(servers: str) -> str:
    tool = "org.apache.kafka.tools.streams.StreamsGroupCommand"
    asked = ("--bootstrap-server", servers, "--describe", "--group", GROUP, "--members", "--verbose")
    return java(maven_classpath(f"kafka-{KAFKA}"), tool, *asked, check=True).stdout


def test_a_live_streams_group_goes_there_and_back(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    ours = [f"{name}={value}" for name, value in SETTINGS.items()]
    words = (*BY_STREAMS_GROUPS, "processing.guarantee=exactly_once_v2", *PATIENT)
    instances: list[Application] = []
    life = Life(turns.servers, instances)
    with starting() as start:
        with turns.kafka(KAFKA, SETTINGS):
            life.prepare()
            for name, more in (("first", ()), ("second", ("num.stream.threads=2",))):
                instances.append(start(turns.servers, GROUP, tmp_path / name, *words, *more))
            life.go_on()
        with turns.ours(*ours):
            life.is_as_it_was()
            life.go_on()
            assert described(turns.servers).count(" ACTIVE:") == 3
        with turns.kafka(KAFKA, SETTINGS):
            life.is_as_it_was()
            life.go_on()
        with turns.ours(*ours, killed=True):
            life.is_as_it_was()
            life.go_on()
        with turns.kafka(KAFKA, SETTINGS, killed=True):
            life.go_on()
            for each in instances:
                each.close()
