"""Tests of which groups' offsets are copied, and which commits the copy recognizes as its own.

Dictionaries stand in for the clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from penstock.client.admin.groups import GroupListing
from penstock.client.group.offsets import OffsetAndMetadata
from penstock.errors import KafkaError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.tables.mirroring import group_moves, map_topic
from penstock.tables.mirroring.group_moves import GroupMoves
from penstock.tables.mirroring.map_topic import MapTopic
from penstock.tables.mirroring.notes import CopyNote, copy_name, map_topic_name

PLACE = TopicPartition("t", 0)


class Groups:
    """A stand-in for an admin client, with the committed offsets of a cluster's groups."""

    def __init__(self) -> None:
        self.offsets: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        self.kinds: dict[str, str] = {}
        self.refusals: dict[str, KafkaError] = {}
        self.altered: list[str] = []

    def commit(self, group: str, offset: int, metadata: str = "", tp: TopicPartition = PLACE) -> None:
        self.offsets.setdefault(group, {})[tp] = OffsetAndMetadata(offset, metadata, 7)

    def list_groups(self) -> list[GroupListing]:
        return [GroupListing(name, self.kinds.get(name, "consumer")) for name in sorted(self.offsets)]

    def list_group_offsets(self, group: str, asked: Any) -> Mapping[TopicPartition, OffsetAndMetadata]:
        if group in self.refusals:
            raise self.refusals[group]
        found = self.offsets.get(group, {})
        return {tp: found[tp] for tp in asked if tp in found}

    def describe_groups(self, names: list[str]) -> Any:
        raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, names[0])

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if group in self.refusals:
            raise self.refusals[group]
        self.altered.append(group)
        self.offsets.setdefault(group, {}).update(offsets)


@pytest.fixture
def source() -> Groups:
    return Groups()


@pytest.fixture
def target() -> Groups:
    return Groups()


def moves(source: Groups, target: Groups, notes: MapTopic, *patterns: str) -> GroupMoves:
    """Return an object that copies group offsets: offset n becomes 10 n, up to n = 100."""

    def translate(partition: int, offset: int) -> int | None:
        if offset < 5:
            raise ValueError(f"offset {offset} lies before the map")
        return offset * 10 if offset <= 100 else None

    admins: Any = {"source": source, "target": target}
    return GroupMoves(
        patterns or ("*",),
        "t",
        "t",
        name="copy",
        notes=notes,
        translate=translate,
        write=lambda: None,
        **admins,
    )


def test_patterns_and_kinds(source: Groups, target: Groups) -> None:
    for name in ("bill-1", "bill-2", "ship", "connect-bill", "share-bill", "copy", "penstock-mirror-x-y"):
        source.commit(name, 10, "note")
    source.kinds = {"connect-bill": "connect", "share-bill": "share", "ship": ""}
    made = moves(source, target, MapTopic("copy"), "bill-[1]", "*ill", "ship", "copy", "penstock*")
    assert made.round([0]) == 2
    assert sorted(target.altered) == ["bill-1", "ship"]
    assert target.offsets["ship"] == {PLACE: OffsetAndMetadata(100, "note", -1)}
    assert made.groups == {"bill-1", "ship"}
    assert made.round([0]) == 0


def test_what_cannot_be_moved_is_said_once_and_does_not_keep_others(
    source: Groups, target: Groups, caplog: pytest.LogCaptureFixture
) -> None:
    source.commit("early", 4)
    source.commit("ahead", 101)
    source.commit("hidden", 10)
    source.commit("refused", 10)
    source.commit("fine", 10)
    source.refusals["hidden"] = error_for(ErrorCode.GROUP_AUTHORIZATION_FAILED, "hidden")
    target.refusals["refused"] = error_for(ErrorCode.GROUP_AUTHORIZATION_FAILED, "refused")
    made = moves(source, target, MapTopic("copy"))
    assert [made.round([0]) for _ in range(3)] == [1, 0, 0]
    assert target.altered == ["fine"]
    assert made.waiting == 1
    for text in ("group early is not moved: t-0", "group hidden is not moved", "group refused is not moved"):
        assert caplog.text.count(text) == 1


def test_a_commit_that_is_refused_is_not_taken_for_our_own_later(source: Groups, target: Groups) -> None:
    """A member joins before the copy's commit, which is refused.

    The member then commits the same offset by chance.
    """
    notes = MapTopic("copy")
    source.commit("g", 10)
    target.refusals["g"] = error_for(ErrorCode.NON_EMPTY_GROUP, "g")
    target.list_group_offsets = Groups().list_group_offsets  # type: ignore[method-assign]
    made = moves(source, target, notes)
    assert made.round([0]) == 0
    assert notes.moved == {}
    later = Groups()
    later.commit("g", 100)
    source.commit("g", 20)
    assert moves(source, later, notes).round([0]) == 0


def test_a_copy_recognizes_what_the_one_before_was_about_to_commit(source: Groups, target: Groups) -> None:
    """The earlier copy recorded the offset before it tried to commit, so the commit may or may not exist."""
    notes = MapTopic("copy")
    for offset in (10, 20, 30):
        source.commit("g", offset)
        assert moves(source, target, notes).round([0]) == 1
    assert notes.moved["g", 0] == [100, 200, 300]
    target.commit("g", 200)
    source.commit("g", 40)
    assert moves(source, target, notes).round([0]) == 1
    for offset in range(50, 100, 10):
        source.commit("g", offset)
        assert moves(source, target, notes).round([0]) == 1
    assert notes.moved["g", 0] == [600, 700, 800, 900]


def test_limits(
    source: Groups, target: Groups, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b", "c"):
        source.commit(name, 10)
    monkeypatch.setattr(group_moves, "GROUPS_MAX", 2)
    monkeypatch.setattr(map_topic, "GROUP_OFFSETS_MAX", 1)
    assert moves(source, target, MapTopic("copy")).round([0]) == 1
    assert target.altered == ["a"]
    assert "3 groups match, and the first 2 are moved" in caplog.text
    assert "no more offsets of groups are moved: there are too many" in caplog.text


def test_notes_survive_and_those_of_others_say_nothing() -> None:
    topic = "AAAAAAAAAAAAAAAAAAAAAQ"
    for note in (CopyNote(), CopyNote(topic, topic), CopyNote(None, topic, (0, 5)), CopyNote(map=(3, 3))):
        assert CopyNote.from_json(note.to_json()) == note
    for text in ("", "nonsense", "[1]", "7", '{"source": 7}', '{"source": "x", "target": null}'):
        assert CopyNote.from_json(text) == CopyNote()
    for known in ("[5, 3]", "[-1, 3]", '"x"', "[1]", "[1, 2.5]"):
        assert CopyNote.from_json(f'{{"map": {known}}}').map is None


def test_every_name_has_a_topic_of_its_own() -> None:
    assert map_topic_name(copy_name("abc", "orders")) == "penstock-mirror-abc-orders-offsets"
    names = ["a b", "a/b", "x" * 300, "x" * 301, "ä"]
    found = {map_topic_name(name) for name in names}
    assert len(found) == len(names)
    assert all(len(name) <= 249 and name.isascii() and " " not in name for name in found)
