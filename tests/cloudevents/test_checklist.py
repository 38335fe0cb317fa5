"""Tests of the rules of CloudEvents' Kafka binding, core and types.

Each rule is tested when reading and when writing, in binary and in structured mode.
"""

from __future__ import annotations

import json
import logging

import pyarrow as pa
import pytest

from cloudevents_checklist import (
    BASE,
    EVENT,
    MAP,
    NO_TIMES,
    ROWS,
    TIMES,
    accepted,
    cells,
    check,
    plain,
    read,
    record,
    refused,
    run_checks,
    written,
)
from penstock import Broker
from penstock.client import Consumer, Producer
from penstock.cloudevents import (
    URI,
    AttributeType,
    Event,
    InvalidEventError,
    NotAnEvent,
    Timestamp,
    URIReference,
    encode_events,
    from_record,
    partitionkey_mapper,
    read_events,
    to_record,
    write_events,
)
from penstock.cloudevents.types import canonical_text
from penstock.errors import EncodeError
from penstock.model import TopicPartition

# -- The Kafka binding


@pytest.fixture(scope="module")
def address():
    with Broker() as broker:
        yield broker.bootstrap_servers


@check("K1")
def key_partition_and_time_are_the_users(mode, address):
    topic = f"k1-{mode}"
    with Producer(bootstrap_servers=address) as producer:
        producer.send(
            topic, event=EVENT, mode=mode, key=b"\xffk", partition=0, timestamp=7, headers=[("h", b"\xff")]
        )
        producer.flush(10)
    with Consumer(bootstrap_servers=address) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        (sent,) = consumer.poll(timeout_ms=10_000)
    assert (sent.key, sent.partition, sent.timestamp, sent.headers[-1]) == (b"\xffk", 0, 7, ("h", b"\xff"))
    assert plain(sent.event) == plain(EVENT)


@check("K4", "K10", "C18", "C22")
def events_come_back_whole_in_both_modes(mode):
    full = EVENT.replace(
        subject="ä",
        time="2018-04-05T03:56:24.1234567+02:00",
        dataschema="https://example.com/x",
        extensions={"note": "n"},
    )
    for event in (EVENT, full):
        assert read(written(event, mode)) == event
        assert read(written(event, mode)).attributes() == event.attributes()


@check("K6", "K24")
def data_are_the_value_byte_for_byte(do, mode):
    for content_type in (
        "application/json",
        "avro/binary",
        "application/octet-stream",
        "text/plain; charset=utf-16",
    ):
        for data in (b' {"a":\t1.10}\n', bytes(range(256)), b"\xff\xfe", b"not json", b"0" * 70_000):
            event = EVENT.replace(datacontenttype=content_type, data=data)
            parts = written(event, mode)
            if do == "write":
                assert parts[1] == data
                assert dict(parts[2])["content-type"].decode() == content_type
            else:
                assert read(parts).data == data


@check("K7", "K26", "K28")
def every_attribute_has_its_header(do, mode):
    attributes = {
        **BASE,
        "subject": "x",
        "time": "2018-04-05T03:56:24Z",
        "dataschema": "a:b",
        "foo": "1",
        "bar": "2",
    }
    event = accepted(mode, do, b"x", datacontenttype="a/b", **attributes)
    headers = dict(written(event, mode)[2])
    assert headers.pop("content-type") == b"a/b"
    assert headers == {f"ce_{name}": value.encode() for name, value in attributes.items()}


@check("K9")
def records_without_headers_take_structured_mode_only(mode):
    if mode == "binary":
        with pytest.raises(EncodeError, match="K9"):
            to_record(EVENT, mode=mode, magic=1)
    else:
        key, value, headers = to_record(EVENT, mode=mode, magic=1)
        assert headers == []
        assert from_record(key, value, headers, assume_structured=True) == EVENT


@check("K14", only=["read"])
def the_content_type_alone_tells_the_mode(mode):
    _, value, _ = record("structured")
    if mode == "structured":
        for content_type in (
            b"application/cloudevents+json",
            b"Application/CloudEvents+JSON ; Charset=utf-8",
        ):
            for others in ([], [("ce_id", b"other"), ("ce_x y", b"\xff")]):
                assert read((None, value, [*others, ("Content-Type", content_type)])).id == "1"
        return
    for content_type in (
        None,
        b"application/json",
        b" application/cloudevents+json",
        b"application/cloudevent+json",
    ):
        assert isinstance(read((None, value, [("content-type", content_type)])), NotAnEvent)
    assert read((None, value, record("binary")[2])).data == value


@check("K14", only=["write"])
def no_binary_record_passes_for_a_structured_one(mode):
    event = EVENT.replace(datacontenttype="Application/CloudEvents+json; v=1")
    if mode == "structured":
        assert read(written(event, mode)) == event
        return
    with pytest.raises(InvalidEventError, match="K14"):
        to_record(event, mode=mode)


@check("K15")
def a_format_that_cannot_be_read_is_named(mode):
    for name in ("", "+xml", "+cbor", "+avro-compact", "-batch+json", "-batch", "s", "+json2", "+jsonx;a=b"):
        outcome = read(
            (None, record("structured")[1], [("content-type", f"application/cloudevents{name}".encode())])
        )
        assert outcome.rule == ("K3" if name.startswith("-batch") else "K15")


@check("K17", "K19", "K20", "K21")
def no_attribute_becomes_the_key_unasked_and_one_can(mode):
    before = EVENT.attributes()
    for key in (None, b"", b"k", b"\xff"):
        assert written(EVENT, mode, key=key)[0] == key
        parts = written(EVENT, mode, key=key, key_mapper=partitionkey_mapper)
        assert parts[0] == b"p"
        assert read(parts).extensions["partitionkey"] == "p"
        without = EVENT.replace(extensions=None)
        assert written(without, mode, key=key, key_mapper=partitionkey_mapper)[0] == key
    mapped = to_record(EVENT, mode=mode, key_mapper=lambda event: event.id)
    assert mapped == (b"1", *written(EVENT, mode)[1:])
    assert EVENT.attributes() == before


@check("K22")
def the_key_becomes_no_attribute(do, mode):
    for extensions in (None, {"partitionkey": "p"}):
        event = EVENT.replace(extensions=extensions)
        _, value, headers = written(event, mode, key=b"other")
        assert (value, headers) == written(event, mode)[1:]
        assert read((b"other", value, headers)) == event


@check("K23")
def content_type_is_the_datacontenttype_unchanged(do, mode):
    for text in ("Application/JSON; Charset=UTF-8", "a/b", 'text/plain ; a=b;c="d e"'):
        event = accepted(mode, do, b"x", datacontenttype=text)
        assert dict(written(event, mode)[2])["content-type"] == text.encode()
    event = accepted(mode, do, b"x")
    assert event.datacontenttype is None
    assert "content-type" not in dict(written(event, mode)[2])


@check("K25")
def no_data_and_empty_data_are_two_things(do, mode):
    for data in (None, b""):
        assert accepted(mode, do, data).data == data
        assert written(EVENT.replace(data=data), mode)[1] == data


@check("K27")
def texts_are_utf_8_and_nothing_is_percent_encoded(do, mode):
    text = "€ %20 %E2%82%AC \U0001f30e"
    event = accepted(mode, do, subject=text, note=text)
    headers = dict(written(event, mode)[2])
    assert headers["ce_subject"] == headers["ce_note"] == text.encode()
    for raw in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80"):
        assert read(record(mode, subject=raw)).rule == "D8"


@check("K30")
def the_content_type_is_that_of_the_format(mode):
    for name in ("json", "avro", "protobuf"):
        headers = to_record(EVENT, mode=mode, event_format=name)[2]
        assert headers == [("content-type", f"application/cloudevents+{name}".encode())]


@check("K32")
def structured_records_have_a_value(do, mode):
    parts = written(EVENT.replace(data=None), mode)
    assert parts[1]
    assert read(parts).data is None
    assert read((None, None, parts[2])).rule == "K32"


@check("K33")
def headers_beside_a_structured_value_count_for_nothing(do, mode):
    key, value, headers = written(EVENT, mode, binary_headers=True)
    assert dict(headers)["ce_id"] == b"1"
    assert dict(headers)["content-type"] == b"application/cloudevents+json"
    changed = [(name, b"\xff" if name[:3] == "ce_" else raw) for name, raw in headers]
    assert read((key, value, [*changed, ("ce_id", b"2"), ("ce_!", None)])) == EVENT


# -- The core


@check("C1")
def required_attributes_must_be_there(do, mode):
    for name in BASE:
        if do == "read":
            refused(mode, do, ["C1"], **{name: ...})
            refused(mode, do, ["D4", "J4"], **{name: None})
        elif name != "specversion":
            refused(mode, do, ["C1"], **{name: ...})
    accepted(mode, do)


@check("C2")
def no_attribute_is_there_twice(do, mode):
    key, value, headers = record(mode, note="n")
    if do == "write":
        for name in BASE:
            with pytest.raises(InvalidEventError, match="C2"):
                Event(**BASE, extensions={name: "x"})
        twice = pa.RecordBatch.from_pydict(
            {
                "id": ["1"],
                "source": ["/s"],
                "type": ["t"],
                "extensions": pa.array([[("a", "1"), ("a", "1")]], MAP),
            }
        )
        assert encode_events(twice, mode=mode, errors="column").column("error")[0].as_py().startswith("C2")
    elif mode == "binary":
        assert read((key, value, [*headers, ("ce_note", b"n")])).extensions == {"note": "n"}
        assert read((key, value, [*headers, ("ce_note", b"m")])).rule == "D3"
    else:
        assert read((key, value.replace(b'"note"', b'"note": "n", "note"'), headers)).rule == "D18"
        assert read((key, value.replace(b'"note"', b'"i\\u0064": "1", "note"'), headers)).rule == "D18"


@check("C3")
def names_are_small_letters_and_digits(do, mode):
    for name in ("Foo", "a_b", "a.b", "ä", "a-b", "a b", ""):
        refused(mode, do, ["C3", "D6"], **{name: "x"})
    if (do, mode) != ("read", "structured"):  # there `data` is the data
        if do == "read":
            refused(mode, do, ["D6"], data="x")
        else:
            with pytest.raises(InvalidEventError, match="C3"):
                Event(**BASE, extensions={"data": "x"})
    accepted(mode, do, a="x", z9="y")


@check("C4")
def odd_names_are_accepted_and_warned_of(do, mode, caplog):
    with caplog.at_level(logging.WARNING, "penstock.cloudevents"):
        names = f"9{do}{mode}", f"{do}{mode}andtwentymorecharacters"
        for _ in range(2):
            accepted(mode, do, **dict.fromkeys(names, "x"))
    said = [entry for entry in caplog.messages if entry.startswith("C4: ")]
    assert [any(name in text for name in names) for text in said] == [True, True] * (do == "write")


@check("C5")
def values_have_a_type(do, mode):
    for value in ({}, [1], 1.5):
        if do == "write":
            refused(mode, do, ["C5"], note=value)
        elif mode == "structured":
            refused(mode, do, ["C5", "J3"], note=value)
            refused(mode, do, ["C5", "J3"], subject=value)
    accepted(mode, do, note="x", flag=True, number=5)


EMPTY = {
    "C6": "id",
    "C7": "source",
    "C8": "specversion",
    "C9": "type",
    "C10": "dataschema",
    "C11": "subject",
    "C13": "datacontenttype",
}
GOOD = {
    "C6": ["1", "ä €", " "],
    "C7": ["/s", "a:b", "//[::1]:8/x?y#z", "%20", "#f"],
    "C8": ["1.0"],
    "C9": ["com.example.t"],
    "C10": ["https://example.com/x#y", "urn:a:b"],
    "C11": ["x", "ä"],
    "C13": ["a/b", 'text/plain; charset="utf-8"', "model/gltf+json"],
}
BAD = {
    "C6": ["a\x00"],
    "C7": ["a b", "<x>", "ä", "%4", "//[::1", "1:x"],
    "C8": ["0.3", "1.0.2", "1"],
    "C9": ["a\x7f"],
    "C10": ["/x", "x", "a b:c"],
    "C11": ["\ufdd0"],
    "C13": ["xyz", "a/", "a/b;", "a/b; c"],
}


@check(*EMPTY)
def core_attributes_keep_their_rules(rule, do, mode):
    refused(mode, do, [rule], **{EMPTY[rule]: ""})
    for text in BAD[rule]:
        refused(mode, do, [rule, "T3", "T5", "T6", "D13"], **{EMPTY[rule]: text})
    for text in GOOD[rule]:
        accepted(mode, do, **{EMPTY[rule]: text})


@check("C12")
def time_is_a_timestamp_and_never_made_up(do, mode):
    for text in TIMES:
        assert accepted(mode, do, time=text).time_text == text
    for text in NO_TIMES:
        refused(mode, do, ["T7"], time=text)
    assert accepted(mode, do).time_text is None


@check("C14")
def media_types_are_compared_in_any_case(mode):
    upper = "Application/VND.x+JSON; Charset=UTF-8"
    event = read(record(mode, b'{"a": 1}', datacontenttype=upper))
    assert event.datacontenttype == upper
    assert b'"data":{"a": 1}' in written(event, "structured")[1]
    assert read(
        (None, record("structured")[1], [("content-type", b"APPLICATION/CLOUDEVENTS+JSON; CHARSET=utf-8")])
    )


@check("C15")
def an_implied_type_is_written_out_in_another_format(do, mode):
    value = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":"x"}'
    event = read((None, value, [("content-type", b"application/cloudevents+json")]))
    assert event.datacontenttype is None
    assert event.data == b'"x"'
    if mode == "binary":
        parts = written(event, mode)
        assert dict(parts[2])["content-type"] == b"application/json"
        assert read(parts).datacontenttype == "application/json"
        assert parts[1] == b'"x"'
    else:
        assert read(written(event, mode)) == event
        for name in ("avro", "protobuf"):
            again = read(to_record(event, mode=mode, event_format=name))
            assert (again.datacontenttype, again.data) == ("application/json", b'"x"')
    encoded = read(
        (
            None,
            value.replace(b'"data":"x"', b'"data_base64":"IngiIA=="'),
            [("content-type", b"application/cloudevents+json")],
        )
    )
    assert "content-type" not in dict(written(encoded, "binary")[2])


TYPES = {
    "T1": ("deprecated", ["true", "false"], ["True", "1", "TRUE", "", " true"]),
    "T2": (
        "sampledrate",
        ["0", "-1", "2147483647", "-2147483648"],
        ["2147483648", "-2147483649", "+5", "05", "1.0", "1e3", "", "-"],
    ),
    "T3": (
        "note",
        ["", "ä", "\ud7ff", "\ue000", "\ufffd", "\U0010fffd"],
        ["\x00", "\x1f", "\x7f", "\x9f", "\ufdd0", "\ufdef", "\ufffe", "\U0001ffff"],
    ),
    "T4": (
        "dssematerial",
        ["", "TQ==", "TWE=", "TWFu", "+/8="],
        ["T", "TQ=", "TQ", "-_8=", "T Q==", "TQ==\n", "TR=="],
    ),
    "T5": ("deprecationmigration", ["a:", "https://x/y?z#f", "urn:a:b"], ["/x", "", "x", "1a:b", "a b:c"]),
    "T6": ("dataref", ["/x", "", "https://x", "//h", "?q", "%41"], ["a b", "<x>", "\\", "%4", "^"]),
    "T7": ("expirytime", TIMES, NO_TIMES),
}


@check(*TYPES)
def types_have_one_text_each(rule, do, mode):
    name, good, bad = TYPES[rule]
    for text in good:
        event = accepted(mode, do, **{name: text})
        assert canonical_text(event.extensions[name]) == text
    for text in bad:
        refused(mode, do, [rule] if rule != "T3" else ["T3"], **{name: text})
    if rule == "T3" and mode == "structured" and do == "read":
        parts = record(mode, note="?")
        assert read((None, parts[1].replace(b"?", b"\\ud800"), parts[2])).rule == "T3"


@check("C16")
def extensions_have_their_declared_type(do, mode):
    event = accepted(
        mode,
        do,
        sampledrate=5,
        deprecated=True,
        expirytime=TIMES[0],
        dataref="/x",
        deprecationmigration="a:b",
    )
    assert {name: type(value) for name, value in event.extensions.items()} == {
        "sampledrate": int,
        "deprecated": bool,
        "expirytime": Timestamp,
        "dataref": URIReference,
        "deprecationmigration": URI,
    }
    refused(mode, do, ["T2", "C16"], sampledrate=True if (do, mode) != ("read", "binary") else "true")
    own = {"mine": AttributeType.INTEGER}
    assert read(record(mode, mine="5"), extension_types=own).extensions == {"mine": 5}
    assert read(record(mode, mine="5")).extensions == {"mine": "5"}


@check("C19", "C20")
def large_events_pass(do, mode):
    event = accepted(mode, do, b"\xff" * (1 << 20), note="x" * 65_536, subject="ä" * 65_536)
    assert read(written(event, mode)) == event


@check("C25")
def a_batch_has_one_specversion(mode):
    body = json.loads(write_events([EVENT, EVENT.replace(id="2")]))
    assert {entry["specversion"] for entry in body} == {"1.0"}
    body[1]["specversion"] = "0.3"
    with pytest.raises(InvalidEventError, match="D13"):
        read_events(json.dumps(body).encode())


@check("C26")
def making_an_event_checks_it_as_reading_does(do, mode):
    refused(mode, do, ["C11"], subject="")
    refused(mode, do, ["T7"], time="x")
    event = accepted(mode, do)
    with pytest.raises(InvalidEventError, match="C6"):
        event.replace(id="")
    with pytest.raises(AttributeError):
        event.id = ""


@pytest.mark.parametrize(("rule", "cell"), list(cells("KCT")))
def test_the_rule_holds(rule, cell, address, caplog):
    run_checks(rule, cell, address=address, caplog=caplog)


def test_every_rule_is_in_the_reference(pytestconfig):
    page = (pytestconfig.rootpath / "docs" / "reference" / "cloudevents.md").read_text(encoding="utf-8")
    assert [rule for rule in ROWS if f"| {rule} |" not in page] == []
