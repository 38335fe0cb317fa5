"""Tests that hash codes are equal to Java's."""

from __future__ import annotations

import pytest

from penstock.common.java_hash import hash_order, partition_hash, string_hash


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("g", 103),
        ("ab", 3_105),
        ("hello", 99162322),
        ("kafka", 101807910),
        ("penstock", 328_797_597),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
    ],
)
def test_the_hash_of_a_text_is_javas(text: str, number: int) -> None:
    assert string_hash(text) == number


def test_partitions_hash_as_in_java() -> None:
    assert partition_hash("", 0) == 961


def test_keys_come_in_the_order_of_a_hash_map() -> None:
    assert hash_order(["b", "a", "q"], string_hash) == ["a", "q", "b"]  # a and q share a bucket
