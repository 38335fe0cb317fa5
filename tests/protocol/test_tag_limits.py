"""Tests that tagged fields are counted before decoding, with limits per section, message and header."""

from __future__ import annotations

import struct

import pytest

from penstock.broker.requests.request_limits import is_mostly_records
from penstock.errors import DecodeError
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.runtime import MESSAGE_TAGS_MAX, SECTION_TAGS_MAX, write_uvarint
from penstock.protocol.framing import decode_request_header, decode_response_header
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.messages.fetch_request import FetchRequest
from penstock.protocol.messages.metadata_request import MetadataRequest

HUGE = 2**31 - 1


def empty_tags(count: int, first: int = 100) -> bytes:
    """Return an encoded section of `count` tagged fields with empty values."""
    return write_uvarint(count) + b"".join(write_uvarint(first + each) + b"\0" for each in range(count))


def header(tags: bytes) -> bytes:
    return struct.pack(">hhih", 60, 1, 7, -1) + tags


@pytest.mark.parametrize("count", [SECTION_TAGS_MAX + 1, HUGE, 2**32 - 1])
@pytest.mark.parametrize("follows", [b"", bytes(20_000)])
def test_a_count_beyond_the_limit_is_refused_before_anything_is_read(count: int, follows: bytes) -> None:
    section = write_uvarint(count) + follows
    for read in (
        lambda: decode_request_header(header(section)),
        lambda: decode_response_header(bytes(4) + section, 1),
        lambda: DescribeClusterRequest.decode(b"\0\0" + section, 1),  # nothing is known of its section
        lambda: FetchRequest.decode(FetchRequest().encode(12)[:-1] + section, 12),  # some tags are known here
    ):
        with pytest.raises(DecodeError, match="tagged fields in one section"):
            read()


def test_a_count_that_what_is_left_cannot_hold_is_refused() -> None:
    with pytest.raises(DecodeError, match="900 tagged fields in 1798 bytes"):
        DescribeClusterRequest.decode(b"\0\0" + write_uvarint(900) + bytes(1798), 1)


def test_as_many_as_the_limit_are_kept() -> None:
    message, _ = codec_for(DescribeClusterRequest, 1).decode(b"\0\0" + empty_tags(SECTION_TAGS_MAX))
    assert message.unknown_tags is not None
    assert len(message.unknown_tags) == SECTION_TAGS_MAX
    assert decode_request_header(header(empty_tags(SECTION_TAGS_MAX)))[1] > SECTION_TAGS_MAX


@pytest.mark.parametrize("as_view", [False, True])
def test_a_message_has_a_limit_for_all_its_sections(as_view: bool) -> None:
    """The message has a section for each of many topics, and each section is within its own limit."""
    per_topic = 500
    topic = bytes(16) + b"\2t" + empty_tags(per_topic)
    for topics, fits in ((MESSAGE_TAGS_MAX // per_topic, True), (MESSAGE_TAGS_MAX // per_topic + 1, False)):
        data = write_uvarint(topics + 1) + topic * topics + b"\0\0\0"
        given = memoryview(data) if as_view else data
        if fits:
            message, _ = codec_for(MetadataRequest, 12).decode(given)
            assert message.topics is not None
            assert len(message.topics) == topics
        else:
            with pytest.raises(DecodeError, match="unknown tagged fields in one message"):
                codec_for(MetadataRequest, 12).decode(given)


def test_each_message_is_counted_for_itself() -> None:
    data = b"\1\1" + empty_tags(SECTION_TAGS_MAX)
    for _ in range(MESSAGE_TAGS_MAX // SECTION_TAGS_MAX + 2):
        codec_for(ApiVersionsRequest, 3).decode(data)


def test_a_produce_is_weighed_without_counting_tags_to_the_end() -> None:
    """A request with too many tagged fields is refused at once, without counting all of them."""
    body = b"\0" + bytes(6) + b"\2" + b"\2t" + b"\1" + write_uvarint(HUGE)
    with pytest.raises(DecodeError, match="tagged fields"):
        is_mostly_records(memoryview(body + bytes(10_000)), 0, 9, 1 << 20)
