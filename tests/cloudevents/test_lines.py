"""Tests of events as JSON lines: all test vectors, generated records, and invalid lines."""

from __future__ import annotations

import base64
import json
import random

import pytest

from cloudevents_cases import READING, WRITING, as_bytes, case_name, expected, parts_of, random_parts
from for_each import for_each
from penstock.cloudevents import Event, from_record, partitionkey_mapper
from penstock.cloudevents.formats.json_format import read_event
from penstock.cloudevents.lines import LineOptions, convert_line, decode_line, encode_line
from penstock.cloudevents.types import canonical_text


def coded(value):
    return None if value is None else base64.b64encode(value).decode()


def line_of(key, value, headers, **members):
    pairs = None if headers is None else [[name, coded(content)] for name, content in headers]
    return json.dumps({"key": coded(key), "value": coded(value), "headers": pairs, **members}).encode()


def record_in(answer):
    headers = [(name, decoded(content)) for name, content in answer["headers"]]
    return decoded(answer["key"]), decoded(answer["value"]), headers


def decoded(text):
    return None if text is None else base64.b64decode(text, validate=True)


@for_each([case for case in READING if set(case.get("options", {})) == set()], case_name)
def test_every_vector_that_is_read(case):
    options = LineOptions(profile=case.get("profile", "strict"))
    line = line_of(*parts_of(case["read"]), offset=7)
    text = decode_line(line, options)
    answer = json.loads(text)
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    assert {name: answer[name] for name in ("key", "value", "headers", "offset")} == json.loads(line)
    wanted = expected(case)
    if wanted["outcome"] != "event":
        assert "event" not in answer
        assert answer["rule"] == wanted.get("rule", "K16")
        assert answer["error"]
        return
    assert answer["mode"] in ("binary", "structured")
    event = read_event(json.dumps(answer["event"]).encode(), lenient=options.profile == "lenient")
    attributes = {name: canonical_text(value) for name, value in event.attributes().items()}
    assert attributes == wanted["attributes"]
    assert event.data is None or wanted["data"] is not None
    # Parsing the line with another reader may have changed the text of JSON data, but not the data.
    if "data_base64" in answer["event"] or event.data is None:
        assert event.data == wanted["data"]
    else:
        assert json.loads(event.data) == json.loads(wanted["data"])


OPTIONS_OF_LINES = {"mode", "key", "text_data", "binary_headers", "event_format", "key_mapper"}
"""The options of the test vectors that JSON lines support.

Lines do not support message sets without headers, or headers that break rule C23 of the CloudEvents
checklist.
"""
WRITTEN_BY_LINES = [case for case in WRITING if case.get("options", {}).keys() <= OPTIONS_OF_LINES]


@for_each(WRITTEN_BY_LINES, case_name)
def test_every_vector_that_is_written(case):
    options = case.get("options", {})
    line = json.dumps(
        {
            "key": coded(options["key"].encode()) if "key" in options else None,
            "event": case["write"]["attributes"]
            | (
                {}
                if case["write"]["data"] is None
                else {"data_base64": coded(as_bytes(case["write"]["data"]))}
            ),
        }
    )

    chosen = {name: value for name, value in options.items() if name not in ("key", "key_mapper")}
    mapper = partitionkey_mapper if "key_mapper" in options else None
    answer = json.loads(encode_line(line.encode(), LineOptions(**chosen, key_mapper=mapper)))
    if "error" in case["expect"]:
        assert answer["rule"] in case["expect"]["error"]
    else:
        assert record_in(answer) == parts_of(case["expect"])


def assert_same(event, other):
    """Compare two events with their extensions as strings, since headers hold only text."""
    texts = {name: canonical_text(value) for name, value in other.extensions.items()}
    assert {name: canonical_text(value) for name, value in event.extensions.items()} == texts
    assert event.replace(extensions=None) == other.replace(extensions=None)


@pytest.mark.parametrize("profile", ["strict", "lenient"])
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_generated_records_come_back_as_the_same_events(profile, mode):
    rng = random.Random(f"{profile} {mode}")
    options = LineOptions(profile=profile, mode=mode)
    events = 0
    for _ in range(1_500):
        parts = random_parts(rng)
        outcome = from_record(*parts, profile=profile)
        text = decode_line(line_of(*parts), options)
        answer = json.loads(text)
        again = json.loads(encode_line(text.encode(), options))
        if not isinstance(outcome, Event):
            assert (answer["rule"], answer["error"]) == (outcome.rule, outcome.reason)
            assert again == answer  # it passes through
            continue
        events += 1
        if mode == "binary" and (outcome.content_type or "").lower().startswith("application/cloudevents"):
            assert again["rule"] == "K14"
            continue
        assert "error" not in again, again
        assert_same(from_record(*record_in(again), profile=profile), outcome)
        assert json.loads(convert_line(line_of(*parts), options))["value"] == again["value"]
    assert events > 300


def test_data_come_back_byte_for_byte():
    headers = [(f"ce_{name}", b"1.0") for name in ("id", "source", "specversion", "type")]
    headers.append(("content-type", b"application/json"))
    for data in (b'{"a": 1.10}', b'{"a":\n 1}', b" 1\r\n", b"null", b"\xff", b"", '"\u2028"'.encode(), None):
        answer = json.loads(
            encode_line(decode_line(line_of(b"k", data, headers), LineOptions()).encode(), LineOptions())
        )
        assert record_in(answer)[:2] == (b"k", data)


def test_other_headers_stay_behind_those_of_the_event():
    headers = [
        ("a", b"\xff"),
        *((f"ce_{n}", b"1.0") for n in ("id", "source", "specversion", "type")),
        ("b", None),
    ]
    text = decode_line(line_of(None, b"", headers, topic="t"), LineOptions())
    answer = json.loads(encode_line(text.encode(), LineOptions(mode="structured")))
    names = [name for name, _ in answer["headers"]]
    assert names == ["content-type", "a", "b"]
    assert answer["topic"] == "t"


ODD = {
    b"": "L1",
    b" ": "L1",
    b"null": "L1",
    b"[1]": "L1",
    b'{"key": 1': "L1",
    b'{"key": null} {}': "L1",
    b'{"key": null, "key": null}': "L1",
    b'{"a": NaN}': "L1",
    b"\xff": "L1",
    b"[" * 100_000: "L1",
    b'{"a":' + b"[" * 100_000: "L1",
    b'{"key": 1}': "L2",
    b'{"value": {}}': "L2",
    b'{"value": "MQ"}': "L2",
    b'{"value": "M_=="}': "L2",
    b'{"value": "M Q=="}': "L2",
    '{"value": "ä"}'.encode(): "L2",
    b'{"headers": {"ce_id": "MQ=="}}': "L3",
    b'{"headers": ["ce_id"]}': "L3",
    b'{"headers": [["ce_id"]]}': "L3",
    b'{"headers": [[null, null]]}': "L3",
    b'{"headers": [["ce_id", 1]]}': "L3",
    b'{"headers": [["ce_id", "1"]]}': "L3",
    b'{"headers": [["\\ud800", null]]}': "L3",
    b"{}": "K16",
    b'{"a": 1e999, "b": ' + b"9" * 4_000 + b"}": "K16",
}


@pytest.mark.parametrize("line", [pytest.param(line, id=repr(line[:30])) for line in ODD])
def test_a_line_that_is_no_record_is_answered_with_an_error(line):
    for read in (decode_line, convert_line):
        text = read(line, LineOptions())
        assert text.count("\n") == 1
        answer = json.loads(text)
        assert answer["rule"] == ODD[line]
        assert answer["error"]
        assert "event" not in answer


@for_each(
    [
        (b"", "L1"),
        (b"{}", "L4"),
        (b'{"event": null}', "J1"),
        (b'{"event": []}', "J1"),
        (b'{"event": {}}', "C1"),
        (b'{"event": {"specversion":"1.0","id":"1","source":"/s","type":"t","type":"t"}}', "D18"),
        (b'{"event": {"specversion":"1.0","id":"","source":"/s","type":"t"}}', "C6"),
        (b'{"event": {"specversion":"1.0","id":"1","source":"/s","type":"t"}, "key": 1}', "L2"),
        (b'{"event": {"specversion":"1.0","id":"1","source":"/s","type":"t"}, "headers": 1}', "L3"),
        (b'{"specversion":"1.0","id":"1","source":"a b","type":"t"}', "C7"),
    ]
)
def test_a_line_without_a_valid_event_is_not_encoded(line, rule):
    answer = json.loads(encode_line(line, LineOptions()))
    assert answer["rule"] in (rule, "T6")
    assert answer["error"]


def test_a_time_that_protobuf_cannot_say_is_an_error_of_its_line():
    line = b'{"event": {"specversion":"1.0","id":"1","source":"/s","type":"t","time":"0000-01-01T00:00:00Z"}}'
    answer = json.loads(encode_line(line, LineOptions(mode="structured", event_format="protobuf")))
    assert answer["rule"] == "R5"


def test_an_event_alone_on_its_line_is_encoded_too():
    line = b'\xef\xbb\xbf{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":1.10}}'
    key, value, headers = record_in(json.loads(encode_line(line, LineOptions())))
    assert (key, value, headers[-1]) == (None, b'{"a":1.10}', ("content-type", b"application/json"))


def test_a_line_can_be_decoded_again():
    headers = [(f"ce_{name}", b"1.0") for name in ("id", "source", "specversion", "type")]
    text = decode_line(line_of(None, b"x", headers), LineOptions())
    assert decode_line(text.encode(), LineOptions()) == text
