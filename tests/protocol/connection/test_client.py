"""Tests of a client connection without I/O: it matches responses to requests, and refuses invalid frames."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DecodeError, EncodeError, UnsupportedVersionError
from penstock.protocol.connection.client import ClientConnection, CorrelationError, UnexpectedFrameError
from penstock.protocol.framing import (
    ConnectionStateError,
    FrameSizeError,
    decode_request_header,
    encode_response,
)
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.api_versions_response import ApiVersionsResponse
from penstock.protocol.messages.fetch_request import FetchRequest
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse
from penstock.protocol.messages.produce_request import ProduceRequest

Answer = tuple[int, object]


def fed(connection: ClientConnection[int], data: bytes) -> list[Answer]:
    found: list[Answer] = []
    while data:
        buffer = connection.get_buffer()
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        connection.received(count)
        data = data[count:]
        while (answer := connection.next_answer()) is not None:
            found.append(answer)
    return found


def response_of(correlation_id: int, size: int = 0) -> bytes:
    partition = PartitionData(records=memoryview(bytes(size)))
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    return b"".join(encode_response(response, 12, correlation_id))


def asked(connection: ClientConnection[int], count: int) -> None:
    for token in range(count):
        connection.request(FetchRequest(), 12, token)


@given(
    st.lists(st.sampled_from((0, 1, 1000, 16_300, 20_000, 200_000)), max_size=6),
    st.lists(st.integers(1, 60_000), max_size=20),
)
def test_answers_find_their_requests_with_any_split(sizes: list[int], steps: list[int]) -> None:
    connection: ClientConnection[int] = ClientConnection()
    asked(connection, len(sizes))
    stream = b"".join(response_of(index + 1, size) for index, size in enumerate(sizes))
    found: list[Answer] = []
    for step in [*steps, len(stream)]:
        found += fed(connection, stream[:step])
        stream = stream[step:]
    assert [token for token, _ in found] == list(range(len(sizes)))
    for (_, response), size in zip(found, sizes, strict=True):
        assert isinstance(response, FetchResponse)
        records = response.responses[0].partitions[0].records
        assert records is not None
        assert len(records) == size
    assert not connection.is_receiving
    assert connection.requests_in_flight == 0


def test_byte_by_byte() -> None:
    connection: ClientConnection[str] = ClientConnection("me")
    connection.request(HeartbeatRequest(), 4, "first")
    connection.request(HeartbeatRequest(), 0, "second")
    stream = b"".join(encode_response(HeartbeatResponse(error_code=1), 4, 1))
    stream += b"".join(encode_response(HeartbeatResponse(error_code=2), 0, 2))
    found = []
    for byte in stream:
        connection.get_buffer()[0] = byte
        connection.received(1)
        answer = connection.next_answer()
        assert connection.is_receiving is (answer is None)
        if answer is not None:
            found.append(answer)
    assert found == [
        ("first", HeartbeatResponse(error_code=1)),
        ("second", HeartbeatResponse(error_code=2)),
    ]


def test_requests_are_numbered_and_named() -> None:
    connection: ClientConnection[int] = ClientConnection("me")
    for expected in (1, 2, 3):
        whole = memoryview(b"".join(connection.request(HeartbeatRequest(), 0, expected)))
        header, _ = decode_request_header(whole[4:])
        assert (header.correlation_id, header.client_id) == (expected, "me")
    assert connection.oldest() == (1, "Heartbeat")
    assert connection.requests_in_flight == 3
    assert connection.abandon() == [1, 2, 3]
    assert connection.oldest() is None


def test_a_request_without_an_answer_is_numbered_but_not_waited_for() -> None:
    connection: ClientConnection[int] = ClientConnection()
    connection.request_without_answer(ProduceRequest(acks=0), 9)
    connection.request(HeartbeatRequest(), 0, 7)
    assert connection.requests_in_flight == 1
    stream = b"".join(encode_response(HeartbeatResponse(), 0, 2))
    assert fed(connection, stream) == [(7, HeartbeatResponse())]


def test_a_request_that_cannot_be_written_is_not_waited_for() -> None:
    connection: ClientConnection[int] = ClientConnection()
    with pytest.raises(UnsupportedVersionError):
        connection.request(HeartbeatRequest(), 99, 1)
    with pytest.raises(EncodeError):
        connection.request(HeartbeatRequest(generation_id=1 << 40), 0, 1)
    assert connection.requests_in_flight == 0


def test_correlation_ids_start_again_before_they_become_negative() -> None:
    connection: ClientConnection[int] = ClientConnection()
    connection._correlation_id = 0x7FFFFFFE
    sent = [b"".join(connection.request(HeartbeatRequest(), 0, token)) for token in range(3)]
    assert [chunk[8:12] for chunk in sent] == [b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\1"]


def test_an_unsupported_version_of_api_versions_is_answered_in_version_0() -> None:
    connection: ClientConnection[int] = ClientConnection()
    connection.request(ApiVersionsRequest(), 4, 0)
    response = ApiVersionsResponse(error_code=35)
    assert fed(connection, b"".join(encode_response(response, 0, 1))) == [(0, response)]


def test_an_illegal_event_has_a_typed_error_and_ends_the_connection() -> None:
    frame = response_of(2)
    cases: list[tuple[int, bytes, type[DecodeError], str]] = [
        (1, b"\xff\xff\xff\xff", FrameSizeError, "frame of -1 bytes"),
        (1, b"\0\0\0\3abc", FrameSizeError, "frame of 3 bytes"),
        (1, b"\0\1\0\1", FrameSizeError, "4 to 65536"),
        (0, frame, UnexpectedFrameError, "no request was in flight"),
        (0, b"\0\0\xff\xff", UnexpectedFrameError, "65535 bytes were announced"),
        (1, frame, CorrelationError, "request 2 was answered where 1 was due"),
        (1, b"\0\0\0\x05\0\0\0\1\0", DecodeError, "FetchResponse"),
    ]
    for requests, data, kind, words in cases:
        connection: ClientConnection[int] = ClientConnection(frame_bytes_max=65536)
        asked(connection, requests)
        with pytest.raises(kind, match=words) as caught:
            fed(connection, data)
        with pytest.raises(kind) as again:
            connection.next_answer()
        assert again.value is caught.value
        with pytest.raises(ConnectionStateError, match="has failed"):
            connection.request(FetchRequest(), 12, 0)
        with pytest.raises(ConnectionStateError, match="has failed"):
            connection.request_without_answer(FetchRequest(), 12)
        assert connection.abandon() == list(range(requests))


def test_a_long_answer_is_read_into_the_memory_that_was_taken_for_it() -> None:
    taken: list[bytearray] = []

    def take(size: int) -> memoryview:
        taken.append(bytearray(size))
        return memoryview(taken[-1])

    connection: ClientConnection[int] = ClientConnection(take=take)
    asked(connection, 1)
    stream = response_of(1, 100_000)
    assert fed(connection, stream[:100]) == []
    assert connection.is_receiving_long_answer
    ((_, response),) = fed(connection, stream[100:])
    assert [len(each) for each in taken] == [len(stream) - 4]
    assert isinstance(response, FetchResponse)
    records = response.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert records.obj is taken[0]


def test_errors_can_be_copied() -> None:
    error = FrameSizeError("frame of 7 bytes", 7)
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (str(other), other.size, other.beginning) == ("frame of 7 bytes", 7, b"\0\0\0\7")
