"""Tests of CloudEvents in Avro and Protobuf, of batches, and of the official SDK's events.

Readers and writers that share no code with Penstock check the encodings.
"""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import pytest

from cloudevents_cases import BATCHES, SAMPLE_TYPES, SAMPLES, batch_of, conformance, random_parts
from for_each import for_each
from penstock.cloudevents import (
    URI,
    Event,
    InvalidEvent,
    InvalidEventError,
    Timestamp,
    URIReference,
    decode_events,
    encode_events,
    from_message,
    from_record,
    from_sdk,
    read_events,
    to_record,
    to_sdk,
    write_events,
)
from penstock.cloudevents.formats import avro_format, json_format, protobuf_format
from penstock.common.protobuf import varint_bytes
from penstock.errors import EncodeError

DATA = Path(__file__).parents[1] / "data"
SCHEMA = json.loads((DATA / "formats" / "cloudevents.avsc").read_text(encoding="utf-8"))
JSON_SCHEMA = json.loads((DATA / "formats" / "cloudevents.json").read_text(encoding="utf-8"))
FULL = Event(
    id="1",
    source="/s",
    type="t",
    subject="ä",
    time="2018-04-05T03:56:24.123456789+02:00",
    datacontenttype="application/json",
    dataschema="https://example.com/s",
    extensions={
        "flag": True,
        "number": -(2**31),
        "blob": b"\x00\xff",
        "text": "x",
        "link": URI("https://example.com"),
        "ref": URIReference("/x"),
        "when": Timestamp("1969-12-31T23:59:59.5Z"),
    },
    data=b'{"a": 1.10}',
)
EVENTS = [
    *SAMPLES.values(),
    FULL,
    FULL.replace(data=b""),
    FULL.replace(datacontenttype="text/plain", data=b"\xff"),
]


class AvroReader:
    """A reader of any Avro datum, written after the Avro specification to check Penstock's encoder."""

    def __init__(self, data):
        self.data, self.at, self.names = data, 0, {}

    def long(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)

    def take(self, size):
        self.at += size
        assert self.at <= len(self.data)
        return self.data[self.at - size : self.at]

    def items(self):
        while count := self.long():
            if count < 0:
                count, _ = -count, self.long()
            yield from range(count)

    def read(self, schema):
        if isinstance(schema, list):
            return self.read(schema[self.long()])
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind == "record":
            self.names[schema["name"]] = schema
            return {field["name"]: self.read(field["type"]) for field in schema["fields"]}
        if kind == "map":
            return {self.take(self.long()).decode(): self.read(schema["values"]) for _ in self.items()}
        if kind == "array":
            return [self.read(schema["items"]) for _ in self.items()]
        if kind in self.names:
            return self.read(self.names[kind])
        simple = {
            "null": lambda: None,
            "boolean": lambda: self.take(1) == b"\x01",
            "int": self.long,
            "double": lambda: struct.unpack("<d", self.take(8))[0],
            "bytes": lambda: self.take(self.long()),
            "string": lambda: self.take(self.long()).decode(),
        }
        return simple[kind]()


@pytest.mark.parametrize("event", EVENTS)
def test_avro_is_what_the_schema_says(event):
    reader = AvroReader(avro_format.write_event(event))
    datum = reader.read(SCHEMA)
    assert reader.at == len(reader.data)
    assert datum == {"attribute": event.attributes(), "data": event.data}


@for_each(
    [
        (name, event, text_data)
        for text_data in [False, True]
        for event in EVENTS
        for name in ["json", "avro", "protobuf"]
    ]
)
def test_every_format_gives_the_event_back(name, event, text_data):
    parts = to_record(event, mode="structured", event_format=name, text_data=text_data, key=b"k")
    types = {"blob": "BINARY", "link": "URI", "ref": "URI_REFERENCE", "when": "TIMESTAMP"}
    declared = SAMPLE_TYPES | {
        key: getattr(type(next(iter(SAMPLE_TYPES.values()))), v) for key, v in types.items()
    }
    back = from_record(*parts, extension_types=declared)
    if name == "protobuf" and event.time_text is not None:
        assert back.time_text.endswith("Z")
    assert back == event


@pytest.mark.parametrize("name", ["avro", "protobuf"])
def test_an_implied_type_is_written_out_in_another_format(name):
    event = from_record(
        None,
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":1}',
        [("content-type", b"application/cloudevents+json")],
    )
    back = from_record(*to_record(event, mode="structured", event_format=name))
    assert back.datacontenttype == "application/json"


@pytest.mark.parametrize("name", ["avro", "protobuf"])
def test_batches_of_records_take_other_formats(name):
    records = [to_record(event, mode="structured", event_format=name) for event in EVENTS]
    decoded = decode_events(batch_of(records), extension_types=SAMPLE_TYPES)
    assert decoded.column("error").null_count == len(EVENTS)
    assert decoded.column("data").to_pylist() == [event.data for event in EVENTS]
    encoded = encode_events(decoded, mode="structured", event_format=name, extension_types=SAMPLE_TYPES)
    again = decode_events(encoded, extension_types=SAMPLE_TYPES)
    assert again.select(["id", "time", "extensions", "data"]) == decoded.select(
        ["id", "time", "extensions", "data"]
    )


@pytest.mark.parametrize("module", [avro_format, protobuf_format, json_format])
def test_garbage_is_refused_and_nothing_else(module):
    rng = random.Random(3)
    whole = [module.write_event(event) for event in EVENTS]
    for data in whole:
        for cut in range(len(data)):
            with pytest.raises(InvalidEventError):
                raise_or_read(module, data[:cut])
    for _ in range(3000):
        data = bytearray(rng.choice(whole))
        for _ in range(rng.choice((1, 2, 5))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        raise_or_read(module, bytes(data), must_fail=False)


def raise_or_read(module, data, must_fail=True):
    try:
        event = module.read_event(data)
    except InvalidEventError:
        if must_fail:
            raise
        return
    if must_fail and module is protobuf_format:
        # A message cut between two fields is a message; what is missing is data or an attribute.
        assert event is not None
        raise InvalidEventError("R1", "cut between fields")


def avro(data, attributes=()):
    """Return an Avro datum of a CloudEvent with the required attributes and the encoded data."""
    out = b""
    pairs = [("specversion", "1.0"), ("id", "1"), ("source", "/s"), ("type", "t"), *attributes]
    out += bytes([len(pairs) * 2])
    for name, text in pairs:
        out += bytes([len(name) * 2]) + name.encode() + b"\x06" + bytes([len(text) * 2]) + text.encode()
    return out + b"\x00" + data


@for_each(
    [
        (b"\x02", None, None),
        (b"\x04\x01", None, b"true"),
        (b"\x0a" + struct.pack("<d", 5), None, b"5"),
        (b"\x0a" + struct.pack("<d", 0.5), None, b"0.5"),
        (b"\x0c\x04hi", None, b"hi"),
        (b"\x0c\x04hi", "application/json", b'"hi"'),
        (b"\x0c\x04\xc3\xa4", "text/plain; charset=iso-8859-1", b"\xe4"),
        (b"\x06\x02\x02a\x00\x00", None, b'{"a":null}'),
        (
            b"\x06\x02\x02a\x04\x02\x02b\x06\x02\x02\x02c\x02\x01\x00\x00\x00\x00"[:0] + b"\x06\x00",
            None,
            b"{}",
        ),
        (b"\x06\x02\x02a\x04\x02\x02b\x02\x01\x00\x00", None, b'{"a":{"b":true}}'),
        (b"\x08\x02\x02\x02b\x08" + struct.pack("<d", 2) + b"\x00\x00", None, b'[{"b":2}]'),
        (b"\x06\x01\x06\x02a\x00\x00", None, b'{"a":null}'),
    ]
)
def test_avro_data_of_every_branch(data, content_type, expected):
    attributes = [] if content_type is None else [("datacontenttype", content_type)]
    assert avro_format.read_event(avro(data, attributes)).data == expected


@for_each(
    [
        b"\x0e",
        b"\x01",
        b"\x04\x02",
        b"\x0a" + struct.pack("<d", float("nan")),
        b"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x06" + b"\xfe\xff\xff\xff\x0f",
        b"\x0c\x02\xff",
        b"\x02\x00",
        b"\x00" + b"\xff" * 11,
        b"\x06\x02\x02a\x04" + b"\x02\x02a\x04" * 200,
    ]
)
def test_avro_that_is_none(data):
    with pytest.raises(InvalidEventError, match=r"^A[24]: "):
        avro_format.read_event(avro(data))


def test_avro_attributes_of_the_wrong_type():
    with pytest.raises(InvalidEventError, match="C2"):
        avro_format.read_event(avro(b"\x02", [("id", "2")]))
    number = b"\x02\x04id\x04\x02\x00\x02"
    with pytest.raises(InvalidEventError, match="A3"):
        avro_format.read_event(number)
    with pytest.raises(InvalidEventError, match="C3"):
        avro_format.read_event(avro(b"\x02", [("A", "2")]))


def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def message_of(event):
    """Encode a Protobuf event that the conformance project's files describe as JSON."""
    names = {"id": 1, "source": 2, "specVersion": 3, "type": 4}
    out = b"".join(field(names[name], event[name].encode()) for name in names if name in event)
    for name, value in event.get("attributes", {}).items():
        written = b"".join(attribute(kind, content) for kind, content in value.items())
        out += field(5, field(1, name.encode()) + field(2, written))
    if "text_data" in event:
        out += field(7, event["text_data"].encode())
    return out


def attribute(kind, content):
    if kind in ("ceBoolean", "ceInteger"):
        return bytes([(1 if kind == "ceBoolean" else 2) << 3, int(content)])
    if kind == "ceBytes":
        return field(4, b"Ma")
    if kind == "ceTimestamp":
        seconds = {"2018-04-05T17:31:00Z": 1522949460, "2023-03-31T15:12:00Z": 1680275520}[content]
        return field(7, b"\x08" + varint_bytes(seconds))
    return field({"ceString": 3, "ceUri": 5, "ceUriRef": 6}[kind], content.encode())


@pytest.mark.parametrize("test", conformance("protobuf/valid-events.json"))
def test_protobuf_events_of_the_conformance_project(test):
    event = protobuf_format.read_event(message_of(test["validSingle"]))
    assert event == SAMPLES[test["sampleId"]]


@pytest.mark.parametrize("test", conformance("protobuf/invalid-events.json"))
def test_protobuf_that_is_no_event(test):
    record = (
        None,
        message_of(test["invalidSingle"]),
        [("content-type", b"application/cloudevents+protobuf")],
    )
    assert isinstance(from_record(*record), InvalidEvent)


@pytest.mark.parametrize("test", conformance("protobuf/valid-batches.json"))
def test_protobuf_batches(test):
    body = b"".join(field_of(message_of(event)) for event in test["validBatch"]["events"])
    media_type = "application/cloudevents-batch+protobuf"
    events = read_events(body, media_type)
    assert events == [SAMPLES[name] for name in BATCHES[test["sampleId"]]]
    assert read_events(write_events(events, media_type), media_type) == events


def field_of(message):
    return b"\x0a" + varint_bytes(len(message)) + message


@pytest.mark.parametrize("test", conformance("protobuf/invalid-batches.json"))
def test_protobuf_that_is_no_batch(test):
    body = b"".join(field_of(message_of(event)) for event in test["invalidBatch"]["events"])
    with pytest.raises(InvalidEventError):
        read_events(body, "application/cloudevents-batch+protobuf")


def test_protobuf_messages_as_data():
    event = Event(
        id="1",
        source="/s",
        type="t",
        datacontenttype="application/protobuf",
        dataschema="https://example.com/my.Message",
        data=b"\x08\x01",
    )
    written = protobuf_format.write_event(event)
    assert written.endswith(field(8, field(1, b"https://example.com/my.Message") + field(2, b"\x08\x01")))
    assert protobuf_format.read_event(written) == event
    bare = message_of({"id": "1", "source": "/s", "specVersion": "1.0", "type": "t"})
    read = protobuf_format.read_event(bare + field(8, field(1, b"type.googleapis.com/m") + field(2, b"x")))
    assert (read.datacontenttype, read.dataschema, read.data) == ("application/protobuf", None, b"x")


def test_protobuf_oddities():
    bare = message_of({"id": "1", "source": "/s", "specVersion": "1.0", "type": "t"})
    later = bare + b"\x50\x01" + b"\x59" + bytes(8) + b"\x5d" + bytes(4) + field(12, b"x")
    assert protobuf_format.read_event(later).data is None, "unknown fields are passed over"
    for broken in (
        b"\x0a\x05abc",
        b"\x08\x01",
        b"\x03",
        b"\x0a",
        b"\xff" * 11,
        bare + field(5, field(1, b"id") + field(2, field(3, b"x"))),
        bare + field(5, field(1, b"n") + field(2, b"\x10\x80\x80\x80\x80\x10")),
        bare + field(5, field(1, b"n") + field(2, field(1, b"x"))),
        bare + field(5, field(1, b"n") + field(2, field(7, field(1, b"x")))),
        bare + field(5, field(1, b"n") + field(2, field(7, b"\x10\xff\xff\xff\xff\x7f"))),
        bare + field(7, b"\xff"),
    ):
        with pytest.raises(InvalidEventError):
            protobuf_format.read_event(broken)
    with pytest.raises(EncodeError, match="R5"):
        protobuf_format.write_event(SAMPLES["minimal"].replace(time="0000-01-01T00:00:00Z"))


def check_schema(schema, value):
    """Raise AssertionError if a value does not conform to the published JSON Schema of CloudEvents.

    The function supports only the keywords that this schema uses.
    """
    if "$ref" in schema:
        schema = JSON_SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
    kinds = {"string": str, "object": dict, "number": (int, float), "array": list, "boolean": bool}
    wanted = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    assert (value is None and "null" in wanted) or any(
        isinstance(value, kinds[kind]) for kind in wanted if kind != "null"
    )
    if isinstance(value, str):
        assert len(value) >= schema.get("minLength", 0)
    if "required" in schema:
        assert value.keys() >= set(schema["required"])
    if isinstance(value, dict) and "properties" in schema:
        for name, member in value.items():
            if name in schema["properties"]:
                check_schema(schema["properties"][name], member)


def test_what_is_written_fits_the_json_schema():
    rng = random.Random(5)
    events = EVENTS + [
        event for _ in range(3000) if isinstance(event := from_record(*random_parts(rng)), Event)
    ]
    assert len(events) > 500
    for event in events:
        for text_data in (False, True):
            check_schema(JSON_SCHEMA, json.loads(json_format.write_event(event, text_data=text_data)))


def test_bodies_of_one_event_and_of_other_types():
    for media_type in (
        json_format.MEDIA_TYPE,
        "application/cloudevents+avro",
        "application/cloudevents+protobuf",
    ):
        assert read_events(write_events([FULL], media_type), media_type.upper())[0].data == FULL.data
        with pytest.raises(EncodeError, match="one event"):
            write_events([FULL, FULL], media_type)
    with pytest.raises(EncodeError, match="no event format"):
        write_events([FULL], "text/plain")
    with pytest.raises(InvalidEventError, match="K15"):
        read_events(b"", "application/cloudevents-batch+avro")
    for body in (b"{}", b"[{]", b"[", b"[]x", b'["x"]', b"[{},]", b"\xff", b"", b"[" * 100_000):
        with pytest.raises(InvalidEventError):
            read_events(body)


class Message:
    """A stand-in for a message of confluent-kafka."""

    def __init__(self, parts):
        self._parts = parts

    def key(self):
        return self._parts[0]

    def value(self):
        return self._parts[1]

    def headers(self):
        return self._parts[2]


def test_messages_of_every_client():
    from types import SimpleNamespace

    key, value, headers = to_record(FULL, key=b"k")
    attributes = SimpleNamespace(key=key, value=value, headers=tuple(headers))
    assert from_message(Message((key, value, headers))).data == FULL.data
    assert from_message(attributes).data == FULL.data


class TestSdk:
    """Tests of conversion to and from the events of the official CloudEvents SDK."""

    sdk = pytest.importorskip("cloudevents.core.v1.event")

    @pytest.mark.parametrize("event", EVENTS)
    def test_there_and_back(self, event):
        back = from_sdk(to_sdk(event))
        assert back.data == event.data
        assert back.attributes().keys() == event.attributes().keys()
        core = event.replace(extensions={}, time=event.time)
        assert back.replace(extensions={}) == core

    def test_nothing_is_invented(self):
        assert "time" not in to_sdk(SAMPLES["minimal"]).get_attributes()

    def test_its_python_values(self):
        attributes = {"id": "1", "source": "/s", "type": "t", "time": None}
        del attributes["time"]
        event = from_sdk(self.sdk.CloudEvent(dict(attributes), {"a": 1}))
        assert (event.data, event.datacontenttype, event.content_type) == (
            b'{"a":1}',
            None,
            "application/json",
        )
        event = from_sdk(self.sdk.CloudEvent({**attributes, "datacontenttype": "application/json"}, "x"))
        assert event.data == b'"x"'
        event = from_sdk(self.sdk.CloudEvent({**attributes, "datacontenttype": "text/plain"}, "x"))
        assert event.data == b"x"
        with pytest.raises(InvalidEventError, match="J10"):
            from_sdk(self.sdk.CloudEvent({**attributes, "datacontenttype": "text/plain"}, {}))
        assert to_sdk(FULL, parse_data=True).get_data() == {"a": 1.1}
        with pytest.raises(InvalidEventError, match="T7"):
            to_sdk(SAMPLES["minimal"].replace(time="0000-01-01T00:00:00Z"))
