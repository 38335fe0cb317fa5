"""Validates produced records in a thread if the validation would block the event loop too long."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.broker.handlers.produce_answers import (
    Flushing,
    answer,
    answered_start_offset,
    copy_outcome,
    refuse,
    report_storage,
)
from penstock.broker.requests.side_thread import answer_later, full_budget, to_be_raised_later
from penstock.errors import KafkaError, StorageError, UnpackLimitError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.context import Context
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.broker.metadata.replica_manager import Topic
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.partitions.stored_form import OlderForm
    from penstock.broker.requests.purgatory import Wait
    from penstock.broker.transactions.service import Joining
    from penstock.protocol.messages.produce_response import (
        PartitionProduceResponse,
        ProduceResponse,
        TopicProduceResponse,
    )
    from penstock.records.compression.codecs import UnpackBudget
    from penstock.records.format.batch_header import BatchHeader


class Postponed:
    """The records and the response entry of one partition, while a thread validates the records."""

    __slots__ = (
        "admitted", "error", "first_offset", "joining", "older", "partition", "records", "response", "topic",
    )  # fmt: skip

    def __init__(
        self, topic: Topic, partition: Partition, records: bytearray, response: PartitionProduceResponse
    ) -> None:
        self.joining: Joining | None = None
        self.topic = topic
        self.partition = partition
        self.records = records
        self.response = response
        self.admitted: tuple[memoryview, BatchHeader] | None = None
        self.older: OlderForm | None = None
        self.error: KafkaError | None = None
        self.first_offset: int | None = None
        """The offset that the first record gets when a thread converts the records to magic 0 or 1;
        None without a conversion.

        If the log has grown since, the conversion must be repeated.
        """

    def prepare(self, version: int, now_ms: int, budget: UnpackBudget) -> None:
        """Validate the records, in any thread. The result or error is stored in this object."""
        partition = self.partition
        try:
            if self.records:
                records, self.records = self.records, bytearray()
                self.admitted = partition.admit(memoryview(records), version, now_ms, budget)
            if self.first_offset is not None and self.admitted is not None:
                self.older = partition.prepare_older(self.admitted, self.first_offset, now_ms, budget)
        except KafkaError as error:
            self.error = to_be_raised_later(error)
        except UnpackLimitError as error:
            self.error = error_for(ErrorCode.MESSAGE_TOO_LARGE, str(error))


def append_later(
    responses: list[TopicProduceResponse],
    acks: int,
    context: Context[ServingNode],
    postponed: list[Postponed],
    flushes: list[Flushing],
) -> ProduceResponse | Wait | None:
    """Validate postponed records in a thread, and answer the request once they have been appended."""
    version, now_ms = context.version, context.now_ms
    size = sum(len(each.records) for each in postponed)
    thread = context.node.side_thread()
    if thread is not None and not thread.has_room(size):
        busy = error_for(ErrorCode.REQUEST_TIMED_OUT, "too many records wait to be unpacked; send them again")
        for each in postponed:
            copy_outcome(each.response, refuse(each.response.index, busy))
        return answer(responses, acks, context, flushes)

    def prepare() -> None:
        budget = full_budget(context)
        for each in postponed:
            each.prepare(version, now_ms, budget)

    def append() -> ProduceResponse | Wait | None:
        nonlocal postponed
        postponed = [each for each in postponed if not _append_prepared(each, acks, context, flushes)]
        if postponed:  # others have appended meanwhile: once more, for where the log ends now
            return begin()
        return answer(responses, acks, context, flushes)

    def begin() -> ProduceResponse | Wait | None:
        for each in postponed:
            if each.partition.stores_older:
                with suppress(KafkaError, StorageError):  # met again by the append, which raises it
                    each.first_offset = each.partition.log.end_offset
        waiting: ProduceResponse | Wait | None = answer_later(context, prepare, size, append)
        return waiting

    return begin()


def _append_prepared(
    each: Postponed, acks: int, context: Context[ServingNode], flushes: list[Flushing]
) -> bool:
    """Append validated records; return False if the log has grown, so that conversion must be repeated."""
    partition, index = each.partition, each.response.index
    try:
        refused, each.error = each.error, None
        if refused is not None:
            raise refused
        if context.node.cluster.topics.get(each.topic.name) is not each.topic:
            raise error_for(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {each.topic.name} has been deleted meanwhile"
            )
        if each.older is not None and each.older.first_offset != partition.log.end_offset:
            return False
        flusher = context.node.flusher_for(partition) if each.topic.config.flushes else None
        appended = partition.append_admitted(
            each.admitted, context.now_ms, each.older, joining=each.joining, acks=acks
        )
    except KafkaError as error:
        copy_outcome(
            each.response, refuse(index, error, answered_start_offset(partition, error, each.joining))
        )
        return True
    except StorageError as error:
        copy_outcome(each.response, report_storage(index, error, context))
        return True
    size = len(each.admitted[0]) if each.admitted is not None else 0
    context.node.purgatory.notify(partition, size)
    response = each.response
    response.base_offset, response.log_append_time_ms, response.log_start_offset = appended
    if flusher is not None and partition.needs_flush:
        flushes.append(Flushing(flusher.flush(partition), each.response))
    return True
