"""Replaces the addresses of brokers in recorded answers with the addresses at which the replay listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.protocol.api_keys import ApiKey

PortOf = Callable[[int], int]
"""A function from the id of a recorded broker to the port at which the replay acts as this broker."""

_WITH_ENDPOINTS = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)
_WITH_ADDRESSES = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER, *_WITH_ENDPOINTS)


def has_addresses(api_key: int) -> bool:
    """Return True if answers of an API can have addresses of brokers."""
    return api_key in _WITH_ADDRESSES


def _brokers(message: Any) -> Iterator[Any]:
    """Yield the structs in an answer that contain the host and port of a broker."""
    if message.API_KEY in (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER):
        yield from message.brokers
    elif message.API_KEY == ApiKey.FIND_COORDINATOR:
        yield from (each for each in (message, *message.coordinators) if each.host and not each.error_code)
    elif message.API_KEY in _WITH_ENDPOINTS:
        yield from message.node_endpoints


def _id_of(broker: Any) -> int:
    found: int = broker.broker_id if hasattr(broker, "broker_id") else broker.node_id
    return found


def broker_ids(message: Any) -> set[int]:
    """Return the ids of the brokers whose addresses are in an answer."""
    return {_id_of(each) for each in _brokers(message)}


def move(message: Any, host: str, port_of: PortOf) -> None:
    """Replace each broker's address in an answer by `host` and the port of the replay for that broker."""
    for each in _brokers(message):
        each.host, each.port = host, port_of(_id_of(each))
