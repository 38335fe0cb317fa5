"""Replace the addresses of brokers in responses by the addresses of the gateway's ports.

Responses with addresses are Metadata, FindCoordinator and DescribeCluster, and the endpoints of new leaders
(KIP-951) in Produce from version 10, Fetch from 16, and the APIs of share groups.
"""

from __future__ import annotations

import re
from typing import Any

from penstock.gateway.endpoints import is_plain
from penstock.gateway.heads import RESPONSE_HEAD
from penstock.gateway.nodes import NodeAddress, Nodes
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.framing import decode_response, encode_response
from penstock.protocol.since import FETCH_ENDPOINTS_SINCE, PRODUCE_ENDPOINTS_SINCE

ADDRESSED_SINCE = {
    int(ApiKey.PRODUCE): PRODUCE_ENDPOINTS_SINCE,
    int(ApiKey.FETCH): FETCH_ENDPOINTS_SINCE,
    int(ApiKey.METADATA): 0,
    int(ApiKey.FIND_COORDINATOR): 0,
    int(ApiKey.DESCRIBE_CLUSTER): 0,
    int(ApiKey.SHARE_FETCH): 0,
    int(ApiKey.SHARE_ACKNOWLEDGE): 0,
}
"""A dict from an API to the first version whose responses contain addresses of brokers."""

CONTROLLERS = 2
"""The endpoint type of controllers in DescribeCluster (KIP-919)."""


ID = "{id}"
"""The placeholder for the id of a broker in an advertised host."""


def host_of(host: str, node_id: int) -> str:
    """Return the host at which a broker is advertised: `host`, with ``{id}`` replaced by the broker's id."""
    return host.replace(ID, str(node_id))


class ServerNames:
    """A pattern of TLS server names (SNI) that identify brokers at one port: a host name with ``{id}``."""

    def __init__(self, host: str) -> None:
        before, _, behind = host.partition(ID)
        self._pattern = re.compile(
            rf"{re.escape(before)}([0-9]{{1,10}}){re.escape(behind)}\.?", re.IGNORECASE
        )

    def node_of(self, name: str | None) -> int | None:
        """Return the id of the broker that a server name stands for, or None for any other name."""
        found = self._pattern.fullmatch(name or "")
        return None if found is None or int(found[1]) >= 1 << 31 else int(found[1])


def has_addresses(api_key: int, version: int) -> bool:
    """Return True if the response of an API in a version has addresses of brokers."""
    return version >= ADDRESSED_SINCE.get(api_key, 1 << 15)


def moved(frame: bytearray, code: int, nodes: Nodes, host: str) -> bytes | bytearray:
    """Return an encoded response in which brokers' addresses are replaced by `host` and the gateway's ports.

    `frame` includes the size field; `code` is ``(api_key << 16) | version``. Results are cached: a response
    that equals an earlier one, except for its correlation id, is not decoded again. The brokers in the
    response are added to `nodes`.

    Raises:
        DecodeError: the response cannot be decoded.
    """
    key, version = code >> 16, code & 0xFFFF
    if key <= ApiKey.FETCH and is_plain(frame, key, version):
        return frame
    _, correlation_id = RESPONSE_HEAD.unpack_from(frame)
    rest = bytes(memoryview(frame)[RESPONSE_HEAD.size :])
    known = nodes.answers.of(code, host, rest)
    if known is not None:
        return RESPONSE_HEAD.pack(len(known) + 4, correlation_id) + known
    clearings = nodes.answers.clearings
    _, message = decode_response(memoryview(frame)[4:], API_TABLE[key].response, version)
    if not rewrite(message, nodes, host):
        return frame
    whole = b"".join(encode_response(message, version, correlation_id))
    if clearings == nodes.answers.clearings:
        nodes.answers.keep(code, host, rest, whole[RESPONSE_HEAD.size :])
    return whole


def rewrite(message: Any, nodes: Nodes, host: str) -> bool:
    """Replace the addresses in a decoded response by `host` and the gateway's ports; return True if changed.

    The brokers in the response are added to `nodes`. A broker without a port at the gateway is removed from
    the response, so that clients find no leader for its partitions.
    """
    key = message.API_KEY
    if key in (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER):
        if getattr(message, "endpoint_type", 1) == CONTROLLERS:
            return False
        id_name = "node_id" if key == ApiKey.METADATA else "broker_id"
        message.brokers = _moved(message.brokers, id_name, nodes, host)
        return True
    if key == ApiKey.FIND_COORDINATOR:
        for each in (message, *message.coordinators):
            _move_coordinator(each, nodes, host)
        return True
    if not message.node_endpoints:
        return False
    message.node_endpoints = _moved(message.node_endpoints, "node_id", nodes, host)
    return True


def _moved(brokers: list[Any], id_name: str, nodes: Nodes, host: str) -> list[Any]:
    found = []
    for each in brokers:
        node = nodes.learn(NodeAddress(getattr(each, id_name), each.host, each.port))
        if node is not None:
            each.host, each.port = host_of(host, node.node_id), node.port
            found.append(each)
    return found


def _move_coordinator(each: Any, nodes: Nodes, host: str) -> None:
    if each.error_code or not each.host:
        return
    node = nodes.learn(NodeAddress(each.node_id, each.host, each.port))
    if node is None:
        each.error_code, each.node_id = ErrorCode.COORDINATOR_NOT_AVAILABLE, -1
        each.host, each.port = "", -1
    else:
        each.host, each.port = host_of(host, node.node_id), node.port
