"""Tests of the Produce handler: where records are stored, what is answered, and every reason for an error."""

from __future__ import annotations

from typing import Any

import pytest

from broker.bench_node import (
    NOW_MS,
    ask,
    batch_of,
    context_of,
    make_node,
    make_topic,
    produce,
    produce_request,
)
from broker.wire_client import WireClient
from for_each import for_each
from penstock.broker.config.values import BrokerConfig
from penstock.broker.context import CloseConnection
from penstock.broker.handlers import ROUTES
from penstock.broker.handlers.produce import APPENDS_PER_TURN, COPIED_BYTES_MAX
from penstock.broker.node import Node
from penstock.broker.partitions.log_store import MemoryStore
from penstock.broker.requests.purgatory import Wait
from penstock.clock import ManualClock
from penstock.errors import StorageError
from penstock.model import TimestampType
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.batch import decode_batch
from penstock.records.compression.codecs import CompressionCodec, compress
from penstock.records.format.batch_header import read_header, split_batches
from penstock.records.legacy import encode_message, encode_message_set
from penstock.testing import KafkaBroker


def stored(node: Node, topic: str = "t", partition: int = 0) -> bytes:
    log = node.cluster.topic(topic).partition(partition).log
    return log.read(log.start_offset, 1 << 30).to_bytes()


def values_in(data: bytes) -> list[bytes | None]:
    return [
        row.value for start, end, _ in split_batches(data) for row in decode_batch(data, start, end, "t", 0)
    ]


def test_offsets_follow_each_other_and_are_written_into_the_batches() -> None:
    node = make_node()
    make_topic(node)
    assert [produce(node, batch_of(b"a", b"b")).base_offset, produce(node, batch_of(b"c")).base_offset] == [
        0,
        2,
    ]
    data = stored(node)
    assert [read_header(data, start).base_offset for start, _, _ in split_batches(data)] == [0, 2]
    assert [read_header(data, start).partition_leader_epoch for start, _, _ in split_batches(data)] == [0, 0]
    assert values_in(data) == [b"a", b"b", b"c"]


def test_the_answer_tells_log_start_and_no_time() -> None:
    node = make_node()
    make_topic(node)
    answer = produce(node, batch_of(b"a"))
    assert (answer.error_code, answer.log_append_time_ms, answer.log_start_offset) == (0, -1, 0)


def test_log_append_time_is_the_brokers() -> None:
    node = make_node()
    make_topic(node, message_timestamp_type="LogAppendTime")
    assert produce(node, batch_of(b"a", b"b", time_ms=5)).log_append_time_ms == NOW_MS
    data = stored(node)
    rows = decode_batch(data, 0, len(data), "t", 0)
    assert {(row.timestamp, row.timestamp_type) for row in rows} == {(NOW_MS, TimestampType.LOG_APPEND_TIME)}


@pytest.mark.parametrize("acks", [-2, 2, 32767])
def test_odd_acks_are_refused(acks: int) -> None:
    node = make_node()
    make_topic(node)
    assert produce(node, batch_of(b"a"), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert stored(node) == b""


def test_unknown_places() -> None:
    node = make_node()
    topic = make_topic(node)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(node, batch_of(b"a"), topic="other").error_code == unknown
    assert produce(node, batch_of(b"a"), partition=1).error_code == unknown
    assert produce(node, batch_of(b"a"), partition=-1).error_code == unknown
    by_id = produce(node, batch_of(b"a"), version=13, topic="", topic_id=b"\1" * 16)
    assert by_id.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert produce(node, batch_of(b"a"), version=13, topic="", topic_id=topic.id).error_code == 0


def produce_to(*records: tuple[int, bytes], acks: int = -1) -> ProduceRequest:
    parts = [PartitionProduceData(index=n, records=memoryview(batch_of(value))) for n, value in records]
    topics = [TopicProduceData(name="t", partition_data=parts)]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


def test_of_a_partition_that_is_named_twice_the_last_records_are_written() -> None:
    node = make_node()
    make_topic(node, partitions=2)
    response = ask(node, produce_to((0, b"a"), (1, b"b"), (0, b"c")), 9)
    assert [(each.index, each.error_code) for each in response.responses[0].partition_responses] == [
        (0, 0),
        (1, 0),
    ]
    assert values_in(stored(node)) == [b"c"]
    assert values_in(stored(node, partition=1)) == [b"b"]


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_request_for_many_partitions_lets_others_have_their_turn(acks: int) -> None:
    node = make_node()
    count = 2 * APPENDS_PER_TURN + 1
    make_topic(node, partitions=count)
    outcome = ask(node, produce_to(*((n, b"%d" % n) for n in range(count)), acks=acks), 9)
    for turn in (1, 2):
        assert isinstance(outcome, Wait)
        assert values_in(stored(node, partition=turn * APPENDS_PER_TURN - 1))
        assert not node.cluster.topic("t").partition(turn * APPENDS_PER_TURN).high_watermark
        assert outcome.deadline > node.clock.monotonic()
        assert outcome.answer is not None
        outcome = outcome.answer()
    [topic] = outcome.responses
    assert [(each.index, each.error_code, each.base_offset) for each in topic.partition_responses] == [
        (n, 0, 0) for n in range(count)
    ]
    assert values_in(stored(node, partition=count - 1)) == [b"%d" % (count - 1)]


def test_turns_are_taken_on_the_wire_as_well() -> None:
    count = APPENDS_PER_TURN + 1
    request = produce_to(*((n, b"%d" % n) for n in range(count)))
    with KafkaBroker() as broker, WireClient(broker.port) as client:
        broker.create_topic("t", partitions=count)
        first = client.bytes_of(request, 9)
        client.socket.sendall(first + client.bytes_of(produce_to((0, b"next")), 9))
        number, answer = client.receive()
        assert (number, len(answer.responses[0].partition_responses)) == (1, count)
        assert client.receive()[1].responses[0].partition_responses[0].base_offset == 1


def test_a_request_with_much_to_copy_or_without_an_answer_is_carried_out_at_once() -> None:
    node = make_node()
    count = APPENDS_PER_TURN + 1
    make_topic(node, partitions=count)
    large = b"x" * (COPIED_BYTES_MAX // count)
    answer = ask(node, produce_to(*((n, large) for n in range(count))), 9)
    assert len(answer.responses[0].partition_responses) == count
    assert ask(node, produce_to(*((n, b"a") for n in range(count)), acks=0), 9) is None
    assert node.cluster.topic("t").partition(count - 1).high_watermark == 2


@pytest.mark.parametrize(("release", "code"), [("2.8", 19), ("3.6", 19), ("3.7", 0), (None, 0)])
def test_too_few_replicas_matter_to_acks_all_only_and_only_long_ago(release: str | None, code: int) -> None:
    clock = ManualClock(NOW_MS)
    config = BrokerConfig({}, as_version=release)
    node = Node(config, MemoryStore(config.node_id, clock), clock)
    make_topic(node, min_insync_replicas="2")
    assert produce(node, batch_of(b"a"), version=9, acks=-1).error_code == code
    assert produce(node, batch_of(b"a"), version=9, acks=1).error_code == 0


def test_larger_than_a_segment() -> None:
    node = make_node()
    make_topic(node, segment_bytes="100")
    assert produce(node, batch_of(b"a" * 100)).error_code == ErrorCode.RECORD_LIST_TOO_LARGE


def test_one_bad_partition_does_not_keep_the_others_from_their_records() -> None:
    node = make_node()
    make_topic(node, partitions=3)
    request = produce_request(batch_of(b"a"))
    more = [produce_request(records, partition=n) for n, records in ((1, b""), (2, batch_of(b"c")))]
    request.topic_data[0].partition_data += [other.topic_data[0].partition_data[0] for other in more]
    answers = ask(node, request, 9).responses[0].partition_responses
    assert [(answer.index, answer.error_code) for answer in answers] == [(0, 0), (1, 87), (2, 0)]
    assert answers[1].error_message
    assert answers[1].base_offset == -1


def test_refused_records_are_named() -> None:
    node = make_node()
    make_topic(node, cleanup_policy="compact")
    answer = produce(node, batch_of(b"a", b"b", key=None))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [0, 1]


def test_no_acks_no_answer_and_a_closed_connection_on_failure() -> None:
    node = make_node()
    make_topic(node)
    assert ask(node, produce_request(batch_of(b"a"), acks=0), 9) is None
    with pytest.raises(CloseConnection, match="acks=0"):
        ask(node, produce_request(batch_of(b"a"), topic="other", acks=0), 9)


@pytest.mark.parametrize(("version", "code"), [(3, 6), (4, 56), (9, 56)])
def test_a_full_disk_is_told_and_survived(version: int, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node()
    log = make_topic(node).partitions[0].log

    def fail(*args: Any, **kwargs: Any) -> None:
        raise StorageError("cannot write x: the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(log, "append", fail)
        assert produce(node, batch_of(b"a"), version=version).error_code == code
    assert produce(node, batch_of(b"a"), version=version).base_offset == 0


# --- idempotence --------------------------------------------------------------------------------------------


def numbered(sequence: int, *values: bytes, epoch: int = 0) -> bytearray:
    return batch_of(*values, producer_id=7, producer_epoch=epoch, base_sequence=sequence)


def test_a_repeated_batch_is_acknowledged_but_not_written_again() -> None:
    node = make_node()
    make_topic(node)
    assert produce(node, numbered(0, b"a", b"b")).base_offset == 0
    assert produce(node, numbered(2, b"c")).base_offset == 2
    assert produce(node, numbered(0, b"a", b"b")).base_offset == 0
    assert values_in(stored(node)) == [b"a", b"b", b"c"]


def test_gaps_and_old_epochs_are_refused() -> None:
    node = make_node()
    make_topic(node)
    produce(node, numbered(0, b"a", epoch=3))
    assert produce(node, numbered(5, b"a", epoch=3)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(node, numbered(1, b"a", epoch=2)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_repeat_carries_the_time_of_the_original() -> None:
    node = make_node()
    make_topic(node, message_timestamp_type="LogAppendTime")
    produce(node, numbered(0, b"a"))
    node.clock.advance(50)  # type: ignore[attr-defined]
    assert produce(node, numbered(0, b"a")).log_append_time_ms == NOW_MS


def test_sequences_are_known_again_after_a_restart() -> None:
    node = make_node()
    make_topic(node)
    for sequence in range(7):
        produce(node, numbered(sequence, b"%d" % sequence))
    again = make_node(node.store)
    assert produce(again, numbered(2, b"2")).base_offset == 2
    assert produce(again, numbered(1, b"1")).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(again, numbered(7, b"7")).base_offset == 7


def test_what_was_not_written_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node()
    log = make_topic(node).partitions[0].log

    def fail(*args: Any, **kwargs: Any) -> None:
        raise StorageError("cannot write x: the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(log, "append", fail)
        produce(node, numbered(0, b"a"))
    assert produce(node, numbered(0, b"a")).base_offset == 0
    assert values_in(stored(node)) == [b"a"]


# --- old producers ------------------------------------------------------------------------------------------


def message_set(magic: int, codec: int = CompressionCodec.NONE) -> bytes:
    return encode_message_set([(b"k", b"a", NOW_MS), (None, None, NOW_MS)], magic, codec=codec)


def around(magic: int, messages: bytes) -> bytes:
    """Return a compressed wrapper message with a valid CRC around messages that may have invalid ones."""
    return encode_message(
        magic, 1, None, compress(CompressionCodec.GZIP, messages), NOW_MS, CompressionCodec.GZIP
    )


@for_each(
    [
        (version, magic, codec)
        for version, magic in [(0, 0), (1, 0), (2, 1), (0, 1)]
        for codec in [
            CompressionCodec.NONE,
            CompressionCodec.GZIP,
            CompressionCodec.SNAPPY,
            CompressionCodec.LZ4,
        ]
    ]
)
def test_message_sets_become_one_batch_of_magic_2(version: int, magic: int, codec: CompressionCodec) -> None:
    node = make_node()
    make_topic(node)
    produce(node, batch_of(b"before"))
    assert produce(node, message_set(magic, codec), version=version).base_offset == 1
    data = stored(node)
    start, end, found = list(split_batches(data))[1]
    assert (found, read_header(data, start).codec) == (2, codec)
    rows = decode_batch(data, start, end, "t", 0)
    assert [(row.offset, row.key, row.value) for row in rows] == [(1, b"k", b"a"), (2, None, None)]
    assert {row.timestamp for row in rows} == {NOW_MS if magic else -1}


def test_the_magic_byte_decides_not_the_version() -> None:
    node = make_node()
    make_topic(node)
    assert produce(node, batch_of(b"a", b"b", codec=CompressionCodec.ZSTD), version=2).base_offset == 0
    assert values_in(stored(node)) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (message_set(1)[:20] + b"?" + message_set(1)[21:], ErrorCode.CORRUPT_MESSAGE),
        (bytes(batch_of(b"a") + batch_of(b"b")), ErrorCode.INVALID_RECORD),
        (encode_message_set([(b"k", b"a" * 300, 0)], 1), ErrorCode.MESSAGE_TOO_LARGE),
        (b"\0" * 100, ErrorCode.CORRUPT_MESSAGE),
        (around(0, message_set(0)[:-1] + b"?"), ErrorCode.CORRUPT_MESSAGE),
        (around(1, message_set(1)[:-1] + b"?"), ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_old_producers_are_refused_too(records: bytes, code: ErrorCode) -> None:
    node = make_node()
    make_topic(node, max_message_bytes="200")
    assert produce(node, records, version=2).error_code == code


def test_a_cut_entry_at_the_end_is_dropped_and_nothing_is_nothing() -> None:
    node = make_node()
    make_topic(node)
    assert produce(node, message_set(1) + message_set(1)[:15], version=2).base_offset == 0
    assert values_in(stored(node)) == [b"a", None]
    empty = produce(node, b"", version=2)
    assert (empty.error_code, empty.base_offset) == (0, -1)


# --- who waits ----------------------------------------------------------------------------------------------


def test_appending_wakes_whoever_waits_for_the_partition() -> None:
    node = make_node()
    partition = make_topic(node).partitions[0]
    resumed: list[str] = []
    node.purgatory.park(Wait([partition], 1e9), lambda: resumed.append("a"))
    produce(node, b"")
    assert not node.purgatory.has_due
    produce(node, batch_of(b"a"))
    assert node.purgatory.has_due


def test_the_lent_memory_is_free_after_the_call() -> None:
    """The connection reuses a request's memory, so the log must have copied the records.

    The test overwrites the memory and then reads the log.
    """
    node = make_node()
    make_topic(node)
    request = produce_request(batch_of(b"a"))
    memory = request.topic_data[0].partition_data[0].records
    ROUTES[ApiKey.PRODUCE].handle(request, context_of(node, 9))
    memory[:] = bytes(len(memory))
    assert values_in(stored(node)) == [b"a"]
