"""Tests of the event class: it checks its arguments, is immutable, and compares by value."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest

from for_each import for_each
from penstock.cloudevents import (
    URI,
    Event,
    InvalidEventError,
    Timestamp,
    URIReference,
    from_record,
    to_record,
)
from penstock.cloudevents.event import imply_json
from penstock.cloudevents.timestamps import instant, parse_timestamp, timestamp_of

EVENT = Event(id="1", source="/s", type="t")


@for_each(
    [
        ({"id": ""}, "C6"),
        ({"id": None}, "C6"),
        ({"id": 5}, "C6"),
        ({"source": ""}, "C7"),
        ({"source": "a b"}, "T6"),
        ({"type": ""}, "C9"),
        ({"type": "a\n"}, "T3"),
        ({"specversion": "0.3"}, "D13"),
        ({"specversion": ""}, "C8"),
        ({"specversion": 1.0}, "C8"),
        ({"subject": ""}, "C11"),
        ({"subject": "\ud800"}, "T3"),
        ({"dataschema": ""}, "C10"),
        ({"dataschema": "/x"}, "T5"),
        ({"datacontenttype": ""}, "C13"),
        ({"datacontenttype": "json"}, "C13"),
        ({"time": "now"}, "T7"),
        ({"time": datetime(2018, 4, 5)}, "T7"),
        ({"time": 5}, "C12"),
        ({"data": "text"}, "K12"),
        ({"data": b"", "json": 1}, "J11"),
        ({"json": float("nan")}, "J9"),
        ({"json": object()}, "J9"),
        ({"extensions": {"data": "x"}}, "C3"),
        ({"extensions": {"A": "x"}}, "C3"),
        ({"extensions": {"id": "x"}}, "C2"),
        ({"extensions": {"x": 1.5}}, "C5"),
        ({"extensions": {"x": {}}}, "C5"),
        ({"extensions": {"x": 2**31}}, "T2"),
        ({"extensions": {"x": "\x00"}}, "T3"),
        ({"extensions": {"sampledrate": "x"}}, "T2"),
        ({"extensions": {"sampledrate": True}}, "C16"),
        ({"extensions": {"sequence": 5}}, "C16"),
        ({"extensions": {"expirytime": URI("a:b")}}, "C16"),
        ({"extensions": {"x": URI("/b")}}, "T5"),
        ({"extensions": {"partitionkey": ""}}, "P1"),
    ]
)
def test_what_breaks_a_rule_is_refused_by_its_name(arguments, rule):
    with pytest.raises(InvalidEventError, match=f"^{rule}: ") as caught:
        Event(**({"id": "1", "source": "/s", "type": "t"} | arguments))
    assert caught.value.rule == rule
    assert str(caught.value) == f"{rule}: {caught.value.reason}"


def test_values_take_their_declared_type():
    event = EVENT.replace(
        extensions={
            "sampledrate": "5",
            "deprecated": "true",
            "dssematerial": "TWE=",
            "dataref": "/x",
            "expirytime": datetime(2018, 4, 5, tzinfo=UTC),
            "own": URIReference("/y"),
            "blob": bytearray(b"x"),
            "unset": None,
        }
    )
    assert event.extensions == {
        "sampledrate": 5,
        "deprecated": True,
        "dssematerial": b"Ma",
        "dataref": "/x",
        "expirytime": "2018-04-05T00:00:00Z",
        "own": "/y",
        "blob": b"x",
    }
    assert isinstance(event.extensions["expirytime"], Timestamp)
    assert event.extensions["expirytime"].moment == datetime(2018, 4, 5, tzinfo=UTC)
    assert isinstance(event.extensions["dataref"], URIReference)


def test_an_event_does_not_change():
    event = EVENT.replace(extensions={"a": "b"})
    with pytest.raises(AttributeError, match="replace"):
        event.id = "2"
    with pytest.raises(AttributeError, match="replace"):
        del event.subject
    with pytest.raises(TypeError):
        event.extensions["a"] = "c"
    changed = event.replace(id="2", json=[1])
    assert (changed.id, changed.data, changed.extensions) == ("2", b"[1]", {"a": "b"})
    assert event.id == "1"


def test_equality_is_that_of_events():
    assert EVENT.replace(time="2018-04-05T03:56:24Z") == EVENT.replace(time="2018-04-05T05:56:24.000+02:00")
    assert EVENT.replace(time="2018-04-05T03:56:24.0000001Z") != EVENT.replace(time="2018-04-05T03:56:24Z")
    assert EVENT.replace(time="2016-12-31T23:59:60Z") == EVENT.replace(time="2017-01-01T00:00:00Z")
    assert EVENT.replace(time="0000-12-31T23:59:59-00:01") == EVENT.replace(time="0001-01-01T00:00:59Z")
    assert EVENT.replace(extensions={"x": 1}) != EVENT.replace(extensions={"x": True})
    assert EVENT.replace(data=b"") != EVENT
    assert EVENT.replace(data=b"1") != imply_json(EVENT.replace(data=b"1"))
    assert EVENT != "an event"
    assert hash(EVENT) == hash(EVENT.replace(subject="x"))


def test_it_survives_pickling_and_copying():
    event = imply_json(EVENT.replace(data=b"1", time="2018-04-05T03:56:24Z", extensions={"a": 1}))
    for same in (pickle.loads(pickle.dumps(event)), copy.copy(event), copy.deepcopy(event), event.replace()):
        assert same == event
        assert same.json_implied
        assert same.content_type == "application/json"
    assert not event.replace(data=b"2").json_implied


def test_repr_shows_what_is_set():
    event = Event(id="1", source="/s", type="t", subject="x", json={"a": 1})
    assert repr(event) == (
        "Event(specversion='1.0', id='1', source='/s', type='t', "
        "datacontenttype='application/json', subject='x', data=b'{\"a\":1}')"
    )
    assert "<100 bytes>" in repr(event.replace(data=bytes(100)))


def test_data_as_json_and_as_text():
    assert EVENT.json() is None
    assert EVENT.text() is None
    assert EVENT.replace(json={"ä": [1, None]}).json() == {"ä": [1, None]}
    assert EVENT.replace(json=None).data == b"null"
    assert EVENT.replace(data=b"\xe4", datacontenttype='text/plain; charset="ISO-8859-1"').text() == "ä"
    assert EVENT.replace(data="ä".encode(), datacontenttype="text/plain; charset=nonsense").text() == "ä"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2018-04-05T03:56:24.1234567Z", datetime(2018, 4, 5, 3, 56, 24, 123456, tzinfo=UTC)),
        ("2018-04-05t03:56:24z", datetime(2018, 4, 5, 3, 56, 24, tzinfo=UTC)),
        ("2016-12-31T23:59:60.5Z", datetime(2017, 1, 1, 0, 0, 0, 500000, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("0001-01-01T00:00:00+00:01", None),
        ("0000-02-29T00:00:00Z", None),
        ("0000-12-31T23:59:00-00:01", None),
        ("9999-12-31T23:59:59-00:01", None),
        ("9999-12-31T23:59:60Z", None),
    ],
)
def test_moments(text, moment):
    assert parse_timestamp("time", text) == moment
    event = EVENT.replace(time=text)
    assert (event.time, event.time_text) == (moment, text)
    assert from_record(*to_record(event)) == event


def test_a_datetime_keeps_its_offset():
    zone = timezone(timedelta(hours=-5, minutes=-30))
    assert (
        EVENT.replace(time=datetime(2018, 4, 5, 1, 2, 3, 4000, zone)).time_text
        == "2018-04-05T01:02:03.004-05:30"
    )
    odd = timezone(timedelta(seconds=30))
    assert EVENT.replace(time=datetime(2018, 4, 5, 0, 0, 30, tzinfo=odd)).time_text == "2018-04-05T00:00:00Z"


def test_instants_compare_over_the_whole_calendar():
    first, last = "0000-01-01T00:00:00Z", "9999-12-31T23:59:60Z"
    texts = [first, "0001-01-01T00:00:00Z", "1969-12-31T23:59:59.9Z", last]
    assert sorted(texts, key=instant) == texts
    assert instant("4999-12-31T23:59:59Z") < instant("5000-01-01T00:00:00Z")
    assert timestamp_of(-1, 900_000_000) == "1969-12-31T23:59:59.900Z"
    assert timestamp_of(0, 1) == "1970-01-01T00:00:00.000000001Z"


def test_one_event_needs_no_numpy_and_no_pyarrow():
    code = (
        "import sys\n"
        "from penstock.cloudevents import Event, from_record, from_sdk, read_events, to_record\n"
        "event = Event(id='1', source='/s', type='t', json=1)\n"
        "for name in ('json', 'avro', 'protobuf'):\n"
        "    parts = to_record(event, mode='structured', event_format=name)\n"
        "    assert from_record(*parts) == event\n"
        "print(*(name for name in ('numpy', 'pyarrow') if name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
