"""Tests of the newer Fetch calls that replace one old Fetch: their offsets, limits and waiting times."""

from __future__ import annotations

from typing import Any

from broker.bench_node import batch_of
from penstock.gateway.calls import NodeCall
from penstock.gateway.translation import translate
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from penstock.records.batch import ABORT_MARKER, COMMIT_MARKER, encode_marker

UPSTREAM = {ApiKey.FETCH: (4, 18)}
NOW_MS = 1_700_000_000_000


def request(*offsets: int, limit: int = 1000, **fields: Any) -> FetchRequest:
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=limit)
        for index, offset in enumerate(offsets)
    ]
    return FetchRequest(
        max_wait_ms=500, min_bytes=7, topics=[FetchTopic(topic="t", partitions=partitions)], **fields
    )


def answer(*partitions: PartitionData, **fields: Any) -> FetchResponse:
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=list(partitions))], **fields)


def data(records: bytes = b"", end: int = 9, stable: int | None = None, **fields: Any) -> PartitionData:
    return PartitionData(
        high_watermark=end, last_stable_offset=end if stable is None else stable, records=records, **fields
    )


def run(asked: FetchRequest, version: int, *answers: FetchResponse) -> tuple[Any, list[NodeCall]]:
    steps = translate(ApiKey.FETCH, version, asked, UPSTREAM)
    calls: list[NodeCall] = []
    response: Any = None
    try:
        while True:
            calls.append(steps.send(response))
            response = answers[len(calls) - 1]
    except StopIteration as done:
        assert len(calls) == len(answers)
        return done.value, calls


def asked_of(call: NodeCall) -> list[tuple[int, int, int]]:
    """Return (partition, offset, limit in bytes) for each partition of a Fetch call."""
    message: Any = call.message
    return [
        (each.partition, each.fetch_offset, each.partition_max_bytes)
        for topic in message.topics
        for each in topic.partitions
    ]


def marker(offset: int, kind: int = COMMIT_MARKER, producer_id: int = 5) -> bytes:
    return bytes(
        encode_marker(
            kind, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS,
            base_offset=offset,
        )
    )  # fmt: skip


def test_the_cluster_is_asked_for_committed_records_without_a_session() -> None:
    batch = bytes(batch_of(b"v", base_offset=3))
    found, (call,) = run(request(3), 3, answer(data(batch), throttle_time_ms=12))
    message: Any = call.message
    assert (call.version, call.node_id, message.replica_id) == (12, None, -1)
    assert (message.session_id, message.session_epoch, message.isolation_level) == (0, -1, 1)
    assert (message.max_wait_ms, message.min_bytes) == (500, 7)
    assert asked_of(call) == [(0, 3, 1000)]
    assert found.throttle_time_ms == 12
    assert len(found.responses[0].partitions[0].records) == 34 + 2


def test_a_client_at_a_marker_waits_behind_it_for_all_that_it_asked_for() -> None:
    """The first call returns only transaction markers.

    A second call then waits for records after them and in the other partitions.
    """
    markers = marker(3) + marker(4)
    found, calls = run(request(3, 8), 1, answer(data(markers), data(partition_index=1)), answer())
    assert [asked_of(call) for call in calls] == [[(0, 3, 1000), (1, 8, 1000)], [(0, 5, 1000), (1, 8, 1000)]]
    assert [call.message.max_wait_ms for call in calls] == [500, 500]  # type: ignore[attr-defined]
    assert [bytes(each.records) for each in found.responses[0].partitions] == [b"", b""]


def test_where_there_are_records_markers_are_read_over_without_waiting() -> None:
    batch = bytes(batch_of(b"v", base_offset=8))
    found, calls = run(
        request(3, 8),
        0,
        answer(data(marker(3)), data(batch, partition_index=1)),
        answer(data(marker(4))),
        answer(data(bytes(batch_of(b"w", base_offset=5)))),
    )
    assert [asked_of(call) for call in calls[1:]] == [[(0, 4, 1000)], [(0, 5, 1000)]]
    assert [call.message.max_wait_ms for call in calls] == [500, 0, 0]  # type: ignore[attr-defined]
    assert [len(each.records) for each in found.responses[0].partitions] == [28, 28]


def test_aborted_records_end_at_their_marker() -> None:
    """Records of the same producer after the abort marker belong to its next transaction."""
    who = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    records = b"".join(
        (
            bytes(batch_of(b"aborted", base_offset=0, **who)),
            bytes(batch_of(b"of another", base_offset=1)),
            marker(2, ABORT_MARKER),
            bytes(batch_of(b"committed", base_offset=3, **who)),
            marker(4),
        )
    )
    aborted = [AbortedTransaction(producer_id=5, first_offset=0)]
    found, _ = run(request(0), 0, answer(data(records, aborted_transactions=aborted)))
    records = bytes(found.responses[0].partitions[0].records)
    assert b"aborted" not in records
    assert records.index(b"of another") < records.index(b"committed")


def test_damaged_records_are_an_error_of_their_partition() -> None:
    batch = batch_of(b"v" * 20)
    batch[70] ^= 1
    found, _ = run(
        request(0, 0), 0, answer(data(bytes(batch)), data(bytes(batch_of(b"v")), partition_index=1))
    )
    codes = [each.error_code for each in found.responses[0].partitions]
    assert codes == [ErrorCode.CORRUPT_MESSAGE, 0]


def test_an_error_ends_the_waiting_and_the_whole_has_one_for_each() -> None:
    failed = data(error_code=ErrorCode.KAFKA_STORAGE_ERROR, end=-1)
    found, _ = run(request(0, 0), 0, answer(failed, data(end=0, partition_index=1)))
    assert [each.error_code for each in found.responses[0].partitions] == [6, 0]
    found, _ = run(request(0, 0), 0, FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    assert [each.error_code for each in found.responses[0].partitions] == [7, 7]


def test_partitions_that_the_cluster_leaves_out_are_empty() -> None:
    found, _ = run(request(0, 0), 0, answer(data(bytes(batch_of(b"v")))))
    assert [len(each.records) for each in found.responses[0].partitions] == [28, 0]
