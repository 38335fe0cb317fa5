"""Tests of encoding complete requests and responses to frames and decoding them."""

from __future__ import annotations

import pytest

from for_each import for_each
from penstock.errors import DecodeError, EncodeError, UnsupportedVersionError
from penstock.protocol.framing import (
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)


def body_of(chunks: list) -> bytes:
    whole = b"".join(chunks)
    assert int.from_bytes(whole[:4], "big") == len(whole) - 4
    return whole[4:]


@for_each([(version, client_id) for client_id in [None, "", "me", "ünï"] for version in [0, 1, 8, 9, 12, 13]])
def test_a_request_there_and_back(version, client_id):
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    frame = body_of(encode_request(request, version, 77, client_id))
    header, position = decode_request_header(memoryview(frame))
    assert header == RequestHeader(3, version, 77, client_id)
    assert MetadataRequest.decode(frame[position:], version) == request


@pytest.mark.parametrize("version", [0, 8, 9, 12, 13])
def test_a_response_there_and_back(version):
    response = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="h", port=9092)])
    frame = body_of(encode_response(response, version, -5))
    assert frame[:4] == b"\xff\xff\xff\xfb"
    assert (frame[4] == 0 and frame[5:9] == bytes(4)) or version < 9
    assert decode_response(frame, MetadataResponse, version) == (-5, response)


def test_responses_to_api_versions_never_have_a_flexible_header():
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, max_version=4)])
    for version in range(6):
        frame = body_of(encode_response(response, version, 1))
        assert frame[:6] == b"\0\0\0\1\0\0"
        assert decode_response(frame, ApiVersionsResponse, version) == (1, response)


def test_tags_in_a_response_header_are_skipped():
    body = MetadataResponse().encode(9)
    for tags in (b"\1\0\2ab", b"\2\0\0\x81\1\1x"):
        assert decode_response(b"\0\0\0\7" + tags + body, MetadataResponse, 9) == (7, MetadataResponse())


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\1", b"\0\0\0\1\1\0\x7f"])
def test_a_response_too_short_for_its_header(frame):
    with pytest.raises(DecodeError):
        decode_response(frame, MetadataResponse, 9)


def test_large_values_stay_chunks_of_their_own():
    records = b"r" * 5000
    request = ProduceRequest(
        acks=1,
        topic_data=[
            TopicProduceData(
                name="t", partition_data=[PartitionProduceData(records=records), PartitionProduceData()]
            )
        ],
    )
    chunks = encode_request(request, 9, 1, "me")
    assert len(chunks) == 3
    assert chunks[1] is records
    frame = body_of(chunks)
    _, position = decode_request_header(frame)
    assert ProduceRequest.decode(frame[position:], 9) == request


def test_what_cannot_be_sent():
    with pytest.raises(UnsupportedVersionError, match="ApiVersionsRequest has versions 0 to 5, not 6"):
        encode_request(ApiVersionsRequest(), 6, 1, None)
    with pytest.raises(EncodeError, match="request header"):
        encode_request(ApiVersionsRequest(), 0, 1, "x" * 40000)
    with pytest.raises(EncodeError, match="request header"):
        encode_request(ApiVersionsRequest(), 0, 2**31, "x")
