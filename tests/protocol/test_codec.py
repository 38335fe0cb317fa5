"""Tests of message codecs: they avoid copies, raise clear errors, and limit their work.

Tracebacks show the generated source.
"""

from __future__ import annotations

import copy
import linecache
import pickle
import time
import tracemalloc
from contextlib import suppress

import pytest

from for_each import for_each
from penstock.errors import DecodeError, EncodeError, UnsupportedVersionError
from penstock.protocol import messages
from penstock.protocol.codec import Codec, codec_for
from penstock.protocol.compiler import compile as compiling
from penstock.protocol.message import MadeLate
from penstock.protocol.messages.api_versions_response import ApiVersionsResponse
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest
from penstock.protocol.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sync_group_response import SyncGroupResponse


class Region:
    """A stand-in for a part of a file that is sent as records: it has only a length."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size


def fetch_response(*records: object) -> FetchResponse:
    partitions = [PartitionData(partition_index=number, records=each) for number, each in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


def produce_request(records: object) -> ProduceRequest:
    return ProduceRequest(
        acks=-1,
        topic_data=[
            TopicProduceData(name="t", partition_data=[PartitionProduceData(index=1, records=records)])
        ],
    )


@pytest.mark.parametrize("version", [0, 3, 9, 12])
def test_records_are_views_of_what_was_read(version):
    data = bytearray(codec_for(ProduceRequest, version).encode(produce_request(b"records")))
    message, _ = codec_for(ProduceRequest, version).decode(memoryview(data))
    records = message.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert bytes(records) == b"records"
    records[:1] = b"R"
    assert b"Records" in data


def test_opaque_records_become_chunks_of_their_own():
    region, pieces = Region(10), [Region(3), b"tail", Region(0)]
    chunks = codec_for(FetchResponse, 12).encode_chunks(fetch_response(b"small", region, pieces))
    assert [chunk for chunk in chunks if isinstance(chunk, Region)] == [region, pieces[0]]
    whole = b"".join(chunk if isinstance(chunk, bytes) else b"." * len(chunk) for chunk in chunks)
    read, end = codec_for(FetchResponse, 12).decode(whole)
    assert end == len(whole)
    assert [bytes(each.records) for each in read.responses[0].partitions] == [b"small", b"." * 10, b"...tail"]


def test_opaque_records_are_not_bytes():
    with pytest.raises(EncodeError, match="FetchResponse v12"):
        codec_for(FetchResponse, 12).encode(fetch_response(Region(10)))


def test_values_above_the_limit_are_not_copied():
    small, large = b"s" * 4096, b"l" * 4097
    for value, count in ((small, 1), (large, 2), (memoryview(large), 2), (bytearray(large), 2)):
        chunks = codec_for(SyncGroupResponse, 3).encode_chunks(SyncGroupResponse(assignment=value))
        assert len(chunks) == count
        assert count == 1 or chunks[1] is value


SIZES_OF_RECORDS = [0, 1, 126, 127, 128, 4095, 4096, 4097, 16_382, 16_383, 16_384, 100_000]
"""Sizes in bytes at which the records' length field grows, or records become a separate chunk."""


@for_each((version, size) for version in (3, 4, 11, 12, 18) for size in SIZES_OF_RECORDS)
def test_records_in_one_piece_are_written_as_records_in_several(version, size):
    """The fast path for records in one bytes object gives the bytes of the path for lists."""
    codec, data = codec_for(FetchResponse, version), bytes(range(256)) * (size // 256 + 1)
    whole = data[:size]
    several = codec.encode(fetch_response([whole[: size // 2], memoryview(whole)[size // 2 :]], None, b""))
    for records in (whole, bytearray(whole), memoryview(whole), [whole], (whole,)):
        message = fetch_response(records, None, b"")
        assert codec.encode(message) == several
        chunks = codec.encode_chunks(message)
        assert b"".join(chunks) == several
        assert len(chunks) == (1 if size <= 4096 else 3)
        assert size <= 4096 or len(chunks[1]) == size


@pytest.mark.parametrize(
    ("message", "version", "complaint"),
    [
        (MetadataRequest(topics=[MetadataRequestTopic(name=5)]), 9, r"v9\.Topics\[0\]\.Name: 5 is no string"),
        (MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 9, r"v9\.Topics\[0\]\.Name: null is not"),
        (MetadataRequest(topics=None), 0, r"v0\.Topics: null is not allowed"),
        (MetadataRequest(topics=7), 1, r"v1\.Topics: 7 is no list"),
        (MetadataRequest(topics=[4]), 1, r"v1\.Topics\[0\]: 4 is no MetadataRequestTopic"),
        (MetadataRequest(topics=[MetadataRequestTopic(name="\ud800")]), 1, r"Name: no UTF-8"),
        (MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32768)]), 1, r"Name: 32768 bytes are more"),
        (MetadataRequest(allow_auto_topic_creation=False), 3, r"TopicCreation: is set, but version 3"),
        (MetadataRequest(unknown_tags={1: b""}), 8, r"unknown_tags are set, but version 8"),
        (MetadataResponse(controller_id="a"), 9, r"MetadataResponse v9\.ControllerId: 'a' is no int32"),
        (MetadataResponse(controller_id=2**31), 9, r"ControllerId: 2147483648 is no int32"),
        (MetadataResponse(topics=[MetadataResponseTopic(topic_id=b"a")]), 10, r"TopicId: b'a' is no id"),
        (MetadataResponse(topics=[MetadataResponseTopic(topic_id=None)]), 10, r"TopicId: None is no id"),
        (DeleteTopicsRequest(topic_names=["a", None]), 1, r"TopicNames\[1\]: null is not allowed"),
        (SaslAuthenticateRequest(auth_bytes="secret"), 0, r"AuthBytes: 'secret' is no bytes"),
        (SaslAuthenticateRequest(auth_bytes="secret" * 1000), 2, r"AuthBytes: 'secret.* is no bytes"),
        (SaslAuthenticateRequest(auth_bytes=None), 2, r"AuthBytes: null is not allowed"),
        (produce_request("text"), 3, r"Records: 'text' is no records"),
        (produce_request(5), 3, r"Records: 5 is no records"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_named(message, version, complaint):
    codec = codec_for(type(message), version)
    for write in (codec.encode, codec.encode_chunks):
        with pytest.raises(EncodeError, match=complaint):
            write(message)


def test_an_ignorable_field_is_left_out_quietly():
    response = ApiVersionsResponse(throttle_time_ms=5)
    assert codec_for(ApiVersionsResponse, 0).encode(response) == bytes(6)
    assert ApiVersionsResponse.decode(bytes(6), 0).throttle_time_ms == 0


def test_the_wrong_class_is_refused():
    with pytest.raises(EncodeError, match="is no MetadataRequest"):
        codec_for(MetadataRequest, 1).encode(ApiVersionsResponse())


def test_unknown_versions():
    for version in (-1, 14):
        with pytest.raises(UnsupportedVersionError, match="MetadataRequest has versions 0 to 13"):
            codec_for(MetadataRequest, version)


def test_codecs_are_kept():
    assert codec_for(MetadataRequest, 3) is codec_for(MetadataRequest, 3)
    assert codec_for(MetadataRequest, 3) is not codec_for(MetadataRequest, 4)


def test_stray_bytes_of_a_known_client_are_accepted():
    # "All topics" with a null of four bytes where the compact null takes one.
    for version in (9, 10):
        request = MetadataRequest.decode(b"\0\0\0\0\0\0\0\0", version)
        assert request.topics is None
        assert not request.allow_auto_topic_creation


def test_unknown_tags_are_kept_and_written_again():
    data = MetadataRequest(topics=[]).encode(9)[:-1] + b"\2\5\3abc\x81\1\0"
    request = MetadataRequest.decode(data, 9)
    assert request.unknown_tags == {5: b"abc", 129: b""}
    assert request.encode(9) == data


@pytest.mark.parametrize("tags", [b"\2\5\0\5\0", b"\2\5\0\4\0", b"\1\5\7abc", b"\1\xff\xff\xff\xff\xff\1\0"])
def test_bad_tags(tags):
    with pytest.raises(DecodeError):
        MetadataRequest.decode(MetadataRequest(topics=[]).encode(9)[:-1] + tags, 9)


def test_tags_that_are_known_cannot_be_unknown():
    response = ApiVersionsResponse(zk_migration_ready=True, unknown_tags={3: b"\1"})
    with pytest.raises(EncodeError, match="tags that are known"):
        response.encode(3)


@for_each(
    [
        (name, version, before, count)
        for name, version, before in [
            ("MetadataRequest", 1, b""),
            ("MetadataResponse", 1, b""),
            ("ListOffsetsResponse", 0, b"\0\0\0\1\0\1t\0\0\0\1" + bytes(6)),
            ("AddPartitionsToTxnRequest", 0, b"\0\1t" + bytes(10) + b"\0\0\0\1\0\1t"),
            ("AssignReplicasToDirsRequest", 0, bytes(12) + b"\2" + bytes(16) + b"\2" + bytes(16)),
        ]
        for count in [2**31 - 1, 10**7, 65536]
    ]
)
def test_lengths_are_not_believed(name, version, before, count):
    cls = getattr(messages, name)
    with_count = before + count.to_bytes(4, "big") + bytes(1000)
    with_varint = before + b"\xff\xff\xff\xff\7" + bytes(1000)
    for data in (with_count, with_varint):
        with suppress(DecodeError):
            codec_for(cls, version).decode(b"")  # the first use compiles it
        tracemalloc.start()
        begun = time.perf_counter()
        try:
            codec_for(cls, version).decode(data)
        except DecodeError:
            pass
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < 3_000_000
        assert time.perf_counter() - begun < 2


def test_the_source_shows_in_tracebacks():
    codec_for(MetadataRequest, 5).decode(MetadataRequest().encode(5))
    lines = linecache.getlines("<penstock decode MetadataRequest v5>")
    assert any("message.topics" in line for line in lines)


def test_errors_say_where():
    with pytest.raises(DecodeError, match=r"MetadataResponse v1: cut short: 10 .* at byte 10 needs more"):
        MetadataResponse.decode(b"\0\0\0\1" + bytes(6), 1)


def test_a_struct_in_a_tagged_field_may_be_null():
    # Kafka's own bytes. Elsewhere a struct that is null is one byte -1; here it is a varint 0.
    data = bytes.fromhex("000001010100000000030001000100")
    read = messages.ConsumerGroupMemberMetadataValue.decode(data, 0)
    assert read.classic_member_metadata is None
    assert read.encode(0) == data


def test_equality_and_repr_of_messages():
    one = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    assert one == MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    assert one != MetadataRequest(topics=[MetadataRequestTopic(name="b")])
    assert one != "something else"
    assert repr(one) == "MetadataRequest(topics=[MetadataRequestTopic(name='a')])"
    assert eval(repr(one)) == one
    assert repr(MetadataRequest(topics=None, unknown_tags={1: b"x"})) == (
        "MetadataRequest(topics=None, unknown_tags={1: b'x'})"
    )


@pytest.mark.parametrize("version", [3, 11, 12, 16])
def test_bytes_and_views_are_read_alike(version):
    data = codec_for(FetchResponse, version).encode(fetch_response(b"one", None, b"three"))
    # A codec is compiled for what comes first, and again for the other.
    for first, second in ((bytes, memoryview), (memoryview, bytes), (bytearray, bytes)):
        codec = Codec(FetchResponse, version)
        assert codec.decode(first(data)) == codec.decode(second(data))
        for cut in range(0, len(data), 7):
            with pytest.raises(DecodeError):
                codec.decode(first(data[:cut]))
            with pytest.raises(DecodeError):
                codec.decode(second(data[:cut]))


def test_whoever_keeps_hold_of_decode_gets_the_compiled_one(monkeypatch):
    compiled = []
    monkeypatch.setattr(compiling, "compile", lambda *of: compiled.append(of) or compile(*of), raising=False)
    for message_class in (FetchResponse, MetadataResponse):
        codec = Codec(message_class, 11)
        kept, data = codec.decode, codec.encode(message_class())
        compiled.clear()
        for _ in range(100):
            assert kept(data) == (message_class(), len(data))
        assert len(compiled) == 1


def test_structs_that_nobody_sent_are_there_and_not_shared():
    data = codec_for(FetchResponse, 12).encode(fetch_response(b"", b""))
    message, _ = codec_for(FetchResponse, 12).decode(data)
    one, two = message.responses[0].partitions
    one.current_leader.leader_id = 7
    assert (one.current_leader.leader_id, two.current_leader.leader_id) == (7, -1)
    assert not hasattr(one, "nonsense")
    two.records = None
    assert copy.copy(two) == pickle.loads(pickle.dumps(two)) == two


def test_a_struct_that_is_made_late_is_an_attribute_like_any_other():
    assert isinstance(PartitionData.current_leader, MadeLate)
    asked, plain = PartitionData(), PartitionData()
    leader = asked.current_leader
    assert leader == LeaderIdAndEpoch()
    assert leader is asked.current_leader
    assert asked == plain
    leader.leader_id = 3
    assert asked != plain
    assert repr(asked) == "PartitionData(current_leader=LeaderIdAndEpoch(leader_id=3))"
    plain.current_leader = leader
    assert asked == plain == PartitionData(current_leader=leader)
    written = FetchResponse(responses=[FetchableTopicResponse(partitions=[plain])]).encode(12)
    assert FetchResponse.decode(written, 12).responses[0].partitions[0].current_leader == leader


def test_a_decoded_message_can_be_written_again_at_once():
    for version in (11, 12):
        data = codec_for(FetchResponse, version).encode(fetch_response(b"records"))
        message, _ = codec_for(FetchResponse, version).decode(data)
        assert codec_for(FetchResponse, version).encode(message) == data


def test_errors_show_a_bit_of_a_value_not_all_of_it():
    with pytest.raises(EncodeError) as raised:
        ProduceRequest(acks="x" * 100_000).encode(9)  # type: ignore[arg-type]
    assert "ProduceRequest v9.Acks: 'xxx" in str(raised.value)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("version", [None, "1", 1.5, -1, 99])
def test_what_is_no_version(version):
    with pytest.raises(UnsupportedVersionError, match="ProduceRequest has versions 0 to 13, not"):
        codec_for(ProduceRequest, version)


@pytest.mark.parametrize("source", [None, 10**12, "text", []])
@pytest.mark.parametrize("message_class", [ProduceRequest, MetadataRequest])
def test_what_is_no_bytes(message_class, source):
    with pytest.raises(TypeError, match="bytes-like object"):
        Codec(message_class, 9).decode(source)
    codec = Codec(message_class, 9)
    codec.decode(message_class().encode(9))
    with pytest.raises(TypeError, match="bytes-like object"):
        codec.decode(source)


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16382, 16383, 16384, 2_097_151])
def test_records_of_every_length_of_a_length(size: int) -> None:
    """The decoder has a fast path for records whose length field takes two bytes, as is usual."""
    sent = produce_request(b"x" * size)
    codec = codec_for(ProduceRequest, 9)
    found, end = codec.decode(memoryview(bytearray(codec.encode(sent))))
    assert end == len(codec.encode(sent))
    assert bytes(found.topic_data[0].partition_data[0].records or b"") == b"x" * size
    short = memoryview(bytearray(codec.encode(sent)[:-3]))
    with pytest.raises(DecodeError):
        codec.decode(short)
