"""Tests that the id of a permanently deleted schema is never reused, even after a registry's restart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock import Broker, Producer, read_topic
from penstock.registry import Registry, Schema
from penstock.registry.server.state import MARK_KEY, LogRecord, RefusedError, RegistryState, guid_of

CONFLUENTS_NOOP = b'{"keytype":"NOOP","magic":0}'


def schema(size: int) -> Schema:
    return Schema(json.dumps({"type": "fixed", "name": "f", "size": size}))


class Topic:
    """The schemas topic of successive registries, each of which starts from the compacted records."""

    def __init__(self) -> None:
        self.records: dict[bytes, LogRecord] = {}
        self.state = RegistryState()

    def write(self, records: list[LogRecord]) -> None:
        for key, value in records:
            self.records[json.dumps(key).encode()] = key, value
            self.state.apply(key, value)

    def register(self, subject: str, size: int, **more: Any) -> int:
        version, records = self.state.register(subject, {**schema(size).as_json(), **more})
        self.write(records)
        return version.id

    def delete(self, subject: str) -> None:
        for permanent in (False, True):
            self.write(self.state.delete_subject(subject, permanent=permanent)[1])

    def begin_anew(self) -> None:
        self.records = {key: each for key, each in self.records.items() if each[1] is not None}
        self.state = RegistryState()
        for key, value in self.records.values():
            self.state.apply(key, value)


def test_no_id_comes_back() -> None:
    topic = Topic()
    for round_ in range(3):
        assert topic.register("s", 10 + round_) == round_ + 1
        assert topic.register(":.team:s", 20 + round_) == round_ + 1
        topic.delete("s")
        topic.delete(":.team:s")
        topic.begin_anew()
        assert topic.state.subjects == {}
    assert len(topic.records) == 3, "two DELETE_SUBJECT, and one record for all ids"
    assert topic.register("u", 30) == 4
    topic.write(topic.state.delete_version("u", "1", permanent=False)[1])
    topic.write(topic.state.delete_version("u", "1", permanent=True)[1])
    topic.begin_anew()
    assert topic.register("u", 31) == 5


def test_one_record_is_enough_until_a_higher_id_is_given() -> None:
    topic = Topic()
    for number in range(3):
        topic.register(f"s{number}", number + 1)
    topic.delete("s2")
    topic.write(topic.state.delete_subject("s0", permanent=False)[1])
    records = topic.state.delete_subject("s0", permanent=True)[1]
    assert [value for _, value in records] == [None]


def test_an_id_is_answered_as_long_as_a_version_has_it_before_and_after_a_restart() -> None:
    topic = Topic()
    assert [topic.register("s", 1), topic.register("u", 1), topic.register("t", 2)] == [1, 1, 2]
    assert topic.register(":.team:s", 1) == 1
    one, guid = topic.state.by_id(1), guid_of(topic.state.by_id(2))
    assert topic.state.by_guid(guid) == topic.state.by_id(2)
    topic.delete("s")
    topic.delete("t")
    for _ in range(2):
        assert topic.state.by_id(1) == one
        with pytest.raises(RefusedError, match="Schema 2 not found"):
            topic.state.by_id(2)
        topic.begin_anew()
    topic.delete("u")
    for _ in range(2):
        with pytest.raises(RefusedError, match="Schema 1 not found"):
            topic.state.by_id(1)
        with pytest.raises(RefusedError, match="not found"):
            topic.state.by_guid(guid)
        assert topic.state.by_id(1, ":.team:s") == one
        topic.begin_anew()
    assert topic.register("v", 1) == 3, "what was deleted for good comes back as another schema"


def test_an_import_that_overwrites_a_version_leaves_its_id_taken() -> None:
    topic = Topic()
    topic.write(topic.state.set_mode("s", "IMPORT", force=True))
    assert topic.register("s", 1, id=77, version=1) == 77
    assert topic.register("s", 2, id=5, version=1) == 5
    with pytest.raises(RefusedError, match="Schema 77 not found"):
        topic.state.by_id(77)
    topic.begin_anew()
    assert topic.register("u", 3) == 78


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"highestIds": 7}, {"highestIds": {".": "8"}}, {"highestIds": {".": 1 << 31}}],
    ids=repr,
)
def test_a_record_that_makes_no_sense_changes_nothing(value: Any) -> None:
    state = RegistryState()
    state.apply(MARK_KEY, value)
    assert state.register("s", schema(1).as_json())[0].id == 1


def test_the_record_outlives_those_of_confluents_registry_in_a_compacted_topic() -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        with Registry(servers) as registry:
            client = registry.client()
            assert [client.register("s", schema(1)), client.register("u", schema(2))] == [1, 2]
            client.delete_subject("u")
            client.delete_subject("u", permanent=True)
        rows = [(row["key"], row["value"]) for row in read_topic("_schemas", servers).to_pylist()]
        kept = dict([*rows, (CONFLUENTS_NOOP, None)])  # as Confluent's writes when it starts
        with Producer(servers) as producer:
            for key, value in kept.items():
                if value is not None:
                    producer.send("compacted", value, key=key, partition=0).result(timeout=10)
        with Registry(servers, topic="compacted") as registry:
            assert registry.client().subjects(deleted=True) == ["s"]
            assert registry.client().register("u", schema(3)) == 3
