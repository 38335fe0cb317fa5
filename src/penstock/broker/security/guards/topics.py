"""Guards of Produce and Fetch: the rights that they require on topics."""

from __future__ import annotations

from typing import Any

from penstock.broker.context import CloseConnection
from penstock.broker.security.guards.guard import Asking, extended, split, with_fields
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.since import FETCH_REPLICA_STATE_SINCE, FETCH_TOPIC_IDS_SINCE, PRODUCE_TOPIC_IDS_SINCE
from penstock.security.acls import Operation

_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NO_TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

_ATTRIBUTES, _MAGIC = 22, 16
"""Byte positions in a record batch: the low byte of the attributes, and the magic."""
_TRANSACTIONAL = 0x10

_NO_SESSION, _FIRST_EPOCH, _FINAL_EPOCH = 0, 0, -1


def guard_produce(request: Any, asking: Asking) -> Any:
    """Require WRITE on each topic, and on the transactional id if a batch is part of a transaction."""
    rights, by_id = asking.rights, asking.context.version >= PRODUCE_TOPIC_IDS_SINCE
    if _has_transactional_batch(request) and not (
        request.transactional_id is not None
        and rights.on_transactional_id(Operation.WRITE, request.transactional_id)
    ):
        if request.acks == 0:
            raise CloseConnection(f"{rights.principal} may not write with this transactional id")
        return asking.refuse(request, _NO_TRANSACTION)

    def may_write(topic: Any) -> bool:
        name = asking.topic_name(topic.topic_id) if by_id else topic.name
        return name is None or rights.on_topic(Operation.WRITE, name)

    allowed, refused = split(request.topic_data, may_write)
    if not refused:
        return asking.proceed(request)
    complete = extended("responses", asking.refused("responses", refused, _REFUSED))
    if request.acks == 0:

        def complete(response: Any) -> Any:
            raise CloseConnection(f"Produce with acks=0 to topics that {rights.principal} may not write to")

    return asking.then(with_fields(request, topic_data=allowed), complete)


def _has_transactional_batch(request: Any) -> bool:
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records
            if (
                records is not None
                and len(records) > _ATTRIBUTES
                and records[_MAGIC] == 2
                and records[_ATTRIBUTES] & _TRANSACTIONAL
            ):
                return True
    return False


def guard_fetch(request: Any, asking: Asking) -> Any:
    """Require READ on each topic, or CLUSTER_ACTION for a replica.

    A request that names refused topics gets no fetch session, since sessions contain only topics that may be
    read.
    """
    from penstock.protocol.messages.fetch_response import FetchResponse

    rights, by_id = asking.rights, asking.context.version >= FETCH_TOPIC_IDS_SINCE

    def may_read(topic: Any) -> bool:
        name = asking.topic_name(topic.topic_id) if by_id else topic.topic
        return name is None or rights.on_topic(Operation.READ, name)

    has_state = asking.context.version >= FETCH_REPLICA_STATE_SINCE
    replica = request.replica_state.replica_id if has_state else request.replica_id
    if replica >= 0:
        if rights.on_cluster(Operation.CLUSTER_ACTION):
            return asking.proceed(request)
        return FetchResponse(responses=asking.refused("responses", request.topics, _REFUSED))
    allowed, refused = split(request.topics, may_read)

    def complete(response: Any) -> Any:
        # A session may name topics whose entries have changed since.
        kept, lost = split(response.responses, may_read)
        unread = [*map(_as_asked, lost), *refused]
        response.responses = [*kept, *asking.refused("responses", unread, _REFUSED)]
        return response

    if not refused:
        if request.session_id == _NO_SESSION:
            return asking.proceed(request)
        return asking.then(request, complete)
    if request.session_epoch > _FIRST_EPOCH:
        return asking.refuse(request, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    request = with_fields(request, topics=allowed, session_epoch=_FINAL_EPOCH)
    if not allowed:
        request.max_wait_ms = 0
    return asking.then(request, complete)


def _as_asked(topic: Any) -> Any:
    """Convert a Fetch response entry to a request entry, from which an error entry can be built."""
    from penstock.protocol.messages.fetch_request import FetchPartition, FetchTopic

    partitions = [FetchPartition(partition=each.partition_index) for each in topic.partitions]
    return FetchTopic(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions)
