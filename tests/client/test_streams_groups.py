"""Tests of the admin client and the command line with streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from broker.groups.streams_bench import word_count
from broker.wire_client import WireClient
from penstock import Admin, Broker
from penstock.cli.group import command as group_command
from penstock.client import StreamsTask
from penstock.errors import KafkaError, UnsupportedVersionError
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.streams_group_heartbeat_request import Endpoint, StreamsGroupHeartbeatRequest

QUICK = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"}


@pytest.fixture
def servers() -> Iterator[str]:
    with Broker(config=QUICK) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("t", 2)
        join(broker.bootstrap_servers)
        yield broker.bootstrap_servers


def join(servers: str) -> None:
    """Join the streams group ``app`` as its only member, and get all tasks."""
    with WireClient(int(servers.rpartition(":")[2])) as client:
        client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["app"]), 6)
        beat = StreamsGroupHeartbeatRequest(
            group_id="app",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            topology=word_count(),
            process_id="p",
            user_endpoint=Endpoint(host="one", port=1),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
        )
        answer = client.ask(beat, 0)
        beat.topology = beat.active_tasks = beat.standby_tasks = beat.warmup_tasks = None
        beat.member_epoch = answer.member_epoch
        answer = client.ask(beat, 0)
        assert answer.error_code == 0, answer.error_message
        assert answer.active_tasks


def test_groups_are_listed_and_described(servers: str) -> None:
    with Admin(servers) as admin:
        (listed,) = admin.list_streams_groups()
        assert (listed.group_id, listed.protocol_type, listed.group_type) == ("app", "streams", "streams")
        assert admin.list_streams_groups(states=["Empty"]) == []
        (group,) = admin.describe_streams_groups(["app"])
        assert (group.state, group.topology_epoch, group.epoch) == ("Stable", 0, group.assignment_epoch)
        first, second = group.subtopologies
        assert (first.id, first.source_topics, first.repartition_sink_topics) == ("0", ("t",), ("r",))
        assert (second.repartition_source_topics, second.changelog_topics) == (("r",), ("c",))
        (member,) = group.members
        assert (member.member_id, member.process_id, member.endpoint) == ("m", "p", "one:1")
        assert member.active_tasks == tuple(StreamsTask(name, index) for name in "01" for index in range(2))
        (general,) = admin.describe_groups(["app"])
        assert (general.protocol_type, general.assignor, general.state) == ("streams", "sticky", "Stable")
        assert [str(each) for each in general.members[0].partitions] == ["r-0", "r-1", "t-0", "t-1"]
        with pytest.raises(KafkaError, match="does not exist"):
            admin.describe_streams_groups(["nobody"])
        with pytest.raises(KafkaError, match="has members"):
            admin.delete_groups(["app"])


def test_the_command_line_shows_them(servers: str) -> None:
    for asked, word in ((["list", "-v"], "streams"), (["describe", "app"], "t:0,1"), (["lag", "app"], "m")):
        done = CliRunner().invoke(group_command, [*asked, "-b", servers])
        assert done.exit_code == 0, done.output
        assert word in done.output


def test_a_cluster_without_them_is_named_as_that() -> None:
    config = {"group.coordinator.rebalance.protocols": "classic"}
    with Broker(config=config) as broker, Admin(broker.bootstrap_servers) as admin:
        assert admin.list_streams_groups() == []
        with pytest.raises(UnsupportedVersionError, match="streams groups"):
            admin.describe_streams_groups(["app"])
