"""The records of a recording by partition: fetched records by offset, and written records in order.

Timing determines how an application divides records into requests, so Fetch and Produce requests are not
matched as a whole. A fetch is answered partition by partition from its offset, a write record by record.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from penstock.common.suggestions import short_repr
from penstock.errors import CorruptRecordError
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.protocol.since import FETCH_SESSIONS_SINCE
from penstock.protocol.uuid import ZERO_UUID
from penstock.records.convert import offset_after
from penstock.records.format.batch_header import split_batches
from penstock.testing.replay.exchanges import RecordedExchange
from penstock.testing.replay.masking import HEADERS, KEYS, VALUES
from penstock.testing.replay.walking import Names, rows_of

NEW_SESSION_EPOCHS = (0, -1)
"""Session epochs in a Fetch that lists all of its partitions: 0 begins a fetch session, -1 uses none
(KIP-227)."""

TopicKey = str | bytes
"""The name of a topic, or its id if the recording does not contain the name."""


class Unrecorded(Exception):
    """Raised for a request that is not in the recording. The message describes the request."""


def topic_key(name: str | None, topic_id: bytes, names: Names) -> TopicKey:
    """Return the key of a request's topic: its name, or its id if the name is unknown."""
    if name:
        return name
    key: TopicKey = topic_id
    return names.get(topic_id) or key


class SessionOffsets:
    """The partitions and offsets of each fetch session; later requests list only changed partitions."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._sessions: dict[int, dict[tuple[TopicKey, int], tuple[Any, Any]]] = {}

    def asked(self, exchange: RecordedExchange, request: Any) -> dict[tuple[TopicKey, int], tuple[Any, Any]]:
        """Return a dict from each partition that a Fetch or its session lists to its two structs.

        The structs are those of the topic and of the partition."""
        session = self._sessions.setdefault(exchange.connection, {})
        if request.session_epoch in NEW_SESSION_EPOCHS or exchange.version < FETCH_SESSIONS_SINCE:
            session.clear()
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                session.pop((topic_key(topic.topic, topic.topic_id, self._names), partition), None)
        for topic in request.topics:
            for each in topic.partitions:
                place = topic_key(topic.topic, topic.topic_id, self._names), each.partition
                session[place] = topic, each
        return dict(session)


class _Batches(NamedTuple):
    start: int
    end: int
    answer: Any


class FetchedPartition:
    """Selects answers to fetches of one partition, from the recorded answers by fetch offset."""

    def __init__(self) -> None:
        self.answers: dict[int, deque[Any]] = defaultdict(deque)
        """A dict from fetch offset to the recorded answers with records or an error, in recorded order."""
        self.known: set[int] = set()
        """Offsets that can get an empty answer: those of recorded fetches, and the end offsets of fetched
        records."""
        self.ranges: list[_Batches] = []
        self.idle: Any = None
        """The newest recorded answer without an error, from which empty answers copy the watermarks."""

    def add(self, offset: int, answer: Any) -> None:
        """Add the recorded answer to a fetch at `offset`."""
        if answer.error_code:
            self.answers[offset].append(answer)
            return
        self.idle = answer
        self.known.add(offset)
        if answer.records:
            self.answers[offset].append(answer)
            try:
                end = offset_after(answer.records)
            except CorruptRecordError:
                return
            start = int.from_bytes(bytes(answer.records[:8]), "big", signed=True)
            self.ranges.append(_Batches(start, end, answer))
            self.known.add(end)

    def at(self, offset: int) -> Any:
        """Return an answer to a fetch at an offset: a recorded one, recorded batches, or an empty one.

        Raises:
            Unrecorded: nothing was recorded at that offset.
        """
        waiting = self.answers.get(offset)
        if waiting:
            return copy.copy(waiting.popleft())
        for each in reversed(self.ranges):
            if each.start <= offset < each.end:
                made = copy.copy(each.answer)
                made.records = _from(each.answer.records, offset)
                return made
        if offset not in self.known:
            raise Unrecorded(f"no fetch at offset {offset} was recorded")
        if self.idle is None:
            return PartitionData(high_watermark=offset, last_stable_offset=offset, records=b"")
        made = copy.copy(self.idle)
        made.records = b""
        return made


def _from(records: Any, offset: int) -> bytes:
    """Return the batches of `records` from the one that contains `offset` on."""
    view = memoryview(records)
    for start, end, _ in split_batches(view):
        if offset_after(view[start:end]) > offset:
            return bytes(view[start:])
    return b""


class Fetches:
    """Answers Fetch requests from the recording, by partition and offset, without fetch sessions."""

    def __init__(self, exchanges: Iterable[RecordedExchange], names: Names) -> None:
        self._names = names
        self.partitions: dict[tuple[TopicKey, int], FetchedPartition] = defaultdict(FetchedPartition)
        sessions = SessionOffsets(names)
        for exchange in exchanges:
            if exchange.api_key == ApiKey.FETCH:
                self._add(sessions.asked(exchange, exchange.asked()), exchange.answer())

    def _add(self, asked: dict[tuple[TopicKey, int], tuple[Any, Any]], answer: Any) -> None:
        left = dict(asked)
        for topic in answer.responses if answer is not None else ():
            for each in topic.partitions:
                place = topic_key(topic.topic, topic.topic_id, self._names), each.partition_index
                if place in asked:
                    self.partitions[place].add(left.pop(place, asked[place])[1].fetch_offset, each)
        # A session leaves out what has not changed, and the last fetch may be without an answer.
        for place, (_, each) in left.items():
            self.partitions[place].known.add(each.fetch_offset)

    def answer(self, request: Any) -> tuple[FetchResponse, bool]:
        """Return the answer to a Fetch, and True if the answer has neither records nor errors.

        Raises:
            Unrecorded: a partition was not fetched at that offset.
        """
        made = FetchResponse()
        is_empty = True
        for topic in request.topics:
            entry = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
            for each in topic.partitions:
                key = topic_key(topic.topic, topic.topic_id, self._names)
                found = self.partitions.get((key, each.partition))
                try:
                    if found is None:
                        raise Unrecorded("no fetch of this partition was recorded")
                    answer = found.at(each.fetch_offset)
                except Unrecorded as error:
                    raise Unrecorded(f"{_shown(key)}-{each.partition}: {error}") from None
                answer.partition_index = each.partition
                is_empty = is_empty and not answer.records and not answer.error_code
                entry.partitions.append(answer)
            made.responses.append(entry)
        return made, is_empty


_COMPARED = (("key", "key", KEYS), ("value", "value", VALUES), ("headers", "headers", HEADERS))


class _Write(NamedTuple):
    rows: deque[tuple[int, Any]]
    """(offset, record) for each row of the write; the offset is -1 if it is unknown."""
    answer: Any
    """The recorded answer; None for acks=0, or if the capture ended before the answer."""


class Produces:
    """Answers Produce requests from the recording; each partition's records must arrive in recorded order."""

    def __init__(self, exchanges: Iterable[RecordedExchange], names: Names, masked: Iterable[str]) -> None:
        self._names = names
        self._masked = [each.partition(":") for each in masked]
        self.partitions: dict[tuple[TopicKey, int], deque[_Write]] = defaultdict(deque)
        for exchange in exchanges:
            if exchange.api_key == ApiKey.PRODUCE:
                for place, write in self._writes(exchange.asked(), exchange.answer()):
                    self.partitions[place].append(write)

    def _writes(self, request: Any, answer: Any) -> Iterator[tuple[tuple[TopicKey, int], _Write]]:
        answers = {
            (topic_key(topic.name, topic.topic_id, self._names), each.index): each
            for topic in (answer.responses if answer is not None else ())
            for each in topic.partition_responses
        }
        for topic in request.topic_data:
            for each in topic.partition_data:
                place = topic_key(topic.name, topic.topic_id, self._names), each.index
                found = answers.get(place)
                first = -1 if found is None or found.error_code else found.base_offset
                try:
                    rows = rows_of(each.records)
                except CorruptRecordError:  # which the recorded broker has refused
                    rows = []
                yield (
                    place,
                    _Write(
                        deque((first + n if first >= 0 else -1, row) for n, row in enumerate(rows)), found
                    ),
                )

    def left_over(self) -> list[str]:
        """Return a line of text for each partition whose recorded records were not all written."""
        return [
            f"Produce to {_shown(topic)}-{partition}: {count} records were not written"
            for (topic, partition), writes in self.partitions.items()
            if (count := sum(len(each.rows) for each in writes if not _failed(each)))
        ]

    def answer(self, message: Any, request: Any) -> Any:
        """Put the recorded results of a Produce request into `message`, an empty response, and return it.

        Raises:
            Unrecorded: a record differs from the recorded one, or there are more records than recorded.
        """
        taken = {}
        for topic in request.topic_data:
            key = topic_key(topic.name, topic.topic_id, self._names)
            for each in topic.partition_data:
                try:
                    taken[key, each.index] = self._take(key, each.index, rows_of(each.records))
                except Unrecorded as error:
                    raise Unrecorded(f"{_shown(key)}-{each.index}: {error}") from None
        for entry, topic in zip(message.responses, request.topic_data, strict=True):
            key = topic_key(topic.name, topic.topic_id, self._names)
            for each in entry.partition_responses:
                given, offset = taken[key, each.index]
                each.base_offset = offset
                if given is not None:
                    each.error_code, each.log_append_time_ms = given.error_code, given.log_append_time_ms
                    each.log_start_offset = given.log_start_offset
        return message

    def _take(self, key: TopicKey, partition: int, rows: list[Any]) -> tuple[Any, int]:
        """Return the recorded answer for the next records of a partition, and the first record's offset."""
        writes = self.partitions.get((key, partition))
        if not writes:
            raise Unrecorded(f"{len(rows)} records more than were recorded")
        if _failed(writes[0]):
            self._compare(key, rows, [row for _, row in writes[0].rows])
            return writes.popleft().answer, -1
        left = (pair for each in writes if not _failed(each) for pair in each.rows)
        whole = [*islice(left, len(rows))]
        if len(whole) < len(rows):
            raise Unrecorded(f"{len(rows)} records, where {len(whole)} more were recorded")
        self._compare(key, rows, [row for _, row in whole])
        answer = writes[0].answer
        count = len(rows)
        while count and writes:
            if _failed(writes[0]) or not writes[0].rows:
                writes.popleft()
                continue
            writes[0].rows.popleft()
            count -= 1
        while writes and not writes[0].rows and not _failed(writes[0]):
            writes.popleft()
        return answer, whole[0][0] if rows else -1

    def _compared(self, key: TopicKey) -> list[tuple[str, str]]:
        """Return (name for error messages, attribute) of each part of records that is not masked."""
        hidden = {
            place
            for place, _, topics in self._masked
            if not topics or not isinstance(key, str) or re.fullmatch(topics, key)
        }
        return [(word, attribute) for word, attribute, place in _COMPARED if place not in hidden]

    def _compare(self, key: TopicKey, rows: list[Any], recorded: list[Any]) -> None:
        compared = self._compared(key)
        for number, (row, other) in enumerate(zip(rows, recorded, strict=False)):
            for what, attribute in compared:
                one, two = getattr(row, attribute), getattr(other, attribute)
                if attribute == "headers":
                    one, two = tuple(one), tuple(two)
                if one != two:
                    raise Unrecorded(
                        f"record {number} of the request has {what} {short_repr(one)}, "
                        f"recorded is {short_repr(two)}"
                    )


def _failed(write: _Write) -> bool:
    return write.answer is not None and write.answer.error_code != 0


def _shown(key: TopicKey) -> str:
    if isinstance(key, str):
        return key
    return "a topic" if key == ZERO_UUID else f"topic {key.hex()}"
