"""Translation of Produce before version 3: each partition's message set becomes one batch of magic 2.

If the messages of a partition are invalid, the gateway does not send them to the cluster. It returns the
error code that brokers before Kafka 0.11 returned for such a partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import CorruptRecordError, KafkaError, UnpackLimitError
from penstock.gateway.calls import NodeCall
from penstock.gateway.translation.errors import NotForwarded
from penstock.gateway.translation.rules import answered
from penstock.model import TimestampType
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import ALL_REPLICAS
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.records.compression.codecs import UnpackBudget
from penstock.records.convert import convert_up
from penstock.records.format.batch_header import read_header, split_batches

if TYPE_CHECKING:
    from penstock.gateway.translation.rules import Steps, TranslatedRequest

UNPACKED_BYTES_MAX = 32 << 20
"""The largest decompressed size, in bytes, of the messages of one request."""

UNPACKED_RECORDS_MAX = 1_000_000
"""The most messages in one request, counted after decompression."""

QUICK_BYTES_MAX = 512 << 10
"""The largest message set, in bytes, that is recompressed at a fast level; a larger one could exceed a
topic's `max.message.bytes` at that level.
"""


_Outcomes = dict[tuple[str, int], PartitionProduceResponse]


def produce(asked: TranslatedRequest) -> Steps:
    """Translate a Produce request with message sets.

    Raises:
        Refused: the client expects no response (acks 0), and a partition has failed.
    """
    request = asked.request
    budget = UnpackBudget(UNPACKED_BYTES_MAX, UNPACKED_RECORDS_MAX)
    outcomes: _Outcomes = {}
    topics = [_converted(topic, budget, outcomes) for topic in request.topic_data]
    response = ProduceResponse()
    topics = [topic for topic in topics if topic.partition_data]
    if topics:
        response = yield NodeCall(
            asked.api_key,
            asked.target,
            ProduceRequest(
                acks=_acks(request.acks),
                timeout_ms=request.timeout_ms,
                topic_data=topics,
            ),
        )
        response = answered(response, asked)
    for topic in response.responses:
        for partition in topic.partition_responses:
            outcomes.setdefault((topic.name, partition.index), partition)
    if not request.acks:
        _refuse_failures(outcomes)
        return None
    response.responses = _in_order(request, outcomes)
    return response


def _in_order(request: ProduceRequest, outcomes: _Outcomes) -> list[TopicProduceResponse]:
    """Return the results for the partitions in the order of the request, each partition once."""
    topics: dict[str, TopicProduceResponse] = {}
    for topic in request.topic_data:
        answer = topics.setdefault(topic.name, TopicProduceResponse(name=topic.name))
        for data in topic.partition_data:
            outcome = outcomes.pop((topic.name, data.index), None)
            if outcome is not None:
                answer.partition_responses.append(outcome)
    return list(topics.values())


def _acks(asked: int) -> int:
    """Return the acks for the request to the cluster, given those of the client.

    Before Kafka 0.9, acks above 1 were a number of replicas; they become -1 (all in-sync replicas), which is
    at least as safe. Acks 0 become 1, so that the gateway notices a failure.
    """
    if asked > 1:
        return ALL_REPLICAS
    return asked or 1


def _refuse_failures(outcomes: _Outcomes) -> None:
    for (topic, index), outcome in outcomes.items():
        if outcome.error_code:
            error = error_for(outcome.error_code, f"Produce with acks=0 to {topic}-{index}")
            raise NotForwarded(str(error))


def _converted(topic: TopicProduceData, budget: UnpackBudget, outcomes: _Outcomes) -> TopicProduceData:
    """Convert the message sets of a topic; add the results for invalid or empty ones to `outcomes`."""
    kept: list[PartitionProduceData] = []
    for data in topic.partition_data:
        place = topic.name, data.index
        try:
            batch = batch_of(data.records, budget)
        except KafkaError as error:
            outcomes[place] = PartitionProduceResponse(
                index=data.index, error_code=error.code, base_offset=-1
            )
            continue
        if batch is None:
            outcomes[place] = PartitionProduceResponse(index=data.index, base_offset=-1)
        else:
            kept.append(PartitionProduceData(index=data.index, records=batch))
    return TopicProduceData(name=topic.name, partition_data=kept)


def batch_of(records: memoryview | bytes | None, budget: UnpackBudget) -> memoryview | None:
    """Convert a message set to a batch of magic 2; return None if the set has no whole message.

    A message that is incomplete at the end of the set is dropped. Like Kafka 0.8 and 0.9, this accepts
    messages of magic 1 inside compressed messages of magic 0, and nested compressed messages. Batches of
    magic 2 are not changed: the cluster accepts or refuses them.

    Raises:
        KafkaError: CORRUPT_MESSAGE (2), INVALID_TIMESTAMP (32), or MESSAGE_TOO_LARGE (10) for messages that
            exceed `budget`.
    """
    view = memoryview(records or b"")
    try:
        first = next(split_batches(view), None)
        if first is None:
            return None
        if first[2] == 2:
            return view[: max(end for _, end, _ in split_batches(view))]
        batch = memoryview(
            convert_up(
                view,
                base_offset=0,
                budget=budget,
                mixed=True,
                nested=True,
                may_be_cut=True,
                quick_bytes=QUICK_BYTES_MAX,
            )
        )
    except UnpackLimitError as error:
        raise error_for(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from None
    except CorruptRecordError as error:
        raise error_for(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if read_header(batch).timestamp_type == TimestampType.LOG_APPEND_TIME:
        raise error_for(ErrorCode.INVALID_TIMESTAMP, "a producer cannot set log-append time")
    return batch
