"""Tests of a complete share group at one node: from the first member's join to the records that it gets."""

from __future__ import annotations

from typing import Any

from broker.sharing.group_member import ACCEPT, Bench, Member, ack_code, ranges
from penstock.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest


def beat(member: Member, epoch: int, topics: list[str] | None = None) -> Any:
    request = ShareGroupHeartbeatRequest(
        group_id=member.group, member_id=member.name, member_epoch=epoch, subscribed_topic_names=topics
    )
    answer = member.send(request, 1)
    assert answer.error_code == 0, answer.error_message
    return answer


def test_a_new_member_has_its_partitions_soon_and_then_records() -> None:
    bench = Bench(partitions=2)
    bench.node.share_persister = bench.own_persister
    bench.fill(3)
    member = Member(bench)
    first = beat(member, 0, ["t"])
    assert first.heartbeat_interval_ms < 2000
    bench.pass_ms(first.heartbeat_interval_ms)
    second = beat(member, first.member_epoch)
    assert second.assignment is not None
    assert [each.partitions for each in second.assignment.topic_partitions] == [[0, 1]]
    assert second.heartbeat_interval_ms == 5000
    assert ranges(member.fetch()) == [(0, 2, 1)]
    assert ack_code(member.acknowledge((0, 2, [ACCEPT]))) == 0
