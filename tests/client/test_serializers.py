"""Tests of serializers and deserializers: their arguments, and records that they fail to convert."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from penstock import Admin, Consumer, Producer, Record, TopicPartition, read_topic, write_topic
from penstock.client import AsyncConsumer, AsyncProducer
from penstock.cloudevents import Event
from penstock.errors import ConfigError, DeserializationError, EncodeError, SerializationError

NewTopic = Callable[..., str]


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def written(servers: str, topic: str, *values: bytes | None, partition: int = 0) -> None:
    with Producer(servers) as producer:
        for value in values:
            producer.send(topic, value, partition=partition)


def reader(servers: str, topic: str, **more: Any) -> Consumer[Any, Any]:
    consumer: Consumer[Any, Any] = Consumer(servers, value_deserializer=json.loads, **more)
    consumer.assign([(topic, 0)])
    consumer.seek_to_beginning()
    return consumer


def test_values_there_and_back(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    with Producer(servers, key_serializer=str.encode, value_serializer=as_json) as producer:
        producer.send(topic, {"tickets": 2}, key="ada").result(timeout=30)
        producer.send(topic, None, key="ada")
        producer.send(topic, [1])
    with Consumer(servers, key_deserializer=bytes.decode, value_deserializer=json.loads) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        found = consumer.poll(10_000)
        assert [(record.key, record.value) for record in found] == [
            ("ada", {"tickets": 2}), ("ada", None), (None, [1]),
        ]  # fmt: skip
        assert all(type(record) is type(found[0]) and isinstance(record, Record) for record in found)
        consumer.seek_to_beginning()
        batch = consumer.poll_arrow(10_000, columns=["value"])
        assert batch is not None
        assert batch["value"].to_pylist() == [b'{"tickets": 2}', None, b"[1]"]
    assert read_topic(topic, servers)["key"].to_pylist() == [b"ada", b"ada", None]


async def there_and_back(servers: str, topic: str) -> list[Any]:
    dotted: dict[str, Any] = {"value.serializer": as_json, "key_serializer": str.encode}
    async with AsyncProducer(servers, dotted) as producer:
        value: Any = [1, 2]
        await producer.send_and_wait(topic, value, key="k")  # type: ignore[arg-type]
        await producer.send_and_wait(topic, key="k", event=Event(id="1", source="/s", type="t"))  # type: ignore[arg-type]
    reading: dict[str, Any] = {"key.deserializer": bytes.decode}
    async with AsyncConsumer(servers, reading) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        found: list[Any] = []
        async for record in consumer:
            found.append(record)
            if len(found) == 2:
                return found
    return found


def test_asyncio_dotted_names_and_events(servers: str, new_topic: NewTopic) -> None:
    import asyncio

    first, event = asyncio.run(there_and_back(servers, new_topic()))
    assert (first.key, first.value) == ("k", b"[1, 2]")
    assert event.key == "k"
    assert event.event.id == "1"


def test_a_value_that_a_serializer_refuses_is_not_sent(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    as_text: Any = str
    with Producer(servers, value_serializer=as_json) as producer:
        with pytest.raises(
            SerializationError, match="value_serializer failed for a set: TypeError"
        ) as raised:
            producer.send(topic, {1})
        assert isinstance(raised.value.__cause__, TypeError)
        assert topic in str(raised.value)
    with (
        Producer(servers, key_serializer=as_text) as producer,
        pytest.raises(EncodeError, match="key_serializer returned str for a int, bytes or None are needed"),
    ):
        producer.send(topic, b"x", key=5)
    assert read_topic(topic, servers).num_rows == 0


def test_a_record_that_cannot_be_read_is_handed_out_by_the_error(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    written(servers, topic, b"0", b"1", b"{", b"3", b"}", b"]")
    with reader(servers, topic) as consumer:
        tp = TopicPartition(topic, 0)
        assert [record.value for record in consumer.poll(10_000)] == [0, 1]
        assert consumer.position(tp) == 2
        with pytest.raises(DeserializationError, match=f"offset 2 of {topic}-0: JSONDecodeError: ") as raised:
            consumer.poll(10_000)
        assert raised.value.record == Record(*raised.value.record)
        assert (raised.value.record.offset, raised.value.record.value) == (2, b"{")
        assert isinstance(raised.value.__cause__, json.JSONDecodeError)
        again = pickle.loads(pickle.dumps(raised.value))
        assert (str(again), again.record) == (str(raised.value), raised.value.record)
        assert consumer.position(tp) == 3
        assert [record.value for record in consumer.poll(10_000)] == [3]
        for offset in (4, 5):
            with pytest.raises(DeserializationError, match=f"offset {offset} "):
                consumer.poll(10_000)
        assert consumer.poll(50) == []
        consumer.seek(tp, 4)
        with pytest.raises(DeserializationError, match="offset 4 "):
            consumer.poll(10_000)


def test_polls_of_a_few_records_stop_at_the_same_ones(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    written(servers, topic, b"0", b"1", b"{", b"3")
    for limit in (1, 2, 3):
        with reader(servers, topic, max_poll_records=limit) as consumer:
            seen: list[object] = []
            while len(seen) < 4:
                try:
                    seen += [record.value for record in consumer.poll(10_000)]
                except DeserializationError as error:
                    seen.append(error.record.value)
            assert seen == [0, 1, b"{", 3], limit


def test_iterating_goes_on_behind_it(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    written(servers, topic, b"0", b"{", b"2")
    with reader(servers, topic) as consumer:
        seen: list[object] = []
        while len(seen) < 3:
            try:
                for record in consumer:
                    seen.append(record.value)
                    if len(seen) == 3:
                        break
            except DeserializationError as error:
                seen.append(error.record.value)
        assert seen == [0, b"{", 2]


def test_other_partitions_go_on(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    written(servers, topic, b"{", partition=0)
    written(servers, topic, b"1", b"2", partition=1)
    with reader(servers, topic) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        consumer.seek_to_beginning()
        seen: list[Any] = []
        refused: list[int] = []
        while len(seen) < 2 or not refused:
            try:
                seen += consumer.poll(10_000)
            except DeserializationError as error:
                refused.append(error.record.partition)
        assert [record.value for record in seen] == [1, 2]
        assert refused == [0]


@pytest.mark.parametrize("calls", ["poll", "iterate"])
def test_one_record_of_a_thousand_that_cannot_be_read_costs_no_other(
    servers: str, new_topic: NewTopic, calls: str
) -> None:
    topic, count, each = new_topic(2), 3_000, 1_000
    columns = {"value": [b"{" if n % each == 7 else b"%d" % n for n in range(count)]}
    columns["partition"] = [n % 2 for n in range(count)]  # type: ignore[misc]
    write_topic(pa.table(columns), topic, servers)
    seen: list[object] = []
    refused: list[tuple[int, int]] = []
    settings: dict[str, Any] = {"group_id": topic, "auto_offset_reset": "earliest"}
    with Consumer(servers, value_deserializer=json.loads, **settings) as consumer:
        consumer.subscribe([topic])
        while len(seen) + len(refused) < count:
            try:
                if calls == "poll":
                    seen += [record.value for record in consumer.poll(10_000)]
                else:
                    for record in consumer:
                        seen.append(record.value)
                        if len(seen) + len(refused) == count:
                            break
            except DeserializationError as error:
                refused.append((error.record.partition, error.record.offset))
                consumer.commit()
        consumer.commit()
        assert consumer.poll(50) == []
    assert sorted(refused) == [(1, offset) for offset in (3, 503, 1003)]
    assert sorted(seen) == [n for n in range(count) if n % each != 7]  # type: ignore[type-var]
    with Admin(servers) as admin:
        offsets = admin.list_group_offsets(topic)
    assert sum(found.offset for found in offsets.values()) == count


@pytest.mark.parametrize("calls", ["poll", "iterate"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_a_record_amid_which_the_program_is_stopped_comes_again(
    servers: str, new_topic: NewTopic, calls: str, error: BaseException
) -> None:
    topic = new_topic()
    written(servers, topic, b"0", b"1", b"2")
    stops = [error]

    def read(value: bytes) -> int:
        if value == b"1" and stops:
            raise stops.pop()
        return int(value)

    with Consumer(servers, value_deserializer=read) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        seen: list[int | None] = []
        while len(seen) < 3:
            try:
                if calls == "poll":
                    seen += [record.value for record in consumer.poll(10_000)]
                else:
                    for record in consumer:
                        seen.append(record.value)
                        if len(seen) == 3:
                            break
            except type(error):
                continue
        assert seen == [0, 1, 2]


def test_an_interrupted_poll_loses_no_record(servers: str, new_topic: NewTopic) -> None:
    """A deserializer interrupts a poll.

    Records of other partitions that this poll had already read are not lost either.
    """
    topic = new_topic(2)
    written(servers, topic, b"1", b"2", partition=0)
    written(servers, topic, b"3", b"4", partition=1)
    values = [b"1", b"2", b"3", b"4"]
    given: list[bytes] = []

    def read(data: bytes) -> bytes:
        given.append(data)
        if len(given) == 3:
            raise KeyboardInterrupt
        return data

    with Consumer(servers, value_deserializer=read) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        consumer.seek_to_beginning()
        seen: list[Any] = []
        deadline = time.monotonic() + 20
        while len(seen) < len(values) and time.monotonic() < deadline:
            try:
                seen += consumer.poll(1_000)
            except KeyboardInterrupt:
                continue
    assert len(given) >= len(values)
    assert sorted(record.value for record in seen) == values


@pytest.mark.parametrize("calls", ["poll", "iterate"])
def test_a_program_that_ends_with_the_error_gets_the_record_again(
    servers: str, new_topic: NewTopic, calls: str
) -> None:
    topic = new_topic()
    written(servers, topic, b"0", b"{", b"2")
    settings: dict[str, Any] = {"group_id": topic, "auto_offset_reset": "earliest"}

    def read_all() -> None:
        with Consumer(servers, value_deserializer=json.loads, **settings) as consumer:
            consumer.subscribe([topic])
            if calls == "iterate":
                for _ in consumer:
                    pass
            while True:
                consumer.poll(10_000)

    with pytest.raises(DeserializationError):
        read_all()
    with Consumer(servers, **settings) as consumer:
        consumer.subscribe([topic])
        while not (found := consumer.poll(10_000)):
            pass
        assert [record.value for record in found] == [b"{", b"2"]


async def ready(value: object) -> bytes:
    return b""


def with_context(value: object, context: object) -> bytes:
    return b""


class Serializing:
    def __call__(self, value: object, context: object = None) -> bytes:
        return as_json(value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            "org.apache.kafka.common.serialization.StringSerializer",
            "not the name of a class; give str.encode",
        ),
        ("StringDeserializer", "give bytes.decode"),
        ("com.example.Mine", "a function is needed here, not the name of a class"),
        (7, "a function of one argument is needed"),
        (ready, "not a coroutine function"),
        (with_context, r"called as \(value: 'object', context: 'object'\)"),
    ],
)
def test_what_is_no_function_of_one_argument(given: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Producer("localhost:1", value_serializer=given)
    with pytest.raises(ConfigError, match=words):
        Consumer("localhost:1", {"key.deserializer": given})


@pytest.mark.parametrize("given", [str.encode, Serializing(), partial(with_context, context=1), bytes, int])
def test_what_is_one(given: Any) -> None:
    Producer("localhost:1", value_serializer=given).close()
