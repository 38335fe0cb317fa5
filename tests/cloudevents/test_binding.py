"""Tests of the conversion of single records to CloudEvents and back."""

from __future__ import annotations

import pytest

from for_each import for_each
from penstock.cloudevents import (
    Event,
    InvalidEvent,
    NotAnEvent,
    from_record,
    other_headers,
    partitionkey_mapper,
    to_record,
)
from penstock.errors import ConfigError, DecodeError, EncodeError

EVENT = Event(
    id="1",
    source="/here",
    type="com.example.thing",
    subject="ä",
    time="2018-04-05T03:56:24.123Z",
    datacontenttype="application/json",
    dataschema="https://example.com/schema",
    extensions={"partitionkey": "p", "sampledrate": 5, "note": "%20 €"},
    data=b'{"a": 1.10}',
)


def test_a_binary_record_has_the_headers_in_their_fixed_order():
    key, value, headers = to_record(EVENT)
    assert key is None
    assert value == b'{"a": 1.10}'
    assert headers == [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"1"),
        ("ce_source", b"/here"),
        ("ce_type", b"com.example.thing"),
        ("content-type", b"application/json"),
        ("ce_dataschema", b"https://example.com/schema"),
        ("ce_subject", "ä".encode()),
        ("ce_time", b"2018-04-05T03:56:24.123Z"),
        ("ce_note", "%20 €".encode()),
        ("ce_partitionkey", b"p"),
        ("ce_sampledrate", b"5"),
    ]


def test_a_structured_record_holds_the_data_as_they_were_written():
    _, value, headers = to_record(EVENT, mode="structured")
    assert headers == [("content-type", b"application/cloudevents+json")]
    assert value is not None
    assert value.endswith('"note":"%20 €","partitionkey":"p","sampledrate":5,"data":{"a": 1.10}}'.encode())


@for_each(
    [
        (mode, data, datacontenttype)
        for datacontenttype in [None, "application/json", "text/plain", "application/octet-stream"]
        for data in [None, b"", b"null", b'{"a": 1.10}', b" 1 ", b"{", b"\xff\x00"]
        for mode in ["binary", "structured"]
    ]
)
def test_data_come_back_byte_for_byte(mode, data, datacontenttype):
    event = Event(id="1", source="/s", type="t", data=data, datacontenttype=datacontenttype)
    assert from_record(*to_record(event, mode=mode)) == event


def test_the_key_is_the_callers_unless_a_mapper_was_asked_for():
    assert to_record(EVENT)[0] is None
    assert to_record(EVENT, key=b"k")[0] == b"k"
    assert to_record(EVENT, key="k", key_mapper=partitionkey_mapper)[0] == b"p"
    assert to_record(EVENT.replace(extensions={}), key="k", key_mapper=partitionkey_mapper)[0] == b"k"
    assert to_record(EVENT, key_mapper=lambda event: event.subject)[0] == "ä".encode()
    assert ("ce_partitionkey", b"p") in to_record(EVENT, key_mapper=partitionkey_mapper)[2]


def test_a_key_never_becomes_an_attribute_unless_asked_for():
    parts = to_record(Event(id="1", source="/s", type="t"), key=b"k")
    event = from_record(*parts)
    assert isinstance(event, Event)
    assert event.extensions == {}
    filled = from_record(*parts, partitionkey_from_key=True)
    assert isinstance(filled, Event)
    assert filled.extensions == {"partitionkey": "k"}
    for key in (b"", b"\xff", b"\x00"):
        assert from_record(key, *parts[1:], partitionkey_from_key=True) == event
    both = from_record(*to_record(EVENT, key=b"k"), partitionkey_from_key=True)
    assert both == EVENT


def test_what_makes_no_claim_is_not_an_event():
    for headers in (None, [], [("a", b"\xff")], [("content-type", b"application/json")], [("ce_foo", b"x")]):
        assert isinstance(from_record(b"k", b"{}", headers), NotAnEvent)


def test_old_message_formats_take_structured_mode_only():
    with pytest.raises(EncodeError, match="K9"):
        to_record(EVENT, magic=1)
    assert to_record(EVENT, mode="structured", magic=1)[2] == []


def test_extra_headers_stay_beside_the_event():
    parts = to_record(EVENT, headers=[("user-agent", b"\xff")])
    assert other_headers(parts[2]) == [("user-agent", b"\xff")]
    assert from_record(*parts) == EVENT
    forged = [
        "ce_x",
        "CE_ID",
        "Ce_Source",
        "cE_x",
        " ce_id",
        "ce_",
        "Content-Type",
        "CONTENT-TYPE",
        "content-type\n",
    ]
    for name in forged:
        for mode in ("binary", "structured"):
            with pytest.raises(EncodeError, match="C23"):
                to_record(EVENT, mode=mode, headers=[(name, b"")])
        assert other_headers([(name, b"")]) == []
    for name in ("ce", "xce_id", "ce-id", "content-types"):
        key, value, headers = to_record(EVENT, headers=[(name, b"forged")])
        for profile in ("strict", "lenient"):
            assert from_record(key, value, headers, profile=profile) == EVENT


WRONG = [5, 0, -1, True, 1.5, [1, 2], (104, 105), {1}, object(), range(3)]
"""Values that are no bytes: `bytes` would convert some of them, and raise an error for others."""


@for_each([(each,) for each in WRONG])
def test_what_is_no_bytes_is_refused_when_written(wrong):
    with pytest.raises(
        EncodeError, match=rf"a record's key is bytes, text or None, not {type(wrong).__name__}"
    ):
        to_record(EVENT, key=wrong)
    with pytest.raises(EncodeError, match="key is bytes"):
        to_record(EVENT, key_mapper=lambda _: wrong)
    with pytest.raises(EncodeError, match=rf"the header 'a' is bytes or None, not {type(wrong).__name__}"):
        to_record(EVENT, headers=[("a", wrong)])
    with pytest.raises(EncodeError, match=rf"a header's name is text, not {type(wrong).__name__}"):
        to_record(EVENT, headers=[(wrong, b"")])
    with pytest.raises(ValueError, match="data must be bytes"):
        Event(id="1", source="/s", type="t", data=wrong)


def test_other_bytes_like_objects_become_bytes():
    key, _, headers = to_record(EVENT, key=bytearray(b"k"), headers=[("a", memoryview(b"b")), ("n", None)])
    assert (key, headers[-2:]) == (b"k", [("a", b"b"), ("n", None)])
    assert type(key) is bytes
    with pytest.raises(EncodeError, match=r"'a' is bytes or None, not str; encode it"):
        to_record(EVENT, headers=[("a", "text")])


@for_each([(wrong, profile) for wrong in WRONG for profile in ["strict", "lenient"]])
def test_what_is_no_bytes_is_refused_when_read(wrong, profile):
    key, value, headers = to_record(EVENT, key=b"k")
    complaint = rf"bytes or None, not {type(wrong).__name__}"
    for name in ("ce_id", "ce_time", "ce_other", "content-type", "CE_SUBJECT", "other"):
        others = [pair for pair in headers if pair[0] != name]
        with pytest.raises(DecodeError, match=complaint):
            from_record(key, value, [*others, ("twice", b""), ("twice", b""), (name, wrong)], profile=profile)
    plain = Event(id="1", source="/s", type="t")
    with pytest.raises(DecodeError, match=complaint):
        from_record(wrong, None, to_record(plain)[2], partitionkey_from_key=True, profile=profile)
    with pytest.raises(DecodeError, match=complaint):
        from_record(key, wrong, headers, profile=profile)
    structured = to_record(EVENT, mode="structured")[2]
    with pytest.raises(DecodeError, match=complaint):
        from_record(key, wrong, structured, profile=profile)
    for assume in (False, True):
        with pytest.raises(DecodeError, match=complaint):
            from_record(
                key, wrong, [("content-type", b"application/cloudevents+json")], assume_structured=assume
            )


def test_wrong_options_are_refused():
    with pytest.raises(ConfigError):
        from_record(None, None, None, profile="loose")
    with pytest.raises(ConfigError):
        to_record(EVENT, mode="batch")
    with pytest.raises(ConfigError):
        to_record(EVENT, mode="structured", event_format="xml")


@pytest.mark.parametrize("shape", [list, tuple, dict, iter])
def test_headers_come_in_any_shape(shape):
    key, value, headers = to_record(EVENT)
    assert from_record(key, value, shape(headers)) == EVENT


def test_an_event_claimed_and_broken_names_its_rule():
    _, value, headers = to_record(EVENT)
    outcome = from_record(None, value, [header for header in headers if header[0] != "ce_id"])
    assert outcome == InvalidEvent("C1", "the required header ce_id is missing")
    assert str(outcome) == "C1: the required header ce_id is missing"
