"""Tests of the producer's accumulator, with single calls and with a simulated cluster.

The cluster loses requests, refuses them and repeats them.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.fake_broker import FakeLog
from penstock.client.config import ProducerConfig
from penstock.client.produce.accumulator import REQUEST_BYTES_MAX, Accumulator
from penstock.client.produce.batch_payload import payload_for, row_size, rows_of
from penstock.client.produce.batches import ProducerBatch
from penstock.client.produce.delivery import Delivery, DeliveryOutcome
from penstock.client.producer_id import ProducerId
from penstock.errors import (
    KafkaError,
    NetworkError,
    PenstockError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.rows import decode_rows

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def accumulator(*, owner: bool = False, **options: object) -> Accumulator:
    options.setdefault("enable_idempotence", owner)
    made = Accumulator(ProducerConfig.parse({"bootstrap.servers": "x:1"}, options), lambda: 0.5)
    if owner:
        made.set_owner(ProducerId(7, 0))
    return made


def put(box: Accumulator, where: TopicPartition, value: bytes, now: float = 0.0) -> Delivery:
    return box.append(where, (None, value, (), 0), 36 + len(value), lambda: now)[0]


def drain(
    box: Accumulator,
    now: float = 0.0,
    leader: Callable[[TopicPartition], int | None] = lambda _: 1,
    busy: tuple[int, ...] = (),
) -> list[ProducerBatch]:
    requests = box.drain(now, leader, lambda node: node not in busy).requests
    return [batch for batches in requests.values() for batch in batches]


def values(batch: ProducerBatch) -> list[bytes | None]:
    return [row[1] for row in rows_of(batch)]


# -- filling


def test_records_of_a_partition_travel_together() -> None:
    box = accumulator()
    for n in range(3):
        put(box, T0, b"%d" % n)
    put(box, T1, b"other")
    assert [values(batch) for batch in drain(box)] == [[b"0", b"1", b"2"], [b"other"]]
    assert drain(box) == []


def test_linger_holds_a_batch_back_until_its_time() -> None:
    box = accumulator(linger_ms=5)
    put(box, T0, b"a", now=1.0)
    drained = box.drain(1.001, lambda _: 1, lambda _: True)
    assert drained.requests == {}
    assert drained.wake_at == pytest.approx(1.005)
    put(box, T0, b"b", now=1.004)
    assert [values(batch) for batch in drain(box, 1.005)] == [[b"a", b"b"]]


def test_a_full_batch_does_not_linger() -> None:
    box = accumulator(linger_ms=1000, batch_size=200)
    news = [box.append(T0, (None, b"x" * 50, (), 0), 86, lambda: 0.0)[1] for _ in range(3)]
    assert news == [True, False, True]
    assert [batch.count for batch in drain(box)] == [2]


def test_flush_makes_everything_due() -> None:
    box = accumulator(linger_ms=1000)
    put(box, T0, b"a")
    box.flush()
    assert len(drain(box)) == 1


def test_a_record_larger_than_a_batch_gets_its_own() -> None:
    box = accumulator(batch_size=100, max_request_size=1000)
    put(box, T0, b"a")
    put(box, T0, b"x" * 500)
    put(box, T0, b"b")
    sizes = []
    while batches := drain(box):
        sizes += [batch.count for batch in batches]
        for batch in batches:
            box.succeed(batch, 0)
    assert sizes == [1, 1, 1]


def test_a_record_larger_than_a_request_is_refused_at_once() -> None:
    box = accumulator(max_request_size=1000)
    with pytest.raises(KafkaError, match=r"takes up to 2036 bytes, max\.request\.size allows 1000"):
        put(box, T0, b"x" * 2000)
    encoded = encode_batch([(None, b"x" * 2000, (), 0)])
    with pytest.raises(KafkaError, match=r"max\.request\.size"):
        box.append_encoded(T0, memoryview(encoded), 1, 0.0)


def test_memory_is_held_until_the_outcome() -> None:
    box = accumulator(buffer_memory=1024)
    assert not box.is_full
    put(box, T0, b"x" * 1000)
    assert box.is_full
    (batch,) = drain(box)
    assert box.is_full
    box.succeed(batch, 0)
    assert not box.is_full
    assert box.unsettled() == []


def test_full_memory_ends_the_lingering() -> None:
    box = accumulator(buffer_memory=1024, linger_ms=1000)
    put(box, T0, b"x" * 1000)
    assert len(drain(box)) == 1


def test_what_waits_for_memory_ends_the_lingering_until_a_quarter_is_free() -> None:
    """A call that waits for memory makes lingering batches due until a quarter of the memory is free.

    Memory that is merely not full would leave the lingering batch alone, and the call waiting for it.
    """
    box = accumulator(buffer_memory=4096, linger_ms=1000)
    put(box, T0, b"x" * 900)
    put(box, T1, b"x" * 3200)
    assert box.is_full
    (first,) = drain(box, leader={T0: 1}.get)
    box.succeed(first, 0)
    assert (box.is_full, box.has_ample_room) == (False, False)
    assert drain(box) == []
    box.is_awaited = True
    (second,) = drain(box)
    box.succeed(second, 0)
    assert box.has_ample_room


def test_a_request_has_a_limit_and_the_waiting_take_turns() -> None:
    box = accumulator(batch_size=4 << 20, max_request_size=5 << 20, buffer_memory=1 << 30)
    places = [TopicPartition("t", n) for n in range(4)]
    for where in places:
        put(box, where, b"x" * (3 << 20))
    assert 2 * (3 << 20) < REQUEST_BYTES_MAX < 3 * (3 << 20)
    seen = [[batch.outcome.partition for batch in drain(box)] for _ in range(3)]
    assert seen == [[0, 1], [2, 3], []]


def test_nodes_that_are_busy_or_unknown_wait() -> None:
    box = accumulator()
    put(box, T0, b"a")
    put(box, T1, b"b")
    drained = box.drain(0.0, {T0: 1}.get, lambda _: False)
    assert drained.requests == {}
    assert drained.unroutable == [T1]
    assert [values(b) for b in drain(box, leader={T0: 1, T1: 2}.__getitem__, busy=(1,))] == [[b"b"]]


# -- order and retries


def test_without_a_producer_id_one_batch_is_under_way() -> None:
    box = accumulator()
    put(box, T0, b"a")
    (first,) = drain(box)
    put(box, T0, b"b")
    assert drain(box) == []
    assert box.fail(first, error_for(ErrorCode.REQUEST_TIMED_OUT), 1.0) is None
    assert drain(box, 1.05) == []
    assert [values(b) for b in drain(box, 1.2)] == [[b"a"]]
    box.succeed(first, 0)
    assert [values(b) for b in drain(box, 1.2)] == [[b"b"]]


def test_without_acknowledgements_nothing_waits() -> None:
    box = accumulator(acks=0)
    for value in (b"a", b"b"):
        put(box, T0, value)
        assert [values(b) for b in drain(box)] == [[value]]


def test_sequences_count_records() -> None:
    box = accumulator(owner=True)
    batches = []
    for _ in range(3):
        put(box, T0, b"a")
        put(box, T0, b"b")
        batches += drain(box)
        box.succeed(batches[0], 0)
    assert [(b.owner, b.base_sequence) for b in batches] == [(ProducerId(7, 0), 2 * n) for n in range(3)]


def test_sequences_wrap_to_zero() -> None:
    box = accumulator(owner=True)
    put(box, T0, b"a")
    box.succeed(drain(box)[0], 0)
    box._queues[T0].next_sequence = 2**31 - 1
    found = []
    for _ in range(2):
        put(box, T0, b"a")
        put(box, T0, b"b")
        found += drain(box)
    assert [b.base_sequence for b in found] == [2**31 - 1, 1]
    for batch in reversed(found):
        box.fail(batch, NetworkError("lost"), 0.0)
    assert drain(box, 5.0) == [found[0]]
    assert drain(box, 5.0) == [found[1]]


def test_nothing_is_sent_before_there_is_a_producer_id() -> None:
    box = accumulator(enable_idempotence=None)
    assert box.wants_epoch
    put(box, T0, b"a")
    assert drain(box) == []
    box.set_owner(ProducerId(9, 0))
    assert not box.wants_epoch
    assert [b.owner for b in drain(box)] == [ProducerId(9, 0)]


def test_a_broker_without_producer_ids_is_served_without() -> None:
    box = accumulator(enable_idempotence=None)
    put(box, T0, b"a")
    box.go_without_owner()
    assert [b.base_sequence for b in drain(box)] == [-1]


def test_nothing_overtakes_the_first_batch() -> None:
    """The first batch must be acknowledged before a second one is sent.

    A broker without state for a producer accepts any sequence as its first.
    """
    box = accumulator(owner=True)
    put(box, T0, b"a")
    (first,) = drain(box)
    put(box, T0, b"b")
    assert drain(box) == []
    box.fail(first, error_for(ErrorCode.NOT_ENOUGH_REPLICAS), 0.0)
    assert drain(box, 9.0) == [first]
    assert drain(box, 9.0) == []
    box.succeed(first, 0)
    assert len(drain(box, 9.0)) == 1


def established(box: Accumulator, where: TopicPartition = T0) -> None:
    """Let the broker acknowledge the producer's first batch in a partition, which uses sequence 0."""
    put(box, where, b"first")
    (batch,) = drain(box)
    box.succeed(batch, 0)


def test_no_batch_goes_so_far_ahead_that_the_oldest_is_forgotten() -> None:
    box = accumulator(owner=True)
    established(box)
    batches = []
    for n in range(5):
        put(box, T0, b"%d" % n)
        batches += drain(box)
    put(box, T0, b"last")
    for batch in batches[1:]:
        box.succeed(batch, 0)
    assert drain(box) == []
    box.fail(batches[0], error_for(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND), 0.0)
    assert drain(box, 9.0) == [batches[0]]
    assert drain(box, 9.0) == []
    box.succeed(batches[0], 0)
    assert len(drain(box, 9.0)) == 1


def test_followers_of_a_failed_batch_come_after_it_again() -> None:
    box = accumulator(owner=True)
    established(box)
    batches = []
    for n in range(3):
        put(box, T0, b"%d" % n)
        batches += drain(box)
    box.fail(batches[0], error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER), 0.0)
    for batch in batches[1:]:
        box.fail(batch, error_for(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 0.0)
    put(box, T0, b"new")
    again = [drain(box, 9.0) for _ in range(5)]
    assert again[:3] == [[b] for b in batches]
    assert values(again[3][0]) == [b"new"]
    assert not box.wants_epoch


def test_a_true_gap_begins_a_new_epoch() -> None:
    box = accumulator(owner=True)
    established(box)
    put(box, T0, b"a")
    (first,) = drain(box)
    put(box, T0, b"b")
    (second,) = drain(box)
    box.fail(first, error_for(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 0.0)
    assert box.wants_epoch
    box.set_owner(ProducerId(7, 1))
    # The second one was sent in the old epoch: its answer must be there before the numbers change.
    assert drain(box, 9.0) == []
    box.fail(second, error_for(ErrorCode.INVALID_PRODUCER_EPOCH), 0.0)
    assert drain(box, 9.0) == [first]
    assert drain(box, 9.0) == []
    box.succeed(first, 0)
    assert drain(box, 9.0) == [second]
    assert [(b.owner.epoch, b.base_sequence) for b in (first, second)] == [(1, 0), (1, 1)]


def test_other_partitions_finish_their_epoch_first() -> None:
    box = accumulator(owner=True)
    established(box)
    established(box, T1)
    put(box, T0, b"a")
    put(box, T1, b"x")
    first, other = drain(box)
    box.fail(first, error_for(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 0.0)
    box.set_owner(ProducerId(7, 1))
    put(box, T1, b"y")
    sent = {b.outcome.partition: b for b in drain(box, 9.0)}
    assert (sent[1].owner.epoch, sent[1].base_sequence) == (0, 2)
    for batch in (other, *sent.values()):
        box.succeed(batch, 0)
    put(box, T1, b"z")
    (late,) = drain(box, 9.0)
    assert (late.owner.epoch, late.base_sequence) == (1, 0)


def test_what_follows_a_batch_given_up_keeps_its_place() -> None:
    """The later batch may have been written, so that a new epoch could write it twice.

    The producer asks for no new epoch.
    """
    box = accumulator(owner=True)
    delivery = put(box, T0, b"a")
    (first,) = drain(box)
    box.succeed(first, 0)
    deliveries = [put(box, T0, b"b"), put(box, T0, b"c")]
    (batch,) = drain(box)
    put(box, T0, b"d")
    (later,) = drain(box)
    assert delivery.result(0).offset == 0
    box.fail(batch, error_for(ErrorCode.INVALID_RECORD), 0.0)
    assert isinstance(deliveries[0].exception(0), KafkaError)
    box.fail(later, NetworkError("the connection is gone"), 0.0)
    assert not box.wants_epoch
    (again,) = drain(box, 100.0)
    assert (again.owner.epoch, again.base_sequence) == (0, 3)
    # Had it been written, so had the one before it: now it is certain that it was not.
    box.fail(again, error_for(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 100.0)
    assert box.wants_epoch
    box.set_owner(ProducerId(7, 1))
    (again,) = drain(box, 200.0)
    assert (again.owner.epoch, again.base_sequence) == (1, 0)


def test_a_batch_with_a_producer_id_is_never_written_without() -> None:
    box = accumulator(owner=True)
    put(box, T0, b"a")
    (batch,) = drain(box)
    with pytest.raises(UnsupportedVersionError, match=r"enable\.idempotence"):
        payload_for(batch, 2, CompressionCodec.NONE)


def test_a_duplicate_is_a_success() -> None:
    box = accumulator(owner=True)
    delivery = put(box, T0, b"a")
    (batch,) = drain(box)
    box.fail(batch, error_for(ErrorCode.DUPLICATE_SEQUENCE_NUMBER), 0.0)
    assert delivery.result(0).offset == -1


def test_retries_end() -> None:
    box = accumulator(retries=2)
    delivery = put(box, T0, b"a")
    for attempt in range(3):
        assert not delivery.done()
        (batch,) = drain(box, 10.0 * (attempt + 1))
        box.fail(batch, error_for(ErrorCode.REQUEST_TIMED_OUT), 10.0 * (attempt + 1))
    assert "REQUEST_TIMED_OUT" in str(delivery.exception(0))


def test_what_is_too_old_is_given_up_with_the_obstacle() -> None:
    box = accumulator(delivery_timeout_ms=1000)
    waiting, sent = put(box, T0, b"a"), put(box, T1, b"b")
    drain(box, leader={T0: None, T1: 1}.get)
    box.hinder(NetworkError("refused"), lambda where: where == T0)
    assert box.expire(0.5) == pytest.approx(1.0)
    assert not waiting.done()
    box.expire(1.0)
    with pytest.raises(
        RequestTimeoutError, match=r"1 records for t-0 .* delivery.timeout.ms = 1000; .* refused"
    ):
        waiting.result(0)
    with pytest.raises(RequestTimeoutError):
        sent.result(0)
    assert not box.is_full
    assert box.unsettled() == []


def test_a_refusal_that_comes_too_late_for_a_retry_is_told_as_a_timeout() -> None:
    box = accumulator(delivery_timeout_ms=1000, request_timeout_ms=500)
    delivery = put(box, T0, b"a")
    (batch,) = drain(box)
    box.fail(batch, error_for(ErrorCode.NOT_ENOUGH_REPLICAS), 1.5)
    told = str(delivery.exception(0))
    assert isinstance(delivery.exception(0), RequestTimeoutError)
    assert "delivery.timeout.ms = 1000" in told
    assert "NOT_ENOUGH_REPLICAS" in told


def test_an_answer_after_the_end_changes_nothing() -> None:
    box = accumulator(delivery_timeout_ms=1000)
    delivery = put(box, T0, b"a")
    (batch,) = drain(box)
    box.expire(2.0)
    box.succeed(batch, 5)
    with pytest.raises(RequestTimeoutError):
        delivery.result(0)
    put(box, T0, b"b", now=2.0)
    assert len(drain(box, 2.0)) == 1


def test_closing_settles_everything() -> None:
    box = accumulator()
    deliveries = [put(box, T0, b"a"), put(box, T1, b"b")]
    (batch, _) = drain(box)
    deliveries.append(put(box, T0, b"c"))
    box.abandon(NetworkError("closed"))
    assert all(isinstance(d.exception(0), NetworkError) for d in deliveries)
    box.succeed(batch, 3)
    assert isinstance(deliveries[0].exception(0), NetworkError)


def test_what_comes_after_all_was_given_up_has_another_producer_id() -> None:
    """With the old producer id the broker would take sequence 0 for a duplicate.

    It would acknowledge the batch and not store it.
    """
    box = accumulator(owner=True)
    established(box)
    put(box, T0, b"lost")
    box.abandon(NetworkError("refused"))
    assert box.wants_epoch
    put(box, T0, b"again")
    assert drain(box) == []
    box.set_owner(ProducerId(8, 0))
    assert [(b.owner, b.base_sequence, values(b)) for b in drain(box)] == [(ProducerId(8, 0), 0, [b"again"])]


# -- too large


def test_a_batch_that_is_too_large_goes_in_halves() -> None:
    box = accumulator(owner=True, batch_size=1000)
    established(box)
    deliveries = [put(box, T0, b"%d" % n) for n in range(5)]
    (batch,) = drain(box)
    too_large = box.fail(batch, error_for(ErrorCode.MESSAGE_TOO_LARGE), 0.0)
    assert too_large is batch
    box.split(batch, rows_of(batch), row_size)
    first, second = drain(box), drain(box)
    assert [values(b) for b in first + second] == [[b"0", b"1"], [b"2", b"3", b"4"]]
    assert [b.base_sequence for b in first + second] == [1, 3]
    box.succeed(first[0], 100)
    box.succeed(second[0], 102)
    assert [d.result(0).offset for d in deliveries] == [100, 101, 102, 103, 104]
    # The limit is remembered: what comes next is not as large.
    for n in range(10):
        put(box, T0, b"%d" % n)
    assert drain(box)[0].count < 5


def test_one_record_that_is_too_large_says_what_to_do() -> None:
    box = accumulator()
    delivery = put(box, T0, b"a")
    (batch,) = drain(box)
    assert box.fail(batch, error_for(ErrorCode.MESSAGE_TOO_LARGE), 0.0) is None
    with pytest.raises(KafkaError, match=r"raise the topic's max\.message\.bytes"):
        delivery.result(0)


@pytest.mark.parametrize("owner", [False, True])
def test_a_batch_without_a_checksum_gets_one_when_it_is_sent(owner: bool) -> None:
    box = accumulator(owner=owner)
    encoded = bytearray(encode_batch([(None, b"batch", (), 0)]))
    whole = bytes(encoded)
    encoded[17:21] = bytes(4)
    box.append_encoded(T0, memoryview(encoded), 1, 0.0)
    (batch,) = drain(box)
    payload = bytes(payload_for(batch, 11, CompressionCodec.NONE))
    assert [record.value for record in decode_batch(payload, 0, len(payload), "t", 0)] == [b"batch"]
    assert (payload == whole) is not owner


def test_a_wrong_checksum_stays_wrong_without_a_producer_id() -> None:
    box = accumulator()
    encoded = bytearray(encode_batch([(None, b"batch", (), 0)]))
    encoded[-2] ^= 1
    box.append_encoded(T0, memoryview(encoded), 1, 0.0)
    (batch,) = drain(box)
    assert payload_for(batch, 11, CompressionCodec.NONE) == encoded


def test_an_encoded_batch_is_split_as_well() -> None:
    box = accumulator(owner=True)
    established(box)
    encoded = encode_batch([(b"k", b"%d" % n, [("h", b"x")], 5) for n in range(4)])
    outcome = box.append_encoded(T0, memoryview(bytearray(encoded)), 4, 0.0)
    (batch,) = drain(box)
    box.fail(batch, error_for(ErrorCode.RECORD_LIST_TOO_LARGE), 0.0)
    box.split(batch, rows_of(batch), row_size)
    for base in (0, 2):
        (half,) = drain(box)
        payload = memoryview(payload_for(half, 9, CompressionCodec.NONE))
        rows, _ = decode_rows(payload, "t", 0)
        assert [(r.key, r.headers, r.timestamp) for r in rows] == [(b"k", [("h", b"x")], 5)] * 2
        box.succeed(half, base)
    assert [(leaf.base_offset, leaf.count) for leaf in outcome.leaves()] == [(0, 2), (2, 2)]


def test_encoded_batches_keep_the_order_with_rows() -> None:
    box = accumulator(owner=True, linger_ms=1000)
    put(box, T0, b"row")
    encoded = encode_batch([(None, b"batch", (), 0)])
    box.append_encoded(T0, memoryview(bytearray(encoded)), 1, 0.0)
    put(box, T0, b"last")
    box.flush()
    sent = []
    for _ in range(3):
        sent += drain(box)
        box.succeed(sent[-1], 0)
    assert [values(b) for b in sent] == [[b"row"], [b"batch"], [b"last"]]
    assert [b.base_sequence for b in sent] == [0, 1, 2]


# -- a whole cluster, simulated


class Simulation:
    """Two simulated nodes with one ordered connection each; requests and answers get lost."""

    ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS)

    def __init__(self, seed: int, trouble: float, size_max: int = 1000) -> None:
        self.dice = random.Random(seed)
        self.size_max = size_max
        self.trouble = trouble
        self.box = accumulator(owner=True, batch_size=120, delivery_timeout_ms=1e9)
        self.logs = {TopicPartition("t", p): FakeLog() for p in range(3)}
        self.wire: dict[int, deque[list[ProducerBatch]]] = {0: deque(), 1: deque()}
        self.now = 0.0
        self.epoch = 0
        self.deliveries: list[tuple[TopicPartition, bytes, Delivery]] = []

    def step(self) -> None:
        self.now += self.dice.random()
        for _ in range(self.dice.randrange(4)):
            where = TopicPartition("t", self.dice.randrange(3))
            value = b"%d" % len(self.deliveries)
            self.deliveries.append((where, value, put(self.box, where, value, self.now)))
        self.turn()

    def turn(self) -> None:
        drained = self.box.drain(self.now, lambda w: w.partition % 2, lambda n: len(self.wire[n]) < 5)
        for node, batches in drained.requests.items():
            # Bytes are made when they are sent: later changes of the numbers must not reach them.
            self.wire[node].append(batches)
            for batch in batches:
                payload_for(batch, 9, CompressionCodec.NONE)
        for node in self.wire:
            if self.wire[node] and self.dice.random() < 0.7:
                self.answer(self.wire[node].popleft())
        if self.box.wants_epoch and self.dice.random() < 0.5:
            self.epoch += 1
            self.box.set_owner(ProducerId(7, self.epoch))

    def answer(self, batches: list[ProducerBatch]) -> None:
        fate = self.dice.random()
        for batch in batches:
            outcome = batch.outcome
            log = self.logs[TopicPartition(outcome.topic, outcome.partition)]
            if fate < self.trouble / 3:
                self.failed(batch, NetworkError("lost on the way"))
                continue
            if fate < self.trouble * 2 / 3:
                self.failed(batch, error_for(self.dice.choice(self.ERRORS)))
                continue
            payload = bytes(payload_for(batch, 9, CompressionCodec.NONE))
            if len(payload) > self.size_max:
                self.failed(batch, error_for(ErrorCode.MESSAGE_TOO_LARGE))
                continue
            code, base = log.append(payload)
            if fate < self.trouble:
                self.failed(batch, NetworkError("the answer was lost"))
            elif code:
                self.failed(batch, error_for(code))
            else:
                self.box.succeed(batch, base)

    def failed(self, batch: ProducerBatch, error: PenstockError) -> None:
        if self.box.fail(batch, error, self.now) is not None:
            self.box.split(batch, rows_of(batch), row_size)

    def settle(self) -> None:
        self.trouble = 0.0
        for _ in range(2000):
            if not self.box.unsettled():
                return
            self.now += 1.0
            self.turn()
        raise AssertionError(f"stuck: {self.box.unsettled()}")

    def check(self) -> None:
        for where, log in self.logs.items():
            rows = [r for b in log.batches for r in decode_rows(b, "t", where.partition)[0]]
            assert [r.value for r in rows] == [v for w, v, _ in self.deliveries if w == where]
            offsets = {r.value: r.offset for r in rows}
            for place, value, delivery in self.deliveries:
                if place == where:
                    assert delivery.result(0).offset == offsets[value]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32), trouble=st.sampled_from([0.0, 0.2, 0.6]), size_max=st.sampled_from([75, 1000])
)
def test_every_record_once_and_in_order_whatever_happens(seed: int, trouble: float, size_max: int) -> None:
    simulation = Simulation(seed, trouble, size_max)
    for _ in range(60):
        simulation.step()
    simulation.settle()
    simulation.check()


def test_outcomes_hash_by_identity() -> None:
    one: Any = DeliveryOutcome("t", 0)
    assert one != DeliveryOutcome("t", 0)
