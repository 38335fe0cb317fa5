"""Tests that the hand-written codec for request headers agrees with Kafka's header definitions."""

from __future__ import annotations

import pickle

import pytest

from for_each import for_each
from penstock.errors import DecodeError, UnsupportedVersionError
from penstock.protocol.api import API_TABLE, ApiKey, request_header_version, response_header_version
from penstock.protocol.framing import (
    RequestHeader,
    UnsupportedRequestError,
    decode_request_header,
    encode_request_header,
)
from penstock.protocol.messages.request_header import RequestHeader as Defined


@for_each(list(API_TABLE))
def test_every_api_and_version_has_the_header_of_the_definition(key):
    api = API_TABLE[key]
    for version in range(api.versions[0], api.versions[1] + 1):
        header_version = request_header_version(key, version)
        client_id = "me" if header_version else None
        data = encode_request_header(key, version, 9, client_id)
        defined = Defined(
            request_api_key=key, request_api_version=version, correlation_id=9, client_id=client_id or ""
        )
        assert data == defined.encode(header_version)
        assert decode_request_header(data) == (RequestHeader(key, version, 9, client_id), len(data))
        assert api.is_flexible(version) == (header_version == 2)


def test_header_versions():
    assert request_header_version(ApiKey.CONTROLLED_SHUTDOWN, 0) == 0
    assert request_header_version(ApiKey.CONTROLLED_SHUTDOWN, 1) == 1
    assert request_header_version(ApiKey.PRODUCE, 8) == 1
    assert request_header_version(ApiKey.PRODUCE, 9) == 2
    assert request_header_version(ApiKey.SASL_HANDSHAKE, 1) == 1
    assert response_header_version(ApiKey.PRODUCE, 8) == 0
    assert response_header_version(ApiKey.PRODUCE, 9) == 1
    assert [response_header_version(ApiKey.API_VERSIONS, version) for version in range(6)] == [0] * 6


def test_a_null_client_id_and_tags():
    assert decode_request_header(b"\0\3\0\0\0\0\0\1\xff\xff") == (RequestHeader(3, 0, 1, None), 10)
    tagged = b"\0\3\0\x09\0\0\0\1\0\1x" + b"\2\0\3abc\5\0" + b"body"
    assert decode_request_header(tagged) == (RequestHeader(3, 9, 1, "x"), len(tagged) - 4)


def test_a_client_id_is_any_bytes():
    header, position = decode_request_header(memoryview(b"\0\3\0\0\0\0\0\1\0\3a\xff\xfe"))
    assert (header.client_id, position) == ("a\ufffd\ufffd", 13)


@pytest.mark.parametrize(("key", "version"), [(3, 99), (18, 77), (999, 0), (-1, 0), (3, -1)])
def test_an_unknown_key_or_version_says_who_asked(key, version):
    start = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + b"\0\0\0\x2a"
    with pytest.raises(UnsupportedVersionError) as caught:
        decode_request_header(start)
    error = caught.value
    assert isinstance(error, UnsupportedRequestError)
    assert (error.api_key, error.api_version, error.correlation_id) == (key, version, 42)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@for_each(
    [
        b"",
        b"\0\3\0\0\0\0\0",
        b"\0\3\0\0\0\0\0\1",
        b"\0\3\0\0\0\0\0\1\0",
        b"\0\3\0\0\0\0\0\1\0\5abc",
        b"\0\3\0\0\0\0\0\1\xff\xfe",
        b"\0\3\0\0\0\0\0\1\x7f\xff" + b"\xff" * 32_767,
        b"\0\3\0\x09\0\0\0\1\0\1x",
        b"\0\3\0\x09\0\0\0\1\0\1x\1",
        b"\0\3\0\x09\0\0\0\1\0\1x\1\0\x7f",
        b"\0\3\0\x09\0\0\0\1\0\1x\xff\xff\xff\xff\xff\xff",
    ]
)
def test_what_is_no_header(frame):
    with pytest.raises(DecodeError, match="request header"):
        decode_request_header(frame)


def test_the_table_of_apis():
    produce = API_TABLE[0]
    assert (produce.name, produce.versions, produce.flexible_since) == ("Produce", (0, 13), 9)
    assert (produce.request.__name__, produce.response.__name__) == ("ProduceRequest", "ProduceResponse")
    assert API_TABLE[ApiKey.SASL_HANDSHAKE].flexible_since is None
    assert API_TABLE[ApiKey.INIT_PRODUCER_ID].latest_unstable
    assert API_TABLE[ApiKey.INIT_PRODUCER_ID].stable_versions == (0, 5)
    assert produce.stable_versions == produce.versions
    assert sorted(API_TABLE) == list(range(95)) == sorted(ApiKey)
    for api in API_TABLE.values():
        assert api.request.API_KEY == api.response.API_KEY == api.key
        assert api.request.VERSIONS == api.response.VERSIONS == api.versions
