"""Tests of JSON lines as input: each line gives a result or an error, and no error stops later lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.explorer.lines import decode_line, encode_line
from protocol import catalogue
from protocol.inspect.test_json_form import without_unknown_tags
from protocol.samples import sample


def decoded(**line: object) -> dict[str, object]:
    return json.loads(decode_line(json.dumps(line)))


def encoded(**line: object) -> dict[str, object]:
    return json.loads(encode_line(json.dumps(line)))


@for_each(catalogue.NAMES)
def test_every_message_there_and_back(name: str) -> None:
    for message_class, definition, version in catalogue.versions(name):
        message = without_unknown_tags(sample(message_class, definition, version, 3))
        sent = message.encode(version).hex()
        line = decoded(name=name, version=version, hex=sent, note=[1])
        assert line.keys() == {"name", "version", "hex", "json", "note"}
        assert encoded(name=name, version=version, json=line["json"])["hex"] == sent


def test_a_line_is_completed_and_keeps_the_rest() -> None:
    line = decoded(id=7, name="ResponseHeader", version=0, hex="00000007", error="of old")
    assert line == {
        "id": 7,
        "name": "ResponseHeader",
        "version": 0,
        "hex": "00000007",
        "json": {"correlationId": 7},
    }
    line = encoded(name="ResponseHeader", version=1, json={"correlationId": -1}, hex="stale")
    assert line["hex"] == "ffffffff00"


FRAMED = [
    (
        "ConsumerProtocolAssignment",
        1,
        "0001",
        {"assignedPartitions": [], "userData": None},
        "00000000ffffffff",
    ),
    ("GroupMetadataValue", 0, "0000", None, None),
    ("OffsetCommitKey", 0, "0001", {"group": "g", "topic": "t", "partition": 5}, "0001670001740000" + "0005"),
    ("GroupMetadataKey", 0, "0002", {"group": "g"}, "000167"),
    ("TransactionLogKey", 0, "0000", {"transactionalId": "x"}, "000178"),
    ("ShareUpdateKey", 0, "0001", None, None),
    ("EndTxnMarker", 0, "0000", {"coordinatorEpoch": 3}, "00000003"),
    ("DefaultPrincipalData", 0, "0000", None, None),
    ("TopicRecord", 0, "010200", {"name": "t", "topicId": "A" * 22}, "0274" + "00" * 17),
    ("PartitionRecord", 1, "010301", None, None),
]


@for_each(FRAMED)
def test_what_stands_in_front(name: str, version: int, front: str, form: object, body: str | None) -> None:
    if form is None:
        message_class, definition = catalogue.message(name)
        message = without_unknown_tags(sample(message_class, definition, version, 1))
        body = message.encode(version).hex()
        form = decoded(name=name, version=version, hex=body)["json"]
    assert body is not None
    assert encoded(name=name, version=version, json=form)["hex"] == body
    assert encoded(name=name, version=version, json=form, framed=False)["hex"] == body
    assert encoded(name=name, version=version, json=form, framed=True)["hex"] == front + body
    assert decoded(name=name, version=version, hex=front + body, framed=True)["json"] == form


def test_the_front_and_the_line_must_agree() -> None:
    framed = encoded(name="ConsumerProtocolAssignment", version=1, framed=True, json=FRAMED[0][3])
    assert decoded(name="ConsumerProtocolAssignment", framed=True, hex=framed["hex"])["json"] == FRAMED[0][3]
    wrong = decoded(name="ConsumerProtocolAssignment", framed=True, version=2, hex=framed["hex"])
    assert wrong["error"] == "the line says version 2, the bytes begin with version 1"
    for name in ("MetadataRequest", "RequestHeader", "LeaderChangeMessage"):
        assert "no version in front" in str(encoded(name=name, version=0, framed=True, json={})["error"])
    assert "too short" in str(decoded(name="GroupMetadataValue", framed=True, version=0, hex="00")["error"])
    assert "too short" in str(decoded(name="TopicRecord", framed=True, version=0, hex="01")["error"])
    assert "key" in str(decoded(name="TopicRecord", framed=True, version=0, hex="010300")["error"])
    assert "frame version" in str(decoded(name="TopicRecord", framed=True, version=0, hex="000200")["error"])
    assert "key of GroupMetadataKey is 2" in str(
        decoded(name="GroupMetadataKey", framed=True, version=0, hex="0001000167")["error"]
    )


@for_each(
    [
        (b"", "no JSON"),
        (b"\n", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff\xfe", "no UTF-8"),
        (b"[]", "a line is an object"),
        (b"3", "a line is an object"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"name": NaN}', "NaN is no JSON"),
        (b"{}", "the line has no 'name'"),
        (b'{"name": "FetchRespons", "version": 1}', "did you mean FetchResponse?"),
        (b'{"name": ["x"], "version": 1}', "there is no message called"),
        (b'{"name": "../api", "version": 1}', "there is no message called"),
        (b'{"name": "ResponseHeader"}', "the line has no "),
        (b'{"name": "ResponseHeader", "hex": "00000001", "json": {}}', "the line has no 'version'"),
        (
            b'{"name": "ResponseHeader", "version": "0", "hex": "00000001", "json": {}}',
            "version must be a whole number",
        ),
        (
            b'{"name": "ResponseHeader", "version": 2, "hex": "00000001", "json": {}}',
            "has versions 0 to 1, not 2",
        ),
        (
            b'{"name": "ResponseHeader", "version": -1, "hex": "00000001", "json": {}}',
            "has versions 0 to 1, not -1",
        ),
        (b'{"name": "ResponseHeader", "version": 0, "framed": 1, "hex": "00", "json": {}}', "framed must be"),
    ]
)
def test_whatever_is_odd_gives_an_error_line(line: bytes, complaint: str) -> None:
    for complete in (decode_line, encode_line):
        answer = complete(line)
        assert "\n" not in answer
        assert complaint in json.loads(answer)["error"]


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        ("0000000", "no hexadecimal"),
        ("zz", "no hexadecimal"),
        (7, "hex must be a string"),
        (None, "hex must be a string"),
        ("000000", "ResponseHeader v0"),
        ("00000001ff", "1 bytes are left over after byte 4"),
    ],
)
def test_odd_hex(sent: object, complaint: str) -> None:
    answer = decoded(name="ResponseHeader", version=0, hex=sent, id=3)
    assert complaint in str(answer.pop("error"))
    assert answer == {"name": "ResponseHeader", "version": 0, "hex": sent, "id": 3}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(catalogue.NAMES), JSON, JSON, st.booleans() | JSON, st.binary(max_size=40))
def test_nothing_stops_the_rest(
    name: str, version: object, form: object, framed: object, data: bytes
) -> None:
    lowest = catalogue.message(name)[0].VERSIONS[0]
    for number in (version, lowest):
        line = {"name": name, "version": number, "json": form, "hex": data.hex(), "framed": framed}
        for complete in (decode_line, encode_line):
            for text in (json.dumps(line), data, json.dumps(form)):
                assert isinstance(json.loads(complete(text)), dict)


def test_a_number_that_json_cannot_write_back() -> None:
    assert "error" in json.loads(
        decode_line(b'{"name":"ResponseHeader","version":0,"hex":"00000001","x":1e999}')
    )


def test_lone_surrogates_are_an_error_not_a_crash() -> None:
    line = b'{"name":"FindCoordinatorRequest","version":0,"json":{"key":"\\ud800"},"note":"\\udfff"}'
    answer = json.loads(encode_line(line))
    assert "no UTF-8" in answer["error"]
    assert answer["note"] == "\udfff"
