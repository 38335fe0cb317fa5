"""Records in a capture: those that producers wrote and consumers fetched, with their offsets."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penstock.explorer.conversation import read_capture
from penstock.model import TopicPartition
from penstock.protocol.messages.fetch_response import FetchResponse
from penstock.protocol.messages.metadata_response import MetadataResponse
from penstock.protocol.messages.produce_request import ProduceRequest
from penstock.protocol.messages.produce_response import ProduceResponse

NO_ID = bytes(16)


class CapturedBatches(NamedTuple):
    """The bytes of one partition's record batches on the wire."""

    tp: TopicPartition
    base_offset: int | None
    """The first offset, from the Produce response; None for fetched batches, whose headers have it."""
    records: bytes


def captured_batches(data: bytes, port: int | None = None) -> Iterator[CapturedBatches]:
    """Yield the batches of Produce requests that were answered without an error, and of Fetch responses.

    A topic id is replaced by the name in any Metadata response of the capture, or else by the id in Base64,
    as Kafka prints ids. Requests with ``acks=0`` have no answer, which would have the offsets, so they are
    left out. `port` is the broker's port; other connections in the capture are ignored.

    Raises:
        DecodeError: the data are not a capture.
    """
    entries = [entry for entry in read_capture(data, port) if entry.error is None]
    names = {
        topic.topic_id: topic.name
        for entry in entries
        if isinstance(entry.message, MetadataResponse)
        for topic in entry.message.topics
        if topic.name is not None
    }
    asked: dict[tuple[str | None, int], ProduceRequest] = {}
    for entry in entries:
        message = entry.message
        place = (entry.connection, (entry.header or {}).get("correlationId", -1))
        if isinstance(message, ProduceRequest):
            asked[place] = message
        elif isinstance(message, ProduceResponse) and place in asked:
            yield from _written(asked.pop(place), message, names)
        elif isinstance(message, FetchResponse):
            yield from _fetched(message, names)


def _written(
    request: ProduceRequest, answer: ProduceResponse, names: dict[bytes, str]
) -> Iterator[CapturedBatches]:
    offsets = {
        TopicPartition(_name(topic.name, topic.topic_id, names), one.index): one.base_offset
        for topic in answer.responses
        for one in topic.partition_responses
        if one.error_code == 0 and one.base_offset >= 0
    }
    for topic in request.topic_data:
        for one in topic.partition_data:
            tp = TopicPartition(_name(topic.name, topic.topic_id, names), one.index)
            if tp in offsets and one.records is not None:
                yield CapturedBatches(tp, offsets[tp], bytes(one.records))


def _fetched(answer: FetchResponse, names: dict[bytes, str]) -> Iterable[CapturedBatches]:
    for topic in answer.responses:
        for one in topic.partitions:
            if one.records:
                tp = TopicPartition(_name(topic.topic, topic.topic_id, names), one.partition_index)
                yield CapturedBatches(tp, None, bytes(one.records))


def _name(name: str | None, topic_id: bytes, names: dict[bytes, str]) -> str:
    if topic_id == NO_ID or name:
        return name or ""
    return names.get(topic_id) or base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
