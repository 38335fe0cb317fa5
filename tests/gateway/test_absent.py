"""Tests of the gateway's responses while no broker can be reached: their error codes are retriable."""

from __future__ import annotations

from typing import Any

import pytest

from for_each import for_each
from penstock.gateway.absent import CODES, OF_ONE_BROKER, absent_response, code_for
from penstock.gateway.nodes import Nodes
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.error_response import definition_of
from penstock.protocol.messages import share_acknowledge_request, share_fetch_request
from penstock.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from penstock.protocol.messages.describe_transactions_request import DescribeTransactionsRequest

LEADERS = (ApiKey.PRODUCE, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)
"""APIs that name a group or a transaction, but are sent to partition leaders and not to a coordinator."""


def absent(message: Any, version: int) -> Any:
    return absent_response(message, version, Nodes((), lambda *_: 1, lambda _: None), "gateway.test")


@for_each(sorted(set(API_TABLE) - OF_ONE_BROKER - {ApiKey.FIND_COORDINATOR}))
def test_requests_of_groups_and_transactions_have_clients_look_for_coordinators(key: int) -> None:
    """A request whose definition has a group or transactional id is answered with NOT_COORDINATOR.

    Java's admin client retries such requests after no other error.
    """
    definition = definition_of(API_TABLE[key].name + "Request")
    specs = (definition.root, *definition.structs.values())
    named = {field.entity_type for spec in specs for field in spec.fields}
    if named & {"groupId", "transactionalId"} and key not in LEADERS:
        assert code_for(key) == ErrorCode.NOT_COORDINATOR
    else:
        assert CODES.get(key) in (None, ErrorCode.NOT_LEADER_OR_FOLLOWER)


@pytest.mark.parametrize("module", [share_fetch_request, share_acknowledge_request])
@pytest.mark.parametrize("version", [1, 2])
def test_share_consumers_look_for_leaders(module: Any, version: int) -> None:
    kind = "Fetch" if module is share_fetch_request else "Acknowledge"
    topic, partition = getattr(module, f"{kind}Topic"), getattr(module, f"{kind}Partition")
    request = getattr(module, f"Share{kind}Request")(
        group_id="g",
        member_id="m",
        topics=[topic(topic_id=b"t" * 16, partitions=[partition(partition_index=3)])],
    )
    answer = absent(request, version)
    assert answer.error_code == 0
    (found,) = answer.responses
    assert (found.topic_id, [(each.partition_index, each.error_code) for each in found.partitions]) == (
        b"t" * 16,
        [(3, ErrorCode.NOT_LEADER_OR_FOLLOWER)],
    )
    request.topics = []
    assert absent(request, version).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_each_group_and_transaction_has_its_error() -> None:
    groups = [DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in ("a", "b")]
    answer = absent(DescribeShareGroupOffsetsRequest(groups=groups), 0)
    assert [(each.group_id, each.error_code) for each in answer.groups] == [("a", 16), ("b", 16)]
    told = absent(DescribeTransactionsRequest(transactional_ids=["x"]), 0)
    assert [(each.transactional_id, each.error_code) for each in told.transaction_states] == [("x", 16)]
