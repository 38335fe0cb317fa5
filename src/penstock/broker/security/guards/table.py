"""The table of guards by API, and the interceptor that calls them before the handlers.

Each API requires the same rights as in Apache Kafka 4.3. Only super users may call an API that has no guard
and is not in `OPEN`: a new handler that is missing in this table is not exposed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.broker.context import CloseConnection
from penstock.broker.security.guards import cluster, groups, topic_admin, topics, transactions
from penstock.broker.security.guards.cluster import on_configs
from penstock.broker.security.guards.guard import Asking, Guard
from penstock.broker.security.guards.rules import (
    Each,
    Rule,
    each_group,
    each_topic,
    on_cluster,
    on_group,
    on_transactional_id,
)
from penstock.protocol.api import ApiKey
from penstock.protocol.since import OFFSET_COMMIT_TOPIC_IDS_SINCE, TXN_OFFSET_COMMIT_TOPIC_IDS_SINCE
from penstock.security.acls import CLUSTER_NAME, EVERY_OPERATION, Operation, ResourceType

if TYPE_CHECKING:
    from penstock.broker.context import Context
    from penstock.broker.requests.routes import VersionedRoute
    from penstock.broker.security.authorizer import Authorizer

OPEN = frozenset(
    (
        ApiKey.SASL_HANDSHAKE,
        ApiKey.API_VERSIONS,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
    )
)
"""APIs that require no permission.

For client metrics, subscriptions limit what clients may push. The handlers of the token APIs check that the
caller may use a token.

"""

GUARDS: dict[int, Guard] = {
    ApiKey.PRODUCE: topics.guard_produce,
    ApiKey.FETCH: topics.guard_fetch,
    ApiKey.LIST_OFFSETS: Rule(each=each_topic(Operation.DESCRIBE)),
    ApiKey.METADATA: topic_admin.guard_metadata,
    ApiKey.OFFSET_COMMIT: Rule(
        on_group(Operation.READ), each=each_topic(Operation.READ, ids_since=OFFSET_COMMIT_TOPIC_IDS_SINCE)
    ),
    ApiKey.OFFSET_FETCH: groups.guard_offset_fetch,
    ApiKey.FIND_COORDINATOR: groups.guard_find_coordinator,
    ApiKey.JOIN_GROUP: Rule(on_group(Operation.READ)),
    ApiKey.HEARTBEAT: Rule(on_group(Operation.READ)),
    ApiKey.LEAVE_GROUP: Rule(on_group(Operation.READ)),
    ApiKey.SYNC_GROUP: groups.guard_sync_group,
    ApiKey.DESCRIBE_GROUPS: Rule(
        each=each_group(Operation.DESCRIBE, "groups", "groups"), complete=groups.mask_groups
    ),
    ApiKey.LIST_GROUPS: Rule(complete=groups.hide_groups),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.guard_consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: Rule(
        each=each_group(Operation.DESCRIBE, "group_ids", "groups"), complete=groups.mask_consumer_groups
    ),
    ApiKey.SHARE_FETCH: Rule(on_group(Operation.READ)),
    ApiKey.SHARE_ACKNOWLEDGE: Rule(on_group(Operation.READ)),
    ApiKey.SHARE_GROUP_HEARTBEAT: groups.guard_consumer_group_heartbeat,
    ApiKey.SHARE_GROUP_DESCRIBE: Rule(
        each=each_group(Operation.DESCRIBE, "group_ids", "groups"), complete=groups.mask_consumer_groups
    ),
    ApiKey.STREAMS_GROUP_HEARTBEAT: groups.guard_streams_group_heartbeat,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: Rule(on_group(Operation.READ)),
    ApiKey.STREAMS_GROUP_DESCRIBE: Rule(
        each=each_group(Operation.DESCRIBE, "group_ids", "groups"), complete=groups.mask_streams_groups
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: groups.guard_describe_share_group_offsets,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Rule(
        on_group(Operation.READ), each=each_topic(Operation.READ, "responses", name="topic_name")
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Rule(
        on_group(Operation.DELETE), each=each_topic(Operation.READ, "responses", name="topic_name")
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: Rule(on_cluster(Operation.CLUSTER_ACTION)),
    ApiKey.READ_SHARE_GROUP_STATE: Rule(on_cluster(Operation.CLUSTER_ACTION)),
    ApiKey.WRITE_SHARE_GROUP_STATE: Rule(on_cluster(Operation.CLUSTER_ACTION)),
    ApiKey.DELETE_SHARE_GROUP_STATE: Rule(on_cluster(Operation.CLUSTER_ACTION)),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: Rule(on_cluster(Operation.CLUSTER_ACTION)),
    ApiKey.CREATE_TOPICS: topic_admin.guard_create_topics,
    ApiKey.DELETE_TOPICS: topic_admin.guard_delete_topics,
    ApiKey.DELETE_RECORDS: Rule(each=each_topic(Operation.DELETE)),
    ApiKey.INIT_PRODUCER_ID: transactions.guard_init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Rule(
        each=each_topic(Operation.DESCRIBE, name="topic"), unless=on_cluster(Operation.CLUSTER_ACTION)
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: transactions.guard_add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: Rule(on_transactional_id(Operation.WRITE), on_group(Operation.READ)),
    ApiKey.END_TXN: Rule(on_transactional_id(Operation.WRITE)),
    ApiKey.WRITE_TXN_MARKERS: Rule(on_cluster(Operation.CLUSTER_ACTION, Operation.ALTER)),
    ApiKey.TXN_OFFSET_COMMIT: Rule(
        on_transactional_id(Operation.WRITE),
        on_group(Operation.READ),
        each=each_topic(Operation.READ, ids_since=TXN_OFFSET_COMMIT_TOPIC_IDS_SINCE),
    ),
    ApiKey.DESCRIBE_ACLS: Rule(on_cluster(Operation.DESCRIBE)),
    ApiKey.CREATE_ACLS: Rule(on_cluster(Operation.ALTER)),
    ApiKey.DELETE_ACLS: Rule(on_cluster(Operation.ALTER)),
    ApiKey.DESCRIBE_CONFIGS: on_configs(Operation.DESCRIBE_CONFIGS, "results"),
    ApiKey.ALTER_CONFIGS: on_configs(Operation.ALTER_CONFIGS, "responses"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: on_configs(Operation.ALTER_CONFIGS, "responses"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Rule(on_cluster(Operation.ALTER)),
    ApiKey.DESCRIBE_LOG_DIRS: Rule(on_cluster(Operation.DESCRIBE)),
    ApiKey.CREATE_PARTITIONS: Rule(each=each_topic(Operation.ALTER, "results")),
    ApiKey.DELETE_GROUPS: Rule(each=each_group(Operation.DELETE, "groups_names", "results")),
    ApiKey.ELECT_LEADERS: Rule(on_cluster(Operation.ALTER)),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Rule(on_cluster(Operation.ALTER)),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: cluster.guard_list_partition_reassignments,
    ApiKey.OFFSET_DELETE: Rule(on_group(Operation.DELETE), each=each_topic(Operation.READ)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: cluster.guard_describe_client_quotas,
    ApiKey.ALTER_CLIENT_QUOTAS: Rule(on_cluster(Operation.ALTER_CONFIGS)),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Rule(on_cluster(Operation.DESCRIBE)),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: cluster.guard_scram_changes,
    ApiKey.DESCRIBE_QUORUM: Rule(on_cluster(Operation.DESCRIBE)),
    ApiKey.UPDATE_FEATURES: Rule(on_cluster(Operation.ALTER)),
    ApiKey.UNREGISTER_BROKER: Rule(on_cluster(Operation.ALTER)),
    ApiKey.UNREGISTER_CONTROLLER: Rule(on_cluster(Operation.ALTER)),
    ApiKey.DESCRIBE_CLUSTER: topic_admin.guard_describe_cluster,
    ApiKey.DESCRIBE_PRODUCERS: Rule(each=each_topic(Operation.READ)),
    ApiKey.DESCRIBE_TRANSACTIONS: Rule(
        each=Each(
            ResourceType.TRANSACTIONAL_ID,
            Operation.DESCRIBE,
            "transactional_ids",
            "transaction_states",
            None,
        ),
        complete=transactions.hide_topics_of_transactions,
    ),
    ApiKey.LIST_TRANSACTIONS: Rule(complete=transactions.hide_transactions),
    ApiKey.LIST_CONFIG_RESOURCES: Rule(on_cluster(Operation.DESCRIBE_CONFIGS)),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: topic_admin.guard_describe_topic_partitions,
}


def refuse_all(request: Any, asking: Asking) -> Any:
    """Guard an API that is missing in the table: allow super users; close other clients' connections."""
    if asking.rights.operations(ResourceType.CLUSTER, CLUSTER_NAME) == EVERY_OPERATION:
        return asking.proceed(request)
    raise CloseConnection(f"{asking.rights.principal} asks for an API without a rule of who may")


class Authorization:
    """The interceptor of a broker with an authorizer, which calls a guard before each handler."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer

    def __call__(self, route: VersionedRoute) -> VersionedRoute:
        """Return a route that calls the guard of the API before the handler."""
        if route.key in OPEN:
            return route
        guard = GUARDS.get(route.key, refuse_all)
        rights_of = self.authorizer.rights
        handle = route.handle

        def guarded(request: Any, context: Context[Any]) -> Any:
            if request is None:
                return handle(request, context)
            session = context.session
            rights = rights_of(str(session.principal), session.client_address)
            return guard(
                request, Asking(route.key, context, rights, lambda changed: handle(changed, context))
            )

        return route._replace(handle=guarded)
