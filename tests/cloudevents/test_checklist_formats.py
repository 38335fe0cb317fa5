"""Tests of the rules of CloudEvents' event formats and of the partition key.

Each rule is tested when reading and when writing, in binary and in structured mode.
"""

from __future__ import annotations

import base64
import json

import pytest

from cloudevents_checklist import (
    BASE,
    EVENT,
    TIMES,
    accepted,
    cells,
    check,
    read,
    record,
    refused,
    run_checks,
    written,
)
from penstock.cloudevents import (
    AttributeType,
    Event,
    InvalidEvent,
    InvalidEventError,
    Timestamp,
    read_events,
    to_record,
    write_events,
)

# -- The JSON format


def structured(**members):
    return structured_text(json.dumps({**BASE, **members}))


def structured_text(text):
    return read((None, text.encode(), [("content-type", b"application/cloudevents+json")]))


def as_json(event, **options):
    return json.loads(written(event, "structured", **options)[1])


@check("J1", "J2")
def one_event_is_one_object_of_its_attributes(do, mode):
    event = accepted(mode, do, subject="x", zeta="z", alpha="a")
    assert as_json(event) == {**BASE, "subject": "x", "zeta": "z", "alpha": "a"}
    for text in ("[]", '"x"', "1", "", "{}{}", "[" + json.dumps(BASE) + "]"):
        assert isinstance(structured_text(text), InvalidEvent)
    assert structured(extensions={"a": "b"}).rule == "C5"


@check("J3")
def booleans_and_integers_are_json_the_rest_is_text(do, mode):
    event = accepted(mode, do, flag=True, number=-5, text="5")
    assert as_json(event) == {**BASE, "flag": True, "number": -5, "text": "5"}
    for value in ("1.0", "1e3", "2147483648", "-2147483649"):
        text = json.dumps(BASE)[:-1] + f', "number": {value}}}'
        assert structured_text(text).rule in ("J3", "T2")
    assert as_json(event.replace(extensions={"blob": b"Ma"}))["blob"] == "TWE="
    assert structured(note="5").extensions == {"note": "5"}


@check("J4")
def null_is_not_set(mode):
    nulls = (
        "subject",
        "time",
        "datacontenttype",
        "dataschema",
        "note",
        "partitionkey",
        "sampledrate",
        "data_base64",
    )
    assert structured(**dict.fromkeys(nulls)) == Event(**BASE)
    for name in BASE:
        assert structured(**{name: None}).rule == "J4"


@check("J5", "J6")
def bytes_go_to_data_base64_and_no_type_is_guessed(mode):
    for data in (b"\xff", b"{}", b"text"):
        assert as_json(Event(**BASE, data=data)) == {**BASE, "data_base64": base64.b64encode(data).decode()}
    assert as_json(Event(**BASE, datacontenttype="a/b", data=b"x"))["datacontenttype"] == "a/b"


@check("J7", "J9")
def json_data_stand_there_as_json(do, mode):
    for content_type in ("application/json", "text/JSON", "model/gltf+json", "application/vnd.x_y+json; v=1"):
        for data in (b'{"a": 1.10}', b'"text"', b"[1e2]", b"null", b"123456789012345678901234567890"):
            event = EVENT.replace(datacontenttype=content_type, data=data)
            parts = written(event, mode)
            assert b'"data":' + data in parts[1]
            assert read(parts) == event
    for content_type in ("application/jsonx", "json/x", "application/x+jsonx", "application/octet-stream"):
        assert "data" not in as_json(EVENT.replace(datacontenttype=content_type))


@check("J8")
def data_without_a_type_are_json(mode):
    for text in ("1", '"x"', '{"a": 1.10}', "null"):
        event = structured_text(json.dumps(BASE)[:-1] + f', "data": {text}}}')
        assert (event.data, event.datacontenttype, event.content_type) == (
            text.encode(),
            None,
            "application/json",
        )


@check("J10")
def other_data_are_text_or_bytes(mode):
    event = EVENT.replace(datacontenttype="text/plain", data="zwölf".encode())
    assert as_json(event)["data_base64"] == base64.b64encode("zwölf".encode()).decode()
    assert as_json(event, text_data=True)["data"] == "zwölf"
    assert "data" not in as_json(event.replace(data=b"\xff"), text_data=True)
    with pytest.raises(InvalidEventError, match="K12"):
        Event(**BASE, datacontenttype="text/plain", data={"a": 1})


@check("J11")
def data_and_data_base64_exclude_each_other(do, mode):
    assert structured(data=1, data_base64="AA==").rule == "J11"
    assert structured(data=None, data_base64="AA==").rule == "J11"
    for data in (b"{}", b"\xff"):
        assert len({"data", "data_base64"} & as_json(EVENT.replace(data=data)).keys()) == 1
    with pytest.raises(InvalidEventError, match="J11"):
        Event(**BASE, data=b"1", json=1)


@check("J12")
def data_null_is_a_payload(do, mode):
    event = structured(data=None)
    assert event.data == b"null"
    assert as_json(event)["data"] is None
    assert written(event, "binary")[1] == b"null"
    assert structured().data is None
    assert "data" not in as_json(structured())


@check("J13")
def data_base64_is_bytes_and_implies_nothing(mode):
    event = structured(data_base64="e30=")
    assert (event.data, event.datacontenttype, event.content_type) == (b"{}", None, None)
    for text in ("A", "A===", "-_8=", "AA= =", "\u00e4"):
        assert structured(data_base64=text).rule == "J13"
    assert structured(data_base64=5).rule == "J13"
    assert structured(data_base64="").data == b""


@check("J14")
def a_json_string_stays_one(mode):
    event = structured(datacontenttype="application/json", data='{"a": 1}')
    assert event.data == b'"{\\"a\\": 1}"'
    assert event.json() == '{"a": 1}'


@check("J15")
def other_data_are_a_string(mode):
    assert structured(datacontenttype="text/plain", data="ä").data == "ä".encode()
    assert structured(datacontenttype="text/plain; charset=iso-8859-1", data="ä").data == b"\xe4"
    for value in ({}, [], 1, True, None):
        assert structured(datacontenttype="text/plain", data=value).rule == "J15"


@check("J18")
def batches_are_for_files_and_not_for_kafka(do, mode):
    body = write_events([EVENT, EVENT.replace(id="2")])
    assert [entry["id"] for entry in json.loads(body)] == ["1", "2"]
    assert [event.id for event in read_events(body, "Application/CloudEvents-Batch+JSON; charset=utf-8")] == [
        "1",
        "2",
    ]
    assert (write_events([]), read_events(b"[]")) == (b"[]", [])
    assert read((None, body, [("content-type", b"application/cloudevents-batch+json")])).rule == "K3"


@check("J19")
def json_is_utf_8_without_nan(do, mode):
    for text in ("NaN", "Infinity", "-Infinity"):
        assert structured_text(json.dumps(BASE)[:-1] + f', "data": {text}}}').rule == "J19"
    parts = record(mode)
    assert read((None, parts[1].decode().encode("utf-16"), parts[2])).rule == "J19"
    assert read((None, b"\xef\xbb\xbf" + parts[1], parts[2])).id == "1"
    assert written(EVENT.replace(subject="ä"), mode)[1].decode().isascii() is False
    with pytest.raises(InvalidEventError, match="J9"):
        Event(**BASE, json=float("nan"))


@check("P1")
def a_partition_key_is_not_empty(do, mode):
    accepted(mode, do, partitionkey="p")
    refused(mode, do, ["P1"], partitionkey="")
    if (do, mode) != ("read", "binary"):
        refused(mode, do, ["C16"], partitionkey=5)


# -- Avro and Protobuf: what they look like on the wire is checked in test_formats.py


@check("A1", "A2", "A3", "A4", "R1", "R2", "R3")
def other_formats_carry_the_same_event(rule, do, mode):
    name = {"A": "avro", "R": "protobuf"}[rule[0]]
    events = [
        EVENT,
        EVENT.replace(data=None),
        EVENT.replace(data=b""),
        EVENT.replace(datacontenttype="a/b", data=b"\xff"),
    ]
    events.append(
        EVENT.replace(extensions={"flag": True, "number": 5, "blob": b"\xff", "when": Timestamp(TIMES[0])})
    )
    for event in events:
        key, value, headers = to_record(event, mode=mode, event_format=name)
        assert headers == [("content-type", f"application/cloudevents+{name}".encode())]
        types = {"when": AttributeType.TIMESTAMP}
        assert read((key, value, headers), extension_types=types) == event
        assert isinstance(read((key, value[:-1], headers)), InvalidEvent) or rule[0] == "R"


@check("J16")
def an_implied_type_is_written_out(do, mode):
    event = structured(data="x")
    back = read(written(event, mode))
    assert (back.content_type, back.data) == ("application/json", b'"x"')
    assert back.datacontenttype == (None if mode == "structured" else "application/json")
    assert read(written(structured(data_base64="IngiIA=="), mode)).content_type is None


@pytest.mark.parametrize(("rule", "cell"), list(cells("JPAR")))
def test_the_rule_holds(rule, cell):
    run_checks(rule, cell)
