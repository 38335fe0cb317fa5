from __future__ import annotations

import zlib

import numpy as np
import pytest

from penstock.records.format.crc import crc32, crc32c


def slow_crc32c(data: bytes) -> int:
    """Compute the CRC-32C bit by bit, by its definition with the reflected polynomial 0x82F63B78."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_crc32c_check_value_of_the_catalogue() -> None:
    assert crc32c(b"123456789") == 0xE3069283 == slow_crc32c(b"123456789")


@pytest.mark.parametrize("size", [0, 1, 7, 1000])
def test_crc32c_follows_the_definition(size: int) -> None:
    data = bytes(index * 7 & 0xFF for index in range(size))
    assert crc32c(data) == slow_crc32c(data)


@pytest.mark.parametrize("size", [5, 128 * 1024, 128 * 1024 + 1, 700_000])
def test_every_kind_of_buffer_gives_the_same(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    expected = crc32c(data)
    assert crc32c(bytearray(data)) == expected
    assert crc32c(memoryview(b"x" + data)[1:]) == expected
    assert crc32c(np.frombuffer(data, dtype=np.uint8).data) == expected


def test_crc32_is_the_one_of_zlib() -> None:
    assert crc32(memoryview(b"123456789")) == 0xCBF43926 == zlib.crc32(b"123456789")


def test_the_library_beside_it_agrees() -> None:
    """Penstock loads the extension module of crc32c directly; importing the package still works."""
    import crc32c as library

    data = bytes(range(256)) * 40
    assert library.crc32c(data) == crc32c(data)
    assert library.hardware_based is not None
