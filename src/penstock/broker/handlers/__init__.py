"""One module for each API. Importing this package registers them all.

Those that admin clients ask for once in a while (`RARELY_ASKED`) are imported when somebody does.

A module translates: message in, a call to the cluster or a partition, message out. Its opening lines say
which versions it speaks and what each version changed.
"""

from __future__ import annotations

from penstock.broker.handlers import (
    api_versions,
    create_topics,
    delete_topics,
    describe_cluster,
    fetch,
    find_coordinator,
    groups,
    init_producer_id,
    list_offsets,
    metadata,
    produce,
)
from penstock.broker.requests.dispatch import handler_in
from penstock.protocol.api import ApiKey

RARELY_ASKED = {
    "alter_client_quotas": (ApiKey.ALTER_CLIENT_QUOTAS, 0, 1),
    "alter_configs": (ApiKey.ALTER_CONFIGS, 0, 2),
    "alter_partition_reassignments": (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1),
    "alter_replica_log_dirs": (ApiKey.ALTER_REPLICA_LOG_DIRS, 0, 2),
    "create_partitions": (ApiKey.CREATE_PARTITIONS, 0, 3),
    "delete_records": (ApiKey.DELETE_RECORDS, 0, 2),
    "describe_client_quotas": (ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1),
    "describe_configs": (ApiKey.DESCRIBE_CONFIGS, 0, 4),
    "describe_log_dirs": (ApiKey.DESCRIBE_LOG_DIRS, 0, 5),
    "describe_producers": (ApiKey.DESCRIBE_PRODUCERS, 0, 0),
    "describe_quorum": (ApiKey.DESCRIBE_QUORUM, 0, 2),
    "describe_topic_partitions": (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0),
    "describe_transactions": (ApiKey.DESCRIBE_TRANSACTIONS, 0, 0),
    "elect_leaders": (ApiKey.ELECT_LEADERS, 0, 2),
    "incremental_alter_configs": (ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1),
    "list_config_resources": (ApiKey.LIST_CONFIG_RESOURCES, 0, 1),
    "list_partition_reassignments": (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0),
    "list_transactions": (ApiKey.LIST_TRANSACTIONS, 0, 2),
    "offset_for_leader_epoch": (ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, 4),
    "update_features": (ApiKey.UPDATE_FEATURES, 0, 2),
}
"""Modules of this package, each with the API it answers and the versions it speaks."""

WITHOUT_SECURITY = {
    ApiKey.SASL_HANDSHAKE: (0, 1),
    ApiKey.DESCRIBE_ACLS: (0, 3),
    ApiKey.CREATE_ACLS: (0, 3),
    ApiKey.DELETE_ACLS: (0, 3),
    ApiKey.SASL_AUTHENTICATE: (0, 2),
    ApiKey.CREATE_DELEGATION_TOKEN: (0, 3),
    ApiKey.RENEW_DELEGATION_TOKEN: (0, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (0, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (0, 3),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
}
"""What the module `without_security` answers."""

for _module, _offered in RARELY_ASKED.items():
    handler_in(f"{__name__}.{_module}", *_offered)
for _key, _versions in WITHOUT_SECURITY.items():
    handler_in(f"{__name__}.without_security", _key, *_versions)

__all__ = [
    "api_versions",
    "create_topics",
    "delete_topics",
    "describe_cluster",
    "fetch",
    "find_coordinator",
    "groups",
    "init_producer_id",
    "list_offsets",
    "metadata",
    "produce",
]
