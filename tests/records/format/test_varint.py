"""Tests of varints: the lookup table for short ones agrees with encoding each number."""

from __future__ import annotations

import pytest

from penstock.errors import CorruptRecordError
from penstock.records.format.varint import (
    SHORT_MAX,
    encode_varint,
    read_unsigned,
    read_varint,
    short_varints,
)


def test_the_table_holds_what_encoding_each_number_returns() -> None:
    table = short_varints()
    assert table[:SHORT_MAX] == [encode_varint(number) for number in range(SHORT_MAX)]
    assert table[-1] == encode_varint(-1)
    assert len(table) == SHORT_MAX + 1


@pytest.mark.parametrize("number", [0, -1, 1, 63, 64, -64, -65, 8191, 8192, 2**31 - 1, -(2**31)])
def test_what_is_written_is_read(number: int) -> None:
    data = b"x" + encode_varint(number)
    assert read_varint(data, 1) == (number, len(data))


def test_a_number_that_runs_on_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match="more than 32 bits"):
        read_unsigned(b"\xff" * 5 + b"\0", 0)
    with pytest.raises(CorruptRecordError, match="more than 32 bits"):
        read_unsigned(b"\xff\xff\xff\xff\x1f", 0)
    with pytest.raises(IndexError):
        read_unsigned(b"\xff", 0)
