"""Finds the internal partitions for whose replication a coordinator's response must wait.

A request for a group depends on one partition of `__consumer_offsets`, a request for a transactional id on
one of `__transaction_state`, a request for share partitions on `__share_group_state`. A response for several
of these has a part for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from penstock.broker.groups.share_state.keys import ShareKey
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from penstock.protocol.api_keys import ApiKey

Part: TypeAlias = tuple[str, str, Any]
"""A part of a coordinator's response, with the internal topic and the key (group, transactional id or
share partition) that store the state behind it: (topic, key, part).
"""


def _of_group(request: Any, response: Any) -> Iterable[Part]:
    return [(OFFSETS_TOPIC, request.group_id, response)]


def _of_deleted_groups(request: Any, response: Any) -> Iterable[Part]:
    return [(OFFSETS_TOPIC, each.group_id, each) for each in response.results]


def _of_fetched_groups(request: Any, response: Any) -> Iterable[Part]:
    if not response.groups:
        return _of_group(request, response)
    return [(OFFSETS_TOPIC, each.group_id, each) for each in response.groups]


def _of_id(request: Any, response: Any) -> Iterable[Part]:
    name = request.transactional_id
    return [] if name is None else [(TRANSACTIONS_TOPIC, name, response)]


def _of_added_partitions(request: Any, response: Any) -> Iterable[Part]:
    several = [(TRANSACTIONS_TOPIC, each.transactional_id, each) for each in response.results_by_transaction]
    return several or [(TRANSACTIONS_TOPIC, request.v3_and_below_transactional_id, response)]


def _of_share_partitions(request: Any, response: Any) -> Iterable[Part]:
    return [
        (SHARE_STATE_TOPIC, ShareKey(request.group_id, topic.topic_id, each.partition).text, each)
        for topic in response.results
        for each in topic.partitions
    ]


Parts: TypeAlias = Callable[[Any, Any], Iterable[Part]]
"""A function of a request and its response that returns the parts of the response, each with the topic and
key of the state that it depends on.
"""

COORDINATED: dict[int, Parts] = {
    ApiKey.JOIN_GROUP: _of_group,
    ApiKey.SYNC_GROUP: _of_group,
    ApiKey.LEAVE_GROUP: _of_group,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _of_group,
    ApiKey.SHARE_GROUP_HEARTBEAT: _of_group,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _of_group,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _of_group,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _of_group,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _of_share_partitions,
    ApiKey.READ_SHARE_GROUP_STATE: _of_share_partitions,
    ApiKey.WRITE_SHARE_GROUP_STATE: _of_share_partitions,
    ApiKey.DELETE_SHARE_GROUP_STATE: _of_share_partitions,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _of_share_partitions,
    ApiKey.OFFSET_COMMIT: _of_group,
    ApiKey.OFFSET_FETCH: _of_fetched_groups,
    ApiKey.OFFSET_DELETE: _of_group,
    ApiKey.DELETE_GROUPS: _of_deleted_groups,
    ApiKey.TXN_OFFSET_COMMIT: _of_group,
    ApiKey.INIT_PRODUCER_ID: _of_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: _of_added_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: _of_id,
    ApiKey.END_TXN: _of_id,
}
"""A dict from API key to the function that returns the parts of a response. OffsetFetch stores nothing,
but is included: it must not return offsets that may still be lost."""
