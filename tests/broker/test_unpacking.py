"""Tests of record batches that a broker must decompress to check them: refusals, limits, concurrency."""

from __future__ import annotations

import random
import threading
import tracemalloc
from typing import Any

import pytest

from broker.bench_node import NOW_MS, ask, context_of, make_node, make_topic, produce, produce_request
from broker.wire_client import WireClient
from for_each import for_each
from penstock import Broker
from penstock.broker.config.values import BrokerConfig
from penstock.broker.handlers.postponed_records import Postponed
from penstock.broker.node import Node
from penstock.broker.partitions.log_store import MemoryStore
from penstock.broker.partitions.partition import Partition
from penstock.broker.requests import side_thread as aside
from penstock.broker.requests.purgatory import Purgatory, Wait
from penstock.broker.requests.side_thread import INLINE_RECORDS, SideThread, inline_budget, to_be_raised_later
from penstock.clock import ManualClock
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.compression.codecs import CompressionCodec, UnpackBudget, compress
from penstock.records.format.batch_header import refresh_crc, split_batches
from penstock.records.legacy import encode_message, encode_message_set, iter_messages

MIB = 1 << 20
CODECS = [CompressionCodec.GZIP, CompressionCodec.SNAPPY, CompressionCodec.LZ4, CompressionCodec.ZSTD]


def sealed(batch: bytes | bytearray, **fields: tuple[int, int, int]) -> bytearray:
    """Return the batch with other numbers in its header and a valid CRC.

    A number is given as position, size in bytes and value.
    """
    changed = bytearray(batch)
    for position, size, number in fields.values():
        changed[position : position + size] = number.to_bytes(size, "big", signed=True)
    changed[8:12] = (len(changed) - 12).to_bytes(4, "big")
    refresh_crc(changed, 0, len(changed))
    return changed


def stored_end(node: Node, topic: str = "t") -> int:
    return int(node.cluster.topic(topic).partition(0).log.end_offset)


# --- shapes and counts -------------------------------------------------------------------------------------

PLAIN = encode_batch([(b"k", b"value %d" % number, (), NOW_MS) for number in range(9)])
FEW = encode_batch([(b"k", b"value", (), NOW_MS)] * 2)
LONG = encode_batch([(b"k", bytes(9000), (), NOW_MS)] * 2)
ONE = encode_batch([(b"k", b"value", (("h", b"1"),), NOW_MS)])
COUNT_AT, DELTA_AT, BASE_TIME_AT, MAX_TIME_AT = 57, 23, 27, 35
NOISE = random.Random(12).randbytes(400)
INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1


def garbage() -> list[tuple[str, bytearray]]:
    found = [
        ("random bytes", sealed(PLAIN[:61] + NOISE)),
        ("one record of random bytes", sealed(ONE[:61] + NOISE)),
        ("no record", sealed(PLAIN[:61])),
        ("a record too short", sealed(ONE + b"x")),
        ("a record too long", sealed(ONE[:-1])),
        ("records too few", sealed(FEW[:-8])),
        ("a long record too short", sealed(LONG + b"x")),
        ("a long record too long", sealed(LONG[:-1])),
        ("a length of no size", sealed(ONE[:61] + bytes(len(ONE) - 61))),
        ("a negative length", sealed(ONE[:61] + b"\x01" + ONE[62:])),
        ("an endless length", sealed(ONE[:61] + b"\xff" * 20)),
        ("offsets beyond the count", sealed(PLAIN, last=(DELTA_AT, 4, 9))),
        (
            "2^31 - 1 records in few bytes",
            sealed(ONE, n=(COUNT_AT, 4, INT32_MAX), last=(DELTA_AT, 4, INT32_MAX - 1)),
        ),
    ]
    for codec in CODECS:
        name = codec.name.lower()
        packed = encode_batch([(b"k", b"v" * 50, (), NOW_MS)], codec=codec)
        many = {"n": (COUNT_AT, 4, INT32_MAX), "last": (DELTA_AT, 4, INT32_MAX - 1)}
        found += [
            (f"{name} that is none", sealed(PLAIN[:61] + b"\xfe" * 200, codec=(21, 2, codec))),
            (f"nothing in {name}", sealed(PLAIN[:61], codec=(21, 2, codec))),
            (f"2^31 - 1 records in little {name}", sealed(packed, **many)),
        ]
    return found


@for_each(garbage())
def test_garbage_under_a_right_checksum_is_refused(what: str, batch: bytearray) -> None:
    node = make_node()
    make_topic(node)
    for version in (7, 9):
        assert produce(node, batch, version).error_code == ErrorCode.INVALID_RECORD, what
    assert stored_end(node) == 0
    assert produce(node, PLAIN).base_offset == 0


def test_times_that_no_record_can_have_are_refused() -> None:
    node = make_node()
    make_topic(node)
    late = sealed(PLAIN, base=(BASE_TIME_AT, 8, INT64_MAX))  # the greatest time is sane
    assert produce(node, late).error_code == ErrorCode.INVALID_TIMESTAMP
    wandering = encode_batch([(b"k", b"v", (), NOW_MS), (b"k", b"v", (), NOW_MS + 1)])
    overflowing = sealed(wandering, base=(BASE_TIME_AT, 8, INT64_MAX))
    assert produce(node, overflowing).error_code == ErrorCode.INVALID_RECORD
    early = sealed(wandering, base=(BASE_TIME_AT, 8, -(2**63)), greatest=(MAX_TIME_AT, 8, -5))
    assert produce(node, early).error_code == 0
    assert stored_end(node) == 2


def test_a_header_that_contradicts_its_records_times_is_put_right() -> None:
    node = make_node()
    make_topic(node)
    for base, greatest in ((NOW_MS, -1), (NOW_MS, NOW_MS - 1000), (NOW_MS, 0)):
        batch = encode_batch([(b"k", b"v", (), NOW_MS), (b"k", b"v", (), NOW_MS + 7)])
        changed = sealed(batch, base=(BASE_TIME_AT, 8, base), greatest=(MAX_TIME_AT, 8, greatest))
        assert produce(node, changed).error_code == 0
        log = node.cluster.topic("t").partition(0).log
        assert [entry.max_timestamp for entry in log.entries()][-1] == NOW_MS + 7


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, *CODECS])
def test_what_is_sound_passes(codec: CompressionCodec) -> None:
    node = make_node()
    make_topic(node)
    samples = [
        [(None, None, (), NOW_MS)],
        [(None, b"", (), NOW_MS)] * 3,
        [(b"k", b"v" * 300, (), NOW_MS)] * 2,
        [(b"k" * 20_000, b"v", (("h", None),), NOW_MS - n) for n in range(6)],
        [(None, b"", (), -1)] * 5000,
    ]
    for rows in samples:
        assert produce(node, encode_batch(rows, codec=codec)).error_code == 0
    assert stored_end(node) == 1 + 3 + 2 + 6 + 5000


def test_raw_snappy_and_streamed_zstd_pass() -> None:
    import cramjam

    node = make_node()
    make_topic(node)
    records = PLAIN[61:]
    raw = sealed(
        PLAIN[:61] + bytes(cramjam.snappy.compress_raw(records)), codec=(21, 2, CompressionCodec.SNAPPY)
    )
    assert produce(node, raw).error_code == 0
    streamed = cramjam.zstd.Compressor(3)
    streamed.compress(records)
    frame = bytes(streamed.finish())
    assert produce(node, sealed(PLAIN[:61] + frame, codec=(21, 2, CompressionCodec.ZSTD))).error_code == 0


# --- limits ------------------------------------------------------------------------------------------------


def bomb(value_bytes: int, codec: CompressionCodec = CompressionCodec.ZSTD) -> bytes:
    return encode_batch([(b"k", bytes(value_bytes), (), NOW_MS)], codec=codec)


def old_bomb(value_bytes: int, magic: int = 1) -> bytes:
    return encode_message_set([(b"k", bytes(value_bytes), NOW_MS)], magic, codec=CompressionCodec.GZIP)


@pytest.mark.parametrize("codec", CODECS)
def test_a_topic_that_need_not_be_looked_into_takes_what_kafka_takes(codec: CompressionCodec) -> None:
    node = make_node(penstock_unpack_max_bytes=MIB)
    make_topic(node, max_message_bytes=str(8 * MIB))
    assert produce(node, encode_batch([(None, bytes(MIB), (), NOW_MS)] * 100, codec=codec)).error_code == 0


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("configs", [{"cleanup_policy": "compact"}, {"compression_type": "uncompressed"}])
def test_more_than_the_limit_is_too_large(codec: CompressionCodec, configs: dict[str, str]) -> None:
    node = make_node(penstock_unpack_max_bytes=2 * MIB, penstock_unpack_max_records=5000)
    make_topic(node, **configs)
    large = produce(node, bomb(3 * MIB, codec))
    assert large.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "penstock.unpack.max.bytes" in large.error_message
    many = produce(node, encode_batch([(b"", b"", (), NOW_MS)] * 5001, codec=codec))
    assert many.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "penstock.unpack.max.records" in many.error_message
    assert stored_end(node) == 0
    assert produce(node, encode_batch([(b"", b"", (), NOW_MS)] * 5000, codec=codec)).error_code == 0
    assert stored_end(node) == 5000


@pytest.mark.parametrize("magic", [0, 1])
def test_so_are_messages_of_old_producers(magic: int) -> None:
    node = make_node(penstock_unpack_max_bytes=2 * MIB, penstock_unpack_max_records=5000)
    make_topic(node)
    assert produce(node, old_bomb(3 * MIB, magic), 1).error_code == ErrorCode.MESSAGE_TOO_LARGE
    for codec in (CompressionCodec.NONE, CompressionCodec.GZIP):
        many = encode_message_set([(None, b"", NOW_MS)] * 5001, magic, codec=codec)
        assert produce(node, many, 2).error_code == ErrorCode.MESSAGE_TOO_LARGE
        few = encode_message_set([(None, b"", NOW_MS)] * 5000, magic, codec=codec)
        assert produce(node, few, 2).error_code == 0
    assert stored_end(node) == 10_000


def test_partitions_of_one_request_share_a_budget() -> None:
    node = make_node(penstock_unpack_max_bytes=5 * MIB)
    make_topic(node, partitions=3, cleanup_policy="compact")
    request = produce_request(bomb(2 * MIB))
    data = request.topic_data[0].partition_data
    data += [type(data[0])(index=index, records=memoryview(bytearray(bomb(2 * MIB)))) for index in (1, 2)]
    answer = ask(node, request, 9).responses[0].partition_responses
    assert [each.error_code for each in answer] == [0, 0, ErrorCode.MESSAGE_TOO_LARGE]


def test_records_that_are_looked_over_become_no_objects() -> None:
    node = make_node()
    make_topic(node, cleanup_policy="compact")
    batch = encode_batch([(b"", b"", (), NOW_MS)] * 50_000, codec=CompressionCodec.ZSTD)
    tracemalloc.start()
    assert produce(node, batch).error_code == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * MIB  # decompressed they take 0.8 MB, as records they would 30


def test_an_answer_blames_few_of_many_records() -> None:
    node = make_node()
    make_topic(node, cleanup_policy="compact")
    assert len(produce(node, encode_batch([(None, b"", (), NOW_MS)] * 3000)).record_errors) == 1000
    make_topic(node, "late")
    late = encode_batch([(None, b"", (), NOW_MS + 10**9)] * 3000)
    assert len(produce(node, late, topic="late").record_errors) == 1000


# --- who goes on meanwhile ---------------------------------------------------------------------------------


class Gate:
    """A gate in the thread that decompresses records: its work waits until the gate is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str = "admit") -> None:
        self.entered, self.open = threading.Event(), threading.Event()
        function = getattr(Partition, name)

        def hold(*arguments: Any) -> Any:
            assert threading.current_thread().name.startswith("penstock-unpack")
            self.entered.set()
            assert self.open.wait(60)
            return function(*arguments)

        monkeypatch.setattr(Partition, name, hold)


def many_keyed(count: int = 5 * INLINE_RECORDS) -> bytes:
    return encode_batch([(b"k%d" % number, b"v", (), NOW_MS) for number in range(count)])


@pytest.mark.parametrize("acks", [0, 1])
def test_others_are_answered_while_records_are_unpacked(monkeypatch: pytest.MonkeyPatch, acks: int) -> None:
    with Broker(log_cleanup_policy="compact", log_message_timestamp_before_max_ms=2**62) as broker:
        assert broker.port is not None
        with WireClient(broker.port) as slow, WireClient(broker.port) as good:
            good.ask(MetadataRequest(topics=[]), 1)
            small = encode_batch([(b"k", b"v", (), NOW_MS)])
            broker_topic(good, "t")
            gate = Gate(monkeypatch)
            slow.send(produce_request(many_keyed(), acks=acks), 9)
            assert gate.entered.wait(60)
            assert good.ask(produce_request(small), 9).responses[0].partition_responses[0].base_offset == 0
            gate.open.set()
            if acks:
                assert slow.receive()[1].responses[0].partition_responses[0].base_offset == 1
            else:  # nothing comes, and what is asked next is answered behind it
                slow.ask(MetadataRequest(topics=[]), 1)
            again = good.ask(produce_request(small), 9).responses[0].partition_responses[0]
            assert again.base_offset == 1 + 5 * INLINE_RECORDS


def broker_topic(client: WireClient, name: str) -> None:
    from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 4)
    assert answer.topics[0].error_code == 0


def test_a_topic_deleted_meanwhile_is_not_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest

    with Broker(log_cleanup_policy="compact", log_message_timestamp_before_max_ms=2**62) as broker:
        assert broker.port is not None
        with WireClient(broker.port) as slow, WireClient(broker.port) as good:
            broker_topic(good, "t")
            gate = Gate(monkeypatch)
            slow.send(produce_request(many_keyed()), 9)
            assert gate.entered.wait(60)
            good.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 3)
            gate.open.set()
            answer = slow.receive()[1].responses[0].partition_responses[0]
            assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_what_raises_in_the_thread_ends_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(log_cleanup_policy="compact", log_message_timestamp_before_max_ms=2**62) as broker:
        assert broker.port is not None
        with WireClient(broker.port) as slow, WireClient(broker.port) as good:
            broker_topic(good, "t")

            def fail(*_: Any) -> None:
                raise MemoryError

            with monkeypatch.context() as patch:
                patch.setattr(Partition, "admit", fail)
                slow.send(produce_request(many_keyed()), 9)
                with pytest.raises(ConnectionError):
                    slow.receive()
            again = good.ask(produce_request(many_keyed()), 9).responses[0].partition_responses[0]
            assert again.base_offset == 0


def test_what_waits_for_the_thread_is_bounded() -> None:
    node = make_node()
    make_topic(node, cleanup_policy="compact")
    begun: list[Any] = []
    node.call_soon = begun.append
    thread = node.side_thread()
    assert thread is not None
    thread.queued_bytes = aside.QUEUED_BYTES_MAX
    assert produce(node, many_keyed()).error_code == ErrorCode.REQUEST_TIMED_OUT  # to be sent again
    assert stored_end(node) == 0
    thread.queued_bytes = 0
    assert isinstance(ask(node, produce_request(many_keyed()), 9), Wait)
    thread.close()


def test_jobs_tell_how_much_they_hold() -> None:
    done = threading.Event()
    calls: list[Any] = []

    def call(action: Any) -> None:
        calls.append(action)
        done.set()

    thread = SideThread(Purgatory(), call)
    job = thread.begin(lambda: None, 1000)
    assert not thread.has_room(aside.QUEUED_BYTES_MAX)
    assert thread.has_room(1000)
    assert done.wait(60)
    calls[0]()
    assert (thread.queued_bytes, job.failure) == (0, None)
    assert thread.has_room(10 * aside.QUEUED_BYTES_MAX)  # alone, anything may
    thread.close()


def test_requests_that_arrive_together_share_what_may_happen_on_the_loop() -> None:
    node = make_node()
    context = context_of(node, 9)
    budget = inline_budget(context)
    assert inline_budget(context) is budget
    context.arrived += 1
    assert inline_budget(context) is not budget


# --- releases of old ---------------------------------------------------------------------------------------


def node_as(release: str, **settings: str) -> Node:
    clock = ManualClock(NOW_MS)
    config = BrokerConfig({name.replace("_", "."): text for name, text in settings.items()}, release)
    return Node(config, MemoryStore(config.node_id, clock), clock)


def nested(depth: int, magic: int = 0, count: int = 3) -> bytes:
    inner = encode_message_set([(b"k", b"%d" % number, NOW_MS) for number in range(count)], magic)
    for _ in range(depth):
        inner = encode_message(
            magic, count - 1, None, compress(CompressionCodec.GZIP, inner), NOW_MS, CompressionCodec.GZIP
        )
    return inner


def stored_messages(node: Node) -> list[tuple[int, bytes]]:
    log = node.cluster.topic("t").partition(0).log
    data = log.read(0, 1 << 30).to_bytes()
    assert all(magic < 2 for _, _, magic in split_batches(data))
    return [
        (each.offset, bytes(each.value or b""))
        for start, end, _ in split_batches(data)
        for each in iter_messages(data, start, end, nested=False)
    ]


@pytest.mark.parametrize("release", ["0.8.0", "0.8.2", "0.9"])
def test_messages_in_messages_in_messages_are_taken_by_releases_that_took_them(release: str) -> None:
    node = node_as(release)
    make_topic(node)
    assert produce(node, nested(3), 0, acks=1).base_offset == 0
    assert produce(node, nested(2), 0, acks=1).base_offset == 3
    assert stored_messages(node) == [(0, b"0"), (1, b"1"), (2, b"2"), (3, b"0"), (4, b"1"), (5, b"2")]
    deep = produce(node, nested(20), 0, acks=1)
    assert deep.error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("release", ["0.10.0", "0.11", "3.9", None])
@pytest.mark.parametrize("magic", [0, 1])
def test_newer_ones_refuse_them(release: str | None, magic: int) -> None:
    node = make_node() if release is None else node_as(release)
    make_topic(node)
    assert produce(node, nested(2, magic), 2).error_code == ErrorCode.CORRUPT_MESSAGE
    assert produce(node, nested(1, magic), 2).error_code == 0


def test_nested_bombs_stay_within_the_budget() -> None:
    node = node_as("0.9", penstock_unpack_max_bytes=str(2 * MIB))
    make_topic(node)
    inner = encode_message(0, 0, None, bytes(3 * MIB), 0)
    for _ in range(4):
        inner = encode_message(0, 0, None, compress(CompressionCodec.GZIP, inner), 0, CompressionCodec.GZIP)
    assert len(inner) < 1000
    assert produce(node, inner, 0).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_what_is_converted_for_its_place_is_converted_again_if_others_were_sooner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = node_as("0.9")
    make_topic(node)
    prepare, times = Partition.prepare_older, []

    def others_come_first(self: Partition, *arguments: Any) -> Any:
        prepared = prepare(self, *arguments)
        times.append(prepared.first_offset)
        if len(times) == 1:
            assert produce(node, encode_message_set([(None, b"sooner", 0)], 0), 0).base_offset == 0
        return prepared

    monkeypatch.setattr(Partition, "prepare_older", others_come_first)
    count = INLINE_RECORDS + 1
    many = encode_message_set(
        [(None, b"%d" % number, 0) for number in range(count)], 0, codec=CompressionCodec.GZIP
    )
    assert produce(node, many, 0).base_offset == 1
    assert times == [0, 1]
    assert stored_messages(node) == [(0, b"sooner"), *((1 + n, b"%d" % n) for n in range(count))]


def test_answers_that_come_later_know_no_newer_errors() -> None:
    node = node_as("0.9")
    late = ProduceResponse(
        responses=[
            TopicProduceResponse(name="t", partition_responses=[PartitionProduceResponse(error_code=87)])
        ]
    )
    assert node.profile is not None
    route = node.router.find(ApiKey.PRODUCE, 0)
    slow = route._replace(handle=lambda *_: Wait([], 0, 1, lambda: Wait([], 0, 1, lambda: late)))
    wait: Any = node.profile.intercept(slow).handle(None, context_of(node, 0))
    assert wait.answer().answer().responses[0].partition_responses[0].error_code == ErrorCode.CORRUPT_MESSAGE


# --- fetch -------------------------------------------------------------------------------------------------


def fetch(node: Node, version: int, sizes: list[int], **limits: int) -> list[Any]:
    partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=size)
        for index, size in enumerate(sizes)
    ]
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        session_epoch=-1,
        topics=[FetchTopic(topic="t", partitions=partitions)],
        **limits,
    )
    answer = ask(node, request, version)
    return list(answer.responses[0].partitions)


def lengths(answers: list[Any]) -> list[int]:
    return [
        len(b"".join(map(bytes, each.records)) if isinstance(each.records, list) else each.records)
        for each in answers
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_partition_is_given_its_bytes_before_version_3(version: int) -> None:
    node = make_node()
    make_topic(node, partitions=3)
    for partition in range(3):
        for _ in range(2):
            produce(node, encode_batch([(None, b"x" * 600, (), NOW_MS)]), partition=partition)
    assert lengths(fetch(node, version, [500, 500, 500])) == [500, 500, 500]
    message = len(encode_message(1 if version == 2 else 0, 0, None, b"x" * 600, NOW_MS))
    assert lengths(fetch(node, version, [1000, 0, 100])) == [message, 0, 100]
    assert lengths(fetch(node, version, [10_000] * 3)) == [2 * message] * 3


@pytest.mark.parametrize("version", [3, 4, 11])
def test_from_version_3_on_only_the_first_comes_whole_whatever_its_size(version: int) -> None:
    node = make_node()
    make_topic(node, partitions=3)
    for partition in range(3):
        produce(node, encode_batch([(None, b"x" * 600, (), NOW_MS)]), partition=partition)
    found = lengths(fetch(node, version, [500, 500, 5000], max_bytes=1 << 20))
    assert found[0] > 600
    assert found[1:] == [0, found[0]]
    assert lengths(fetch(node, version, [500, 5000, 5000], max_bytes=600)) == [found[0], 0, 0]


def test_what_is_large_is_converted_whole_and_what_is_too_large_is_refused() -> None:
    node = make_node(penstock_unpack_max_bytes=4 * MIB, penstock_unpack_max_records=20_000)
    make_topic(node)
    rows = [(None, b"%d" % number, (), NOW_MS) for number in range(5 * INLINE_RECORDS)]
    produce(node, encode_batch(rows, codec=CompressionCodec.LZ4))
    produce(node, bomb(5 * MIB))  # taken as it is: the topic need not be looked into
    (answer,) = fetch(node, 3, [10 * MIB], max_bytes=10 * MIB)
    data = bytes(answer.records)
    found = [row for start, end, _ in split_batches(data) for row in decode_batch(data, start, end, "t", 0)]
    assert [(row.offset, row.value) for row in found] == [
        (n, value) for n, (_, value, _, _) in enumerate(rows)
    ]
    node.cluster.topic("t").partition(0).delete_records(len(rows))
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        max_bytes=10 * MIB,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic="t",
                partitions=[
                    FetchPartition(partition=0, fetch_offset=len(rows), partition_max_bytes=10 * MIB)
                ],
            )
        ],
    )
    refused = ask(node, request, 3).responses[0].partitions[0]
    # The codec is what such clients do not know; a codec that they do know has the limit.
    assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    produce(node, bomb(5 * MIB, CompressionCodec.GZIP))
    request.topics[0].partitions[0].fetch_offset += 1
    assert ask(node, request, 3).responses[0].partitions[0].error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_one_request_holds_little_of_what_is_to_be_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.broker.handlers import fetch as module

    monkeypatch.setattr(module, "HELD_BYTES_MAX", 250_000)
    node = make_node()
    make_topic(node, partitions=4)
    for partition in range(4):
        produce(node, encode_batch([(None, bytes(100_000), (), NOW_MS)]), partition=partition)
    assert [size > 0 for size in lengths(fetch(node, 2, [MIB] * 4))] == [True, True, False, False]


# --- times -------------------------------------------------------------------------------------------------


def offset_at(
    node: Node, timestamp: int, version: int = 7, partitions: int = 1
) -> list[tuple[int, int, int]]:
    asked = [
        ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=-1)
        for index in range(partitions)
    ]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=asked)])
    answer = ask(node, request, version)
    return [(each.error_code, each.offset, each.timestamp) for each in answer.topics[0].partitions]


def put(node: Node, batch: bytes | bytearray, max_timestamp: int, partition: int = 0) -> None:
    """Append a batch that the checks would refuse, as an earlier release may have stored it."""
    log = node.cluster.topic("t").partition(partition).log
    first = log.end_offset
    placed = sealed(batch)
    placed[:8] = first.to_bytes(8, "big")
    last = first + int.from_bytes(placed[DELTA_AT : DELTA_AT + 4], "big")
    log.append(placed, first_offset=first, last_offset=last, max_timestamp=max_timestamp, now_ms=NOW_MS)


def test_batches_that_cannot_be_read_are_answered_for_by_their_header() -> None:
    node = make_node()
    make_topic(node, partitions=2)
    for time in (NOW_MS, NOW_MS + 10):
        produce(node, encode_batch([(None, b"v", (), time)] * 2))
        produce(node, encode_batch([(None, b"v", (), time)] * 2), partition=1)
    noise = sealed(PLAIN[:61] + NOISE, greatest=(MAX_TIME_AT, 8, NOW_MS + 20))
    put(node, noise, NOW_MS + 20)  # offsets 4 to 12
    none = sealed(
        PLAIN[:61] + b"none" * 9, codec=(21, 2, CompressionCodec.GZIP), greatest=(MAX_TIME_AT, 8, NOW_MS + 30)
    )
    put(node, none, NOW_MS + 30)  # 13 to 21
    produce(node, encode_batch([(None, b"v", (), NOW_MS + 40)]))
    assert offset_at(node, NOW_MS + 5, partitions=2) == [(0, 2, NOW_MS + 10), (0, 2, NOW_MS + 10)]
    assert offset_at(node, NOW_MS + 15, partitions=2) == [(0, 4, NOW_MS + 20), (0, -1, -1)]
    assert offset_at(node, NOW_MS + 25) == [(0, 13, NOW_MS + 30)]
    assert offset_at(node, NOW_MS + 35) == [(0, 22, NOW_MS + 40)]
    assert offset_at(node, -3) == [(0, 22, NOW_MS + 40)]


def test_a_large_batch_is_looked_into_and_one_beyond_the_limit_is_not() -> None:
    node = make_node(penstock_unpack_max_records=15_000)
    make_topic(node)
    count = 5 * INLINE_RECORDS
    rows = [(None, b"", (), NOW_MS + number) for number in range(count)]
    for codec in (CompressionCodec.NONE, CompressionCodec.ZSTD):
        produce(node, encode_batch(rows, codec=codec))
    assert offset_at(node, NOW_MS + count - 1) == [(0, count - 1, NOW_MS + count - 1)]
    assert offset_at(node, -3) == [(0, count - 1, NOW_MS + count - 1)]
    later = [(None, b"", (), NOW_MS + 50_000 + number) for number in range(20_000)]
    produce(node, encode_batch(later, codec=CompressionCodec.ZSTD))
    assert offset_at(node, NOW_MS + 60_000) == [(0, 2 * count + 10_000, NOW_MS + 60_000)]
    assert offset_at(node, NOW_MS + 69_000) == [(0, 2 * count, NOW_MS + 69_999)]


def test_headers_that_promise_too_late_a_time_are_passed_over_within_the_budget() -> None:
    node = make_node(penstock_unpack_max_records=6000)
    make_topic(node)
    for _ in range(5):
        liar = encode_batch([(None, b"", (), NOW_MS)] * 1000)
        produce(node, sealed(liar, greatest=(MAX_TIME_AT, 8, NOW_MS + 1000)))
    produce(node, encode_batch([(None, b"", (), NOW_MS + 500)]))
    assert offset_at(node, NOW_MS + 500) == [(0, 5000, NOW_MS + 500)]


def test_a_search_waits_for_the_thread() -> None:
    node = make_node()
    make_topic(node)
    count = 5 * INLINE_RECORDS
    produce(
        node, encode_batch([(None, b"", (), NOW_MS + n) for n in range(count)], codec=CompressionCodec.ZSTD)
    )
    done = threading.Event()
    calls: list[Any] = []

    def call(action: Any) -> None:
        calls.append(action)
        done.set()

    node.call_soon = call
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name="t",
                partitions=[
                    ListOffsetsPartition(partition_index=0, timestamp=NOW_MS + 7777, current_leader_epoch=-1)
                ],
            )
        ],
    )
    wait = ask(node, request, 7)
    assert isinstance(wait, Wait)
    assert done.wait(60)
    calls[0]()
    assert wait.answer is not None
    found = wait.answer().topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (found.offset, found.timestamp) == (7777, NOW_MS + 7777)
    thread = node.side_thread()
    assert thread is not None
    thread.close()


def test_the_limits_are_settings() -> None:
    assert make_node().unpack_limits == (32 * MIB, 250_000)
    assert ApiKey.PRODUCE in make_node().routes


def test_errors_that_are_kept_keep_nothing_of_what_was_unpacked() -> None:
    """The stack frames of an exception refer to the unpacked records.

    A stored exception would keep these records in memory.
    """

    def fail() -> None:
        unpacked = bytearray(10)
        try:
            raise ValueError(len(unpacked))
        except ValueError as error:
            raise KeyError from error

    try:
        fail()
    except KeyError as error:
        kept = to_be_raised_later(error)
    assert (kept.__traceback__, kept.__context__, kept.__cause__) == (None, None, None)
    postponed = Postponed(*[None] * 2, bytearray(b"no records" * 20), None)  # type: ignore[arg-type]
    postponed.partition = Refusing()  # type: ignore[assignment]
    postponed.prepare(9, 0, UnpackBudget())
    assert postponed.error is not None
    assert postponed.error.__traceback__ is None
    assert not postponed.records


class Refusing:
    """A partition that refuses every batch."""

    def admit(self, *_: object) -> None:
        raise error_for(ErrorCode.CORRUPT_MESSAGE, "no records")


def test_memory_is_given_back_once_after_the_thread_has_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr(aside, "_trim_heap", lambda: trimmed.append(1))
    node = make_node()
    node.call_soon = lambda action: None
    thread = node.side_thread()
    assert thread is not None
    thread.release_memory()
    job = thread.begin(lambda: None, 10)
    thread.release_memory()  # the job still waits
    thread.queued_bytes -= job.size_bytes
    node.maintain(NOW_MS)
    node.maintain(NOW_MS)
    thread._thread.shutdown(wait=True)
    assert trimmed == [1]
