"""Tests that invalid UTF-8 strings are decoded as in Java, so that all programs see one name."""

from __future__ import annotations

import pytest

from for_each import for_each
from penstock.errors import DecodeError
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.runtime import MALFORMED
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.produce_request import ProduceRequest, TopicProduceData

READ_BY_JAVA = [
    ("eda080", "\ufffd"),
    ("eda0", "\ufffd"),
    ("eda041", "\ufffdA"),
    ("ff", "\ufffd"),
    ("c080", "\ufffd\ufffd"),
    ("c1bf", "\ufffd\ufffd"),
    ("e08080", "\ufffd\ufffd\ufffd"),
    ("e080", "\ufffd\ufffd"),
    ("e0a0", "\ufffd"),
    ("f0808080", "\ufffd\ufffd\ufffd\ufffd"),
    ("f09f98", "\ufffd"),
    ("f09f", "\ufffd"),
    ("f4908080", "\ufffd\ufffd\ufffd\ufffd"),
    ("f5808080", "\ufffd\ufffd\ufffd\ufffd"),
    ("f888808080", "\ufffd\ufffd\ufffd\ufffd\ufffd"),
    ("fc8480808080", "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd"),
    ("e282", "\ufffd"),
    ("e228a1", "\ufffd(\ufffd"),
    ("edbfbf", "\ufffd"),
    ("f0288cbc", "\ufffd(\ufffd\ufffd"),
    ("eda080edb080", "\ufffd\ufffd"),
    ("8080", "\ufffd\ufffd"),
    ("e180e2f09192f1bf41", "\ufffd\ufffd\ufffd\ufffdA"),
]
"""Pairs of bytes and the result of `new String(bytes, StandardCharsets.UTF_8)` in Java 17."""


@for_each(READ_BY_JAVA)
def test_what_is_malformed_is_replaced_as_in_java(sent: str, read: str) -> None:
    data = bytes.fromhex(sent)
    assert data.decode("utf-8", MALFORMED) == read
    assert (b"ab" + data + "\u20ac".encode()).decode("utf-8", MALFORMED) == f"ab{read}\u20ac"


@pytest.mark.parametrize("version", [0, 9])
@pytest.mark.parametrize("make", [bytes, memoryview])
def test_a_name_in_a_request_is_any_bytes(version: int, make: type) -> None:
    codec = codec_for(MetadataRequest, version)
    data = codec.encode(MetadataRequest(topics=[MetadataRequestTopic(name="xyz")]))
    message, _ = codec.decode(make(data.replace(b"xyz", b"x\xffz")))
    assert message.topics[0].name == "x\ufffdz"


def test_a_name_beside_records_is_any_bytes() -> None:
    codec = codec_for(ProduceRequest, 8)
    data = codec.encode(ProduceRequest(topic_data=[TopicProduceData(name="xyz")]))
    for make in (bytes, memoryview):
        message, _ = codec.decode(make(data.replace(b"xyz", b"\xed\xa0\x80")))
        assert message.topic_data[0].name == "\ufffd"


def test_a_name_that_no_answer_could_carry_is_refused() -> None:
    codec = codec_for(MetadataRequest, 0)
    data = codec.encode(MetadataRequest(topics=[MetadataRequestTopic(name="x" * 30_000)]))
    with pytest.raises(DecodeError, match="not UTF-8, of 90000 bytes"):
        codec.decode(data.replace(b"x", b"\xff"))
