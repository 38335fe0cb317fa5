"""Tests of idempotent producer state: a table of cases, the window of five batches, wrapping, expiry."""

from __future__ import annotations

import pytest

from for_each import for_each
from penstock.broker.partitions.producers.producer_state import (
    BATCHES_KEPT,
    Producers,
    SeenBatch,
    last_sequence,
)
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.records.batch import encode_batch
from penstock.records.format.batch_header import read_header

HOUR_MS = 3_600_000
NEWEST = 2**31 - 1


def producers_after(*batches: tuple[int, int, int], expiration_ms: int = HOUR_MS) -> Producers:
    """Return the state after producer 7 has written batches, given as (epoch, first sequence, count).

    The offsets of its records begin at 100.
    """
    producers = Producers(expiration_ms)
    offset = 100
    for epoch, first, count in batches:
        seen = SeenBatch(first, last_sequence(first, count), offset, offset + count - 1, 5)
        producers.record(7, epoch, seen, 0)
        offset += count
    return producers


@for_each(
    [
        ([], 0, 0, 3, None),
        ([], 0, 17, 3, None),
        ([(0, 0, 3)], 0, 3, 1, None),
        ([(0, 0, 3)], 0, 0, 3, 100),
        ([(0, 0, 3), (0, 3, 2)], 0, 0, 3, 100),
        ([(0, 0, 3), (0, 3, 2)], 0, 3, 2, 103),
        ([(0, 0, 3)], 0, 0, 2, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([(0, 0, 3)], 0, 4, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([(0, 0, 3)], 0, 1, 2, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([(2, 0, 3)], 1, 3, 1, ErrorCode.INVALID_PRODUCER_EPOCH),
        ([(2, 0, 3)], 3, 0, 1, None),
        ([(2, 0, 3)], 3, 3, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([(0, NEWEST - 1, 2)], 0, 0, 1, None),
        ([(0, NEWEST, 2)], 0, 1, 1, None),
        ([(0, NEWEST, 2)], 0, NEWEST, 2, 100),
    ]
)
def test_table(
    history: list[tuple[int, int, int]], epoch: int, first: int, count: int, outcome: int | ErrorCode | None
) -> None:
    producers = producers_after(*history)
    if isinstance(outcome, ErrorCode):
        with pytest.raises(KafkaError) as caught:
            producers.judge(7, epoch, first, count, 0)
        assert caught.value.code == outcome
    else:
        repeated = producers.judge(7, epoch, first, count, 0)
        assert (repeated.first_offset if repeated else None) == outcome


def test_five_batches_are_remembered() -> None:
    producers = producers_after(*[(0, n, 1) for n in range(BATCHES_KEPT + 1)])
    with pytest.raises(KafkaError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        producers.judge(7, 0, 0, 1, 0)
    for n in range(1, BATCHES_KEPT + 1):
        repeated = producers.judge(7, 0, n, 1, 0)
        assert repeated is not None
        assert repeated.first_offset == 100 + n


def test_a_new_epoch_forgets_the_batches_of_the_old() -> None:
    producers = producers_after((0, 0, 3), (1, 0, 3))
    repeated = producers.judge(7, 1, 0, 3, 0)
    assert repeated is not None
    assert repeated.first_offset == 103


def test_idle_producers_are_forgotten() -> None:
    producers = producers_after((0, 0, 3), expiration_ms=1000)
    assert producers.judge(7, 0, 50, 1, 1001) is None
    assert 7 not in producers
    producers = producers_after((0, 0, 3), expiration_ms=1000)
    assert producers.expire(1000) == 0
    assert producers.expire(1001) == 1
    assert len(producers) == 0


def test_last_sequence_wraps() -> None:
    assert last_sequence(0, 1) == 0
    assert last_sequence(NEWEST, 1) == NEWEST
    assert last_sequence(NEWEST, 2) == 0


@pytest.mark.parametrize(("first", "count", "last"), [(-1, 3, -1), (0, 3, 2), (NEWEST, 2, 0)])
def test_a_batch_is_recorded_by_its_header(first: int, count: int, last: int) -> None:
    """A batch is recorded from its header alone, as a start does that reads the log.

    A batch that the broker itself has written has no sequence numbers.
    """
    batch = encode_batch([(None, b"", (), 5)] * count, producer_id=7, producer_epoch=2, base_sequence=first)
    producers = Producers(HOUR_MS)
    producers.record_batch(read_header(batch), 100, 5, 0)
    (state,) = (state for _, state in producers.items())
    assert state.epoch == 2
    assert state.batches == [SeenBatch(first, last, 100, 99 + count, 5)]
