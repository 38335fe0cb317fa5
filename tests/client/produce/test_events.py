"""Tests of CloudEvents in clients: `send(event=...)` in producers, `record.event` in consumers."""

from __future__ import annotations

import asyncio
import sys

import pytest

from old_brokers import ask_0_9_briefly
from penstock import Broker
from penstock.client import AsyncProducer, Consumer, Producer
from penstock.cloudevents import (
    Event,
    InvalidEvent,
    InvalidEventError,
    NotAnEvent,
    from_record,
    partitionkey_mapper,
)
from penstock.errors import ConfigError, EncodeError
from penstock.model import TopicPartition

EVENT = Event(
    id="1",
    source="/s",
    type="t",
    time="2018-04-05T03:56:24.1Z",
    json={"a": 1.5},
    extensions={"partitionkey": "p"},
)


@pytest.fixture(scope="module")
def address():
    with Broker() as broker:
        yield broker.bootstrap_servers


def records_of(address, topic):
    with Consumer(bootstrap_servers=address) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        records = []
        while batch := consumer.poll(timeout_ms=300 if records else 5_000):
            records += batch
        return records


def test_an_event_is_sent_and_read_in_both_modes_and_every_format(address):
    with Producer(bootstrap_servers=address) as producer:
        producer.send("modes", event=EVENT, key=b"mine", headers=[("trace", b"\xff"), ("none", None)])
        for event_format in ("json", "avro", "protobuf"):
            producer.send("modes", event=EVENT, mode="structured", event_format=event_format)
        producer.send("modes", event=EVENT, key=b"mine", key_mapper=partitionkey_mapper)
        producer.send("modes", event=EVENT.replace(data=None))
    records = records_of(address, "modes")
    assert [record.event for record in records] == [EVENT] * 5 + [EVENT.replace(data=None)]
    assert [record.key for record in records] == [b"mine", None, None, None, b"p", None]
    assert records[0].value == b'{"a":1.5}'
    assert records[0].headers[-2:] == [("trace", b"\xff"), ("none", None)]
    assert dict(records[3].headers) == {"content-type": b"application/cloudevents+protobuf"}
    assert records[5].value is None


def test_the_same_from_asyncio(address):
    async def send():
        async with AsyncProducer(bootstrap_servers=address) as producer:
            await producer.send("later", event=EVENT, mode="structured")
            return await producer.send_and_wait("later", event=EVENT, key=b"k", timestamp=7)

    assert asyncio.run(send()).offset == 1
    records = records_of(address, "later")
    assert [record.event for record in records] == [EVENT, EVENT]
    assert (records[1].key, records[1].timestamp) == (b"k", 7)


def test_a_record_that_carries_none_says_why(address):
    with Producer(bootstrap_servers=address) as producer:
        producer.send("others", b"plain")
        producer.send("others", b"{", headers=[("content-type", b"application/cloudevents+json")])
    plain, broken = records_of(address, "others")
    assert isinstance(plain.event, NotAnEvent)
    assert plain.event.rule == "K16"
    assert isinstance(broken.event, InvalidEvent)
    assert broken.event.rule == "J1"


def test_what_cannot_be_sent_is_refused(address):
    with Producer(bootstrap_servers=address) as producer:
        with pytest.raises(ConfigError, match="either a value or an event"):
            producer.send("no", b"value", event=EVENT)
        with pytest.raises(ConfigError, match="takes a penstock"):
            producer.send("no", event={"id": "1"})
        with pytest.raises(ConfigError, match="mode must be"):
            producer.send("no", event=EVENT, mode="batch")
        with pytest.raises(EncodeError, match="C23"):
            producer.send("no", event=EVENT, headers=[("ce_id", b"2")])
        with pytest.raises(InvalidEventError, match="K14"):
            producer.send("no", event=EVENT.replace(datacontenttype="application/cloudevents+json"))


@pytest.mark.parametrize("release", ["0.9", "0.10"])
def test_brokers_without_headers_are_sent_structured_events_only(release, monkeypatch):
    ask_0_9_briefly(release, monkeypatch)
    with Broker(as_version=release) as broker:
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            refused = producer.send("old", event=EVENT)
            with pytest.raises(EncodeError, match="K9"):
                refused.result(10)
            producer.send("new", event=EVENT, mode="structured", key=b"k").result(10)
        (record,) = records_of(broker.bootstrap_servers, "new")
    assert (record.key, list(record.headers)) == (b"k", [])
    assert record.event == EVENT
    assert isinstance(from_record(record.key, record.value, list(record.headers)), NotAnEvent)
    assert from_record(record.key, record.value, record.headers, assume_structured=True) == EVENT


def test_asking_for_the_event_loads_no_library_for_tables():
    import subprocess

    code = "from penstock import Record; import sys; Record('t', 0, 0, 0, 0, None, b'', []).event;"
    code += "sys.exit(any(name in sys.modules for name in ('numpy', 'pyarrow')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
