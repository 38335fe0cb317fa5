"""Tests of Confluent's wire formats 0 and 1, of Protobuf message indexes and of subject name strategies."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError, DecodeError, EncodeError
from penstock.registry import framing
from penstock.registry.subjects import KEY, strategy_named

GUID = uuid.UUID("89791762-2336-4186-9674-299b90a802e2")


@given(st.integers(0, 2**32 - 1), st.binary(max_size=8))
def test_an_id_is_read_back(number: int, value: bytes) -> None:
    found = framing.read_framing(framing.id_prefix(number) + value)
    assert found == (number, 5)


def test_a_header_comes_before_what_is_in_front() -> None:
    headers = [("other", b"x"), (framing.VALUE_HEADER, framing.guid_header(str(GUID)))]
    assert framing.read_framing(b"\0\0\0\0\7rest", headers) == (GUID, 0)
    assert framing.read_framing(b"\0\0\0\0\7rest", headers, is_key=True) == (7, 5)
    assert framing.read_framing(framing.guid_header(GUID) + b"rest") == (GUID, 17)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "empty"),
        (b"\0\0\0", "3 bytes"),
        (b"\1abc", "4 bytes"),
        (b'{"a": 1}', "begins with byte 123"),
    ],
)
def test_what_has_no_schema_says_so(value: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        framing.read_framing(value)


def test_apicurio_names_content_ids_in_headers() -> None:
    seven = (7).to_bytes(8, "big")
    headers = {"apicurio.value.contentId": seven, "apicurio.value.globalId": (9).to_bytes(8, "big")}
    assert framing.read_framing(b"rest", headers) == (7, 0)
    assert framing.read_framing(b"rest", {"apicurio.key.contentId": seven}, is_key=True) == (7, 0)
    with pytest.raises(DecodeError, match=r"global id.*use-id = contentId"):
        framing.read_framing(b"rest", {"apicurio.value.globalId": seven})
    for wrong in (b"", seven[1:], (1 << 32).to_bytes(8, "big")):
        with pytest.raises(DecodeError, match="no id of a schema"):
            framing.read_framing(b"rest", {"apicurio.value.contentId": wrong})


def test_a_header_of_another_size_is_refused() -> None:
    with pytest.raises(DecodeError, match="18 bytes"):
        framing.read_framing(b"x", {framing.VALUE_HEADER: framing.guid_header(GUID) + b"x"})


@given(st.lists(st.integers(0, 1 << 20), min_size=1, max_size=5), st.binary(max_size=4))
def test_message_indexes_are_read_back(path: list[int], rest: bytes) -> None:
    data = framing.message_indexes(path) + rest
    assert framing.read_message_indexes(data, 0) == (tuple(path), len(data) - len(rest))


def test_message_indexes_as_confluent_writes_them() -> None:
    assert framing.message_indexes([0]) == b"\0"
    assert framing.message_indexes([1]) == b"\x02\x02"
    assert framing.message_indexes([2, 0, 1]) == b"\x06\x04\x00\x02"


@pytest.mark.parametrize("data", [b"", b"\x80" * 12, b"\x04\x02", b"\xff\xff\xff\x7f", b"\x03", b"\x02\x01"])
def test_hostile_message_indexes_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        framing.read_message_indexes(data, 0)


def test_an_id_that_does_not_fit_is_refused() -> None:
    with pytest.raises(EncodeError, match="into 4 bytes"):
        framing.id_prefix(1 << 32)
    with pytest.raises(EncodeError, match="no GUID"):
        framing.guid_header("x")


def test_subjects() -> None:
    assert strategy_named("topic")("orders", KEY, "a.B") == "orders-key"
    assert strategy_named("record")("orders", KEY, "a.B") == "a.B"
    assert strategy_named("topic_record")("orders", KEY, "a.B") == "orders-a.B"
    with pytest.raises(ConfigError, match="has no name"):
        strategy_named("record")("orders", KEY, None)
    with pytest.raises(ConfigError, match="no subject strategy"):
        strategy_named("topics")
