"""Tests of structured CloudEvents in message formats without headers, and so without a content type."""

from __future__ import annotations

import json

import pytest

from penstock import Consumer, Producer, TopicPartition
from penstock.cloudevents import Event, NotAnEvent, from_message
from penstock.records.legacy import encode_message_set
from penstock.records.rows import decode_rows
from penstock.testing import KafkaBroker

ENVELOPE = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": {"a": 1}}


@pytest.mark.parametrize(
    ("release", "kind"), [("0.8.2", Event), ("0.10.2", Event), ("0.11", NotAnEvent), ("3.9", NotAnEvent)]
)
def test_it_is_an_event_where_the_format_has_no_headers(release: str, kind: type) -> None:
    with KafkaBroker(as_version=release) as broker:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("t", json.dumps(ENVELOPE).encode())
            producer.send("t", b'{"id": "1"}')
        with Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            consumer.seek_to_beginning()
            records = []
            while len(records) < 2:
                records += consumer.poll(1000)
    event, other = [record.event for record in records]
    assert isinstance(event, kind)
    assert isinstance(from_message(records[0]), kind)
    assert isinstance(from_message(records[0], assume_structured=True), Event)
    assert isinstance(other, NotAnEvent)
    assert records[0].headers == ()


def test_rows_of_a_large_set_know_as_much() -> None:
    """Events are also recognized in a large message set, whose records are decoded differently."""
    rows = [(None, json.dumps(ENVELOPE).encode(), 0)] * 2000
    records, _ = decode_rows(encode_message_set(rows, 1), "t", 0)
    assert len(records) == 2000
    assert {type(from_message(record)) for record in records} == {Event}
