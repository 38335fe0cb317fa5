"""Tests that Kafka 0.7 messages decoded to columns, compiled or not, equal those decoded one by one."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptRecordError
from penstock.model import COLUMN_NAMES
from penstock.records.compression.codecs import CompressionCodec
from penstock.v07.columns import CRC_TABLES, crc32, decode, to_batches
from penstock.v07.message_set import complete_size, encode_set, iter_messages


def rows(data: bytes, base_offset: int = 0) -> list[tuple[bytes, int]]:
    return [
        (row["value"], row["offset"])
        for batch in to_batches(data, base_offset, "t", 3, ("value", "offset"))
        for row in batch.to_pylist()
    ]


@given(st.binary(max_size=100), st.integers(0, 8))
def test_the_checksum_is_zlibs(data: bytes, start: int) -> None:
    source = np.frombuffer(data + b"\0", dtype=np.uint8)
    start = min(start, len(data))
    assert crc32(source, start, len(data), CRC_TABLES) == zlib.crc32(data[start:])


@given(
    st.lists(
        st.tuples(st.lists(st.binary(max_size=40), max_size=6), st.sampled_from(list(CompressionCodec)[:3]))
    ),
    st.sampled_from([0, 1]),
    st.integers(0, 8),
)
def test_columns_hold_what_the_reader_of_one_message_sees(
    groups: list[tuple[list[bytes], CompressionCodec]], magic: int, tail: int
) -> None:
    data = b"".join(encode_set(group, codec=codec, magic=magic) for group, codec in groups)
    padded = data + encode_set([b"cut"])[:tail]
    assert rows(padded, 1000) == [(m.payload, m.offset) for m in iter_messages(data, 1000)]
    nexts = [found.next_offset for found in decode(padded, 1000)]
    assert (nexts or [1000 + len(data)])[-1] == 1000 + complete_size(memoryview(padded))


def test_all_columns_are_there() -> None:
    (batch,) = to_batches(encode_set([b"a", b"b"]), 70, "topic", 2, COLUMN_NAMES)
    assert batch.to_pylist()[1] == {
        "key": None,
        "value": b"b",
        "topic": "topic",
        "partition": 2,
        "offset": 81,
        "timestamp": batch["timestamp"][0].as_py(),
        "timestampType": -1,
        "headers": [],
    }


def test_damage_is_found_wherever_it_is() -> None:
    dice = random.Random(3)
    data = encode_set([dice.randbytes(50) for _ in range(20)])
    whole = rows(data)
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << dice.randrange(8)
        found: list[tuple[bytes, int]] = []
        try:
            for batch in to_batches(bytes(damaged), 0, "t", 0, ("value", "offset")):
                found += [(row["value"], row["offset"]) for row in batch.to_pylist()]
        except CorruptRecordError:
            pass
        assert found == whole[: len(found)]


def test_checksums_may_be_left_out() -> None:
    data = bytearray(encode_set([b"payload"]))
    data[-1] ^= 1
    with pytest.raises(CorruptRecordError):
        list(decode(data, 0))
    assert [len(found.columns) for found in decode(data, 0, check_crcs=False)] == [1]
