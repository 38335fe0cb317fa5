"""Tests of KIP-625, which encodes integers in as few bytes as they need.

Message sizes are computed, and also measured with other codecs. Three example responses are used. E1 has the
two sizes that the proposal gives, 3216 and 1170 bytes, though no natural topic has both. E2 is the topic that
the proposal describes. E3 is a topic with one in-sync replica and long names.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from for_each import for_each
from penstock.errors import DecodeError, EncodeError
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler import runtime
from penstock.protocol.loaded_classes import message_class
from penstock.protocol.schema.loader import definitions_directory
from penstock.protocol.schema.parser import parse_definition
from protocol import oracle

FIXED_VERSION, PACKED_VERSION = 9, 10
NOT_ASKED = -(2**31)


def metadata_response(encoding: str, spelling: str = "type", only: str = ""):
    """Return a class for MetadataResponse 9, and a version 10 with another integer encoding.

    `only` names the one struct whose fields change; if it is empty, all structs change.
    """
    source = json.loads(Path(definitions_directory(), "MetadataResponse.json").read_text())

    def at_nine(fields: list[dict], inside: str) -> list[dict]:
        kept = []
        for field in fields:
            low, _, high = field["versions"].rstrip("+").partition("-")
            if int(low) > 9 or (field["versions"][-1] != "+" and int(high or low) < 9):
                continue
            changed = {**field, "versions": "9+"}
            if "nullableVersions" in field:
                del changed["nullableVersions"]
                if int(field["nullableVersions"][:-1]) <= 9:
                    changed["nullableVersions"] = "9+"
            name = field["type"].removeprefix("[]")
            if name in ("int16", "int32") and (not only or inside == only):
                respell(changed, name)
            if "fields" in field:
                changed["fields"] = at_nine(field["fields"], name)
            kept.append(changed)
        return kept

    def respell(field: dict, name: str) -> None:
        prefix = "[]" if field["type"].startswith("[]") else ""
        bits = name.removeprefix("int")
        if spelling == "type":
            varint = f"{'unsigned_' if encoding == 'unsigned' else ''}varint{bits}"
            field["type"] = {"9": field["type"], "10": prefix + varint}
        else:
            field["encoding"] = {"9": f"fixed{bits}", "10": f"{encoding}{bits}"}

    source.update(validVersions="9-10", flexibleVersions="9+", fields=at_nine(source["fields"], ""))
    return message_class(parse_definition(source, "packed MetadataResponse"))


def response(cls, *, name="t", hosts="ab", ids=(1, 2), cluster=None, in_sync=lambda i: 2, asked=NOT_ASKED,
             epoch=0, error=0, first=0):  # fmt: skip
    """Return a Metadata response with one topic of 100 partitions on two brokers."""
    module = sys.modules[cls.__module__]
    partitions = [
        module.MetadataResponsePartition(
            error_code=error,
            partition_index=first + i,
            leader_id=ids[i % 2],
            leader_epoch=epoch,
            replica_nodes=list(ids),
            isr_nodes=list(ids)[: in_sync(i)],
        )
        for i in range(100)
    ]
    brokers = [
        module.MetadataResponseBroker(node_id=node, host=host, port=9092)
        for node, host in zip(ids, hosts, strict=True)
    ]
    topic = module.MetadataResponseTopic(
        error_code=error, name=name, topic_authorized_operations=asked, partitions=partitions
    )
    return cls(
        brokers=brokers,
        cluster_id=cluster,
        controller_id=ids[0],
        topics=[topic],
        cluster_authorized_operations=asked,
    )


def e1(cls):
    return response(cls, name="tt", in_sync=lambda i: 2 if i <= 40 else 1, asked=0)


def e2(cls):
    return response(cls)


def e2_worst(cls):
    return response(cls, ids=(200000000, 200000001), epoch=200000000, first=200000000, error=9000)


def e3(cls):
    long = {"hosts": ("h" * 63, "i" * 63), "cluster": "c" * 22, "name": "n" * 20}
    return response(cls, in_sync=lambda i: 1, **long)


ALL, PARTITION = "", "MetadataResponsePartition"


@for_each(
    [
        (make, encoding, only, fixed, packed, spelling)
        for make, encoding, only, fixed, packed in [
            (e1, "unsigned", ALL, 3216, 1170),
            (e2, "unsigned", ALL, 3451, 1236),
            (e2, "unsigned", PARTITION, 3451, 1251),
            (e2, "signed", PARTITION, 3451, 1287),
            (e2, "signed", ALL, 3451, 1274),
            (e2_worst, "signed", PARTITION, 3451, 4251),
            (e2_worst, "signed", ALL, 3451, 4252),
            (e3, "unsigned", ALL, 3216, 1301),
            (e3, "unsigned", PARTITION, 3216, 1316),
        ]
        for spelling in ["type", "encoding"]
    ]
)
def test_sizes_of_the_example(make, encoding, only, fixed, packed, spelling):
    cls = metadata_response(encoding, spelling, only)
    message = make(cls)
    for version, size in ((FIXED_VERSION, fixed), (PACKED_VERSION, packed)):
        codec = codec_for(cls, version)
        data = codec.encode(message)
        assert len(data) == size
        assert codec.decode(data) == (message, size)
        assert oracle.encode(cls.DEFINITION, version, message) == data


def number_class(bits: int, encoding: str):
    """Return a message class with adjacent numeric fields, which the codec decodes together."""
    kind = f"{'unsigned_' if encoding == 'unsigned' else ''}varint{bits}"
    fields = [
        {"name": "First", "type": "int16", "versions": "0+"},
        {"name": "One", "type": kind, "versions": "0+"},
        {"name": "Two", "type": kind, "versions": "0+"},
        {"name": "Many", "type": f"[]{kind}", "versions": "0+", "nullableVersions": "0+"},
    ]
    source = {
        "name": "Numbers",
        "type": "data",
        "validVersions": "0",
        "flexibleVersions": "0+",
        "fields": fields,
    }
    return message_class(parse_definition(source, "numbers"))


EDGES = {
    "unsigned": [0, 127, 128, 16383, 16384, 2097151, 2097152, 268435455, 268435456, 2**31 - 1, -1, -(2**31)],
    "signed": [0, 63, -64, 64, -65, 8191, -8192, 8192, -8193, 1048575, -1048576, 1048576, -1048577, 134217727,
               -134217728, 134217728, -134217729, 2**31 - 1, -(2**31)],
}  # fmt: skip
BYTES = {
    "unsigned": [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 5],
    "signed": [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5],
}


@pytest.mark.parametrize("encoding", ["signed", "unsigned"])
def test_where_another_byte_is_needed(encoding):
    cls = number_class(32, encoding)
    codec = codec_for(cls, 0)
    nothing = len(codec.encode(cls()))
    for value, size in zip(EDGES[encoding], BYTES[encoding], strict=True):
        assert len(codec.encode(cls(one=value))) == nothing + size - 1
        assert len(codec.encode(cls(many=[value]))) == nothing + size


@pytest.mark.parametrize("encoding", ["signed", "unsigned"])
@pytest.mark.parametrize("bits", [16, 32, 64])
def test_numbers_come_back(bits, encoding):
    cls = number_class(bits, encoding)
    codec = codec_for(cls, 0)
    high = 2 ** (bits - 1)
    values = {
        edge + step for size in range(bits) for edge in (1 << size, -(1 << size)) for step in (-1, 0, 1)
    }
    for value in sorted(value for value in values if -high <= value < high):
        message = cls(first=-2, one=value, two=-value if -value < high else 7, many=[0, value, 5])
        data = codec.encode(message)
        assert data == oracle.encode(cls.DEFINITION, 0, message)
        assert codec.decode(data) == (message, len(data))
    longest = (bits + 6) // 7
    assert len(codec.encode(cls(one=-high))) == len(codec.encode(cls())) + longest - 1


@pytest.mark.parametrize("encoding", ["signed", "unsigned"])
@pytest.mark.parametrize("bits", [16, 32, 64])
def test_numbers_that_do_not_fit(bits, encoding):
    cls = number_class(bits, encoding)
    for value in (2 ** (bits - 1), -(2 ** (bits - 1)) - 1, "1", None, 1.5):
        with pytest.raises(EncodeError, match=rf"Numbers v0\.One: .* is no int{bits}"):
            cls(one=value).encode(0)
        with pytest.raises(EncodeError, match=rf"Numbers v0\.Many\[1\]: .* is no int{bits}"):
            cls(many=[1, value]).encode(0)
    too_long = b"\0\0" + b"\xff" * ((bits + 6) // 7) + b"\0\0\0\0"
    with pytest.raises(DecodeError, match="varint"):
        cls.decode(too_long, 0)
    with pytest.raises(DecodeError, match="varint"):
        cls.decode(b"\0\0\0\0\2" + b"\xff" * ((bits + 6) // 7) + b"\0\0", 0)


def test_a_long_array_may_hold_long_numbers():
    cls = number_class(32, "signed")
    for many in (list(range(-64, 64)) * 3, list(range(-1000, 1000)), [], None):
        message = cls(many=many)
        assert cls.decode(message.encode(0), 0) == message


@pytest.mark.parametrize("limit", [0, 3, 20_000])
def test_numbers_are_written_alike_whether_they_were_met_before_or_not(limit, monkeypatch):
    monkeypatch.setattr(runtime, "NUMBERS_CACHED_MAX", limit)
    monkeypatch.setattr(runtime, "_VARINT_BYTES", {})
    monkeypatch.setattr(runtime, "_VARINT_ARRAYS", {})
    for bits, encoding in ((16, "signed"), (32, "unsigned"), (64, "signed")):
        cls = number_class(bits, encoding)
        for value in (0, -1, 300, -300, 0, 300, 7):
            message = cls(first=value, one=value, two=value + 1, many=[value] * (abs(value) % 11))
            assert message.encode(0) == oracle.encode(cls.DEFINITION, 0, message)
        assert all(len(known) <= limit for known in runtime._VARINT_BYTES.values())


def test_a_field_may_become_wider():
    fields = [{"name": "Offset", "type": {"0": "int32", "1": "int64", "2+": "varint64"}, "versions": "0+"}]
    source = {
        "name": "Wide",
        "type": "data",
        "validVersions": "0-2",
        "flexibleVersions": "none",
        "fields": fields,
    }
    cls = message_class(parse_definition(source, "wide"))
    for version, size in ((0, 4), (1, 8), (2, 3)):
        assert len(cls(offset=10000).encode(version)) == size
        assert cls.decode(cls(offset=10000).encode(version), version).offset == 10000
    assert cls.decode(cls(offset=2**40).encode(1), 1).offset == 2**40
    with pytest.raises(EncodeError, match=r"Wide v0\.Offset: 1099511627776 is no int32"):
        cls(offset=2**40).encode(0)
