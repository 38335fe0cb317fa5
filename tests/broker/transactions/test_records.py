"""Tests of the records of `__transaction_state`: their bytes are those that Apache Kafka 4.3 writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.transactions.records import (
    StoredTransaction,
    read_record,
    transaction_record,
    value_version,
)
from penstock.broker.transactions.states import FINISHED, STORED, TransactionState
from penstock.broker.transactions.transaction import Image, image_of, stored_form
from penstock.errors import DecodeError

A0 = frozenset({("a", 0)})
B0 = frozenset({("b", 0)})
NONE: frozenset[tuple[str, int]] = frozenset()

VECTORS = {
    "v0, a new producer": (
        Image(TransactionState.EMPTY, 5, 0, -1, -1, 1500, NONE, 0, 0x1A2040A3E60, -1),
        "0000 0000000000000005 0000 000005dc 00 ffffffff 000001a2040a3e60 ffffffffffffffff",
    ),
    "v0, open": (
        Image(TransactionState.ONGOING, 5, 0, -1, -1, 1500, A0, 0, 0x1A2040A3E82, 0x1A2040A3E82),
        "0000 0000000000000005 0000 000005dc 01 00000001 0001 61 00000001 00000000 "
        "000001a2040a3e82 000001a2040a3e82",
    ),
    "v1, a new producer": (
        Image(TransactionState.EMPTY, 4, 0, 4, -1, 60_000, NONE, 0, 0x1A203FEAD89, -1),
        "0001 0000000000000004 0000 0000ea60 00 00 000001a203fead89 ffffffffffffffff 01 00 08 "
        "0000000000000004",
    ),
    "v1, open": (
        Image(TransactionState.ONGOING, 4, 0, 4, -1, 60_000, B0, 0, 0x1A203FEAE07, 0x1A203FEAE07),
        "0001 0000000000000004 0000 0000ea60 01 02 0262 02 00000000 00 000001a203feae07 "
        "000001a203feae07 01 00 08 0000000000000004",
    ),
    "v1, committed": (
        Image(TransactionState.COMPLETE_COMMIT, 4, 0, 4, -1, 60_000, NONE, 0, 0x1A203FEAE2A, 0x1A203FEAE07),
        "0001 0000000000000004 0000 0000ea60 04 01 000001a203feae2a 000001a203feae07 01 00 08 "
        "0000000000000004",
    ),
    "v1, the epoch raised": (
        Image(TransactionState.PREPARE_COMMIT, 13, 1, 13, -1, 60_000, A0, 2, 0x1A2040054FC, 0x1A2040054DA),
        "0001 000000000000000d 0001 0000ea60 02 02 0261 02 00000000 00 000001a2040054fc "
        "000001a2040054da 02 00 08 000000000000000d 02 02 0002",
    ),
    "v1, epochs used up": (
        Image(
            TransactionState.PREPARE_COMMIT,
            9,
            32767,
            9,
            10,
            60_000,
            frozenset({("a", 1)}),
            2,
            0x1A2040AF51E,
            0x1A2040AF516,
        ),
        "0001 0000000000000009 7fff 0000ea60 02 02 0261 02 00000001 00 000001a2040af51e "
        "000001a2040af516 03 00 08 0000000000000009 01 08 000000000000000a 02 02 0002",
    ),
    "v1, another producer id": (
        Image(TransactionState.COMPLETE_COMMIT, 10, 0, 9, -1, 60_000, NONE, 2, 0x1A2040AF51E, 0x1A2040AF516),
        "0001 000000000000000a 0000 0000ea60 04 01 000001a2040af51e 000001a2040af516 02 00 08 "
        "0000000000000009 02 02 0002",
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_values_are_those_of_apache_kafka(name: str) -> None:
    image, text = VECTORS[name]
    data = bytes.fromhex(text)
    key, value = transaction_record("v1", stored_form(image, data[1]), data[1])
    assert key == bytes.fromhex("0000 0002 7631")
    assert value == data
    read = read_record(key, data)
    assert read is not None
    assert read.value is not None
    assert image_of(read.value) == image


def test_a_tombstone() -> None:
    key, value = transaction_record("v1", None, 1)
    assert value is None
    assert read_record(key, None) == StoredTransaction("v1", None)


def test_the_version_of_values_follows_the_feature() -> None:
    assert [value_version(level) for level in (0, 1, 2)] == [0, 1, 1]


def test_keys_of_a_later_version_are_passed_over() -> None:
    assert read_record(b"\0\1\0\0", b"") is None


@pytest.mark.parametrize("key", [None, b"", b"\0"])
def test_a_record_without_a_key_is_damaged(key: bytes | None) -> None:
    with pytest.raises(DecodeError, match="without a key"):
        read_record(key, b"")


@pytest.mark.parametrize("value", [b"\0\2", b"\xff\xff", b"\0", b""])
def test_values_of_an_unknown_version_are_refused(value: bytes) -> None:
    with pytest.raises(DecodeError, match="the newest known is 1"):
        read_record(b"\0\0\0\1a", value)


@pytest.mark.parametrize("number", [6, 7, 8, -1])
def test_states_that_are_never_stored_are_refused(number: int) -> None:
    stored = stored_form(VECTORS["v1, open"][0], 1)
    stored.transaction_status = number
    with pytest.raises(DecodeError, match="never stored"):
        image_of(stored)


partitions = st.frozensets(st.tuples(st.text(max_size=9), st.integers(0, 2**31 - 1)), max_size=20)
images = st.builds(
    Image,
    state=st.sampled_from(sorted(set(STORED.values()) - FINISHED)),
    producer_id=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 32767),
    previous_producer_id=st.integers(-1, 2**63 - 1),
    next_producer_id=st.integers(-1, 2**63 - 1),
    timeout_ms=st.integers(1, 2**31 - 1),
    partitions=partitions,
    client_version=st.sampled_from((0, 2)),
    updated_ms=st.integers(0, 2**50),
    started_ms=st.integers(-1, 2**50),
)


@given(st.text(min_size=1, max_size=50), images)
def test_what_is_written_is_read(transactional_id: str, image: Image) -> None:
    read = read_record(*transaction_record(transactional_id, stored_form(image, 1), 1))
    assert read is not None
    assert read.value is not None
    assert (read.transactional_id, image_of(read.value)) == (transactional_id, image)


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(key: bytes, value: bytes) -> None:
    try:
        found = read_record(key, value)
        if found is not None and found.value is not None:
            image_of(found.value)
    except DecodeError:
        pass
