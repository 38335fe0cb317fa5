"""Tests of the records that a share partition finds in a chunk of log: it parses no more than it acquires."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.broker.sharing.reading import LogChunk, take
from penstock.broker.sharing.settings import SharingSettings
from penstock.broker.sharing.share_partition import SharePartition
from penstock.errors import CorruptRecordError
from penstock.records.batch import encode_batch
from penstock.records.format.batch_header import MAGIC_POSITION, stamp_header


def log_of(count: int) -> bytearray:
    """Return `count` batches of one record each."""
    data = bytearray()
    for offset in range(count):
        batch = bytearray(encode_batch([(None, b"v", (), 0)]))
        stamp_header(batch, 0, offset, len(batch) - 12, 0)
        data += batch
    return data


def chunk_of(data: bytearray) -> LogChunk:
    return LogChunk(memoryview(data), 0, [])


def test_a_member_that_takes_one_record_of_a_thousand_batches_looks_at_two() -> None:
    """Each fetch used to parse all headers in 256 KiB of log, which took 2 ms for every single record."""
    chunk = chunk_of(log_of(1_000))
    acquired = SharePartition(0).acquire("m", 0, chunk.batches(), SharingSettings(), 0.0, most=1)
    assert [(each.first, each.last) for each in acquired] == [(0, 0)]
    assert len(chunk.found) <= 2
    (piece,) = chunk.pieces(acquired)
    assert len(piece) == len(log_of(1))


def test_all_batches_are_found_in_their_order() -> None:
    data = log_of(3)
    chunk = chunk_of(data)
    size = len(data) // 3
    assert [(each.first, each.last) for each in chunk.batches()] == [(0, 0), (1, 1), (2, 2)]
    assert [(begin, end) for _, begin, end in chunk.found] == [(n * size, (n + 1) * size) for n in range(3)]
    assert chunk.next_offset == 3


def test_batches_before_a_damaged_one_are_found_and_the_damage_comes_next() -> None:
    data = log_of(3)
    size = len(data) // 3
    data[2 * size + MAGIC_POSITION] = 9
    chunk = chunk_of(data)
    assert [each.last for each in chunk.batches()] == [0, 1]
    with pytest.raises(CorruptRecordError):
        list(LogChunk(memoryview(data)[2 * size :], chunk.next_offset, []).batches())


def led_partition(data: bytearray, batch_bytes: int) -> Any:
    """Return a share partition over a log of `data`, whose batches have one record and are equally large."""

    def read(offset: int, max_bytes: int, **_: object) -> Any:
        found = bytes(data[offset * batch_bytes :][: max(max_bytes, batch_bytes)])
        return SimpleNamespace(size=len(found), to_bytes=lambda: found)

    partition = SimpleNamespace(log_start_offset=0, read=read)
    return cast(Any, SimpleNamespace(share=SharePartition(0), partition=partition))


def taken_by(led: Any) -> list[tuple[int, int]]:
    limits: dict[str, Any] = {"max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, "is_exact": False}
    return [(each.first, each.last) for each in take(led, "m", SharingSettings(), 0.0, **limits).acquired]


def test_a_member_gets_what_it_acquired_before_a_damaged_batch() -> None:
    """The response has the records before the damaged batch; the error follows in the next one.

    An error at once would leave the records locked and count a delivery that never happened.
    """
    data = log_of(3)
    size = len(data) // 3
    data[2 * size + MAGIC_POSITION] = 9
    led = led_partition(data, size)
    assert taken_by(led) == [(0, 1)]
    with pytest.raises(CorruptRecordError):
        taken_by(led)
