"""Tests with Penstock's published vectors and the CloudEvents project's, as single events and as batches."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from cloudevents_cases import (
    BATCHES,
    CONFORMANCE,
    READING,
    SAMPLE_TYPES,
    SAMPLES,
    VECTORS,
    WRITING,
    as_bytes,
    batch_of,
    case_name,
    conformance,
    described,
    expected,
    parts_of,
)
from for_each import for_each
from penstock.cloudevents import (
    Event,
    InvalidEvent,
    InvalidEventError,
    decode_events,
    encode_events,
    from_record,
    partitionkey_mapper,
    read_events,
    to_record,
    write_events,
)
from penstock.cloudevents.columnar import EVENT_SCHEMA
from penstock.cloudevents.types import canonical_text
from penstock.errors import EncodeError

HERE = Path(__file__).parent
JAVA = HERE / "data" / "sdk-java-json"


def test_there_are_enough_and_each_names_a_rule_that_exists():
    assert len(VECTORS["cases"]) >= 150
    rules = {rule for case in VECTORS["cases"] for rule in case["rules"]}
    checklist = (HERE.parents[1] / "docs" / "reference" / "cloudevents.md").read_text(encoding="utf-8")
    assert all(f"| {rule} |" in checklist for rule in rules)


@for_each(READING, case_name)
def test_reading_one_record(case):
    options = {"profile": case.get("profile", "strict"), **case.get("options", {})}
    assert described(from_record(*parts_of(case["read"]), **options)) == expected(case)


@for_each(READING, case_name)
def test_reading_it_among_others_in_a_batch(case):
    options = {"profile": case.get("profile", "strict"), **case.get("options", {})}
    good = (None, b"{}", [(f"ce_{name}", b"1.0") for name in ("id", "source", "specversion", "type")])
    batch = batch_of([good, parts_of(case["read"]), good])
    out = decode_events(batch, columns=EVENT_SCHEMA.names, **options)
    assert out.column("outcome").to_pylist()[::2] == ["event", "event"]
    row = out.slice(1, 1).to_pylist()[0]
    if row["outcome"] != "event":
        got = {"outcome": row["outcome"], "rule": row["rule"]}
        assert got.items() >= expected(case).items()
        return
    names = ("id", "source", "specversion", "type", "subject", "datacontenttype", "dataschema")
    attributes = {name: row[name] for name in names if row[name] is not None} | dict(row["extensions"])
    single = from_record(*parts_of(case["read"]), **options)
    if single.time_text is not None:
        attributes["time"] = single.time_text
        assert row["time"] == single.time
        assert row["time_text"] in (None, single.time_text)
    assert {"outcome": "event", "attributes": attributes, "data": row["data"]} == expected(case)


def event_of(case):
    attributes = dict(case["write"]["attributes"])
    core = {"id", "source", "specversion", "type", "subject", "time", "datacontenttype", "dataschema"}
    extensions = {name: attributes.pop(name) for name in list(attributes) if name not in core}
    return Event(**attributes, extensions=extensions, data=as_bytes(case["write"]["data"]))


def writing_options(case):
    options = dict(case.get("options", {}))
    if options.get("key_mapper") == "partitionkey":
        options["key_mapper"] = partitionkey_mapper
    return options


@for_each(WRITING, case_name)
def test_writing_one_event(case):
    event, options = event_of(case), writing_options(case)
    before = event.attributes()
    if "error" in case["expect"]:
        with pytest.raises((EncodeError, InvalidEventError), match=case["expect"]["error"]):
            to_record(event, **options)
        return
    assert to_record(event, **options) == parts_of(case["expect"])
    assert event.attributes() == before


@for_each([case for case in WRITING if "magic" not in case.get("options", {})], case_name)
def test_writing_it_in_a_batch(case):
    event, options = event_of(case), writing_options(case)
    extensions = [(name, canonical_text(value)) for name, value in event.extensions.items()]
    columns = {
        "key": pa.array([options.pop("key", None)], pa.string()),
        "id": [event.id],
        "source": [event.source],
        "type": [event.type],
        "subject": pa.array([event.subject], pa.string()),
        "time": pa.array([event.time_text], pa.string()),
        "datacontenttype": pa.array([event.datacontenttype], pa.string()),
        "dataschema": pa.array([event.dataschema], pa.string()),
        "extensions": pa.array([extensions], pa.map_(pa.string(), pa.string())),
        "data": pa.array([event.data], pa.binary()),
    }
    if "error" in case["expect"]:
        with pytest.raises(EncodeError, match=case["expect"]["error"]):
            encode_events(pa.RecordBatch.from_pydict(columns), **options)
        return
    row = encode_events(pa.RecordBatch.from_pydict(columns), **options).to_pylist()[0]
    headers = [(header["key"], header["value"]) for header in row["headers"]]
    assert (row["key"], row["value"], headers) == parts_of(case["expect"])


def both_ways(value):
    """Decode a structured record alone and in a batch; return the event or the error.

    Raise AssertionError if the two results differ.
    """
    headers = [("content-type", b"application/cloudevents+json")]
    outcome = from_record(None, value, headers, extension_types=SAMPLE_TYPES)
    row = decode_events(batch_of([(None, value, headers)]), extension_types=SAMPLE_TYPES).to_pylist()[0]
    if isinstance(outcome, Event):
        assert row["error"] is None
        for mode in ("binary", "structured"):
            assert from_record(*to_record(outcome, mode=mode), extension_types=SAMPLE_TYPES) == outcome
    else:
        assert row["error"] == str(outcome)
    return outcome


@pytest.mark.parametrize("test", conformance("json/valid-events.json"))
def test_json_events_of_the_conformance_project(test):
    event = both_ways(json.dumps(test["event"]).encode())
    assert event == SAMPLES[test["sampleId"]]


@pytest.mark.parametrize("test", conformance("json/invalid-events.json"))
def test_json_that_is_no_event(test):
    assert isinstance(both_ways(json.dumps(test["event"]).encode()), InvalidEvent)
    members = test["event"]
    if all(isinstance(value, str) for value in members.values()) and "data" not in members:
        headers = [
            ("content-type" if name == "datacontenttype" else f"ce_{name}", value.encode())
            for name, value in members.items()
        ]
        assert isinstance(from_record(None, None, headers), InvalidEvent)


@pytest.mark.parametrize("test", conformance("json/valid-batches.json"))
def test_json_batches(test):
    body = json.dumps(test["batch"]).encode()
    events = read_events(body, extension_types=SAMPLE_TYPES)
    assert events == [SAMPLES[name] for name in BATCHES[test["sampleId"]]]
    assert read_events(write_events(events), extension_types=SAMPLE_TYPES) == events


@pytest.mark.parametrize("test", conformance("json/invalid-batches.json"))
def test_json_that_is_no_batch(test):
    with pytest.raises(ValueError, match=r"^[A-Z]\d+: "):
        read_events(json.dumps(test["batch"]).encode())


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in sorted(JAVA.glob("*.json"))])
def test_json_events_of_the_java_sdk(path):
    outcome = both_ways(path.read_bytes())
    refused = path.stem.startswith("fail_") or path.stem.endswith(("_invalid", "_upper_case"))
    assert isinstance(outcome, InvalidEvent if refused else Event)
    plain = path.with_stem(path.stem.removeprefix("base64_"))
    if plain != path:
        assert outcome == from_record(
            None, plain.read_bytes(), [("content-type", b"application/cloudevents+json")]
        )


def test_the_kafka_feature_of_the_conformance_project():
    text = (CONFORMANCE / "features" / "kafka-protocol-binding.feature").read_text(encoding="utf-8")
    binary, structured = text.split("Scenario Outline")[0], text.split("Scenario Outline")[1]
    attributes = {
        "id": "1234-1234-1234",
        "specversion": "1.0",
        "type": "com.example.someevent",
        "source": "/mycontext/subcontext",
        "time": "2018-04-05T03:56:24Z",
        "datacontenttype": "application/json",
    }
    payload = binary.split('"""')[1].strip().encode()
    cells = [[cell.strip() for cell in line.split("|")[1:3]] for line in binary.splitlines() if "|" in line]
    headers = [(name, value.encode()) for name, value in cells if name.startswith(("ce_", "content-"))]
    event = from_record(None, payload, headers)
    assert event.attributes() == attributes
    assert event.json() == {"message": "Hello World!"}
    payload = structured.split('"""')[1].strip().encode()
    types = [
        line.split("|")[1].strip() for line in structured.splitlines() if "| application/cloudevents" in line
    ]
    assert len(types) == 2
    for content_type in types:
        event = from_record(None, payload, [("content-type", content_type.encode())])
        assert event.attributes() == attributes
        assert event.json() == {"message": "Hello World!"}


def yaml_events():
    """Yield the events of the conformance project's two YAML files, of whose syntax only a part is parsed."""
    for path in sorted((CONFORMANCE / "yaml").glob("*.yaml")):
        for document in path.read_text(encoding="utf-8").split("---\n"):
            attributes, data, block = {}, "", None
            for line in document.splitlines():
                name, _, value = line.strip().partition(":")
                if line.startswith("Data: |"):
                    block = "data"
                elif block == "data":
                    data += line.strip() + "\n"
                elif line.startswith("  ") and value.strip() == "|":
                    block = name.strip()
                elif block is not None:
                    attributes[block] = line.strip()
                    block = None
                elif line.startswith("  ") and value.strip():
                    attributes[name.strip()] = value.strip().strip('"')
            attributes.pop("user-agent", None)
            yield pytest.param(attributes, data.encode(), id=f"{path.stem} {attributes['id']}")


@pytest.mark.parametrize(("attributes", "data"), list(yaml_events()))
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_yaml_events_of_the_conformance_project(attributes, data, mode):
    core = {"id", "source", "specversion", "type", "subject", "time", "datacontenttype", "dataschema"}
    extensions = {name: value for name, value in attributes.items() if name not in core}
    event = Event(**{k: v for k, v in attributes.items() if k in core}, extensions=extensions, data=data)
    assert from_record(*to_record(event, mode=mode)) == event
    assert event.data == data
