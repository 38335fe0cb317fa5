"""CloudEvents exchanged with the official Python and Java SDKs, over both Penstock and Apache Kafka.

An SDK may read a test vector differently only if `docs/reference/cloudevents-sdks.md` has a row for the rule
that decides the case. A row without such a vector fails the test too.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from datetime import UTC

import pytest

from cloudevents_cases import READING, expected, parts_of
from compat.peers import HERE, LEAKY_CLIENTS, PATIENCE_S, java, maven_classpath, shared_kafka
from penstock import Broker
from penstock.client import Consumer, Producer
from penstock.cloudevents import Event, from_message, from_record, from_sdk, to_record, to_sdk
from penstock.cloudevents.types import canonical_text
from penstock.model import TopicPartition

pytestmark = [pytest.mark.compat, pytest.mark.filterwarnings("ignore:.*_text is deprecated"), *LEAKY_CLIENTS]

PROGRAM = HERE / "java" / "cloudevents" / "Events.java"
PAGE = HERE.parents[1] / "docs" / "reference" / "cloudevents-sdks.md"
VECTORS = [case for case in READING if not case.get("options") and case.get("profile") != "lenient"]
JSON_EVENTS = [
    Event(id="1", source="https://example.com/%C3%A4?a=b#c", type="t", datacontenttype="a/b", data=b"x"),
    Event(id="2", source="/s", type="t", time="2018-04-05T03:56:24Z", subject="ä€🌎", json={"a": [1, "ü"]}),
    Event(id="3", source="/s", type="t", datacontenttype="application/octet-stream", data=b"\x00\xff"),
    Event(id="4", source="/s", type="t", datacontenttype="text/plain", data="zwölf".encode()),
    Event(
        id="5",
        source="urn:a:b",
        type="t",
        time="2018-04-05T03:56:24+02:00",
        dataschema="https://example.com/schema",
        datacontenttype="application/json",
        data=b'{"n":1}',
        extensions={"partitionkey": "p", "note": "1", "number": 5},
    ),
]
"""Events that Penstock and both SDKs must encode alike in binary and structured mode."""


def as_text(event):
    """Return an event whose extensions are text, as they are after a transfer in binary mode."""
    return event.replace(extensions={name: canonical_text(value) for name, value in event.extensions.items()})


@pytest.fixture(scope="module", params=["penstock", "apache kafka"])
def address(request):
    if request.param == "apache kafka":
        yield shared_kafka("4.3.0")
        return
    with Broker() as broker:
        yield broker.bootstrap_servers


def send(address, topic, records):
    with Producer(bootstrap_servers=address) as producer:
        for key, value, headers in records:
            producer.send(topic, value, key=key, headers=headers, partition=0)
        producer.flush(PATIENCE_S)


def received(address, topic, count):
    with Consumer(bootstrap_servers=address) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        records = []
        while len(records) < count:
            records += consumer.poll(timeout_ms=10_000)
        return records


def run_java(*words, stdin=None, libraries="cloudevents"):
    out = java(maven_classpath(libraries), PROGRAM, *words, stdin=stdin, check=True)
    return out.stdout.split("\n")[:-1]


# -- Every vector, and where they differ


def explained(sdk):
    """Return the rules for which the documentation page describes a difference of this SDK."""
    page = PAGE.read_text(encoding="utf-8").partition("## What they write")[0]
    rows = re.findall(r"^\| ([A-Z]\d+) \|[^|]*\| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
    return {rule: cells[sdk == "python"] for rule, *cells in rows if cells[sdk == "python"].strip() != "same"}


def differences(answers):
    """Return the names of the vectors that an SDK reads differently, keyed by the rule that decides.

    Rules are those of docs/reference/cloudevents.md. The rule is D14 if the SDK added a time or an id of
    its own.
    """
    found = {}
    for case, answer in zip(VECTORS, answers, strict=True):
        wanted = expected(case)
        if wanted["outcome"] != "event" or answer is None:
            if (wanted["outcome"] == "event") != (answer is not None):
                found.setdefault(case["rules"][0], []).append(case["name"])
            continue
        attributes, data = answer
        invented = {"time", "id"} & (attributes.keys() - wanted["attributes"].keys())
        if invented:
            found.setdefault("D14", []).append(case["name"])
            attributes = {name: value for name, value in attributes.items() if name not in invented}
        if attributes != wanted["attributes"] or data != wanted["data"]:
            found.setdefault(case["rules"][0], []).append(case["name"])
    return found


def compare(sdk, answers):
    found, rows = differences(answers), explained(sdk)
    assert {rule: names for rule, names in found.items() if rule not in rows} == {}
    assert rows.keys() - found.keys() == set()


def test_every_vector_read_by_the_java_sdk(address):
    send(address, "vectors", [parts_of(case["read"]) for case in VECTORS])
    answers = []
    for line in run_java("read", address, "vectors", len(VECTORS)):
        answer = json.loads(line)
        if "error" in answer:
            answers.append(None)
        else:
            data = answer["data"]
            answers.append((answer["attributes"], None if data is None else base64.b64decode(data)))
    compare("java", answers)


def test_every_vector_read_by_the_python_sdk(address):
    from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka_event

    send(address, "vectors-python", [parts_of(case["read"]) for case in VECTORS])
    answers = []
    for message in Confluent.messages(address, "vectors-python", len(VECTORS)):
        headers = dict(message.headers() or [])
        try:
            event = from_kafka_event(KafkaMessage(headers=headers, key=message.key(), value=message.value()))
            ours = from_sdk(event)
        except Exception:
            answers.append(None)
        else:
            texts = {name: canonical_text(content) for name, content in ours.attributes().items()}
            answers.append((texts, ours.data))
    compare("python", answers)


# -- What they agree on, both ways


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_the_java_sdk_reads_our_events(address, mode):
    topic = f"to-java-{mode}"
    with Producer(bootstrap_servers=address) as producer:
        for event in JSON_EVENTS:
            producer.send(topic, event=event, mode=mode, partition=0)
        producer.flush(PATIENCE_S)
    for event, line in zip(JSON_EVENTS, run_java("read", address, topic, len(JSON_EVENTS)), strict=True):
        answer = json.loads(line)
        assert "error" not in answer
        texts = {name: canonical_text(value) for name, value in event.attributes().items()}
        assert answer["attributes"] == texts
        assert (None if answer["data"] is None else base64.b64decode(answer["data"])) == event.data


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_we_read_events_of_the_java_sdk(address, mode):
    topic = f"from-java-{mode}"
    lines = [to_record(event, mode="structured")[1].decode() for event in JSON_EVENTS]
    assert set(run_java("write", address, topic, mode, stdin="\n".join(lines) + "\n")) == {"sent"}
    records = received(address, topic, len(JSON_EVENTS))
    assert [record.key for record in records] == [b"key-%d" % number for number in range(len(JSON_EVENTS))]
    for record, event in zip(records, JSON_EVENTS, strict=True):
        assert record.event == (as_text(event) if mode == "binary" else event)


def test_protobuf_to_and_from_the_java_sdk(address):
    libraries = "cloudevents-protobuf"
    with Producer(bootstrap_servers=address) as producer:
        for event in JSON_EVENTS:
            producer.send("protobuf", event=event, mode="structured", event_format="protobuf", partition=0)
        producer.flush(PATIENCE_S)
    count = len(JSON_EVENTS)
    for event, line in zip(
        JSON_EVENTS, run_java("read", address, "protobuf", count, libraries=libraries), strict=True
    ):
        answer = json.loads(line)
        assert "error" not in answer, answer
        texts = {name: canonical_text(value) for name, value in in_utc(event).attributes().items()}
        assert answer["attributes"] == texts
        assert base64.b64decode(answer["data"]) == event.data
    lines = [to_record(event, mode="structured")[1].decode() for event in JSON_EVENTS]
    format_of = "application/cloudevents+protobuf"
    stdin = "\n".join(lines) + "\n"
    sent = run_java("write", address, "from-java-protobuf", format_of, stdin=stdin, libraries=libraries)
    assert set(sent) == {"sent"}
    for record, event in zip(received(address, "from-java-protobuf", count), JSON_EVENTS, strict=True):
        assert record.headers == [("content-type", format_of.encode())]
        assert record.event == event


def in_utc(event):
    """Return an event with its time in UTC, since Protobuf keeps no time zone.

    This is rule R5 of docs/reference/cloudevents.md.
    """
    moment = event.time and event.time.astimezone(UTC)
    return event.replace(time=moment)


def sdk_record(event, mode):
    """Return a record's key, value and headers as the Python SDK makes them."""
    from cloudevents.core.bindings.kafka import to_binary_event, to_structured_event

    message = (to_binary_event if mode == "binary" else to_structured_event)(to_sdk(event))
    return message.key, message.value, list(message.headers.items())


def sdk_event(message):
    from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka_event

    key, value, headers = message
    return from_kafka_event(KafkaMessage(headers=dict(headers), key=key, value=value or b""))


def without_invention(theirs, ours):
    """Return the SDK's event without the time that the SDK adds if the original event has none.

    This is rule D14 of docs/reference/cloudevents.md.
    """
    return theirs if ours.time_text else theirs.replace(time=None)


class Confluent:
    """An adapter for confluent-kafka, which represents headers as a list of pairs, or None."""

    @staticmethod
    def send(address, topic, records):
        from confluent_kafka import Producer as Theirs

        producer = Theirs({"bootstrap.servers": address})
        for key, value, headers in records:
            producer.produce(topic, key=key, value=value, headers=headers, partition=0)
        producer.flush(PATIENCE_S)

    @staticmethod
    def messages(address, topic, count):
        from confluent_kafka import Consumer as Theirs
        from confluent_kafka import TopicPartition as Place

        consumer = Theirs({"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False})
        consumer.assign([Place(topic, 0, 0)])
        found = consumer.consume(count, timeout=PATIENCE_S)
        consumer.close()
        return found


class KafkaPython:
    """An adapter for kafka-python, which represents headers as a list of pairs."""

    @staticmethod
    def send(address, topic, records):
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=address)
        for key, value, headers in records:
            producer.send(topic, value=value, key=key, headers=headers, partition=0)
        producer.flush(PATIENCE_S)
        producer.close()

    @staticmethod
    def messages(address, topic, count):
        from kafka import KafkaConsumer
        from kafka import TopicPartition as Place

        consumer = KafkaConsumer(bootstrap_servers=address, consumer_timeout_ms=1000 * PATIENCE_S)
        consumer.assign([Place(topic, 0)])
        consumer.seek_to_beginning()
        found = [message for _, message in zip(range(count), consumer, strict=False)]
        consumer.close()
        return found


class Aiokafka:
    """An adapter for aiokafka, which represents headers as a tuple of pairs."""

    @staticmethod
    def send(address, topic, records):
        from aiokafka import AIOKafkaProducer

        async def run():
            producer = AIOKafkaProducer(bootstrap_servers=address)
            await producer.start()
            for key, value, headers in records:
                await producer.send_and_wait(topic, value=value, key=key, headers=headers, partition=0)
            await producer.stop()

        asyncio.run(run())

    @staticmethod
    def messages(address, topic, count):
        from aiokafka import AIOKafkaConsumer
        from aiokafka import TopicPartition as Place

        async def run():
            consumer = AIOKafkaConsumer(bootstrap_servers=address)
            await consumer.start()
            consumer.assign([Place(topic, 0)])
            await consumer.seek_to_beginning(Place(topic, 0))
            found = [await consumer.getone() for _ in range(count)]
            await consumer.stop()
            return found

        return asyncio.run(run())


@pytest.mark.parametrize("client", [Confluent, KafkaPython, Aiokafka], ids=lambda client: client.__name__)
def test_every_python_client_carries_events_both_ways(address, client):
    topic = f"with-{client.__name__}"
    events = [*JSON_EVENTS, JSON_EVENTS[0].replace(data=b""), JSON_EVENTS[0].replace(data=None)]
    # With a key: kafka-python refuses records that have neither key nor value.
    records = [to_record(event, mode=mode, key=b"k") for event in events for mode in ("binary", "structured")]
    records.append((b"k", b"plain", []))
    client.send(address, topic, records)
    messages = client.messages(address, topic, len(records))
    outcomes = [from_message(message) for message in messages]
    assert outcomes == [from_record(*record) for record in records]
    assert sum(isinstance(outcome, Event) for outcome in outcomes) == len(records) - 1
    ours = received(address, topic, len(records))
    assert [record.event for record in ours] == outcomes


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_the_python_sdk_both_ways(address, mode):
    topic = f"python-{mode}"
    Confluent.send(address, topic, [sdk_record(event, mode) for event in JSON_EVENTS])
    for record, event in zip(received(address, topic, len(JSON_EVENTS)), JSON_EVENTS, strict=True):
        assert without_invention(record.event, event) == (as_text(event) if mode == "binary" else event)
    for event in JSON_EVENTS:
        theirs = from_sdk(sdk_event(to_record(event, mode=mode)))
        again = as_text(theirs) if mode == "binary" else theirs
        assert without_invention(again, event).attributes() == (
            as_text(event).attributes() if mode == "binary" else event.attributes()
        )


def test_names_of_vectors_are_unique():
    assert len(VECTORS) == len({case["name"] for case in VECTORS})


def test_what_they_write_differently(address):
    event = JSON_EVENTS[0]
    assert dict(sdk_record(event.replace(extensions={"flagged": True}), "binary")[2])["ce_flagged"] == b"True"
    assert sdk_record(event.replace(data=None), "binary")[1] == b""
    with_suffix = event.replace(datacontenttype="application/vnd.x+json", data=b'{"a":1}')
    line = to_record(with_suffix, mode="structured")[1].decode()
    assert "not a json" in "".join(run_java("write", address, "refused", "binary", stdin=line + "\n"))
