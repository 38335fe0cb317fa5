"""Records in a capture: what producers wrote and what consumers fetched, with their places in the log."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from penstock.explorer.conversation import Entry, read_capture
from penstock.explorer.lines import message_class
from penstock.model import TopicPartition
from penstock.protocol.api import API_TABLE, ApiKey, request_header_version, response_header_version
from penstock.protocol.codec import codec_for

NO_ID = bytes(16)


class CapturedBatches(NamedTuple):
    """Bytes of one partition's batches on the wire."""

    tp: TopicPartition
    base_offset: int | None
    """The offset of the first record that a producer wrote; None for fetched batches, which have offsets."""
    records: bytes


def captured_batches(data: bytes, port: int | None = None) -> Iterator[CapturedBatches]:
    """Yield the batches of Produce requests that were answered without an error, and of Fetch responses.

    A topic that a message names by its id has the name that any Metadata response of the capture gives to it,
    or else the id in Base64, as Kafka prints ids. Requests with ``acks=0`` have no answer and so no offsets:
    they are left out. `port` is the broker's, where a capture has other connections as well.

    Raises:
        DecodeError: the data is no capture.
    """
    entries = [entry for entry in read_capture(data, port) if entry.error is None]
    names = {
        topic.topic_id: topic.name
        for entry in entries
        if entry.name == "MetadataResponse"
        for topic in _message(entry, ApiKey.METADATA).topics
        if topic.name is not None
    }
    asked: dict[tuple[str | None, int], Any] = {}
    for entry in entries:
        place = (entry.connection, (entry.header or {}).get("correlationId", -1))
        if entry.name == "ProduceRequest":
            asked[place] = _message(entry, ApiKey.PRODUCE)
        elif entry.name == "ProduceResponse" and place in asked:
            yield from _written(asked.pop(place), _message(entry, ApiKey.PRODUCE), names)
        elif entry.name == "FetchResponse":
            yield from _fetched(_message(entry, ApiKey.FETCH), names)


def _message(entry: Entry, key: ApiKey) -> Any:
    """The message of an entry that has been read before."""
    row = API_TABLE[key]
    found, header = (row.request, "RequestHeader") if entry.is_request else (row.response, "ResponseHeader")
    header_version = (request_header_version if entry.is_request else response_header_version)(
        key, entry.version
    )
    _, position = codec_for(message_class(header), header_version).decode(entry.frame, 0)
    return codec_for(found, entry.version).decode(entry.frame, position)[0]


def _written(request: Any, answer: Any, names: dict[bytes, str]) -> Iterator[CapturedBatches]:
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


def _fetched(answer: Any, names: dict[bytes, str]) -> Iterable[CapturedBatches]:
    for topic in answer.responses:
        for one in topic.partitions:
            if one.records:
                tp = TopicPartition(_name(topic.topic, topic.topic_id, names), one.partition_index)
                yield CapturedBatches(tp, None, bytes(one.records))


def _name(name: str | None, topic_id: bytes, names: dict[bytes, str]) -> str:
    if topic_id == NO_ID or name:
        return name or ""
    return names.get(topic_id) or base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
