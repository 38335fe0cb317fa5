"""The guard of every API, and the interceptor that puts them before the handlers.

What each API needs is that of Apache Kafka 4.3. An API that has neither a guard nor is open is refused to all
but super users: a new handler without a row here is not exposed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.broker.context import CloseConnection
from penstock.broker.security.guards import (
    cluster,
    consumer_groups,
    groups,
    topic_admin,
    topics,
    transactions,
)
from penstock.broker.security.guards.cluster import on_cluster, on_configs, top_level
from penstock.broker.security.guards.guard import MESSAGES, Asking, Guard
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.security.acls import CLUSTER_NAME, EVERY_OPERATION, Operation, ResourceType

if TYPE_CHECKING:
    from penstock.broker.context import Context
    from penstock.broker.requests.routes import VersionedRoute
    from penstock.broker.security.authorizer import Authorizer

_MESSAGE = MESSAGES[ErrorCode.CLUSTER_AUTHORIZATION_FAILED]

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
"""APIs that need no right. Settings say whose metrics are taken. Delegation tokens belong to principals, and
their handlers judge by these.
"""

GUARDS: dict[int, Guard] = {
    ApiKey.PRODUCE: topics.guard_produce,
    ApiKey.FETCH: topics.guard_fetch,
    ApiKey.LIST_OFFSETS: topics.guard_list_offsets,
    ApiKey.METADATA: topic_admin.guard_metadata,
    ApiKey.OFFSET_COMMIT: groups.guard_offset_commit,
    ApiKey.OFFSET_FETCH: groups.guard_offset_fetch,
    ApiKey.FIND_COORDINATOR: groups.guard_find_coordinator,
    ApiKey.JOIN_GROUP: groups.guard_join_group,
    ApiKey.HEARTBEAT: groups.guard_heartbeat,
    ApiKey.LEAVE_GROUP: groups.guard_leave_group,
    ApiKey.SYNC_GROUP: groups.guard_sync_group,
    ApiKey.DESCRIBE_GROUPS: groups.guard_describe_groups,
    ApiKey.LIST_GROUPS: groups.guard_list_groups,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_groups.guard_consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: consumer_groups.guard_consumer_group_describe,
    ApiKey.CREATE_TOPICS: topic_admin.guard_create_topics,
    ApiKey.DELETE_TOPICS: topic_admin.guard_delete_topics,
    ApiKey.DELETE_RECORDS: topics.guard_delete_records,
    ApiKey.INIT_PRODUCER_ID: topics.guard_init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: topics.guard_offset_for_leader_epoch,
    ApiKey.ADD_PARTITIONS_TO_TXN: transactions.guard_add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: transactions.guard_add_offsets_to_txn,
    ApiKey.END_TXN: transactions.guard_end_txn,
    ApiKey.WRITE_TXN_MARKERS: transactions.guard_write_txn_markers,
    ApiKey.TXN_OFFSET_COMMIT: transactions.guard_txn_offset_commit,
    ApiKey.DESCRIBE_ACLS: on_cluster(
        Operation.DESCRIBE, top_level("describe_acls", "DescribeAclsResponse", error_message=_MESSAGE)
    ),
    ApiKey.CREATE_ACLS: on_cluster(Operation.ALTER, cluster.refuse_acl_creations),
    ApiKey.DELETE_ACLS: on_cluster(Operation.ALTER, cluster.refuse_acl_deletions),
    ApiKey.DESCRIBE_CONFIGS: on_configs(
        Operation.DESCRIBE_CONFIGS, "describe_configs", "DescribeConfigsResult", "results"
    ),
    ApiKey.ALTER_CONFIGS: on_configs(
        Operation.ALTER_CONFIGS, "alter_configs", "AlterConfigsResourceResponse", "responses"
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: on_configs(
        Operation.ALTER_CONFIGS, "incremental_alter_configs", "AlterConfigsResourceResponse", "responses"
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: on_cluster(Operation.ALTER, cluster.refuse_log_dirs),
    ApiKey.DESCRIBE_LOG_DIRS: on_cluster(
        Operation.DESCRIBE, top_level("describe_log_dirs", "DescribeLogDirsResponse")
    ),
    ApiKey.CREATE_PARTITIONS: topic_admin.guard_create_partitions,
    ApiKey.DELETE_GROUPS: groups.guard_delete_groups,
    ApiKey.ELECT_LEADERS: on_cluster(Operation.ALTER, cluster.refuse_elections),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: on_cluster(Operation.ALTER, cluster.refuse_reassignments),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: on_cluster(Operation.DESCRIBE, cluster.refuse_list_of_reassignments),
    ApiKey.OFFSET_DELETE: groups.guard_offset_delete,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: on_cluster(
        Operation.DESCRIBE_CONFIGS,
        top_level(
            "describe_client_quotas", "DescribeClientQuotasResponse", error_message=_MESSAGE, entries=None
        ),
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: on_cluster(Operation.ALTER_CONFIGS, cluster.refuse_client_quotas),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: on_cluster(
        Operation.DESCRIBE,
        top_level(
            "describe_user_scram_credentials", "DescribeUserScramCredentialsResponse", error_message=_MESSAGE
        ),
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: on_cluster(Operation.ALTER, cluster.refuse_scram_changes),
    ApiKey.DESCRIBE_QUORUM: on_cluster(
        Operation.DESCRIBE, top_level("describe_quorum", "DescribeQuorumResponse", error_message=_MESSAGE)
    ),
    ApiKey.UPDATE_FEATURES: on_cluster(
        Operation.ALTER, top_level("update_features", "UpdateFeaturesResponse", error_message=_MESSAGE)
    ),
    ApiKey.UNREGISTER_BROKER: on_cluster(
        Operation.ALTER, top_level("unregister_broker", "UnregisterBrokerResponse", error_message=_MESSAGE)
    ),
    ApiKey.DESCRIBE_CLUSTER: topic_admin.guard_describe_cluster,
    ApiKey.DESCRIBE_PRODUCERS: topics.guard_describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: groups.guard_describe_transactions,
    ApiKey.LIST_TRANSACTIONS: groups.guard_list_transactions,
    ApiKey.LIST_CONFIG_RESOURCES: on_cluster(
        Operation.DESCRIBE_CONFIGS, top_level("list_config_resources", "ListConfigResourcesResponse")
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: topic_admin.guard_describe_topic_partitions,
}


def refuse_all(request: Any, asking: Asking) -> Any:
    """The guard of an API that has none."""
    if asking.rights.operations(ResourceType.CLUSTER, CLUSTER_NAME) == EVERY_OPERATION:
        return asking.proceed(request)
    raise CloseConnection(f"{asking.rights.principal} asks for an API without a rule of who may")


class Authorization:
    """The interceptor of a broker with an authorizer."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer

    def __call__(self, route: VersionedRoute) -> VersionedRoute:
        """The route with its guard before the handler."""
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
            return guard(request, Asking(context, rights, lambda changed: handle(changed, context)))

        return route._replace(handle=guarded)
