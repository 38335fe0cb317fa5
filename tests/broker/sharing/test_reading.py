"""What a share group finds in a piece of a log: no more batches than it takes records of."""

from __future__ import annotations

import pytest

from penstock.broker.sharing.reading import LogChunk
from penstock.broker.sharing.settings import SharingSettings
from penstock.broker.sharing.share_partition import SharePartition
from penstock.errors import CorruptRecordError
from penstock.records.batch import encode_batch
from penstock.records.format.batch_header import MAGIC_POSITION, stamp_header


def log_of(count: int) -> bytearray:
    """Return batches of one record each."""
    data = bytearray()
    for offset in range(count):
        batch = bytearray(encode_batch([(None, b"v", (), 0)]))
        stamp_header(batch, 0, offset, len(batch) - 12, 0)
        data += batch
    return data


def chunk_of(data: bytearray) -> LogChunk:
    return LogChunk(memoryview(data), 0, [])


def test_a_member_that_takes_one_record_of_a_thousand_batches_looks_at_two() -> None:
    """Each fetch walked over 256 KiB of headers: where records come one by one again, 2 ms for each."""
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
