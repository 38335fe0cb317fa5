"""The gateway's responses when no broker can be reached: errors after which clients try again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import DecodeError
from penstock.gateway.addresses import host_of
from penstock.gateway.heads import decoded_request
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.error_response import error_entries, error_response
from penstock.protocol.messages.fetch_response import FetchResponse
from penstock.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from penstock.protocol.since import FETCH_SESSIONS_SINCE, METADATA_TOPIC_IDS_SINCE

if TYPE_CHECKING:
    from penstock.gateway.nodes import Nodes

NO_ANSWER = "the gateway does not reach the broker"

_OF_LEADERS = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.DELETE_RECORDS,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
)
_OF_COORDINATORS = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.OFFSET_DELETE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_DESCRIBE,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
    ApiKey.DESCRIBE_TRANSACTIONS,
)

OF_ONE_BROKER = frozenset(
    map(
        int,
        (
            ApiKey.LIST_GROUPS,
            ApiKey.LIST_TRANSACTIONS,
            ApiKey.DESCRIBE_LOG_DIRS,
            ApiKey.ALTER_REPLICA_LOG_DIRS,
        ),
    )
)
"""APIs whose response describes only the connected broker (such as ListGroups). If that broker cannot be
reached, no other broker can answer the request.
"""

CODES = {
    int(ApiKey.LIST_GROUPS): ErrorCode.COORDINATOR_NOT_AVAILABLE,
    int(ApiKey.LIST_TRANSACTIONS): ErrorCode.COORDINATOR_NOT_AVAILABLE,
    **dict.fromkeys(map(int, _OF_LEADERS), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    **dict.fromkeys(map(int, _OF_COORDINATORS), ErrorCode.NOT_COORDINATOR),
    int(ApiKey.FIND_COORDINATOR): ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""A dict from an API to the retriable error code in its responses if no broker can be reached. After this
code, clients look for leaders or coordinators again.
"""


def code_for(key: int) -> ErrorCode:
    """Return the retriable error code for an API; REQUEST_TIMED_OUT (7) if `CODES` has none for the API."""
    return CODES.get(key, ErrorCode.REQUEST_TIMED_OUT)


def absent_response(message: Any, version: int, nodes: Nodes, host: str) -> Any:
    """Return an error response for use while no broker is reachable.

    Returns None if the API's response has no field for an error.
    """
    key: int = message.API_KEY
    if key == ApiKey.METADATA:
        return _metadata(message, version, nodes, host)
    if key in (
        ApiKey.API_VERSIONS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
    ):
        return None
    if key == ApiKey.FETCH and version >= FETCH_SESSIONS_SINCE:
        if message.session_id:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        # An error of the whole response would keep clients from looking for leaders.
        return FetchResponse(
            responses=error_entries(key, version, "responses", message.topics, code_for(key), NO_ANSWER)
        )
    if key in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE) and message.topics:
        # As for Fetch: partitions say that their leader is to be looked for.
        made: Any = API_TABLE[key].response()
        made.responses = error_entries(key, version, "responses", message.topics, code_for(key), NO_ANSWER)
        return made
    return error_response(key, version, message, code_for(key), NO_ANSWER)


def _metadata(asked: Any, version: int, nodes: Nodes, host: str) -> MetadataResponse | None:
    """Return a Metadata response with the known brokers, and the requested topics without leaders.

    Returns None if the client requests all topics, whose names are not known.
    """
    names = asked.topics
    if names is None or (version == 0 and not names):
        return None
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.node_id, host=host_of(host, node.node_id), port=node.port)
            for node in nodes.by_id.values()
        ],
        topics=[
            MetadataResponseTopic(
                error_code=ErrorCode.LEADER_NOT_AVAILABLE,
                name=each.name if each.name is not None or version >= METADATA_TOPIC_IDS_SINCE else "",
                topic_id=each.topic_id,
            )
            for each in names
        ],
    )


def answered_absent(body: memoryview, key: int, version: int, nodes: Nodes, host: str) -> Any:
    """Return the error response to a request if no broker can be reached. `body` has no size field.

    Raises:
        DecodeError, UnsupportedVersionError: the request cannot be decoded, or its response has no field for
            an error.
    """
    api = API_TABLE.get(key)
    name = f"API {key}" if api is None else api.name
    _, message = decoded_request(body)
    if key == ApiKey.PRODUCE and not message.acks:
        raise DecodeError("the gateway reaches no broker for a Produce without acknowledgement")
    response = absent_response(message, version, nodes, host)
    if response is None:
        raise DecodeError(f"the gateway reaches no broker for {name}")
    return response
