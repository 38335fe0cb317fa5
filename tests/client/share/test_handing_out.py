"""Tests of what a share consumer returns from polls: acquired records with delivery counts.

Records that it cannot return are released or rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.client.config import ShareConsumerConfig
from penstock.client.serializers import Deserializers
from penstock.client.share.acknowledgements import GAP, AcknowledgeType
from penstock.client.share.handing_out import HandingOut
from penstock.client.share.holdings import AcquiredPart, Holdings
from penstock.client.share.offset_map import ValueRun
from penstock.client.share.readings import SHARE_COLUMN_NAMES
from penstock.errors import ConfigError, CorruptRecordError, DeserializationError, UnpackLimitError
from penstock.model import TopicPartition
from penstock.records.batch import encode_batch
from penstock.records.compression.codecs import CompressionCodec

TP = TopicPartition("t", 3)
ID = b"t" * 16
ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


def log_batch(first: int, count: int, codec: CompressionCodec = CompressionCodec.NONE) -> bytes:
    records = [(b"k", b"v%d" % offset, (), 1_000 + offset) for offset in range(first, first + count)]
    return bytes(encode_batch(records, base_offset=first, codec=codec))


class Bench:
    """The records that a share consumer has acquired, and the class that returns them from polls."""

    def __init__(self, read_value: Callable[[bytes], Any] | None = None, **options: Any) -> None:
        self.now = 0.0
        options = {"group_id": "g", **options}
        config = ShareConsumerConfig.of(None, options, bootstrap_servers="localhost:1")
        self.holdings = Holdings(lambda: self.now, 10.0)
        deserialize = None if read_value is None else Deserializers[Any, Any](None, read_value)
        self.out = HandingOut[Any, Any](config, self.holdings, deserialize)

    def give(self, records: bytes, *acquired: ValueRun, node: int = 1, deadline: float = 100.0) -> None:
        self.holdings.add(AcquiredPart(TP, ID, node, memoryview(records), acquired, deadline))

    def rows(self, limit: int = 100) -> list[tuple[int, int]]:
        return [(row.offset, row.delivery_count) for row in self.out.rows(limit)]

    def batch(self, batch_bytes: int = 1 << 20) -> list[tuple[int, int]] | None:
        batch = self.out.batch(SHARE_COLUMN_NAMES, batch_bytes)
        if batch is None:
            return None
        assert batch.schema.names == list(SHARE_COLUMN_NAMES)
        return list(zip(batch["offset"].to_pylist(), batch["deliveryCount"].to_pylist(), strict=True))

    def sent(self) -> list[ValueRun]:
        return [run for each in self.holdings.decisions() for run in each.group.runs]


def test_rows_are_those_that_were_acquired_with_their_counts() -> None:
    bench = Bench()
    bench.give(log_batch(0, 10) + log_batch(10, 5), ValueRun(2, 3, 1), ValueRun(4, 4, 3), ValueRun(9, 11, 1))
    assert bench.rows() == [(2, 1), (3, 1), (4, 3), (9, 1), (10, 1), (11, 1)]
    assert bench.rows() == []
    assert bench.holdings.held == 6
    bench.holdings.acknowledge_all(ACCEPT)
    assert bench.sent() == [ValueRun(2, 4, ACCEPT), ValueRun(9, 11, ACCEPT)]


def test_a_record_is_the_tuple_of_other_consumers() -> None:
    bench = Bench()
    bench.give(log_batch(0, 1), ValueRun(0, 0, 2))
    (record,) = bench.out.rows(1)
    topic, partition, offset, _, _, key, value, headers = record
    assert (topic, partition, offset, key, value, headers) == ("t", 3, 0, b"k", b"v0", ())
    assert record.delivery_count == 2


def test_a_limit_leaves_the_rest_for_the_next_poll() -> None:
    bench = Bench()
    bench.give(log_batch(0, 5), ValueRun(0, 4, 1))
    bench.give(log_batch(5, 5), ValueRun(5, 9, 1))
    assert bench.rows(3) == [(0, 1), (1, 1), (2, 1)]
    assert bench.rows(4) == [(3, 1), (4, 1), (5, 1), (6, 1)]
    assert bench.holdings.held == 7


@pytest.mark.parametrize("kind", ["rows", "batch"])
def test_what_its_broker_has_released_is_not_handed_out(kind: str) -> None:
    """Another member may have acquired and finished such records already."""
    pytest.importorskip("pyarrow")
    released = False
    bench = Bench()
    for first in (0, 3):
        part = AcquiredPart(
            TP,
            ID,
            1,
            memoryview(log_batch(first, 3)),
            [ValueRun(first, first + 2, 1)],
            100.0,
            lambda: released,
        )
        bench.holdings.add(part)
    bench.give(log_batch(0, 6), ValueRun(0, 5, 2), node=2)
    assert bench.rows(1) == [(0, 1)]
    released = True
    assert getattr(bench, kind)() == [(offset, 2) for offset in range(6)]


def test_rows_and_batches_alternate() -> None:
    pytest.importorskip("pyarrow")
    bench = Bench()
    bench.give(log_batch(0, 3) + log_batch(3, 3), ValueRun(0, 5, 1))
    assert bench.rows(2) == [(0, 1), (1, 1)]
    assert bench.batch() == [(2, 1), (3, 1), (4, 1), (5, 1)]
    bench.give(log_batch(6, 3) + log_batch(9, 3), ValueRun(6, 11, 1))
    assert bench.batch(1) == [(6, 1), (7, 1), (8, 1)]
    assert bench.rows() == [(9, 1), (10, 1), (11, 1)]
    assert bench.holdings.held == 12


def test_batches_are_filtered_by_what_was_acquired() -> None:
    pytest.importorskip("pyarrow")
    bench = Bench()
    bench.give(log_batch(0, 10) + log_batch(10, 5), ValueRun(2, 3, 1), ValueRun(4, 4, 3), ValueRun(9, 11, 1))
    assert bench.batch() == [(2, 1), (3, 1), (4, 3), (9, 1), (10, 1), (11, 1)]
    assert bench.batch() is None
    assert bench.sent() == []


@pytest.mark.parametrize("kind", ["rows", "batch"])
def test_acquired_offsets_without_a_record_are_gaps(kind: str) -> None:
    pytest.importorskip("pyarrow")
    bench = Bench()
    bench.give(log_batch(2, 3) + log_batch(7, 1), ValueRun(0, 9, 1))
    assert getattr(bench, kind)() == [(2, 1), (3, 1), (4, 1), (7, 1)]
    assert getattr(bench, kind)() in ([], None)
    assert bench.sent() == [ValueRun(0, 1, GAP), ValueRun(5, 6, GAP), ValueRun(8, 9, GAP)]


def test_an_answer_without_batches_is_all_gaps() -> None:
    bench = Bench()
    bench.give(b"", ValueRun(4, 6, 1))
    assert bench.rows() == []
    assert bench.sent() == [ValueRun(4, 6, GAP)]


@pytest.mark.parametrize("kind", ["rows", "batch"])
def test_a_damaged_batch_is_rejected_and_the_others_are_read(kind: str) -> None:
    pytest.importorskip("pyarrow")
    bench = Bench()
    damaged = bytearray(log_batch(3, 3))
    damaged[-1] ^= 1
    bench.give(log_batch(0, 3) + bytes(damaged) + log_batch(6, 3), ValueRun(0, 8, 1))
    read = getattr(bench, kind)
    found: list[tuple[int, int]] = []
    errors = 0
    for _ in range(6):
        try:
            found += read() or []
        except CorruptRecordError:
            errors += 1
    assert found == [(offset, 1) for offset in (0, 1, 2, 6, 7, 8)]
    assert errors == 1
    assert bench.sent() == [ValueRun(3, 5, REJECT)]


def test_a_batch_beyond_this_consumer_s_limits_is_released() -> None:
    bench = Bench(penstock_unpack_max_records=2)
    bench.give(log_batch(0, 3, CompressionCodec.GZIP), ValueRun(0, 2, 1))
    with pytest.raises(UnpackLimitError, match="t-3"):
        bench.rows()
    assert bench.sent() == [ValueRun(0, 2, RELEASE)]


def test_what_cannot_be_deserialized_is_released_once_it_is_first() -> None:
    def read(value: bytes) -> int:
        return int(value.removeprefix(b"v")) if value != b"v1" else int("x")

    bench = Bench(read)
    bench.give(log_batch(0, 3), ValueRun(0, 2, 4))
    assert [(row.value, row.delivery_count) for row in bench.out.rows(9)] == [(0, 4)]
    with pytest.raises(DeserializationError) as caught:
        bench.out.rows(9)
    assert caught.value.record.offset == 1
    assert [row.value for row in bench.out.rows(9)] == [2]
    assert bench.sent() == [ValueRun(1, 1, RELEASE)]
    assert bench.holdings.held == 2


def test_what_waits_until_its_locks_have_run_out_is_dropped() -> None:
    bench = Bench()
    bench.give(log_batch(0, 3), ValueRun(0, 2, 1), deadline=5.0)
    bench.give(log_batch(3, 3), ValueRun(3, 5, 1), deadline=50.0)
    bench.now = 6.0
    assert bench.rows(1) == [(3, 1)]
    bench.now = 51.0
    assert bench.rows() == []
    assert bench.holdings.size_bytes == 0


def test_records_are_acknowledged_one_by_one_and_together() -> None:
    bench = Bench()
    bench.give(log_batch(0, 5), ValueRun(0, 4, 1))
    rows = bench.out.rows(9)
    bench.out.acknowledge(rows[0], REJECT)
    bench.out.acknowledge(rows[1:4], ACCEPT)
    bench.out.acknowledge(rows[2], RELEASE)  # instead of accept
    assert bench.holdings.held == 1
    assert bench.sent() == [
        ValueRun(0, 0, REJECT),
        ValueRun(1, 1, ACCEPT),
        ValueRun(2, 2, RELEASE),
        ValueRun(3, 3, ACCEPT),
    ]
    with pytest.raises(ConfigError, match="offset 0 of t-3: not in hand"):
        bench.out.acknowledge(rows[0], ACCEPT)


@pytest.mark.parametrize("what", ["text", 5, None, [1]])
def test_what_is_no_record_is_not_acknowledged(what: object) -> None:
    with pytest.raises(ConfigError, match="acknowledge"):
        Bench().out.acknowledge(what, ACCEPT)


def test_rows_of_arrow_are_acknowledged_by_slices_and_filters() -> None:
    pa = pytest.importorskip("pyarrow")
    bench = Bench()
    bench.give(log_batch(0, 6), ValueRun(0, 5, 1))
    batch = bench.out.batch(SHARE_COLUMN_NAMES, 1 << 20)
    assert batch is not None
    bench.out.acknowledge(batch.slice(0, 2), REJECT)
    bench.out.acknowledge(batch.filter(pa.array([False, False, True, False, True, False])), RELEASE)
    bench.out.acknowledge(pa.Table.from_batches([batch.slice(3, 1), batch.slice(5, 1)]), ACCEPT)
    assert bench.holdings.held == 0
    assert [(run.first, run.last, run.value) for run in bench.sent()] == [
        (0, 1, REJECT),
        (2, 2, RELEASE),
        (3, 3, ACCEPT),
        (4, 4, RELEASE),
        (5, 5, ACCEPT),
    ]
    with pytest.raises(ConfigError, match="no offset"):
        bench.out.acknowledge(batch.drop_columns(["offset"]), ACCEPT)


def test_renewed_records_come_again_unless_their_locks_were_lost() -> None:
    bench = Bench()
    bench.give(log_batch(0, 4), ValueRun(0, 3, 2))
    rows = bench.out.rows(9)
    bench.out.acknowledge(rows[:3], RENEW)
    bench.out.acknowledge(rows[3], ACCEPT)
    bench.out.acknowledge(rows[2], REJECT)  # instead of renew
    assert bench.holdings.held == 0
    decisions = {each.group.is_renewal: each.group for each in bench.holdings.decisions()}
    assert decisions[True].runs == [ValueRun(0, 1, RENEW)]
    assert decisions[False].runs == [ValueRun(2, 2, REJECT), ValueRun(3, 3, ACCEPT)]
    lost, kept = decisions[True].halves() or ()
    bench.holdings.settle(lost, CorruptRecordError("lost"))
    bench.holdings.settle(kept, None)
    assert bench.out.has_again()
    assert [(row.offset, row.delivery_count) for row in bench.out.rows_again()] == [(1, 2)]
    assert bench.holdings.held == 1
    assert not bench.out.has_again()


def test_renewed_rows_of_arrow_come_again_as_one_batch() -> None:
    pytest.importorskip("pyarrow")
    bench = Bench()
    bench.give(log_batch(0, 4), ValueRun(0, 3, 2))
    batch = bench.out.batch(SHARE_COLUMN_NAMES, 1 << 20)
    assert batch is not None
    bench.out.acknowledge(batch.slice(0, 1), RENEW)
    bench.out.acknowledge(batch.slice(2, 2), RENEW)
    bench.out.acknowledge(batch.slice(1, 1), ACCEPT)
    for each in bench.holdings.decisions():
        bench.holdings.settle(each.group, None)
    assert bench.out.has_again()
    with pytest.raises(ConfigError, match=r"poll_arrow\(\)"):
        bench.out.rows_again()
    assert bench.out.batch_again()["offset"].to_pylist() == [0, 2, 3]


def test_records_of_a_former_leader_are_not_in_hand_any_more() -> None:
    bench = Bench()
    bench.give(log_batch(0, 2), ValueRun(0, 1, 1), node=1)
    old = bench.out.rows(9)
    bench.give(log_batch(1, 2), ValueRun(1, 2, 2), node=2)
    assert bench.rows() == [(1, 2), (2, 1 + 1)]
    with pytest.raises(ConfigError, match="not in hand"):
        bench.out.acknowledge(old[0], ACCEPT)
    assert not bench.holdings.acknowledge_held(TP, 0, ACCEPT)
    assert bench.holdings.acknowledge_held(TP, 2, ACCEPT)


def test_commits_wait_for_what_was_decided_before_them() -> None:
    bench = Bench()
    bench.give(log_batch(0, 4), ValueRun(0, 3, 1))
    rows = bench.out.rows(9)
    bench.out.acknowledge(rows[0], ACCEPT)
    number = bench.holdings.begin_commit()
    (first,) = bench.holdings.decisions()
    bench.holdings.seal_commit()
    bench.out.acknowledge(rows[1], ACCEPT)
    (second,) = bench.holdings.decisions()
    assert not bench.holdings.is_settled(number)
    bench.holdings.settle(first.group, None)
    assert bench.holdings.is_settled(number)
    bench.holdings.settle(second.group, CorruptRecordError("no"))
    assert bench.holdings.end_commit(number) == {TP: None}
    assert bench.holdings.refused == 1


def test_a_commit_with_a_limit_of_its_own_is_tried_again_for_as_long() -> None:
    bench = Bench()
    bench.give(log_batch(0, 2), ValueRun(0, 1, 1))
    rows = bench.out.rows(9)
    bench.out.acknowledge(rows[0], ACCEPT)
    (usual,) = bench.holdings.decisions()
    bench.out.acknowledge(rows[1], ACCEPT)
    (patient,) = bench.holdings.decisions(patience_s=1_000.0)
    assert patient.group.deadline == bench.now + 1_000.0
    assert usual.group.deadline < patient.group.deadline


def test_decisions_for_busy_brokers_wait() -> None:
    bench = Bench()
    bench.give(log_batch(0, 2), ValueRun(0, 1, 1))
    bench.out.acknowledge(bench.out.rows(9), ACCEPT)
    assert bench.holdings.decisions(busy=[1]) == []
    assert bench.holdings.is_decided
    (decision,) = bench.holdings.decisions(busy=[2])
    assert not bench.holdings.is_quiet
    bench.holdings.settle(decision.group, None)
    assert bench.holdings.is_quiet
