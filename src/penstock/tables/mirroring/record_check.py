"""Compare a copy with its source, record by record, by the offset map of the copy."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from penstock.client.blocking.admin import Admin
from penstock.client.blocking.consumer import Consumer
from penstock.errors import ConfigError, KafkaError, RequestTimeoutError
from penstock.model import EARLIEST, NO_TIMESTAMP, Record, TimestampType, TopicPartition
from penstock.tables.mirroring.map_topic import MapTopic
from penstock.tables.mirroring.notes import CopyNote, copy_name
from penstock.tables.mirroring.offset_map import OffsetMap, OffsetRun
from penstock.tables.mirroring.settings import shared_settings

READ_TIMEOUT_S = 60.0
"""Seconds without a record from the source or the target after which the comparison fails."""

NAMED_MAX = 10
"""Most differences of a partition that are listed with their offsets; all are counted."""


class RecordDifference(NamedTuple):
    """A record that differs between source and target; the offset is None on a side that lacks it."""

    source_offset: int | None
    target_offset: int | None
    what: str


class PartitionCheck:
    """The result of comparing one partition of a copy with its source."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.same = 0
        """Number of records that are equal in source and target."""
        self.only_source = 0
        """Number of copied records that retention or compaction has removed from the target."""
        self.only_target = 0
        """Number of copied records that retention or compaction has removed from the source."""
        self.not_in_map = 0
        """Number of source records before the first offset of the map, which were not compared."""
        self.different = 0
        """Number of records that differ, are missing in the target, or were written by another program."""
        self.differences: list[RecordDifference] = []
        """The first `NAMED_MAX` of the records counted in `different`."""

    def note(self, source: int | None, target: int | None, what: str) -> None:
        """Count a difference, and add it to `differences` if it is among the first `NAMED_MAX`."""
        self.different += 1
        if len(self.differences) < NAMED_MAX:
            self.differences.append(RecordDifference(source, target, what))


def check_copy(
    topic: str,
    source: str | Sequence[str],
    target: str | Sequence[str],
    *,
    target_topic: str | None = None,
    name: str | None = None,
    isolation: str = "read_committed",
    keep_offsets: bool = False,
    source_config: Mapping[str, object] | None = None,
    config: Mapping[str, object] | None = None,
) -> list[PartitionCheck]:
    """Compare the records that `TopicMirror` has copied with the source. The arguments are those of the copy.

    Changes nothing. The copy may run meanwhile: records that it copies after the start are not compared.

    Raises:
        ConfigError: there is no copy of that name.
        KafkaError: a topic does not exist, or may not be read.
        NetworkError, RequestTimeoutError: source or target cannot be reached.
    """
    into = target_topic or topic
    with ExitStack() as stack:
        here, there = (shared_settings(each or {}) for each in (source_config, config))
        source_admin = stack.enter_context(Admin(source, here))
        admin = stack.enter_context(Admin(target, there))
        found = name or copy_name(source_admin.describe_cluster().cluster_id, topic)
        reading = {"isolation.level": isolation, "auto.offset.reset": "earliest"}
        readers = (
            stack.enter_context(Consumer(source, {**here, **reading})),
            stack.enter_context(Consumer(target, {**there, "isolation.level": "read_committed"})),
        )
        listed = admin.list_group_offsets(found)
        positions = {tp: at for tp, at in sorted(listed.items()) if tp.topic == into}
        if not positions:
            raise ConfigError(f"nothing was copied from {topic} into {into} under the name {found}")
        # Read behind the positions: the map has them all.
        maps = MapTopic(found)
        if not keep_offsets and maps.topic in admin.list_topics():
            maps.load(readers[1])
        keeps_all = "compact" not in _policy(admin, into)
        checks = []
        for tp, at in positions.items():
            if keep_offsets:
                made = OffsetMap()
                if at.offset:
                    made.add(0, 0, at.offset)
            else:
                made = maps.resume(tp.partition, at.offset, CopyNote.from_json(at.metadata).map)
            begin = admin.list_offsets({tp: EARLIEST})[tp]
            sides = _Sides(TopicPartition(topic, tp.partition), tp, *readers)
            first_kept = (begin.offset if begin else 0) if keeps_all else made.target_end
            checks.append(_compare(sides, made, at.offset, first_kept))
        return checks


def _policy(admin: Admin, topic: str) -> str:
    try:
        found = admin.describe_config(topic).get("cleanup.policy")
    except KafkaError:
        return ""  # it may not be asked: what is missing is then called a difference
    return (found.value if found is not None else "") or ""


class _Sides(NamedTuple):
    """A source partition and the target partition of its copy, each with its own consumer."""

    source: TopicPartition
    target: TopicPartition
    source_reader: Consumer
    target_reader: Consumer


def _compare(sides: _Sides, made: OffsetMap, position: int, first_kept: int) -> PartitionCheck:
    """Compare one partition by reading source, target and the offset map `made` side by side.

    `position` is the source offset up to which records are copied. From target offset `first_kept` on, no
    record may be missing.
    """
    check = PartitionCheck(sides.source.partition)
    there = _records(sides.target_reader, sides.target, made.target_end)
    runs = _Walk(iter(made))
    other = next(there, None)
    for record in _records(sides.source_reader, sides.source, position):
        expected = runs.target_of(record.offset)
        if expected is None:
            if record.offset < made.floor:
                check.not_in_map += 1
            else:
                check.note(record.offset, None, "the map does not have it")
            continue
        while other is not None and other.offset < expected:
            _note_only_in_target(check, other, runs)
            other = next(there, None)
        runs.forget_before(made.target_end if other is None else other.offset)
        if other is None or other.offset > expected:
            if expected < first_kept:
                check.only_source += 1
            else:
                check.note(record.offset, expected, "is missing in the target")
            continue
        if what := _difference(record, other):
            check.note(record.offset, other.offset, what)
        else:
            check.same += 1
        other = next(there, None)
    while other is not None:
        _note_only_in_target(check, other, runs)
        other = next(there, None)
    return check


def _note_only_in_target(check: PartitionCheck, record: Record[bytes, bytes], runs: _Walk) -> None:
    if runs.has_target(record.offset):
        check.only_target += 1
    else:
        check.note(None, record.offset, "is not of the copy")


class _Walk:
    """One pass over an offset map in ascending order, to find a record's offset in the other log."""

    def __init__(self, runs: Iterator[OffsetRun]) -> None:
        self._runs = runs
        self._now: OffsetRun | None = next(runs, None)
        self._passed: deque[OffsetRun] = deque()
        """Runs that the pass over the source has left behind, but that the pass over the target may still
        need.
        """

    def target_of(self, offset: int) -> int | None:
        """Return the target offset of a source record, or None if it is in no run."""
        while self._now is not None and offset >= self._now.source + self._now.length:
            self._passed.append(self._now)
            self._now = next(self._runs, None)
        now = self._now
        return None if now is None or offset < now.source else now.target + offset - now.source

    def has_target(self, offset: int) -> bool:
        """Return True if a run contains the target offset `offset`."""
        self.forget_before(offset)
        if not self._passed:
            while self._now is not None and offset >= self._now.target + self._now.length:
                self._now = next(self._runs, None)
        first = self._passed[0] if self._passed else self._now
        return first is not None and offset >= first.target

    def forget_before(self, offset: int) -> None:
        """Drop the runs in `_passed` that end at or before target offset `offset`."""
        while self._passed and offset >= self._passed[0].target + self._passed[0].length:
            self._passed.popleft()


def _records(reader: Consumer, tp: TopicPartition, end: int) -> Iterator[Record[bytes, bytes]]:
    """Yield the records of a partition from its beginning up to an offset."""
    reader.assign([tp])
    reader.seek_to_beginning(tp)
    stop = min(end, reader.end_offsets([tp])[tp])
    deadline = time.monotonic() + READ_TIMEOUT_S
    while reader.position(tp) < stop:
        for record in reader.poll(timeout_ms=500):
            deadline = time.monotonic() + READ_TIMEOUT_S
            if record.offset >= stop:
                return
            yield record
        if time.monotonic() > deadline:
            raise RequestTimeoutError(f"nothing has come from {tp} for {READ_TIMEOUT_S:g} s")


def _difference(here: Record[bytes, bytes], there: Record[bytes, bytes]) -> str:
    """Return a text such as "another key and value" for the parts that differ, or "" for equal records."""
    parts = [
        part
        for part in ("key", "value", "headers")
        if _plain(getattr(here, part)) != _plain(getattr(there, part))
    ]
    is_kept = there.timestamp_type is TimestampType.CREATE_TIME and here.timestamp != NO_TIMESTAMP
    if is_kept and here.timestamp != there.timestamp:
        parts.append("timestamp")
    return f"another {' and '.join(parts)}" if parts else ""


def _plain(value: object) -> object:
    return [tuple(each) for each in value] if isinstance(value, (list, tuple)) else value
