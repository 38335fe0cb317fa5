"""Checks of rights for APIs about settings and the cluster whose refusals differ in form from others."""

from __future__ import annotations

from typing import Any

from penstock.broker.security.guards.guard import Asking, Guard, split
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.field_values import GROUP_RESOURCE, TOPIC_RESOURCE
from penstock.security.acls import Operation

_REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def guard_scram_changes(request: Any, asking: Asking) -> Any:
    """Require ALTER on the cluster. A refusal of AlterUserScramCredentials lists each user once, sorted."""
    if asking.rights.on_cluster(Operation.ALTER):
        return asking.proceed(request)
    response = asking.refuse(request, _REFUSED)
    by_name = {each.user: each for each in response.results}
    response.results = [by_name[name] for name in sorted(by_name)]
    return response


def guard_describe_client_quotas(request: Any, asking: Asking) -> Any:
    """Require DESCRIBE_CONFIGS on the cluster. In a refusal, `entries` is null."""
    if asking.rights.on_cluster(Operation.DESCRIBE_CONFIGS):
        return asking.proceed(request)
    response = asking.refuse(request, _REFUSED)
    response.entries = None
    return response


def guard_list_partition_reassignments(request: Any, asking: Asking) -> Any:
    """Require DESCRIBE on the cluster. A refusal lists the partitions of the request, without replicas."""
    if asking.rights.on_cluster(Operation.DESCRIBE):
        return asking.proceed(request)
    from penstock.protocol.messages.list_partition_reassignments_response import (
        OngoingPartitionReassignment,
        OngoingTopicReassignment,
    )

    response = asking.refuse(request, _REFUSED)
    response.topics = [
        OngoingTopicReassignment(
            name=topic.name,
            partitions=[
                OngoingPartitionReassignment(partition_index=each) for each in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
    ]
    return response


def on_configs(operation: Operation, answer: str) -> Guard:
    """Return a guard that requires `operation` on each resource whose settings are read or changed."""

    def guard(request: Any, asking: Asking) -> Any:
        rights = asking.rights

        def refusal(resource: Any) -> ErrorCode:
            kind, name = resource.resource_type, resource.resource_name
            if kind == TOPIC_RESOURCE:
                allowed, code = rights.on_topic(operation, name), ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif kind == GROUP_RESOURCE:
                allowed, code = rights.on_group(operation, name), ErrorCode.GROUP_AUTHORIZATION_FAILED
            else:
                allowed, code = rights.on_cluster(operation), _REFUSED
            return ErrorCode.NONE if allowed else code

        allowed, refused = split(request.resources, lambda each: not refusal(each))
        more = [entry for each in refused for entry in asking.refused(answer, (each,), refusal(each))]
        return asking.partly(request, "resources", allowed, answer, more)

    return guard
