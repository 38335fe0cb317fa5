"""Tests of the class that stores offset commits of open transactions for the group coordinator."""

from __future__ import annotations

from penstock.broker.groups.offsets import CommittedOffset
from penstock.broker.groups.pending_offsets import PendingOffsets

A, B = ("a", 0), ("b", 1)


def offset(number: int, record: int = 0) -> CommittedOffset:
    return CommittedOffset(number, -1, "note", 0, record_offset=record)


def test_what_a_producer_has_written_comes_out_together() -> None:
    pending = PendingOffsets()
    pending.put(3, 7, "g", A, offset(1))
    pending.put(3, 7, "g", A, offset(2))
    pending.put(3, 7, "h", B, offset(3))
    assert pending.is_pending("g", A)
    assert pending.of_group("g") == {A}
    assert pending.end(3, 7) == [(("g", A), offset(2)), (("h", B), offset(3))]
    assert not pending.is_pending("g", A)
    assert pending.size_bytes == 0
    assert pending.end(3, 7) == []


def test_producers_and_partitions_are_apart() -> None:
    pending = PendingOffsets()
    pending.put(3, 7, "g", A, offset(1))
    pending.put(3, 8, "g", A, offset(2))
    pending.put(4, 7, "h", A, offset(3))
    assert pending.end(4, 7) == [(("h", A), offset(3))]
    pending.end(3, 7)
    assert pending.is_pending("g", A)
    pending.end(3, 8)
    assert not pending.is_pending("g", A)


def test_removed_offsets_are_pending_no_more() -> None:
    pending = PendingOffsets()
    pending.put(3, 7, "g", A, offset(1))
    pending.put(3, 8, "g", A, offset(2))
    pending.put(3, 7, "g", B, offset(3))
    pending.discard("g", [A])
    assert pending.of_group("g") == {B}
    assert pending.end(3, 7) == [(("g", B), offset(3))]
    assert pending.end(3, 8) == []
    assert pending.size_bytes == 0
