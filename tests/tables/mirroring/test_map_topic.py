"""Tests of the topic that stores a copy's offset map: reading it, and records that others wrote to it."""

from __future__ import annotations

import pytest

from penstock import Admin, Broker, Consumer, Producer
from penstock.errors import PenstockError
from penstock.tables.mirroring import map_topic
from penstock.tables.mirroring.map_topic import MapTopic
from penstock.tables.mirroring.offset_map import OffsetRun


def loaded(address: str) -> MapTopic:
    made = MapTopic("c")
    with Consumer(address) as consumer:
        made.load(consumer)
    return made


def test_another_machine_has_the_maps_and_the_commits() -> None:
    with Broker() as broker:
        address = broker.bootstrap_servers
        made = MapTopic("c")
        with Admin(address) as admin:
            made.create(admin)
            made.create(admin)
            assert admin.describe_config(made.topic)["cleanup.policy"].value == "compact"
        made.begin(0)
        made.begin(1)
        made.add(0, [(0, 0, 5), (7, 6, 1)])
        made.add(1, [])
        assert made.note_move("a/b ä", 1, [3, 4])
        assert made.note_move("gone", 1, [3])
        made.retract_move("gone", 1, 3)
        assert made.has_changed
        with Producer(address) as producer:
            for delivery in made.write(producer):
                delivery.result()
        assert not made.has_changed
        other = loaded(address)
        assert list(other.resume(0, 9, (0, 8))) == [OffsetRun(0, 0, 5), OffsetRun(7, 6, 1)]
        assert other.moved == {("a/b ä", 1): [3, 4]}
        assert not other.has_changed
        # A commit that was not made: what lies behind the position is not there, and its chunk is not left.
        cut = loaded(address).resume(0, 5, (0, 5))
        assert list(cut) == [OffsetRun(0, 0, 5)]


@pytest.mark.parametrize("known", [None, (0, 9), (8, 8)])
def test_a_map_that_is_not_what_the_position_says_begins_anew(
    known: tuple[int, int] | None, caplog: pytest.LogCaptureFixture
) -> None:
    made = MapTopic("c")
    assert made.resume(0, 9, known).floor == (8 if known == (8, 8) else 9)
    assert ("has no map of partition 0 before offset 9" in caplog.text) == (known != (8, 8))
    made._take(b"map/1/0", b"damaged")
    assert made.resume(1, 9, (0, 9)).floor == 9
    assert made.has_changed  # the damaged chunk is deleted


def test_what_others_have_written_there_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    records = {
        b"": b"",
        b"\xff": b"1",
        b"map/x/0": b"1",
        b"map/0": b"1",
        b"group/0/g": b"5",
        b"group/0/h": b"{",
        b"group/0/i": b'["x"]',
        b"group/0/j": b"[[]]",
        b"group/0/good": b"[1, 2, 3, 4, 5]",
        b"other/0/0": b"",
    }
    with Broker() as broker:
        address = broker.bootstrap_servers
        with Producer(address) as producer:
            for key, value in records.items():
                producer.send(MapTopic("c").topic, value, key=key, partition=0).result()
            assert loaded(address).moved == {("good", 0): [2, 3, 4, 5]}
            monkeypatch.setattr(map_topic, "READ_BYTES_MAX", 1 << 20)
            for number in range(3):
                producer.send(MapTopic("c").topic, bytes(500_000), key=b"map/0/%d" % number).result()
        with pytest.raises(PenstockError, match="has more than 1 MiB of maps, which no copy writes"):
            loaded(address)
