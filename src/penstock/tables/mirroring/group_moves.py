"""Move the committed offsets of the source's groups to the target, by the offset map of a copy.

To move an offset means to commit in the target the target offset of the first record that the group has not
read. It happens once that record, or every record before the group's offset, is copied. The metadata of the
commit stays the same. If the group commits another offset in the source, higher or lower, that is moved too.

An offset is not moved while the group has members in the target, or if the group's offset in the target was
not committed by the copy: then the group already consumes there. Offsets deleted in the source stay in the
target; offsets deleted in the target are moved again with the group's next commit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.assignors.member_metadata import PROTOCOL_TYPE
from penstock.client.group.offsets import OffsetAndMetadata
from penstock.common.logs import logger_named
from penstock.errors import KafkaError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.tables.mirroring.notes import PREFIX

if TYPE_CHECKING:
    from penstock.client.blocking.admin import Admin
    from penstock.tables.mirroring.map_topic import MapTopic

log = logger_named("penstock.tables")

GROUPS_MAX = 10_000
"""Most groups whose offsets one copy moves: the first by name of those that the patterns match."""

KINDS = ("", PROTOCOL_TYPE)
"""Protocol types of the groups to move. Others (Connect, share groups) have no committed topic offsets."""


class Move(NamedTuple):
    """A group's committed offset in the source, and the corresponding offset to commit in the target."""

    group: str
    partition: int
    committed: OffsetAndMetadata
    offset: int

    @property
    def to_commit(self) -> OffsetAndMetadata:
        """The offset to commit in the target, without a leader epoch, which only the source has."""
        return OffsetAndMetadata(self.offset, self.committed.metadata)


class GroupMoves:
    """Moves the committed offsets of groups for the copy of one topic.

    `patterns` are shell patterns for the names of groups. `translate` returns the target's offset for a
    partition and an offset of the source, or None if the copy has not reached that offset; it raises
    ValueError if the offset map does not cover it. `write` sends the changes in `notes` to the topic that
    stores the offset map, and raises if another copy of the same name has taken over.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        topic: str,
        target_topic: str,
        *,
        name: str,
        source: Admin,
        target: Admin,
        notes: MapTopic,
        translate: Callable[[int, int], int | None],
        write: Callable[[], None],
    ) -> None:
        self._patterns = tuple(patterns)
        self._topic, self._target_topic = topic, target_topic
        self._name = name
        self._source, self._target = source, target
        self._notes = notes
        self._translate, self._write = translate, write
        self._done: dict[tuple[str, int], OffsetAndMetadata] = {}
        """A dict from group and partition to the source offset that was moved last; an unchanged offset is
        skipped.
        """
        self._said: set[tuple[str, str]] = set()
        self.moved: dict[int, int] = {}
        """A dict from partition to the number of group offsets that were committed in the target."""
        self.groups: set[str] = set()
        """The groups whose offsets were moved, or were already equal in the target."""
        self.waiting = 0
        """Number of offsets that the last `round` did not move, because their records are not copied yet."""

    def round(self, partitions: Sequence[int]) -> int:
        """Commit in the target the group offsets that have changed in the source; return their number.

        Raises:
            KafkaError: the source does not list its groups.
            NetworkError, RequestTimeoutError: source or target cannot be reached.
            PenstockError: another copy of the same name has started.
        """
        wanted = self._wanted(partitions)
        chosen: dict[str, list[Move]] = {}
        for group, moves in wanted.items():
            with self._of_group(group):
                if found := self._that_are_ours(group, moves):
                    chosen[group] = found
        # What is about to be committed is noted before: a copy that goes on recognizes it as its own.
        self._write()
        before = sum(self.moved.values())
        for group, moves in chosen.items():
            with self._of_group(group):
                self._commit(group, moves)
        return sum(self.moved.values()) - before

    @contextlib.contextmanager
    def _of_group(self, group: str) -> Iterator[None]:
        """Log a KafkaError in the block as a warning about one group; other groups are still moved."""
        try:
            yield
        except KafkaError as error:
            if error.code == ErrorCode.NON_EMPTY_GROUP:
                self._say(group, "is left alone while it has members in the target")
            else:
                self._say(group, f"is not moved: {error}")

    def _names(self) -> list[str]:
        names = [
            listing.group_id
            for listing in self._source.list_groups()
            if listing.protocol_type in KINDS
            and listing.group_id != self._name
            and not listing.group_id.startswith(PREFIX)
            and any(fnmatchcase(listing.group_id, pattern) for pattern in self._patterns)
        ]
        if len(names) > GROUPS_MAX:
            self._say("", f"{len(names)} groups match, and the first {GROUPS_MAX} are moved")
        return names[:GROUPS_MAX]

    def _wanted(self, partitions: Sequence[int]) -> dict[str, list[Move]]:
        """Return a dict from group to changed offsets that can be moved; count the others in `waiting`."""
        self.waiting = 0
        found: dict[str, list[Move]] = {}
        asked = [TopicPartition(self._topic, number) for number in partitions]
        for group in self._names():
            committed: Mapping[TopicPartition, OffsetAndMetadata] = {}
            with self._of_group(group):
                committed = self._source.list_group_offsets(group, asked)
            for tp, at in committed.items():
                if self._done.get((group, tp.partition)) == at:
                    continue
                try:
                    offset = self._translate(tp.partition, at.offset)
                except ValueError as error:
                    self._say(group, f"is not moved: {tp}: {error}", key=f"{tp}")
                    continue
                if offset is None:
                    self.waiting += 1
                else:
                    found.setdefault(group, []).append(Move(group, tp.partition, at, offset))
        return found

    def _that_are_ours(self, group: str, moves: Sequence[Move]) -> list[Move]:
        """Store and return the moves to commit; skip groups whose target offset another program committed."""
        there = self._there(group, [move.partition for move in moves])
        ours: list[Move] = []
        for move in moves:
            present = there.get(move.partition)
            own = self._notes.moved.get((group, move.partition), [])
            if present is not None and present.offset not in own:
                self._say(group, "is left alone: it has offsets in the target that are not of this copy")
            elif present is not None and present[:2] == move.to_commit[:2]:
                self._note_done(move)
            else:
                ours.append(move)
        if ours and self._has_members(group):
            self._say(group, "is left alone while it has members in the target")
            return []
        noted = []
        for move in ours:
            own = self._notes.moved.get((group, move.partition), []) if there.get(move.partition) else []
            offsets = [each for each in own if each != move.offset]
            if self._notes.note_move(group, move.partition, [*offsets, move.offset]):
                noted.append(move)
            else:
                self._say("", "no more offsets of groups are moved: there are too many")
        return noted

    def _there(self, group: str, partitions: Sequence[int]) -> Mapping[int, OffsetAndMetadata]:
        asked = [TopicPartition(self._target_topic, number) for number in partitions]
        found = self._target.list_group_offsets(group, asked)
        return {tp.partition: at for tp, at in found.items()}

    def _has_members(self, group: str) -> bool:
        try:
            (described,) = self._target.describe_groups([group])
        except KafkaError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return False
        return bool(described.members)

    def _commit(self, group: str, moves: Sequence[Move]) -> None:
        offsets = {TopicPartition(self._target_topic, move.partition): move.to_commit for move in moves}
        try:
            self._target.alter_group_offsets(group, offsets)
        except KafkaError as error:
            if not error.retriable:
                for move in moves:
                    self._notes.retract_move(group, move.partition, move.offset)
            raise
        for move in moves:
            self._note_done(move)
            self.moved[move.partition] = self.moved.get(move.partition, 0) + 1

    def _note_done(self, move: Move) -> None:
        self._done[move.group, move.partition] = move.committed
        self.groups.add(move.group)

    def _say(self, group: str, what: str, key: str = "") -> None:
        """Log the warning `what` about a group, once for each `key` (by default the text is the key)."""
        about = group, key or what
        if about not in self._said and len(self._said) < GROUPS_MAX:
            self._said.add(about)
            log.warning("%s: %s%s", self._name, f"group {group} " if group else "", what)
