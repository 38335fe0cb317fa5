"""The five requests to the share coordinator: splits each by share partition, and joins the results.

These requests come from clients as well as from other brokers. `KINDS` has the function that handles each
request, and the classes of its response.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.broker.groups.share_state.batches import StateBatch
from penstock.broker.groups.share_state.coordinator import WrittenShareState
from penstock.broker.groups.share_state.keys import ShareKey
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.messages import (
    delete_share_group_state_response,
    initialize_share_group_state_response,
    read_share_group_state_response,
    read_share_group_state_summary_response,
    write_share_group_state_response,
)

if TYPE_CHECKING:
    from penstock.broker.groups.share_state.service import ShareStateOutcome, ShareStateService

Ask = Callable[["ShareStateService", ShareKey, Any], "ShareStateOutcome"]
"""A function that calls the share coordinator for one share partition, with its part of a request."""


class ShareStateApi(NamedTuple):
    """One API of the share coordinator: the function for each share partition, and the response's classes.

    `fill` writes a state into the response for a share partition; it is None if responses have no state.
    """

    ask: Ask
    response: type[Any]
    topic: type[Any]
    partition: type[Any]
    fill: Callable[[Any, Any], None] | None = None


def _written(asked: Any) -> WrittenShareState:
    return WrittenShareState(
        asked.state_epoch,
        asked.leader_epoch,
        asked.start_offset,
        asked.delivery_complete_count,
        tuple(
            StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in asked.state_batches
        ),
    )


def _fill_read(answer: Any, state: Any) -> None:
    answer.state_epoch, answer.start_offset = state.state_epoch, state.start_offset
    answer.state_batches = [
        read_share_group_state_response.StateBatch(
            first_offset=each.first_offset,
            last_offset=each.last_offset,
            delivery_state=each.state,
            delivery_count=each.deliveries,
        )
        for each in state.batches
    ]


def _fill_summary(answer: Any, state: Any) -> None:
    answer.state_epoch, answer.leader_epoch = state.state_epoch, state.leader_epoch
    answer.start_offset, answer.delivery_complete_count = state.start_offset, state.complete_count


KINDS: dict[int, ShareStateApi] = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: ShareStateApi(
        lambda service, key, asked: service.initialize(key, asked.state_epoch, asked.start_offset),
        initialize_share_group_state_response.InitializeShareGroupStateResponse,
        initialize_share_group_state_response.InitializeStateResult,
        initialize_share_group_state_response.PartitionResult,
    ),
    ApiKey.READ_SHARE_GROUP_STATE: ShareStateApi(
        lambda service, key, asked: service.read(key, asked.leader_epoch),
        read_share_group_state_response.ReadShareGroupStateResponse,
        read_share_group_state_response.ReadStateResult,
        read_share_group_state_response.PartitionResult,
        _fill_read,
    ),
    ApiKey.WRITE_SHARE_GROUP_STATE: ShareStateApi(
        lambda service, key, asked: service.write(key, _written(asked)),
        write_share_group_state_response.WriteShareGroupStateResponse,
        write_share_group_state_response.WriteStateResult,
        write_share_group_state_response.PartitionResult,
    ),
    ApiKey.DELETE_SHARE_GROUP_STATE: ShareStateApi(
        lambda service, key, asked: service.delete(key),
        delete_share_group_state_response.DeleteShareGroupStateResponse,
        delete_share_group_state_response.DeleteStateResult,
        delete_share_group_state_response.PartitionResult,
    ),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ShareStateApi(
        lambda service, key, asked: service.summary(key),
        read_share_group_state_summary_response.ReadShareGroupStateSummaryResponse,
        read_share_group_state_summary_response.ReadStateSummaryResult,
        read_share_group_state_summary_response.PartitionResult,
        _fill_summary,
    ),
}
"""A dict from API key to the function and response classes of each request to the share coordinator."""


def keys_of(request: Any) -> list[tuple[ShareKey, Any]]:
    """Return the share partitions in a request, each with its part of the request.

    As in Apache Kafka, the list is empty if the request has no group id.
    """
    if not request.group_id:
        return []
    return [
        (ShareKey(request.group_id, topic.topic_id, asked.partition), asked)
        for topic in request.topics
        for asked in topic.partitions
    ]


def part_of(kind: ShareStateApi, key: ShareKey, outcome: ShareStateOutcome) -> Any:
    """Return the entry for one share partition in the response, made from the share coordinator's outcome."""
    answer = kind.partition(partition=key.partition, error_code=outcome.code, error_message=outcome.message)
    if kind.fill is not None and outcome.state is not None:
        kind.fill(answer, outcome.state)
    return answer


def answer_of(kind: ShareStateApi, request: Any, parts: dict[ShareKey, Any]) -> Any:
    """Return the response, made from the entries for all share partitions in the order of the request."""
    results = []
    for topic in request.topics if request.group_id else ():
        named = [ShareKey(request.group_id, topic.topic_id, asked.partition) for asked in topic.partitions]
        if named:
            results.append(kind.topic(topic_id=topic.topic_id, partitions=[parts[key] for key in named]))
    return kind.response(results=results)


def answer_here(service: ShareStateService, request: Any) -> Any:
    """Answer a request on this node; share partitions of other coordinators get NOT_COORDINATOR (16)."""
    kind = KINDS[request.API_KEY]
    parts = {key: part_of(kind, key, kind.ask(service, key, asked)) for key, asked in keys_of(request)}
    return answer_of(kind, request, parts)
