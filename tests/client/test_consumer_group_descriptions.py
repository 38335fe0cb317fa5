"""Tests that the admin client describes KIP-848 groups like classic ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.wire_client import WireClient
from penstock import Admin, Broker
from penstock.errors import KafkaError
from penstock.model import TopicPartition
from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def join(broker: Broker, group_id: str, member_id: str, topics: list[str]) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=topics,
        topic_partitions=[],
    )
    with WireClient(broker.port) as client:
        assert client.ask(request, 1).error_code == 0


def test_members_and_their_partitions(broker: Broker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("t", 3)
        admin.list_group_offsets("billing")  # asks for the coordinator, as members do
        join(broker, "billing", "m-1", ["t"])
        [group] = admin.describe_groups(["billing"])
        assert (group.group_id, group.state, group.protocol_type) == ("billing", "Stable", "consumer")
        assert group.assignor == "uniform"
        [member] = group.members
        assert member.member_id == "m-1"
        assert member.partitions == tuple(TopicPartition("t", number) for number in range(3))
        [listed] = admin.list_groups()
        assert (listed.group_id, listed.protocol_type) == ("billing", "consumer")


@pytest.mark.parametrize("as_version", [None, "2.8"])
def test_a_group_that_is_not_there(as_version: str | None) -> None:
    with (
        Broker(as_version=as_version) as broker,
        Admin(broker.bootstrap_servers) as admin,
        pytest.raises(KafkaError, match="'nothing' does not exist"),
    ):
        admin.describe_groups(["nothing"])
