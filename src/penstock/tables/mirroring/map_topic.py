"""The compacted topic in the target that stores a copy's offset maps, written in the copy's transactions.

A record is a chunk of a partition's map (key ``map/PARTITION/FIRST``, with the first source offset), or the
last offsets that the copy has committed for a group (key ``group/PARTITION/GROUP``). A copy reads the topic
once, when it starts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.client.admin.topics import NewTopic
from penstock.common.logs import logger_named
from penstock.errors import CorruptRecordError, KafkaError, PenstockError, RequestTimeoutError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.tables.mirroring.notes import map_topic_name
from penstock.tables.mirroring.offset_map import OffsetMap

if TYPE_CHECKING:
    from penstock.client.blocking.admin import Admin
    from penstock.client.blocking.consumer import Consumer
    from penstock.client.blocking.producer import Producer
    from penstock.client.produce.delivery import Delivery

log = logger_named("penstock.tables")

MAP_BYTES_MAX = 64 << 20
"""Most bytes of the packed maps of one topic, in memory and in the target; then the oldest runs are dropped.
"""

READ_BYTES_MAX = 2 * MAP_BYTES_MAX
"""Largest size in bytes of the maps that a copy reads. It exceeds what a copy writes: `MAP_BYTES_MAX` and the
last chunk of each map.
"""

GROUP_OFFSETS_MAX = 1_000_000
"""Most pairs of group and partition for which a copy stores the offsets that it has committed."""

REMEMBERED = 4
"""Number of a copy's last commits that are stored for each group and partition.

An offset in the target that equals one of these commits was committed by the copy. More than one is stored,
because a commit may be under way when the copy is stopped and started again.
"""

LOAD_TIMEOUT_S = 60.0
"""Seconds without a record after which reading the topic fails."""

SETTINGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.bytes": str(16 << 20),
    "segment.ms": str(24 * 3600 * 1000),
}


class MapTopic:
    """The stored state of one copy: the offset map of each partition, and the offsets committed for groups.

    Changes are collected in memory, and sent by `write`.
    """

    def __init__(self, name: str) -> None:
        self.topic = map_topic_name(name)
        self.maps: dict[int, OffsetMap] = {}
        self.moved: dict[tuple[str, int], list[int]] = {}
        """A dict from group and partition to the last offsets that the copy has committed in the target,
        newest last.
        """
        self._chunks: dict[int, dict[int, bytes]] = {}
        """A dict from partition to the packed chunks that `load` has read, by name. `resume` makes maps of
        them.
        """
        self._read_bytes = 0
        self._due: dict[str, bytes | None] = {}

    def create(self, admin: Admin) -> None:
        """Create the compacted topic of the maps, unless it exists.

        Raises:
            KafkaError: the cluster refuses.
            NetworkError, RequestTimeoutError: the cluster cannot be reached.
        """
        try:
            admin.create_topics([NewTopic(self.topic, 1, config=SETTINGS)])
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    def load(self, consumer: Consumer) -> None:
        """Read all records of the topic of the maps into memory.

        Raises:
            KafkaError: the topic may not be read.
            PenstockError: the topic is larger than any copy makes it.
            RequestTimeoutError: no record arrives for `LOAD_TIMEOUT_S` seconds.
        """
        tp = TopicPartition(self.topic, 0)
        consumer.assign([tp])
        consumer.seek_to_beginning(tp)
        end = consumer.end_offsets([tp])[tp]
        deadline = time.monotonic() + LOAD_TIMEOUT_S
        while consumer.position(tp) < end:
            for record in consumer.poll(timeout_ms=500):
                deadline = time.monotonic() + LOAD_TIMEOUT_S
                self._take(bytes(record.key or b""), record.value)
            if self._read_bytes > READ_BYTES_MAX:
                raise PenstockError(
                    f"topic {self.topic} has more than {READ_BYTES_MAX >> 20} MiB of maps, which no copy "
                    "writes: delete it, and the map begins anew"
                )
            if time.monotonic() > deadline:
                raise RequestTimeoutError(f"topic {self.topic} has not come within {LOAD_TIMEOUT_S:g} s")

    def _take(self, key: bytes, value: bytes | None) -> None:
        """Apply one record of the topic; ignore a record in another format than the copy writes."""
        with suppress(ValueError, TypeError):
            kind, partition, name = key.decode().split("/", 2)
            if kind == "map":
                chunks = self._chunks.setdefault(int(partition), {})
                self._read_bytes -= len(chunks.pop(int(name), b""))
                if value is not None:
                    chunks[int(name)] = bytes(value)
                    self._read_bytes += len(value)
            elif kind == "group":
                self.moved.pop((name, int(partition)), None)
                if value is not None and len(self.moved) < GROUP_OFFSETS_MAX:
                    kept = [int(each) for each in json.loads(value)]
                    self.moved[name, int(partition)] = kept[-REMEMBERED:]

    def resume(self, partition: int, position: int, known: tuple[int, int] | None) -> OffsetMap:
        """Return the map of a partition whose copy continues at source offset `position`.

        `known` is the map's (floor, end) in the `CopyNote` of the committed position. If the chunks that were
        read do not result in that map, an empty map begins at `position`.
        """
        chunks = self._chunks.pop(partition, {})
        made: OffsetMap | None = None
        if known is not None:
            floor, end = known
            try:
                made = OffsetMap.of_chunks(chunks.items(), floor=floor, end=end)
            except CorruptRecordError as error:
                log.warning("%s: %s", self.topic, error)
        if made is None or known is None or made.end != known[1]:
            made = OffsetMap(position)
            if position:
                log.warning(
                    "%s has no map of partition %d before offset %d, so that offsets of groups before it are "
                    "not moved: they are once the groups have come there",
                    self.topic, partition, position,
                )  # fmt: skip
        self._drop(partition, chunks.keys() - made.chunks().keys())
        self.maps[partition] = made
        return made

    def begin(self, partition: int) -> OffsetMap:
        """Return an empty map for a partition of which nothing is copied; drop the chunks of an older map."""
        self._drop(partition, self._chunks.pop(partition, {}))
        self.maps[partition] = made = OffsetMap()
        return made

    def _drop(self, partition: int, names: Iterable[int]) -> None:
        for first in names:
            self._due[f"map/{partition}/{first}"] = None

    def add(self, partition: int, runs: Iterable[tuple[int, int, int]]) -> None:
        """Add runs of copied records to the map, as (source offset, target offset, count).

        Raises:
            ValueError: the runs do not come after those in the map.
        """
        found = self.maps[partition]
        since: int | None = None
        for run in runs:
            found.add(*run)
            since = run[0] if since is None else since
        if since is None:
            return
        # Runs that continue the last one before them have changed its chunk, which begins before.
        for first, packed in found.chunks(since).items():
            self._due[f"map/{partition}/{first}"] = packed
        dropped = found.forget_down_to(MAP_BYTES_MAX // len(self.maps))
        if dropped:
            self._drop(partition, dropped)
            log.warning(
                "the map of partition %d in %s is full: offsets of groups before %d are not moved any more",
                partition, self.topic, found.floor,
            )  # fmt: skip

    def forget_before(self, partition: int, target: int) -> None:
        """Drop the chunks of records that retention has removed: those before target offset `target`."""
        self._drop(partition, self.maps[partition].forget_before(target))

    def note_move(self, group: str, partition: int, offsets: list[int]) -> bool:
        """Store a group's last committed offsets; return False if `GROUP_OFFSETS_MAX` pairs are stored."""
        if len(self.moved) >= GROUP_OFFSETS_MAX and (group, partition) not in self.moved:
            return False
        self.moved[group, partition] = kept = offsets[-REMEMBERED:]
        self._due[f"group/{partition}/{group}"] = json.dumps(kept).encode()
        return True

    def retract_move(self, group: str, partition: int, offset: int) -> None:
        """Remove an offset added by `note_move`, because its commit was refused."""
        kept = [each for each in self.moved.get((group, partition), ()) if each != offset]
        if kept:
            self.note_move(group, partition, kept)
        else:
            self.moved.pop((group, partition), None)
            self._due[f"group/{partition}/{group}"] = None

    @property
    def has_changed(self) -> bool:
        """True if there are changes that the next `write` must send."""
        return bool(self._due)

    def write(self, producer: Producer) -> list[Delivery]:
        """Send the changes since the last call to the topic; return the records' delivery objects."""
        due, self._due = self._due, {}
        return [producer.send(self.topic, value, key=key.encode(), partition=0) for key, value in due.items()]
