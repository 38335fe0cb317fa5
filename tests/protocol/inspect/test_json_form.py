"""Tests of converting messages to and from Kafka's own JSON form; errors name the path of the field."""

from __future__ import annotations

import json
import math

import pytest

from for_each import for_each
from penstock.errors import DecodeError, EncodeError, UnsupportedVersionError
from penstock.protocol import load_message
from penstock.protocol.codec import codec_for
from penstock.protocol.inspect.json_form import from_json, to_json
from penstock.protocol.messages import (
    AlterClientQuotasRequest,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    JoinGroupRequest,
    MetadataRequest,
    MetadataResponse,
    RegisterBrokerRecord,
)
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, PartitionData
from penstock.protocol.messages.join_group_request import JoinGroupRequestProtocol
from penstock.protocol.messages.metadata_request import MetadataRequestTopic
from protocol import catalogue
from protocol.samples import sample


def without_unknown_tags(value: object) -> object:
    """Remove all unknown tagged fields from a message, because the JSON form cannot hold them."""
    if isinstance(value, list):
        for each in value:
            without_unknown_tags(each)
    elif hasattr(value, "unknown_tags"):
        value.unknown_tags = None
        for name in value.__slots__:
            without_unknown_tags(getattr(value, name))
    return value


@for_each(catalogue.NAMES)
def test_every_message_and_version_both_ways(name: str) -> None:
    for message_class, definition, version in catalogue.versions(name):
        for message in (
            message_class(),
            *(sample(message_class, definition, version, seed) for seed in (1, 2)),
        ):
            without_unknown_tags(message)
            if not can_be_written(message, version):
                continue
            form = to_json(message, version)
            again = from_json(message_class, json.loads(json.dumps(form)), version)
            assert again.encode(version) == message.encode(version)
            assert to_json(again, version) == form


def can_be_written(message, version: int) -> bool:
    """Return True if a message can be encoded.

    Some structs have fields without a default that may not be null.
    """
    try:
        message.encode(version)
    except EncodeError:
        return False
    return True


@for_each(catalogue.NAMES)
def test_a_field_is_there_exactly_when_its_version_has_it(name: str) -> None:
    for message_class, definition, version in catalogue.versions(name):
        message = message_class()
        if not can_be_written(message, version):
            continue
        here = {
            field.name[:1].lower() + field.name[1:]
            for field in definition.root.fields
            if version in field.versions and version not in field.tagged
        }
        assert set(to_json(message, version)) == here


def test_kafkas_spelling() -> None:
    topic = MetadataRequestTopic(topic_id=bytes(range(16)), name=None)
    assert to_json(MetadataRequest(topics=[topic]), 12) == {
        "topics": [{"topicId": "AAECAwQFBgcICQoLDA0ODw", "name": None}],
        "allowAutoTopicCreation": True,
        "includeTopicAuthorizedOperations": False,
    }
    assert to_json(MetadataRequest(topics=None), 1) == {"topics": None}
    join = JoinGroupRequest(protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\xfb\xff")])
    assert to_json(join, 0)["protocols"] == [{"name": "range", "metadata": "+/8="}]


def test_records_in_one_piece_or_many() -> None:
    def fetched(records: object) -> FetchResponse:
        return FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=records)])])

    for records in (b"abc", memoryview(b"abc"), [b"a", b"bc"]):
        assert to_json(fetched(records), 12)["responses"][0]["partitions"][0]["records"] == "YWJj"
    assert to_json(fetched(None), 12)["responses"][0]["partitions"][0]["records"] is None


def test_tagged_fields_only_when_they_say_something() -> None:
    assert "clusterId" not in to_json(FetchRequest(), 12)
    assert to_json(FetchRequest(cluster_id="c"), 12)["clusterId"] == "c"
    form = to_json(FetchRequest(), 12)
    assert from_json(FetchRequest, {**form, "clusterId": None}, 12) == from_json(FetchRequest, form, 12)
    # Not tagged and left out is an error, tagged and left out is the default.
    with pytest.raises(DecodeError, match=r"FetchRequest\.maxBytes: the field is missing"):
        from_json(FetchRequest, {name: value for name, value in form.items() if name != "maxBytes"}, 12)


def test_numbers_keep_every_digit(tmp_path) -> None:
    path = tmp_path / "Wide.json"
    fields = [
        {"name": name.capitalize(), "type": name, "versions": "0+"}
        for name in ("int8", "int16", "uint16", "int32", "uint32", "int64", "float64")
    ]
    path.write_text(
        json.dumps(
            {"name": "Wide", "type": "data", "validVersions": "0", "flexibleVersions": "0+", "fields": fields}
        )
    )
    wide = load_message(path)
    highest = {
        "int8": 127, "int16": 32767, "uint16": 65535, "int32": 2**31 - 1, "uint32": 2**32 - 1,
        "int64": 2**63 - 1, "float64": 1e300,
    }  # fmt: skip
    message = from_json(wide, highest, 0)
    assert to_json(wide.decode(message.encode(0), 0), 0) == highest
    for name in highest.keys() - {"float64"}:
        with pytest.raises(DecodeError, match=rf"Wide\.{name}: {highest[name] + 1} is out of range"):
            from_json(wide, {**highest, name: highest[name] + 1}, 0)
        for wrong in (True, 1.0, "1", None, [], 10**5000):
            with pytest.raises(DecodeError, match=rf"^Wide\.{name}: "):
                from_json(wide, {**highest, name: wrong}, 0)
    for text, value in {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.items():
        read = from_json(wide, {**highest, "float64": text}, 0)
        assert read.float64 == value or math.isnan(value)
        assert to_json(read, 0)["float64"] == text
    assert from_json(wide, {**highest, "float64": 1}, 0).float64 == 1.0
    for wrong in ("1", None, True, 10**400):
        with pytest.raises(DecodeError, match=r"^Wide\.float64: "):
            from_json(wide, {**highest, "float64": wrong}, 0)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ([], "MetadataResponse: an object was expected, not a list"),
        ({"brokers": None}, "MetadataResponse.brokers: null is not allowed in this version"),
        ({"brokers": {}}, "MetadataResponse.brokers: a list was expected, not an object"),
        ({"brokers": [1]}, "MetadataResponse.brokers[0]: an object was expected, not a number"),
        (
            {"brokers": [{"nodeId": 1}]},
            "MetadataResponse.brokers[0].host: the field is missing, and version 12 needs it",
        ),
        ({"clusterId": 3}, "MetadataResponse.clusterId: a string was expected, not a number"),
        ({"color": 3}, "MetadataResponse.color: there is no such field in any version"),
        (
            {"throttleTimeMs": 2**31},
            "MetadataResponse.throttleTimeMs: 2147483648 is out of range: int32 goes",
        ),
        ({"throttleTimeMs": 1.5}, "MetadataResponse.throttleTimeMs: a whole number was expected, not 1.5"),
    ],
)
def test_refusals_name_the_field(change: object, complaint: str) -> None:
    form = to_json(MetadataResponse(), 12)
    source = {**form, **change} if isinstance(change, dict) else change
    with pytest.raises(DecodeError) as refusal:
        from_json(MetadataResponse, source, 12)
    assert str(refusal.value).startswith(complaint)


def test_base64_and_ids_are_read_strictly() -> None:
    def join(metadata: object) -> dict[str, object]:
        return {**to_json(JoinGroupRequest(), 0), "protocols": [{"name": "n", "metadata": metadata}]}

    assert from_json(JoinGroupRequest, join(""), 0).protocols[0].metadata == b""
    for wrong in ("+/8", "+_8=", "a b=", "é", 3, "+/8=x"):
        with pytest.raises(DecodeError, match=r"^JoinGroupRequest\.protocols\[0\]\.metadata: "):
            from_json(JoinGroupRequest, join(wrong), 0)
    for wrong in ("AAECAwQFBgcICQoLDA0OD", "AAECAwQFBgcICQoLDA0OD+", 1, None):
        topics = {**to_json(MetadataRequest(), 12), "topics": [{"topicId": wrong, "name": None}]}
        with pytest.raises(DecodeError, match=r"^MetadataRequest\.topics\[0\]\.topicId: "):
            from_json(MetadataRequest, topics, 12)


def test_a_field_of_another_version_is_refused_by_the_bytes() -> None:
    """As in Kafka, JSON may have a field that a version lacks.

    Encoding fails unless the field is ignorable or has its default.
    """
    assert from_json(FindCoordinatorRequest, {"key": "k", "keyType": 0}, 0).encode(0) == b"\0\1k"
    message = from_json(FindCoordinatorRequest, {"key": "k", "keyType": 1}, 0)
    with pytest.raises(EncodeError, match="KeyType"):
        message.encode(0)
    with pytest.raises(EncodeError, match="KeyType"):
        to_json(message, 0)
    with pytest.raises(DecodeError, match=r"FindCoordinatorRequest\.keyType: "):
        from_json(FindCoordinatorRequest, {"key": "k", "keyType": "group"}, 0)


def test_nothing_for_a_version_that_is_not_there() -> None:
    with pytest.raises(UnsupportedVersionError):
        to_json(MetadataRequest(), 99)
    with pytest.raises(EncodeError, match=r"Brokers\[0\]"):
        to_json(MetadataResponse(brokers=[object()]), 12)  # type: ignore[list-item]


def test_unknown_tags_have_no_place() -> None:
    assert to_json(RegisterBrokerRecord(unknown_tags={99: b"x"}), 0) == to_json(RegisterBrokerRecord(), 0)


def test_floats_of_kafkas_own() -> None:
    definition = codec_for(AlterClientQuotasRequest, 0).layout
    assert definition.spec.name == "AlterClientQuotasRequest"
    source = {
        "entries": [{"entity": [], "ops": [{"key": "producer_byte_rate", "value": 0.1, "remove": False}]}],
        "validateOnly": False,
    }
    assert to_json(from_json(AlterClientQuotasRequest, source, 0), 0) == source
