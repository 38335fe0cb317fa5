"""Valid and invalid records for tests that compare decoding single events with decoding batches."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.cloudevents import AttributeType, Event, InvalidEvent, NotAnEvent, from_record
from penstock.cloudevents.types import canonical_text

VECTORS = json.loads(
    (Path(__file__).parents[1] / "docs" / "reference" / "cloudevents-kafka-vectors.json").read_text(
        encoding="utf-8"
    )
)
READING = [case for case in VECTORS["cases"] if "read" in case]
WRITING = [case for case in VECTORS["cases"] if "write" in case]

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))

Parts = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]

NAMES = [
    "ce_id", "ce_source", "ce_specversion", "ce_type", "ce_subject", "ce_time", "ce_dataschema",
    "content-type", "ce_datacontenttype", "ce_partitionkey", "ce_sampledrate", "ce_deprecated",
    "ce_dssematerial", "ce_dataref", "ce_expirytime", "ce_deprecationmigration", "ce_note", "ce_data",
    "ce_", "ce_a_b", "CE_ID", "Ce_Note", "ce_Note", "Content-Type", "content_type", "user-agent", "c", "",
    "ce_ä", "ce_comexampleextension1",
]  # fmt: skip
TEXTS = [
    b"", b"1", b"1.0", b"0.3", b"/source", b"https://example.com/a?b#c", b"//host:80/p", b"//u:p@h/x",
    b"a b", b"1:x", b"//[::1]:8/x", b"//[::1", b"urn:a:b", b"mailto:a@b.c", b"#f", b"%41", b"%4",
    b"com.example.thing", "ä€".encode(), b"\xff", b"\xc0\x80", b"\xed\xa0\x80", "\ufdd0".encode(),
    "\U0001ffff".encode(), b"a\x7f", b"a\x00b", b"true", b"True", b"5", b"-5", b"05", b"-0",
    b"2147483647", b"2147483648", b"99999999999", b"TWE=", b"TWF=", b"TW E=", b"====",
    b"2018-04-05T03:56:24Z", b"2018-04-05T03:56:24.1Z", b"2018-04-05T03:56:24.100Z",
    b"2018-04-05T03:56:24.123456Z", b"2018-04-05T03:56:24.123456789+02:00", b"2018-04-05t03:56:24z",
    b"2018-04-05T03:56Z", b"2018-02-29T00:00:00Z", b"2016-12-31T23:59:60Z", b"0000-02-29T00:00:00Z",
    b"0001-01-01T00:00:00+01:00", b"9999-12-31T23:59:60Z", b"2018-04-05T03:56:24+25:00",
    b"application/json", b"Application/JSON; charset=utf-8", b"text/plain", b"xyz",
    b"text/xml; charset=\"utf-8\"", b"text/plain; charset=iso-8859-1", b"application/cloudevents+json",
    b"Application/CloudEvents+JSON; charset=UTF-8", b"application/cloudevents-batch+json",
    b"application/cloudevents", b"application/cloudevents+xml", b"application/cloudevents+jsonx", b"a/b;",
    b"model/gltf+json",
]  # fmt: skip
VALUES = [
    None,
    b"",
    b"{}",
    b"[1",
    b'{"a": 1.10}',
    b"null",
    b"plain",
    b"\xff",
    b' {"a":1}',
    b'"text"',
    b"\xef\xbb\xbf1",
]

MEMBER_NAMES = [
    '"id"', '"source"', '"specversion"', '"type"', '"subject"', '"time"', '"dataschema"',
    '"datacontenttype"', '"data"', '"data_base64"', '"partitionkey"', '"sampledrate"', '"deprecated"',
    '"note"', '"a.b"', '"N"', '""', '"i\\u0064"', '"expirytime"', '"sequence"',
]  # fmt: skip
MEMBER_VALUES = [
    '"1"', '"1.0"', '"/s"', '"com.example"', '""', "null", "true", "false", "0", "-0", "5", "1.0", "1e3",
    "2147483648", "123456789012345678901234567890", "{}", "[]", '{"a":[1,{"b":"c\\n"}],"d":"data"}',
    '"\\u00e4"', '"ä"', '"a\\"b"', '"text/plain"', '"application/json"', '"2018-04-05T03:56:24.5Z"',
    '"2018-04-05T03:56:24Z"', '"TWE="', '"T WE="', '"\\ud800"', '"\x7f"', "NaN", "-Infinity", "01", "1.",
    "[1,]", '{"a":1,}', '"unfinished', "tru", '"\\x"', '"a\x01"', '"text/plain; charset=iso-8859-1"',
    "[" * 70 + "]" * 70, " 1 ", '"\ufffe"', '"data"',
    '"\\ud83c\\udf0e\\n\\t\\/\\b\\f\\r"', '"\\udc00"', '"\\ud83cx"', '"TQ=="', '"TR=="', '"T\\u0051=="',
]  # fmt: skip


def valid_members() -> list[tuple[str, str]]:
    return [('"specversion"', '"1.0"'), ('"id"', '"1"'), ('"source"', '"/s"'), ('"type"', '"t"')]


def random_parts(rng: random.Random) -> Parts:
    """Return a random record, which is often a valid event."""
    if rng.random() < 0.45:
        return random_structured(rng)
    headers: list[tuple[str, bytes | None]] = []
    if rng.random() < 0.9:
        headers = [("ce_id", b"1"), ("ce_source", b"/s"), ("ce_specversion", b"1.0"), ("ce_type", b"t")]
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        header = rng.choice(NAMES), rng.choice([*TEXTS, None])
        where = [index for index, (name, _) in enumerate(headers) if name == header[0]]
        if where and rng.random() < 0.7:
            headers[where[0]] = header
        else:
            headers.insert(rng.randrange(len(headers) + 1), header)
    if headers and rng.random() < 0.1:
        headers.pop(rng.randrange(len(headers)))
    if rng.random() < 0.05:
        return rng.choice(VALUES), rng.choice(VALUES), None
    return rng.choice(VALUES), rng.choice(VALUES), headers


def random_structured(rng: random.Random) -> Parts:
    members = valid_members()
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        member = rng.choice(MEMBER_NAMES), rng.choice(MEMBER_VALUES)
        where = [index for index, (name, _) in enumerate(members) if name == member[0]]
        if where and rng.random() < 0.8:
            members[where[0]] = member
        else:
            members.insert(rng.randrange(len(members) + 1), member)
    if rng.random() < 0.1:
        members.pop(rng.randrange(len(members)))
    space = rng.choice(("", " ", "\n\t"))
    text = (
        "{"
        + space
        + f"{space},{space}".join(f"{name}{space}:{space}{value}" for name, value in members)
        + space
        + "}"
    )
    value = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.1:
        at = rng.randrange(len(value))
        value = value[:at] + rng.choice((b"", b"\xff", b"}", b'"', b" ")) + value[at + rng.randrange(2) :]
    if rng.random() < 0.05:
        value = b"\xef\xbb\xbf" + value
    content_type = rng.choice(
        (b"application/cloudevents+json", b"Application/CloudEvents+JSON; charset=UTF-8")
    )
    return None, value, [("content-type", content_type)]


def batch_of(records: list[Parts]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([key for key, _, _ in records], pa.binary()),
            pa.array([value for _, value, _ in records], pa.binary()),
            pa.array([headers for _, _, headers in records], HEADERS),
        ],
        names=["key", "value", "headers"],
    )


def row_of(outcome: Event | NotAnEvent | InvalidEvent) -> dict[str, object]:
    """Return the row of `decode_events` that corresponds to an outcome of `from_record`."""
    if not isinstance(outcome, Event):
        kind = "not an event" if isinstance(outcome, NotAnEvent) else "invalid event"
        return {"error": str(outcome), "outcome": kind, "rule": outcome.rule}
    return {
        "id": outcome.id,
        "source": outcome.source,
        "specversion": outcome.specversion,
        "type": outcome.type,
        "subject": outcome.subject,
        "time": outcome.time,
        "written": outcome.time_text,
        "datacontenttype": outcome.datacontenttype,
        "content_type": outcome.content_type,
        "dataschema": outcome.dataschema,
        "extensions": [(name, canonical_text(value)) for name, value in outcome.extensions.items()],
        "data": outcome.data,
        "outcome": "event",
    }


def outcomes(records: list[Parts], **options: object) -> Iterator[dict[str, object]]:
    for key, value, headers in records:
        yield row_of(from_record(key, value, headers, **options))


CONFORMANCE = Path(__file__).parent / "cloudevents" / "data" / "conformance"
SAMPLE_TYPES = {
    "extinteger": AttributeType.INTEGER,
    "extboolean": AttributeType.BOOLEAN,
    "extstring": AttributeType.STRING,
    "extbinary": AttributeType.BINARY,
    "exttimestamp": AttributeType.TIMESTAMP,
    "exturi": AttributeType.URI,
    "exturiref": AttributeType.URI_REFERENCE,
    "aboolean": AttributeType.BOOLEAN,
    "anumber": AttributeType.INTEGER,
    "integer": AttributeType.INTEGER,
}
MINIMAL = Event(id="minimal", source="https://cloudevents.io", type="io.cloudevents.test")
SAMPLES = {
    "minimal": MINIMAL,
    "minimalWithTime": MINIMAL.replace(id="minimalWithTime", time="2018-04-05T17:31:00Z"),
    "minimalWithRelativeSource": MINIMAL.replace(id="minimalWithRelativeSource", source="#fragment"),
    "allCore": MINIMAL.replace(
        id="allCore",
        datacontenttype="text/plain",
        dataschema="https://cloudevents.io/dataschema",
        subject="tests",
        time="2018-04-05T17:31:00Z",
    ),
    "simpleTextData": MINIMAL.replace(id="simpleTextData", datacontenttype="text/plain", data=b"Simple text"),
    "allExtensionTypes": MINIMAL.replace(
        id="allExtensionTypes",
        extension_types=SAMPLE_TYPES,
        extensions={
            "extinteger": 10,
            "extboolean": True,
            "extstring": "text",
            "extbinary": b"Ma",
            "exttimestamp": "2023-03-31T15:12:00Z",
            "exturi": "https://cloudevents.io",
            "exturiref": "//authority/path",
        },
    ),
}
BATCHES = {
    "empty": [],
    "minimal": ["minimal"],
    "minimal2": ["minimal", "minimal"],
    "minimalAndAllCore": ["minimal", "allCore"],
    "minimalAndAllExtensionTypes": ["minimal", "allExtensionTypes"],
}


def conformance(name):
    tests = json.loads((CONFORMANCE / "format" / name).read_text(encoding="utf-8"))["tests"]
    return [pytest.param(test, id=test["id"]) for test in tests]


def as_bytes(text):
    if text is None or isinstance(text, str):
        return text and text.encode() if text != "" else b""
    return base64.b64decode(text["base64"])


def parts_of(record):
    headers = [(name, as_bytes(value)) for name, value in record["headers"]]
    return as_bytes(record["key"]), as_bytes(record["value"]), headers


def case_name(case):
    """Return the name of a test vector."""
    return case["name"]


def described(outcome):
    """Return an outcome in the form in which the test vectors describe it."""
    if isinstance(outcome, NotAnEvent):
        return {"outcome": "not an event"}
    if isinstance(outcome, InvalidEvent):
        return {"outcome": "invalid event", "rule": outcome.rule}
    attributes = {name: canonical_text(value) for name, value in outcome.attributes().items()}
    return {"outcome": "event", "attributes": attributes, "data": outcome.data}


def expected(case):
    if case["expect"]["outcome"] != "event":
        return case["expect"]
    return case["expect"] | {"data": as_bytes(case["expect"]["data"])}
