"""Tests of the Fetch handler: size limits, waiting for records, error codes, and old versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import NOW_MS, ask, batch_of, make_node, make_topic, produce
from for_each import for_each
from penstock.broker.config.values import BrokerConfig
from penstock.broker.node import Node
from penstock.broker.partitions.disk_log_store import DiskStore
from penstock.broker.requests.purgatory import Wait
from penstock.clock import ManualClock
from penstock.protocol.codec import codec_for
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.fetch_response import FetchResponse
from penstock.records.batch import decode_batch
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import split_batches

BATCH = len(batch_of(b"x" * 100))


def fetch_request(
    *asked: tuple[int, int], topic: str = "t", limit: int = 1 << 20, **fields: Any
) -> FetchRequest:
    """Return a Fetch request; each of `asked` is a pair of partition and offset.

    `limit` is the maximum number of bytes for each partition.
    """
    partitions = [
        FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=limit)
        for partition, offset in asked
    ]
    topic_id = fields.pop("topic_id", bytes(16))
    return FetchRequest(topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)], **fields)


def fetch(node: Node, *asked: tuple[int, int], version: int = 12, **fields: Any) -> Any:
    return ask(node, fetch_request(*asked, **fields), version).responses[0].partitions


def data_of(partition: Any) -> bytes:
    records = partition.records
    pieces = records if isinstance(records, list) else [records]
    return b"".join(bytes(piece) for piece in pieces)


def offsets_of(partition: Any) -> list[int]:
    data = data_of(partition)
    rows = [row for start, end, _ in split_batches(data) for row in decode_batch(data, start, end, "t", 0)]
    return [row.offset for row in rows]


def filled(batches: int = 3, partitions: int = 1, **configs: str) -> Node:
    node = make_node()
    make_topic(node, partitions=partitions, **configs)
    for partition in range(partitions):
        for _ in range(batches):
            assert produce(node, batch_of(b"x" * 100), partition=partition).error_code == 0
    return node


def test_records_from_an_offset_on_with_the_marks_of_the_log() -> None:
    [partition] = fetch(filled(), (0, 1))
    assert offsets_of(partition) == [1, 2]
    marks = (partition.high_watermark, partition.last_stable_offset, partition.log_start_offset)
    assert marks == (3, 3, 0)
    assert partition.aborted_transactions is None


@pytest.fixture
def twins(tmp_path: Path) -> list[Node]:
    """Return two nodes with the same batches: one stores them in memory, one in files.

    Reads of a single batch from files take a faster code path.
    """
    clock = ManualClock(NOW_MS)
    nodes = [make_node(), make_node(DiskStore(str(tmp_path), BrokerConfig({}), clock), clock)]
    for node in nodes:
        make_topic(node, partitions=2)
        for values in (b"x" * 100, b"y"), (b"z" * 100,), (b"end",):
            for partition in 0, 1:
                assert produce(node, batch_of(*values), partition=partition).error_code == 0
    return nodes


@for_each(
    (offset, limit, most)
    for offset in (-1, 0, 1, 2, 3, 4, 5)
    for limit in (-1, 0, 1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH, 2**31 - 1)
    for most in (-1, 0, 1, BATCH, 2**31 - 1)
)
def test_files_answer_as_memory_does_under_all_limits(
    offset: int, limit: int, most: int, twins: list[Node]
) -> None:
    for isolation_level in 0, 1:
        request = fetch_request(
            (0, offset), (1, offset), limit=limit, max_bytes=most, isolation_level=isolation_level
        )
        answers = [ask(node, request, 12) for node in twins]
        for answer in answers:
            for partition in answer.responses[0].partitions:
                partition.records = data_of(partition)
            # It has all the fields that a message made by its class has.
            assert FetchResponse.decode(codec_for(FetchResponse, 12).encode(answer), 12) == answer
        assert answers[0] == answers[1]


@for_each((given, found) for given, found in ((-5, 0), (-1, 0), (0, 0), (1, 75)))
def test_a_negative_leader_epoch_is_none(given: int, found: int) -> None:
    request = fetch_request((0, 0))
    request.topics[0].partitions[0].current_leader_epoch = given
    assert ask(filled(), request, 12).responses[0].partitions[0].error_code == found


def test_from_inside_a_batch_the_whole_batch_comes() -> None:
    node = make_node()
    make_topic(node)
    produce(node, batch_of(b"a", b"b", b"c"))
    assert offsets_of(fetch(node, (0, 1))[0]) == [0, 1, 2]


def test_read_committed_lists_no_aborted_transactions() -> None:
    assert fetch(filled(), (0, 0), isolation_level=1)[0].aborted_transactions == []


@pytest.mark.parametrize(
    ("limit", "max_bytes", "found"),
    [
        (2 * BATCH, 1 << 20, [2, 2]),
        (1, 1 << 20, [1, 0]),
        (0, 1 << 20, [1, 0]),
        (1 << 20, 2 * BATCH, [2, 0]),
        (1 << 20, 4 * BATCH, [3, 1]),
        (1 << 20, 0, [1, 0]),
        (-5, -5, [1, 0]),
    ],
)
def test_limits_and_the_first_batch_in_spite_of_them(limit: int, max_bytes: int, found: list[int]) -> None:
    answers = fetch(filled(partitions=2), (0, 0), (1, 0), limit=limit, max_bytes=max_bytes)
    assert [len(offsets_of(answer)) for answer in answers] == found


def test_the_brokers_own_limit() -> None:
    node = make_node(fetch_max_bytes=1024)
    make_topic(node)
    for _ in range(20):
        produce(node, batch_of(b"x" * 100))
    assert len(data_of(fetch(node, (0, 0))[0])) <= 1024


# --- waiting ------------------------------------------------------------------------------------------------


def test_a_fetch_waits_for_min_bytes_until_its_deadline() -> None:
    node = filled()
    request = fetch_request((0, 2), min_bytes=2 * BATCH, max_wait_ms=500)
    wait = ask(node, request, 12)
    assert isinstance(wait, Wait)
    assert wait.keys == [node.cluster.topic("t").partitions[0]]
    assert wait.deadline == pytest.approx(node.clock.monotonic() + 0.5)
    assert wait.amount == BATCH
    late = ask(node, request, 12, waited_s=0.5)
    assert offsets_of(late.responses[0].partitions[0]) == [2]
    produce(node, batch_of(b"x" * 100))
    assert offsets_of(ask(node, request, 12).responses[0].partitions[0]) == [2, 3]


@pytest.mark.parametrize("fields", [{"max_wait_ms": 0, "min_bytes": 1}, {"max_wait_ms": 500, "min_bytes": 0}])
def test_nobody_waits_who_does_not_want_to(fields: dict[str, int]) -> None:
    assert offsets_of(fetch(filled(), (0, 3), **fields)[0]) == []


def test_an_error_ends_the_wait() -> None:
    answers = fetch(filled(), (0, 3), (9, 0), min_bytes=1, max_wait_ms=500)
    assert [answer.error_code for answer in answers] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_asking_for_nothing_is_answered_at_once() -> None:
    assert ask(filled(), FetchRequest(min_bytes=1, max_wait_ms=500), 12).responses == []


def test_deleting_the_topic_wakes_those_who_wait_for_it() -> None:
    node = filled()
    request = fetch_request((0, 3), min_bytes=1 << 30, max_wait_ms=500)
    answers: list[Any] = []
    node.purgatory.park(ask(node, request, 12), lambda: answers.append(ask(node, request, 12)))
    ask(node, DeleteTopicsRequest(topic_names=["t"]), 5)
    for resume in node.purgatory.take_due(node.clock.monotonic()):
        resume()
    assert answers[0].responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [-1, 4, 1 << 62])
def test_offsets_out_of_range(offset: int) -> None:
    [partition] = fetch(filled(), (0, offset))
    assert (partition.error_code, partition.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_below_the_log_start_is_out_of_range() -> None:
    node = filled()
    node.cluster.topic("t").partitions[0].log.delete_before(2)
    assert fetch(node, (0, 1))[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert offsets_of(fetch(node, (0, 2))[0]) == [2]


def test_topics_by_id() -> None:
    node = filled()
    topic_id = node.cluster.topic("t").id
    assert offsets_of(fetch(node, (0, 0), version=13, topic_id=topic_id)[0]) == [0, 1, 2]
    assert fetch(node, (0, 0), version=13, topic_id=b"\1" * 16)[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert fetch(node, (0, 0), topic="other")[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_leader_epochs(epoch: int, code: int) -> None:
    request = fetch_request((0, 0))
    request.topics[0].partitions[0].current_leader_epoch = epoch
    assert ask(filled(), request, 12).responses[0].partitions[0].error_code == code


def test_an_older_leader_epoch_is_fenced() -> None:
    node = filled()
    node.cluster.topic("t").partitions[0].leader_epoch = 3
    request = fetch_request((0, 0))
    request.topics[0].partitions[0].current_leader_epoch = 2
    answer = ask(node, request, 12).responses[0].partitions[0]
    assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH


# --- old versions -------------------------------------------------------------------------------------------


@for_each(
    [
        (version, magic, codec)
        for codec in [
            CompressionCodec.NONE,
            CompressionCodec.GZIP,
            CompressionCodec.SNAPPY,
            CompressionCodec.LZ4,
        ]
        for version, magic in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)]
    ]
)
def test_old_fetchers_get_the_magic_they_know(version: int, magic: int, codec: CompressionCodec) -> None:
    node = make_node()
    make_topic(node)
    produce(node, batch_of(b"a", None, b"c", codec=codec))
    [partition] = fetch(node, (0, 1), version=version)
    data = data_of(partition)
    assert {found for _, _, found in split_batches(data)} == {magic}
    rows = [row for start, end, _ in split_batches(data) for row in decode_batch(data, start, end, "t", 0)]
    assert [(row.offset, row.value) for row in rows][-2:] == [(1, None), (2, b"c")]
    assert {row.timestamp for row in rows} == {NOW_MS if magic else -1}


@pytest.mark.parametrize(("version", "whole"), [(0, False), (2, False), (3, True)])
def test_a_message_above_the_limit_is_cut_before_version_3(version: int, whole: bool) -> None:
    size = len(data_of(fetch(filled(), (0, 0), version=version, limit=50)[0]))
    assert (size > 50) is whole


def test_zstd_is_not_for_old_fetchers() -> None:
    node = make_node()
    make_topic(node)
    produce(node, batch_of(b"a" * 99, codec=CompressionCodec.ZSTD))
    assert fetch(node, (0, 0), version=3)[0].error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert fetch(node, (0, 0), version=4)[0].error_code == 0
    stored_so = filled(compression_type="zstd")
    assert fetch(stored_so, (0, 0), version=9)[0].error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert fetch(stored_so, (0, 0), version=10)[0].error_code == 0


def test_conversion_can_be_forbidden() -> None:
    """With the broker's `log.message.downconversion.enable=false` Fetch v3 gets UNSUPPORTED_VERSION.

    The topic setting for this was removed in Kafka 4.0.
    """
    node = make_node(log_message_downconversion_enable="false")
    make_topic(node)
    assert produce(node, batch_of(b"x" * 100)).error_code == 0
    assert fetch(node, (0, 0), version=3)[0].error_code == ErrorCode.UNSUPPORTED_VERSION
    assert fetch(node, (0, 0), version=4)[0].error_code == 0
