"""The handlers of the broker: one module for each API.

A handler reads a request, calls the part of the broker that does the work, and builds the response. The
module and its handler function have the name of their API; the docstring of the module lists what each
version has changed. `OFFERED` is the only table of the supported versions, and the source of ApiVersions
responses.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.broker.requests.routes import LazyHandler, Route
from penstock.protocol.api import ApiKey


class Offer(NamedTuple):
    """The versions of an API that the broker offers.

    `module` is the module of this package that has the handler, if its name is not that of the API.
    `in_pieces` is True for responses that may be large, or contain file regions: they are sent as a list of
    buffers without copying. `forwarded` is True for requests that brokers of Apache Kafka forward to the
    controller. In Penstock each node handles these requests, after it has read the metadata log to its end
    (`broker.replication.control.forwarding`).
    """

    min_version: int
    max_version: int
    module: str | None = None
    in_pieces: bool = False
    forwarded: bool = False


OFFERED = {
    ApiKey.PRODUCE: Offer(0, 13),
    ApiKey.FETCH: Offer(0, 18, in_pieces=True),
    ApiKey.LIST_OFFSETS: Offer(0, 11),
    ApiKey.METADATA: Offer(0, 13),
    ApiKey.OFFSET_COMMIT: Offer(0, 10),
    ApiKey.OFFSET_FETCH: Offer(0, 10),
    ApiKey.FIND_COORDINATOR: Offer(0, 6),
    ApiKey.JOIN_GROUP: Offer(0, 9),
    ApiKey.HEARTBEAT: Offer(0, 4),
    ApiKey.LEAVE_GROUP: Offer(0, 5),
    ApiKey.SYNC_GROUP: Offer(0, 5),
    ApiKey.DESCRIBE_GROUPS: Offer(0, 6),
    ApiKey.LIST_GROUPS: Offer(0, 5),
    ApiKey.SASL_HANDSHAKE: Offer(0, 1, "sasl"),
    ApiKey.API_VERSIONS: Offer(0, 5),
    ApiKey.CREATE_TOPICS: Offer(0, 7, forwarded=True),
    ApiKey.DELETE_TOPICS: Offer(0, 6, forwarded=True),
    ApiKey.DELETE_RECORDS: Offer(0, 2),
    ApiKey.INIT_PRODUCER_ID: Offer(0, 6),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Offer(0, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: Offer(0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: Offer(0, 4),
    ApiKey.END_TXN: Offer(0, 5),
    ApiKey.WRITE_TXN_MARKERS: Offer(0, 2),
    ApiKey.TXN_OFFSET_COMMIT: Offer(0, 6),
    ApiKey.DESCRIBE_ACLS: Offer(0, 3, "acls"),
    ApiKey.CREATE_ACLS: Offer(0, 3, "acls", forwarded=True),
    ApiKey.DELETE_ACLS: Offer(0, 3, "acls", forwarded=True),
    ApiKey.DESCRIBE_CONFIGS: Offer(0, 4),
    ApiKey.ALTER_CONFIGS: Offer(0, 2, forwarded=True),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Offer(0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: Offer(0, 5),
    ApiKey.SASL_AUTHENTICATE: Offer(0, 2, "sasl"),
    ApiKey.CREATE_PARTITIONS: Offer(0, 3, forwarded=True),
    ApiKey.CREATE_DELEGATION_TOKEN: Offer(0, 3, "delegation_tokens", forwarded=True),
    ApiKey.RENEW_DELEGATION_TOKEN: Offer(0, 2, "delegation_tokens", forwarded=True),
    ApiKey.EXPIRE_DELEGATION_TOKEN: Offer(0, 2, "delegation_tokens", forwarded=True),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Offer(0, 3, "delegation_tokens"),
    ApiKey.DELETE_GROUPS: Offer(0, 3),
    ApiKey.ELECT_LEADERS: Offer(0, 2, forwarded=True),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Offer(0, 1, forwarded=True),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Offer(0, 1, forwarded=True),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Offer(0, 0, forwarded=True),
    ApiKey.OFFSET_DELETE: Offer(0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Offer(0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: Offer(0, 1, forwarded=True),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Offer(0, 0, "scram_credentials"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Offer(0, 0, "scram_credentials", forwarded=True),
    ApiKey.DESCRIBE_QUORUM: Offer(0, 2),
    ApiKey.UPDATE_FEATURES: Offer(0, 2, forwarded=True),
    ApiKey.DESCRIBE_CLUSTER: Offer(0, 2),
    ApiKey.DESCRIBE_PRODUCERS: Offer(0, 0),
    ApiKey.UNREGISTER_BROKER: Offer(0, 0, forwarded=True),
    ApiKey.UNREGISTER_CONTROLLER: Offer(0, 0, forwarded=True),
    ApiKey.DESCRIBE_TRANSACTIONS: Offer(0, 0),
    ApiKey.LIST_TRANSACTIONS: Offer(0, 2),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Offer(0, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Offer(0, 1),
    ApiKey.SHARE_GROUP_HEARTBEAT: Offer(1, 1),
    ApiKey.SHARE_GROUP_DESCRIBE: Offer(1, 1),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: Offer(0, 0, "share_group_state"),
    ApiKey.READ_SHARE_GROUP_STATE: Offer(0, 0, "share_group_state"),
    ApiKey.WRITE_SHARE_GROUP_STATE: Offer(0, 1, "share_group_state"),
    ApiKey.DELETE_SHARE_GROUP_STATE: Offer(0, 0, "share_group_state"),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: Offer(0, 1, "share_group_state"),
    ApiKey.STREAMS_GROUP_HEARTBEAT: Offer(0, 1),
    ApiKey.STREAMS_GROUP_DESCRIBE: Offer(0, 1),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: Offer(0, 0),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Offer(0, 1),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Offer(0, 0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Offer(0, 0),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: Offer(0, 0),
    ApiKey.PUSH_TELEMETRY: Offer(0, 0),
    ApiKey.LIST_CONFIG_RESOURCES: Offer(0, 1),
    ApiKey.SHARE_FETCH: Offer(1, 2, in_pieces=True),
    ApiKey.SHARE_ACKNOWLEDGE: Offer(1, 2),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Offer(0, 0),
}


def route_of(key: ApiKey, offer: Offer) -> Route:
    """Return the `Route` of an API: the offered versions, and a handler that is imported on first use."""
    name = key.name.lower()
    handle = LazyHandler(f"{__name__}.{offer.module or name}", name)
    return Route(key, offer.min_version, offer.max_version, handle, offer.in_pieces)


ROUTES = {int(key): route_of(key, offer) for key, offer in OFFERED.items()}
"""A dict from API key to the route of every API that has a handler."""

CLIENT_METRICS_APIS = frozenset((ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY))
"""The APIs that are offered only if the broker accepts clients' metrics (`penstock.client.metrics`), as in
Apache Kafka.
"""

COMMON = (
    ApiKey.API_VERSIONS,
    ApiKey.CREATE_TOPICS,
    ApiKey.FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.PRODUCE,
)
"""The APIs that nearly every client uses, whose handlers are imported soon after the start. All other
handlers are imported on first use.
"""


def import_common() -> None:
    """Import the handlers of the APIs in `COMMON`, so that no client has to wait for these imports."""
    for key in COMMON:
        _ = ROUTES[key].handle
