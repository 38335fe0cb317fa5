"""Apply the `on_batches` functions of hooks to Produce, Fetch and ShareFetch, partition by partition.

If a function refuses the records of a partition, only this partition gets the error.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.gateway.hooks.batches import changed_records
from penstock.gateway.hooks.hook import ClientRequest, Refused
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.error_response import error_response

if TYPE_CHECKING:
    from penstock.gateway.hooks.hook import OnBatches

FAILED = "a hook of the gateway has failed; its log says why"


def changed_produce(
    request: ClientRequest, names: Mapping[bytes, str], functions: Sequence[OnBatches]
) -> list[Any] | None:
    """Apply hook functions to the records of a Produce request; remove refused partitions from the request.

    Returns the error responses of refused partitions, or None if no partition is refused. Exceptions of a
    function other than `Refused` propagate.
    """
    message = request.message
    answers: list[Any] = []
    for topic in message.topic_data:
        refused: list[int] = []
        for partition in topic.partition_data:
            records = partition.records
            if records is None or not len(records):
                continue
            try:
                partition.records = changed_records(
                    records, request, _name_of(topic, names), partition.index, functions
                )
            except Refused as error:
                refused.append(id(partition))
                alone = copy.copy(topic)
                alone.partition_data = [partition]
                question = copy.copy(message)
                question.topic_data = [alone]
                answers.append(
                    error_response(
                        ApiKey.PRODUCE, request.version, question, error.code, error.reason or None
                    )
                )
        if refused:
            topic.partition_data = [each for each in topic.partition_data if id(each) not in refused]
    message.topic_data = [topic for topic in message.topic_data if topic.partition_data]
    return answers or None


def with_refusals(response: Any, refusals: list[Any]) -> Any:
    """Return a Produce response to which the errors of refused partitions are added.

    `response` is the cluster's response, or None if all partitions are refused.
    """
    whole, *others = refusals if response is None else [response, *refusals]
    found = {(each.name, each.topic_id): each for each in whole.responses}
    for answer in others:
        for topic in answer.responses:
            there = found.get((topic.name, topic.topic_id))
            if there is None:
                found[topic.name, topic.topic_id] = topic
                whole.responses.append(topic)
            else:
                there.partition_responses += topic.partition_responses
    return whole


def changed_responses(
    request: ClientRequest,
    response: Any,
    names: Mapping[bytes, str],
    functions: Sequence[OnBatches],
    caught: Callable[[str], None],
) -> None:
    """Apply hook functions to the records of a Fetch or ShareFetch response.

    A partition whose records a function refuses gets an error.
    """
    for topic in response.responses:
        for partition in topic.partitions:
            records = partition.records
            if records is None or not len(records):
                continue
            try:
                partition.records = changed_records(
                    records, request, _name_of(topic, names), partition.partition_index, functions
                )
            except Refused as error:
                _refuse(partition, error.code, error.reason)
            except Exception:
                caught(f"a hook for records of {request!r}")
                _refuse(partition, ErrorCode.UNKNOWN_SERVER_ERROR, FAILED)


def _refuse(partition: Any, code: int, reason: str) -> None:
    partition.error_code, partition.records = code, b""
    if hasattr(partition, "acquired_records"):
        partition.acquired_records = []
        partition.error_message = reason


def _name_of(topic: Any, names: Mapping[bytes, str]) -> str:
    """Return the name of a topic struct, looked up in `names` by topic id if the struct has no name.

    Raises:
        Refused: no name is known for the id, so that a hook for certain topics cannot be applied.
    """
    for attribute in ("name", "topic"):
        name = getattr(topic, attribute, None)
        if isinstance(name, str) and name:
            return name
    found = names.get(topic.topic_id)
    if found is None:
        raise Refused("UNKNOWN_TOPIC_ID", "the cluster names no topic with this id")
    return found
