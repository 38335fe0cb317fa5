"""Replaces ids, epochs and offsets in recorded requests with those of the cluster that is replayed to."""

from __future__ import annotations

from typing import Any

from penstock.protocol.api_keys import ApiKey
from penstock.protocol.messages.fetch_request import FetchTopic
from penstock.records.format.batch_header import read_header, set_producer, split_batches
from penstock.testing.replay.exchanges import RecordedExchange, topic_names
from penstock.testing.replay.logs import SessionOffsets
from penstock.testing.replay.walking import StructPlace, places

_EPOCHS = ("current_leader_epoch", "last_fetched_epoch", "committed_leader_epoch")
_GENERATIONS = ("generation_id", "member_epoch", "generation_id_or_member_epoch")
_OFFSETS = ("fetch_offset", "committed_offset")

NO_PRODUCER = (-1, -1)


class Adaptation:
    """Changes recorded requests for a target cluster, with ids and offsets from its earlier answers."""

    def __init__(self, exchanges: list[RecordedExchange]) -> None:
        self.old_names = topic_names(exchanges)
        self.new_names: dict[bytes, str] = {}
        self._sessions = SessionOffsets(self.old_names)
        self._topic_ids: dict[str, bytes] = {}
        self._members: dict[str, str] = {}
        self._generations: dict[tuple[str | None, int], int] = {}
        self._producers: dict[int, tuple[int, int, int]] = {}
        """A dict from recorded producer id to the recorded epoch, and the producer id and epoch at the
        target."""
        self._deltas: dict[tuple[str, int], int] = {}

    # --- requests ----------------------------------------------------------------------------------------

    def adapt(self, exchange: RecordedExchange) -> Any:
        """Return the recorded request with the target cluster's ids, epochs and offsets."""
        request = exchange.asked()
        if exchange.api_key == ApiKey.FETCH:
            self._expand(exchange, request)
        group = getattr(request, "group_id", None)
        for place in places(request, exchange.version, self.old_names):
            self._adapt(place, group)
        return request

    def _expand(self, exchange: RecordedExchange, request: Any) -> None:
        """Add all partitions of its fetch session to a Fetch, so that the target needs no fetch session."""
        asked = self._sessions.asked(exchange, request)
        topics: dict[object, Any] = {}
        for (key, _), (topic, partition) in asked.items():
            entry = topics.setdefault(key, FetchTopic(topic=topic.topic, topic_id=topic.topic_id))
            entry.partitions.append(partition)
        request.topics, request.forgotten_topics_data = [*topics.values()], []
        request.session_id, request.session_epoch = 0, -1

    def _adapt(self, place: StructPlace, group: str | None) -> None:
        struct = place.struct
        for field in place.fields:
            name = field.attribute
            if field.layout is not None:
                continue
            value = getattr(struct, name)
            if name == "member_id":
                setattr(struct, name, self._members.get(value, value))
            elif name in _GENERATIONS:
                setattr(struct, name, self._generations.get((group, value), value))
            elif name in _EPOCHS:
                setattr(struct, name, -1)
            elif name == "topic_id" and place.topic is not None:
                setattr(struct, name, self._topic_ids.get(place.topic, value))
            elif name in _OFFSETS and value >= 0 and place.topic is not None and place.partition is not None:
                setattr(struct, name, max(0, value + self._deltas.get((place.topic, place.partition), 0)))
            elif field.holds_records and value:
                setattr(struct, name, self._records(value))
        if "producer_id" in {field.attribute for field in place.fields} and struct.producer_id >= 0:
            struct.producer_id, struct.producer_epoch = self._producer(
                struct.producer_id, struct.producer_epoch
            )

    def _producer(self, producer_id: int, epoch: int) -> tuple[int, int]:
        if producer_id not in self._producers:
            return NO_PRODUCER
        old_epoch, new_id, new_epoch = self._producers[producer_id]
        return new_id, max(0, new_epoch + epoch - old_epoch)

    def _records(self, data: Any) -> bytes:
        """Replace the producer ids in batches by the target's, or by -1 if the target has assigned none."""
        made = bytearray(data)
        for start, end, magic in split_batches(made):
            if magic == 2:
                header = read_header(made, start)
                if header.producer_id >= 0:
                    new_id, new_epoch = self._producer(header.producer_id, header.producer_epoch)
                    sequence = header.base_sequence if new_id >= 0 else -1
                    set_producer(made, start, end, new_id, new_epoch, sequence)
        return bytes(made)

    # --- answers -----------------------------------------------------------------------------------------

    def learn(self, exchange: RecordedExchange, request: Any, recorded: Any, answered: Any) -> None:
        """Store ids, epochs and offsets from the target's answer, to replace those in the recorded one."""
        key = exchange.api_key
        if key == ApiKey.INIT_PRODUCER_ID:
            if not recorded.error_code and not answered.error_code:
                new = recorded.producer_epoch, answered.producer_id, answered.producer_epoch
                self._producers[recorded.producer_id] = new
        elif key in (ApiKey.JOIN_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT):
            if recorded.member_id and answered.member_id:
                self._members[recorded.member_id] = answered.member_id
            name = "generation_id" if key == ApiKey.JOIN_GROUP else "member_epoch"
            if not recorded.error_code and not answered.error_code:
                self._generations[request.group_id, getattr(recorded, name)] = getattr(answered, name)
        elif key in (ApiKey.METADATA, ApiKey.CREATE_TOPICS):
            for topic in answered.topics:
                if topic.name and any(topic.topic_id):
                    self._topic_ids[topic.name] = topic.topic_id
                    self.new_names[topic.topic_id] = topic.name
        elif key in (ApiKey.PRODUCE, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FETCH):
            old = self._offsets(recorded, exchange.version, self.old_names)
            for place, offset in self._offsets(answered, exchange.version, self.new_names).items():
                if offset >= 0 and old.get(place, -1) >= 0:
                    self._deltas[place] = offset - old[place]

    def _offsets(self, message: Any, version: int, names: dict[bytes, str]) -> dict[tuple[str, int], int]:
        found = {}
        for topic, partition, struct in (
            (each.topic, each.partition, each.struct) for each in places(message, version, names)
        ):
            if topic is None or partition is None:
                continue
            for name in ("base_offset", "offset", "committed_offset"):
                if hasattr(struct, name):
                    found[topic, partition] = getattr(struct, name)
        return found

    def offset_delta(self, topic: str, partition: int) -> int:
        """Return the difference between a partition's offsets at the target and in the recording."""
        return self._deltas.get((topic, partition), 0)
