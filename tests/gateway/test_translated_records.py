"""Tests that records of old clients keep keys, values, timestamps and order through the translation."""

from __future__ import annotations

import functools
import itertools
import random
import time
from typing import Any

import pytest

from broker.bench_node import batch_of
from broker.wire_client import WireClient
from gateway.old_client import OldClient, await_leaders
from penstock.gateway.translation import NotForwarded
from penstock.gateway.translation import fetch as fetch_module
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from penstock.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.protocol.messages.end_txn_request import EndTxnRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import encode_batch
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import MESSAGE_CRC_POSITION, split_batches
from penstock.records.legacy import (
    decode_entry,
    encode_message,
    encode_message_set,
    read_message,
    verify_message_crc,
)

NAMES = itertools.count()
NOW_MS = 1_700_000_000_000

OLD_CODECS = (CompressionCodec.NONE, CompressionCodec.GZIP, CompressionCodec.SNAPPY, CompressionCodec.LZ4)


def topic_of(client: WireClient, partitions: int = 1, **configs: str) -> str:
    name = f"t{next(NAMES)}"
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )
    answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
    assert not answer.topics[0].error_code
    await_leaders(client, name, partitions)
    return name


def produce_of(topic: str, records: bytes | None, acks: int = 1, index: int = 0) -> ProduceRequest:
    data = PartitionProduceData(index=index, records=records)
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def outcome(answer: Any) -> Any:
    return answer.responses[0].partition_responses[0]


def fetch_of(
    topic: str,
    offset: int = 0,
    limit: int = 1 << 20,
    whole: int = 1 << 30,
    partitions: int = 1,
    wait_ms: int = 0,
) -> FetchRequest:
    asked = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=limit)
        for index in range(partitions)
    ]
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=whole,
        topics=[FetchTopic(topic=topic, partitions=asked)],
    )


def messages_of(data: Any, magic: int) -> list[tuple[int, bytes | None, bytes | None, int]]:
    """Return (offset, key, value, timestamp) of each complete message, after comparing its CRC."""
    found = []
    for start, end, seen in split_batches(data):
        assert seen <= magic
        verify_message_crc(data, start, end)
        found += [
            (record.offset, record.key, record.value, record.timestamp)
            for record in decode_entry(data, start, end, "t", 0)
        ]
    return found


def read_all(old: OldClient, topic: str, version: int, limit: int = 1 << 20) -> list[Any]:
    """Read a partition to its end as old consumers do: each Fetch begins after the last message."""
    found: list[Any] = []
    offset = 0
    while True:
        answer = old.ask(fetch_of(topic, offset, limit), version)
        partition = answer.responses[0].partitions[0]
        assert not partition.error_code
        rows = [row for row in messages_of(partition.records, version // 2) if row[0] >= offset]
        if not rows:
            return found
        found += rows
        offset = rows[-1][0] + 1


def some_rows(seed: int, count: int) -> list[tuple[bytes | None, bytes | None, int]]:
    dice = random.Random(seed)
    return [
        (
            dice.choice((None, b"", b"k%d" % index)),
            dice.choice((None, b"", dice.randbytes(dice.randrange(300)))),
            NOW_MS + dice.randrange(-1000, 1000),
        )
        for index in range(count)
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("count", [1, 57])
def test_what_is_written_is_read(
    old: OldClient, new: WireClient, version: int, magic: int, codec: CompressionCodec, count: int
) -> None:
    topic = topic_of(new)
    rows = some_rows(count, count)
    for turn in range(2):
        answer = outcome(old.ask(produce_of(topic, encode_message_set(rows, magic, codec=codec)), version))
        assert (answer.error_code, answer.base_offset) == (0, turn * count)
    twice = rows * 2
    for reading in range(4):
        found = read_all(old, topic, reading)
        assert [row[:3] for row in found] == [
            (offset, key, value) for offset, (key, value, _) in enumerate(twice)
        ]
        times = [time if magic and reading >= 2 else -1 for _, _, time in twice]
        assert [row[3] for row in found] == times


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("codec", CompressionCodec)
@pytest.mark.parametrize("limit", [300, 5000, 1 << 20])
def test_batches_of_today_are_read(
    old: OldClient, new: WireClient, version: int, codec: CompressionCodec, limit: int
) -> None:
    """Old clients get the records without headers.

    Records in zstd, which such clients cannot read, are returned uncompressed.
    """
    topic = topic_of(new)
    values = [b"%d" % number * 20 for number in range(40)]
    for start in range(0, 40, 8):
        rows = [(b"k", value, [("h", b"x")], NOW_MS) for value in values[start : start + 8]]
        answer = new.ask(produce_of(topic, encode_batch(rows, codec=codec)), 9)
        assert not outcome(answer).error_code
    if codec not in (CompressionCodec.NONE, CompressionCodec.ZSTD) and limit == 300 and version < 3:
        # One message for each batch, which has no room: that is what such clients report as too large.
        records = old.ask(fetch_of(topic, 0, limit), version).responses[0].partitions[0].records
        assert len(records) == limit or messages_of(records, version // 2)
        return
    found = read_all(old, topic, version, limit)
    assert [row[:3] for row in found] == [(offset, b"k", value) for offset, value in enumerate(values)]
    assert {row[3] for row in found} == {NOW_MS if version >= 2 else -1}


@pytest.mark.parametrize("version", range(4))
def test_no_answer_is_longer_than_asked(old: OldClient, new: WireClient, version: int) -> None:
    topic = topic_of(new, partitions=3)
    for index in range(3):
        for _ in range(20):
            new.ask(produce_of(topic, batch_of(b"v" * 100), index=index), 9)
    for limit in (0, 1, 60, 150, 151, 4000, 100_000):
        partitions = old.ask(fetch_of(topic, 3, limit, 4000, 3), version).responses[0].partitions
        sizes = [len(each.records) for each in partitions]
        first = 26 + (8 if version >= 2 else 0) + 101
        if version < 3:
            assert all(min(limit, first) <= size <= limit for size in sizes)
        else:
            assert first <= sizes[0] <= min(max(limit, first), 4000)
            assert sizes[1] <= limit
            assert sum(sizes) <= max(4000, first)


def test_the_first_message_comes_whole_since_3(old: OldClient, new: WireClient) -> None:
    topic = topic_of(new)
    new.ask(produce_of(topic, batch_of(b"v" * 5000, b"w" * 5000)), 9)
    records = old.ask(fetch_of(topic, 0, 10, 10), 3).responses[0].partitions[0].records
    assert [len(row[2]) for row in messages_of(records, 1)] == [5000]
    cut = old.ask(fetch_of(topic, 0, 10, 10), 2).responses[0].partitions[0].records
    assert len(cut) == 10


def test_partitions_are_independent(old: OldClient, new: WireClient) -> None:
    """A newer broker leaves later partitions empty when the first one fills the response.

    The translation then requests those partitions again.
    """
    topic = topic_of(new, partitions=4, max_message_bytes="8000000")
    for index, size in enumerate((3_000_000, 3_000_000, 5, 2_000_000)):
        new.ask(produce_of(topic, batch_of(b"v" * size), index=index), 9)
    partitions = old.ask(fetch_of(topic, 0, 1000, partitions=4), 0).responses[0].partitions
    assert [len(each.records) for each in partitions] == [1000, 1000, 26 + 6, 1000]
    assert len(old.calls) == 3


def test_partitions_take_turns_where_there_is_more_than_one_request_reads(
    old: OldClient, new: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client always requests partitions in the same order.

    It gets records of all of them before one is read to its end.
    """
    count, batches = 12, 40
    topic = topic_of(new, partitions=count)
    for index in range(count):
        for _ in range(batches):
            new.ask(produce_of(topic, batch_of(b"v" * 900), index=index), 9)
    monkeypatch.setattr(fetch_module, "FETCH_BYTES_MAX", 2500)
    monkeypatch.setattr(fetch_module, "BATCH_BYTES", 2000)
    monkeypatch.setattr(fetch_module, "CROWDED_OUT_MAX", 1)
    offsets = [0] * count
    served = set()
    while min(offsets) < batches:
        request = fetch_of(topic, 0, 2000, partitions=count)
        for asked in request.topics[0].partitions:
            asked.fetch_offset = offsets[asked.partition]
        for partition in old.ask(request, 0).responses[0].partitions:
            for row in messages_of(partition.records, 0):
                offsets[partition.partition_index] = row[0] + 1
                served.add(partition.partition_index)
        if max(offsets) < batches:
            continue
        assert len(served) == count


# --- transactions -------------------------------------------------------------------------------------------


def transaction(client: WireClient, topic: str, name: str, values: list[bytes], *, commits: bool) -> None:
    begun = client.ask(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4)
    assert not begun.error_code
    who = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
    added = client.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=begun.producer_id,
            v3_and_below_producer_epoch=begun.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        ),
        3,
    )
    assert not added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
    for number, value in enumerate(values):
        batch = batch_of(value, base_sequence=number, is_transactional=True, **who)
        request = produce_of(topic, batch, acks=-1)
        request.transactional_id = name
        assert not outcome(client.ask(request, 9)).error_code
    end(client, topic, name, commits=commits, **who)


def end(client: WireClient, topic: str, name: str, *, commits: bool, **who: int) -> None:
    """End a transaction, and wait until its marker is written, which happens later in Apache Kafka."""
    ended = client.ask(EndTxnRequest(transactional_id=name, committed=commits, **who), 3)
    assert not ended.error_code
    deadline = time.monotonic() + 60
    while True:
        latest = [offsets_of(topic, (-1, 1)) for _ in range(2)]
        latest[1].isolation_level = 1
        seen, stable = (client.ask(each, 3).topics[0].partitions[0].offset for each in latest)
        if seen == stable:
            return
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("version", range(4))
def test_aborted_records_and_markers_are_never_seen(old: OldClient, new: WireClient, version: int) -> None:
    topic = topic_of(new)
    dice = random.Random(version)
    expected = []
    for number in range(12):
        values = [b"%d/%d" % (number, index) for index in range(dice.randrange(4))]
        commits = dice.random() < 0.4
        if values:
            transaction(new, topic, f"{topic}-{number}", values, commits=commits)
        if commits:
            expected += values
        if dice.random() < 0.3:
            new.ask(produce_of(topic, batch_of(b"plain")), 9)
            expected.append(b"plain")
    assert [row[2] for row in read_all(old, topic, version)] == expected
    assert [row[2] for row in read_all(old, topic, version, 80)] == expected


@pytest.mark.parametrize("version", [0, 3])
def test_batches_that_are_nothing_do_not_hold_a_client_up(
    old: OldClient, new: WireClient, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Aborted batches give an old client no records, so its offset would never advance.

    The translation skips all of them within one Fetch.
    """
    topic = topic_of(new)
    for number in range(10):
        transaction(new, topic, f"{topic}-{number}", [b"x" * 400] * 5, commits=False)
    new.ask(produce_of(topic, batch_of(b"behind")), 9)
    monkeypatch.setattr(fetch_module, "FETCH_BYTES_MAX", 1000)
    answer = old.ask(fetch_of(topic, 0, 1000), version).responses[0].partitions[0]
    assert [row[2] for row in messages_of(answer.records, version // 2)] == [b"behind"]
    assert len(old.calls) > 10


def test_an_open_transaction_hides_what_follows(old: OldClient, new: WireClient) -> None:
    topic = topic_of(new)
    new.ask(produce_of(topic, batch_of(b"before")), 9)
    begun = new.ask(InitProducerIdRequest(transactional_id=topic, transaction_timeout_ms=60_000), 4)
    who = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
    new.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=topic,
            v3_and_below_producer_id=begun.producer_id,
            v3_and_below_producer_epoch=begun.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        ),
        3,
    )
    request = produce_of(topic, batch_of(b"open", base_sequence=0, is_transactional=True, **who), acks=-1)
    request.transactional_id = topic
    new.ask(request, 9)
    new.ask(produce_of(topic, batch_of(b"after")), 9)
    assert [row[2] for row in read_all(old, topic, 2)] == [b"before"]
    partition = old.ask(fetch_of(topic, 1), 2).responses[0].partitions[0]
    assert (partition.high_watermark, bytes(partition.records)) == (1, b"")
    latest = old.ask(offsets_of(topic, (-1, 1)), 0).topics[0].partitions[0]
    assert latest.old_style_offsets == [1]
    end(new, topic, topic, commits=True, **who)
    assert [row[2] for row in read_all(old, topic, 2)] == [b"before", b"open", b"after"]


# --- offsets ------------------------------------------------------------------------------------------------


def offsets_of(topic: str, *asked: tuple[int, int]) -> ListOffsetsRequest:
    partitions = [
        ListOffsetsPartition(partition_index=0, timestamp=time, max_num_offsets=count)
        for time, count in asked
    ]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=partitions)])


def test_lists_of_offsets(old: OldClient, new: WireClient) -> None:
    topic = topic_of(new)
    for number in range(5):
        new.ask(produce_of(topic, batch_of(b"v", time_ms=NOW_MS + number * 1000)), 9)
    deleted = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])
    new.ask(DeleteRecordsRequest(topics=[deleted], timeout_ms=1000), 1)
    cases = {
        (-1, 1): [5],
        (-1, 10): [5, 1],
        (-2, 1): [1],
        (-2, 10): [1],
        (NOW_MS + 2500, 1): [3],
        (NOW_MS + 2500, 2): [3, 1],
        (NOW_MS + 90_000, 1): [5],
        (NOW_MS + 90_000, 3): [5, 1],
        (NOW_MS - 5, 1): [],
        (NOW_MS - 5, 2): [],
        (NOW_MS + 1000, 2): [],
        (NOW_MS + 1001, 2): [2, 1],
        (-3, 5): [],
        (-1, 0): [],
        (-1, -1): [],
    }
    together = old.ask(offsets_of(topic, *cases), 0).topics[0].partitions
    assert [each.old_style_offsets for each in together] == list(cases.values())
    for asked, expected in cases.items():
        one = old.ask(offsets_of(topic, asked), 0).topics[0].partitions[0]
        assert (one.error_code, one.old_style_offsets) == (0, expected)
    many = old.ask(offsets_of(topic, *[(-1, 1)] * 103), 0).topics[0].partitions
    assert [each.error_code for each in many] == [0] * 100 + [ErrorCode.INVALID_REQUEST] * 3


def test_offsets_of_records_without_times(old: OldClient, new: WireClient) -> None:
    """A lookup by timestamp finds nothing in records without timestamps.

    With an older cluster, whose ListOffsets cannot say so, the end offset is returned.
    """
    topic = topic_of(new)
    old.ask(produce_of(topic, PLAIN * 3), 0)
    assert old.ask(offsets_of(topic, (5, 2)), 0).topics[0].partitions[0].old_style_offsets == []
    older = OldClient(new, {**old.upstream, 2: (1, 6)})
    assert older.ask(offsets_of(topic, (5, 2)), 0).topics[0].partitions[0].old_style_offsets == [3, 0]


def test_offsets_of_what_is_not_there(old: OldClient) -> None:
    one = old.ask(offsets_of("missing", (-1, 2)), 0).topics[0].partitions[0]
    assert (one.error_code, one.old_style_offsets) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])


# --- what is wrong ------------------------------------------------------------------------------------------


def wrapper_of(inner: bytes, magic: int = 0, codec: CompressionCodec = CompressionCodec.GZIP) -> bytes:
    from penstock.records.compression.codecs import compress

    return encode_message(magic, 0, None, compress(codec, inner), NOW_MS, codec)


PLAIN = encode_message(0, 0, b"k", b"v", -1)


def damaged(data: bytes, at: int = MESSAGE_CRC_POSITION) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def with_length(length: int) -> bytes:
    return PLAIN[:8] + length.to_bytes(4, "big", signed=True) + PLAIN[12:]


HOSTILE = {
    "a wrong checksum": (damaged(PLAIN), 2),
    "a wrong checksum behind a right message": (PLAIN + damaged(PLAIN), 2),
    "a wrong checksum inside a wrapper": (wrapper_of(damaged(PLAIN)), 2),
    "a magic that is not there": (PLAIN[:16] + b"\7" + PLAIN[17:], 2),
    "a length below zero": (with_length(-5), 2),
    "a length too small": (with_length(3), 2),
    "bytes left over in a message": (
        encode_message_set([(b"k", b"v", -1)], 0)[:8] + (18).to_bytes(4, "big") + PLAIN[12:] + b"12",
        2,
    ),
    "a wrapper without a value": (encode_message(0, 0, None, None, -1, CompressionCodec.GZIP), 2),
    "a wrapper of nothing": (wrapper_of(b""), 2),
    "a wrapper of half a message": (wrapper_of(PLAIN[:-1]), 2),
    "a wrapper that is no gzip": (encode_message(0, 0, None, b"no gzip", -1, CompressionCodec.GZIP), 2),
    "zstd before magic 2": (encode_message(1, 0, None, b"\x28\xb5\x2f\xfd", NOW_MS, 4), 2),
    "a codec that is not there": (encode_message(1, 0, None, b"x", NOW_MS, 6), 2),
    "log-append time from a producer": (encode_message(1, 0, b"k", b"v", NOW_MS, 8), 32),
    "a batch of magic 2 behind a message": (PLAIN + bytes(batch_of(b"v")), 2),
    "two batches of magic 2": (bytes(batch_of(b"v")) * 2, 2),
}


@functools.cache
def bomb() -> bytes:
    """Return a compressed message of 80 MB of zeros; compressing them takes half a second."""
    return wrapper_of(encode_message(0, 0, None, bytes(80 << 20), -1))


@pytest.mark.parametrize("name", [*HOSTILE, "a bomb"])
@pytest.mark.parametrize("version", [0, 2])
def test_hostile_records_are_answered_for_their_partition(
    old: OldClient, new: WireClient, name: str, version: int
) -> None:
    topic = topic_of(new, partitions=2)
    records, code = HOSTILE.get(name) or (bomb(), 10)
    request = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[
                    PartitionProduceData(index=0, records=records),
                    PartitionProduceData(index=1, records=PLAIN),
                ],
            )
        ],
    )
    first, second = old.ask(request, version).responses[0].partition_responses
    assert (first.index, first.error_code, first.base_offset) == (0, code, -1)
    if code == 10:  # what is left of the budget is for the others
        assert second.error_code in (0, 10)
    else:
        assert (second.index, second.error_code, second.base_offset) == (1, 0, 0)
    assert read_all(old, topic, 0) == []


def test_chance_bytes_never_raise(old: OldClient, new: WireClient) -> None:
    topic = topic_of(new)
    dice = random.Random(5)
    whole = encode_message_set(some_rows(1, 5), 1, codec=CompressionCodec.GZIP) + encode_message_set(
        some_rows(2, 5), 0
    )
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        answer = outcome(old.ask(produce_of(topic, bytes(data[: dice.randrange(len(data) + 1)])), 1))
        assert answer.error_code in (0, 2, 10, 32)


def test_messages_that_are_cut_are_dropped(old: OldClient, new: WireClient) -> None:
    topic = topic_of(new)
    whole = encode_message_set([(None, b"one", -1), (None, b"two", -1)], 0)
    for records, base in ((whole[:-1], 0), (whole[:5], -1), (b"", -1), (None, -1)):
        answer = outcome(old.ask(produce_of(topic, records), 0))
        assert (answer.error_code, answer.base_offset) == (0, base)
    assert [row[2] for row in read_all(old, topic, 0)] == [b"one"]


def test_wrappers_in_wrappers_and_mixed_magics(old: OldClient, new: WireClient) -> None:
    """Some old clients nested compressed messages; kafka-node put magic 1 into messages of magic 0."""
    topic = topic_of(new)
    inner = encode_message_set([(None, b"deep", -1)], 0) + encode_message(1, 0, None, b"one", NOW_MS)
    answer = outcome(old.ask(produce_of(topic, wrapper_of(wrapper_of(inner))), 0))
    assert answer.error_code == 0
    assert [row[2:] for row in read_all(old, topic, 2)] == [(b"deep", -1), (b"one", NOW_MS)]


def test_batches_of_magic_2_in_an_old_version(old: OldClient, new: WireClient) -> None:
    topic = topic_of(new)
    assert outcome(old.ask(produce_of(topic, bytes(batch_of(b"v"))), 2)).error_code == 0
    assert [row[2] for row in read_all(old, topic, 2)] == [b"v"]


@pytest.mark.parametrize("acks", [-1, 0, 1, 2, 7])
def test_acks(old: OldClient, new: WireClient, acks: int) -> None:
    topic = topic_of(new)
    answer = old.ask(produce_of(topic, PLAIN, acks), 0)
    assert (answer is None) == (acks == 0)
    assert old.calls[-1].message.acks == {0: 1, 1: 1}.get(acks, -1)
    assert [row[2] for row in read_all(old, topic, 0)] == [b"v"]
    with pytest.raises(NotForwarded, match=r"acks=0 to .*CORRUPT_MESSAGE"):
        old.ask(produce_of(topic, damaged(PLAIN), 0), 0)
    with pytest.raises(NotForwarded, match=r"acks=0 to missing-0.*UNKNOWN_TOPIC_OR_PARTITION"):
        old.ask(produce_of("missing", PLAIN, 0), 0)


def test_acks_below_all_are_an_error(old: OldClient, new: WireClient) -> None:
    answer = outcome(old.ask(produce_of(topic_of(new), PLAIN, -2), 1))
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_topics_and_partitions_that_are_not_there(old: OldClient, new: WireClient) -> None:
    for topic, index in (("missing", 0), (topic_of(new), 9)):
        answer = outcome(old.ask(produce_of(topic, PLAIN, index=index), 2))
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    fetched = old.ask(fetch_of("missing"), 0).responses[0].partitions[0]
    assert (fetched.error_code, fetched.high_watermark) == (3, -1)
    beyond = old.ask(fetch_of(topic_of(new), 7), 1).responses[0].partitions[0]
    assert beyond.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_keyless_records_of_compacted_topics(old: OldClient, new: WireClient) -> None:
    topic = topic_of(new, cleanup_policy="compact")
    answer = outcome(old.ask(produce_of(topic, encode_message(0, 0, None, b"v", -1)), 2))
    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE


def test_times_that_the_broker_sets(old: OldClient, new: WireClient) -> None:
    topic = topic_of(new, message_timestamp_type="LogAppendTime")
    written = outcome(old.ask(produce_of(topic, encode_message_set([(None, b"v", 5)] * 3, 1)), 2))
    assert written.log_append_time_ms > NOW_MS
    data = old.ask(fetch_of(topic), 2).responses[0].partitions[0].records
    for start, end, _ in split_batches(data):
        message = read_message(data, start, end)
        assert (message.timestamp, message.attributes) == (written.log_append_time_ms, 8)


def test_replicas_are_refused(old: OldClient) -> None:
    request = fetch_of("t")
    request.replica_id = 3
    with pytest.raises(NotForwarded, match="only consumers"):
        old.ask(request, 0)


def test_a_request_for_nothing(old: OldClient) -> None:
    assert old.ask(FetchRequest(max_wait_ms=0, min_bytes=1), 1).responses == []
    assert old.ask(ProduceRequest(acks=1, timeout_ms=1), 1).responses == []
    assert old.ask(ListOffsetsRequest(replica_id=-1), 0).topics == []
    assert not old.calls
