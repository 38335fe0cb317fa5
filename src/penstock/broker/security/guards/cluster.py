"""Guards of APIs that need a right on the cluster, and of settings."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from penstock.broker.security.guards.guard import MESSAGES, Asking, Guard, split
from penstock.protocol.error_codes import ErrorCode
from penstock.security.acls import Operation

_REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_MESSAGE = MESSAGES[_REFUSED]

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Kinds of resources that have settings, as DescribeConfigs numbers them."""


def on_cluster(operation: Operation, refuse: Callable[[Any, Asking], Any]) -> Guard:
    """A guard that asks for one operation on the cluster; `refuse` makes the response of a refusal."""

    def guard(request: Any, asking: Asking) -> Any:
        if asking.rights.on_cluster(operation):
            return asking.proceed(request)
        return refuse(request, asking)

    return guard


def _messages(api: str) -> Any:
    return importlib.import_module(f"penstock.protocol.messages.{api}_response")


def top_level(api: str, name: str, **fields: object) -> Callable[[Any, Asking], Any]:
    """What refuses with the error of the whole response."""

    def refuse(request: Any, asking: Asking) -> Any:
        return getattr(_messages(api), name)(error_code=_REFUSED, **fields)

    return refuse


def refuse_client_quotas(request: Any, asking: Asking) -> Any:
    """AlterClientQuotas: each entry."""
    module = _messages("alter_client_quotas")
    return module.AlterClientQuotasResponse(
        entries=[
            module.EntryData(
                error_code=_REFUSED,
                error_message=_MESSAGE,
                entity=[
                    module.EntityData(entity_type=each.entity_type, entity_name=each.entity_name)
                    for each in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


def refuse_scram_changes(request: Any, asking: Asking) -> Any:
    """AlterUserScramCredentials: each user once, in order of their names."""
    module = _messages("alter_user_scram_credentials")
    names = sorted({each.name for each in (*request.deletions, *request.upsertions)})
    return module.AlterUserScramCredentialsResponse(
        results=[
            module.AlterUserScramCredentialsResult(user=name, error_code=_REFUSED, error_message=_MESSAGE)
            for name in names
        ]
    )


def refuse_log_dirs(request: Any, asking: Asking) -> Any:
    """AlterReplicaLogDirs: each partition."""
    module = _messages("alter_replica_log_dirs")
    return module.AlterReplicaLogDirsResponse(
        results=[
            module.AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    module.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=_REFUSED)
                    for index in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def refuse_elections(request: Any, asking: Asking) -> Any:
    """ElectLeaders: the whole, and each partition, since version 0 has no error of the whole."""
    module = _messages("elect_leaders")
    return module.ElectLeadersResponse(
        error_code=_REFUSED if asking.context.version >= 1 else 0,
        replica_election_results=[
            module.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    module.PartitionResult(partition_id=index, error_code=_REFUSED, error_message=_MESSAGE)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def refuse_reassignments(request: Any, asking: Asking) -> Any:
    """AlterPartitionReassignments: the whole, and each partition."""
    module = _messages("alter_partition_reassignments")
    return module.AlterPartitionReassignmentsResponse(
        error_code=_REFUSED,
        error_message=_MESSAGE,
        responses=[
            module.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    module.ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=_REFUSED, error_message=_MESSAGE
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def refuse_list_of_reassignments(request: Any, asking: Asking) -> Any:
    """ListPartitionReassignments: the whole; partitions asked for are named without replicas."""
    module = _messages("list_partition_reassignments")
    return module.ListPartitionReassignmentsResponse(
        error_code=_REFUSED,
        error_message=_MESSAGE,
        topics=[
            module.OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    module.OngoingPartitionReassignment(partition_index=index)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )


def refuse_acl_creations(request: Any, asking: Asking) -> Any:
    """CreateAcls: each entry."""
    module = _messages("create_acls")
    return module.CreateAclsResponse(
        results=[module.AclCreationResult(error_code=_REFUSED, error_message=_MESSAGE)]
        * len(request.creations)
    )


def refuse_acl_deletions(request: Any, asking: Asking) -> Any:
    """DeleteAcls: each filter."""
    module = _messages("delete_acls")
    refused = module.DeleteAclsFilterResult(error_code=_REFUSED, error_message=_MESSAGE)
    return module.DeleteAclsResponse(filter_results=[refused] * len(request.filters))


def on_configs(operation: Operation, api: str, result: str, field: str) -> Guard:
    """A guard of settings: the operation on each resource whose settings are read or changed."""

    def guard(request: Any, asking: Asking) -> Any:
        rights = asking.rights

        def refusal(resource: Any) -> ErrorCode:
            kind, name = resource.resource_type, resource.resource_name
            if kind == TOPIC:
                allowed, code = rights.on_topic(operation, name), ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif kind == GROUP:
                allowed, code = rights.on_group(operation, name), ErrorCode.GROUP_AUTHORIZATION_FAILED
            else:
                allowed, code = rights.on_cluster(operation), _REFUSED
            return ErrorCode.NONE if allowed else code

        allowed, refused = split(request.resources, lambda each: not refusal(each))
        if not refused:
            return asking.proceed(request)
        make = getattr(_messages(api), result)
        more = [
            make(
                error_code=refusal(each),
                error_message=MESSAGES[refusal(each)],
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in refused
        ]
        return asking.partly(request, "resources", allowed, field, more)

    return guard
