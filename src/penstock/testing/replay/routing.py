"""Finds the broker for each replayed request: the leader or coordinator in the target cluster's answers."""

from __future__ import annotations

from typing import Any

from penstock.protocol.api_keys import ApiKey
from penstock.testing.replay.exchanges import RecordedExchange
from penstock.testing.replay.walking import Names, places

Address = tuple[str, int]

TO_LEADERS = frozenset(
    (
        *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH),
        ApiKey.DELETE_RECORDS,
    )
)
"""APIs whose requests go to a partition's leader. The first partition in a request selects the leader."""

_BY_TRANSACTION = frozenset(
    (ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN)
)
_GROUP, _TRANSACTION = 0, 1


class TargetRoutes:
    """The brokers, leaders and coordinators of the target cluster, taken from its answers."""

    def __init__(self) -> None:
        self._brokers: dict[int, Address] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self._coordinators: dict[tuple[int, str], Address] = {}

    def learn(self, request: Any, answered: Any) -> None:
        """Store the brokers, leaders and coordinators that an answer of the target names."""
        if answered.API_KEY == ApiKey.METADATA:
            self._brokers |= {each.node_id: (each.host, each.port) for each in answered.brokers}
            for topic in answered.topics:
                for each in topic.partitions:
                    if topic.name and each.leader_id >= 0:
                        self._leaders[topic.name, each.partition_index] = each.leader_id
        elif answered.API_KEY == ApiKey.FIND_COORDINATOR:
            found = [(each.key, each) for each in answered.coordinators] or [(request.key, answered)]
            for key, each in found:
                if not each.error_code and each.host:
                    self._coordinators[request.key_type, key] = (each.host, each.port)

    def address(self, exchange: RecordedExchange, request: Any, names: Names) -> Address | None:
        """Return the address of the broker for a request, or None if any broker may get the request."""
        if exchange.api_key in TO_LEADERS:
            for place in places(request, exchange.version, names):
                if place.topic is not None and place.partition is not None:
                    return self._brokers.get(self._leaders.get((place.topic, place.partition), -1))
            return None
        if exchange.api_key in _BY_TRANSACTION:
            return self._coordinators.get((_TRANSACTION, request.transactional_id or ""))
        if exchange.api_key == ApiKey.OFFSET_FETCH and request.groups:
            return self._coordinators.get((_GROUP, request.groups[0].group_id))
        return self._coordinators.get((_GROUP, getattr(request, "group_id", "")))
