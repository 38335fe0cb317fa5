from __future__ import annotations

import pytest

from for_each import for_each
from penstock.client.cluster.metadata import NO_TOPIC_ID, ClusterMetadata, TopicInfo
from penstock.client.fetch.cursors import (
    FIRST_GUESS_RECORD_BYTES,
    PARTITION_BYTES_MIN,
    Cursor,
    FetchLimits,
    fetch_request,
    fetch_version_limit,
    measure,
)
from penstock.errors import CorruptRecordError
from penstock.model import TopicPartition
from penstock.records.batch import encode_batch
from penstock.records.legacy import encode_message_set

T0 = TopicPartition("t", 0)


def batch(base: int, count: int, deltas: list[int] | None = None) -> bytes:
    return encode_batch([(None, b"x", (), 0)] * count, base_offset=base, offset_deltas=deltas)


@for_each(
    [
        (b"", 7, 0),
        (batch(5, 3), 8, None),
        (batch(5, 3) + batch(8, 2), 10, None),
        (batch(5, 2, [0, 9]), 15, None),
        (batch(5, 3) + batch(8, 2)[:-1], 8, len(batch(5, 3))),
        (batch(5, 3) + b"\0" * 11, 8, len(batch(5, 3))),
        (batch(5, 3)[:-1], 7, 0),
        (encode_message_set([(None, b"a", 0)] * 3, 1, offsets=[7, 8, 9]), 10, None),
        (encode_message_set([(None, b"a", 0)] * 3, 0, offsets=[7, 8, 9], codec=1), 10, None),
        # Everything in it is below what was asked for: the fetcher refuses that.
        (batch(2, 3), 5, None),
    ]
)
def test_measuring_finds_the_end_of_whole_batches(
    records: bytes, next_offset: int, whole: int | None
) -> None:
    assert measure(memoryview(records), 7) == (next_offset, len(records) if whole is None else whole)


@pytest.mark.parametrize("length", [-1, 0, 13, 14])
def test_a_length_that_cannot_be_is_an_error(length: int) -> None:
    broken = bytearray(batch(0, 1))
    broken[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptRecordError):
        measure(memoryview(broken), 0)


def test_a_range_asks_for_little_more_than_it_needs() -> None:
    cursor = Cursor(T0, 0, 100, 4 << 20)
    assert cursor.wanted_bytes == int(100 * FIRST_GUESS_RECORD_BYTES * 1.1)
    cursor.advance(50, 5_000)
    assert cursor.wanted_bytes == PARTITION_BYTES_MIN
    cursor.advance(51, 1 << 20)
    assert cursor.wanted_bytes == 4 << 20
    assert Cursor(T0, 0, None, 1 << 20).wanted_bytes == 1 << 20
    assert Cursor(T0, 0, 10**12, 1_000).wanted_bytes == 1_000


def test_a_range_is_finished_at_its_end() -> None:
    cursor = Cursor(T0, 0, 10, 1_000)
    assert not cursor.is_finished
    cursor.advance(10, 100)
    assert cursor.is_finished
    assert not Cursor(T0, 10, None, 1_000).is_finished


def test_requests_name_partitions_in_order_grouped_by_topic() -> None:
    cluster = ClusterMetadata()
    cluster.topics["t"] = TopicInfo("t", {}, b"i" * 16)
    cursors = [Cursor(TopicPartition(*where), 5, None, 9) for where in (("t", 1), ("u", 0), ("t", 0))]
    request = fetch_request(cursors, cluster, FetchLimits(500, 1, 1 << 20, 1))
    assert [(t.topic, t.topic_id, [p.partition for p in t.partitions]) for t in request.topics] == [
        ("t", b"i" * 16, [1, 0]),
        ("u", NO_TOPIC_ID, [0]),
    ]
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level) == (
        500,
        1,
        1 << 20,
        1,
    )
    assert (request.session_id, request.session_epoch, request.replica_id) == (0, -1, -1)
    assert fetch_version_limit(cursors, cluster) == 12
    assert fetch_version_limit(cursors[:1], cluster) is None
