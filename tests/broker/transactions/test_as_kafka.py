"""Tests of transactional requests that are odd, wrong, or of an older release: answers are Apache Kafka's."""

from __future__ import annotations

import pytest

from broker.bench_node import NOW_MS
from broker.transactions.broker_bench import BrokerBench
from penstock.broker.requests.release_profiles import Profile
from penstock.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import encode_batch

Batch = tuple[int, bool]
"""A batch's producer id, and True if the batch belongs to a transaction."""


def write_both(bench: BrokerBench, first: Batch, second: Batch, name: str | None) -> list[int]:
    """Send one Produce request with a batch for each of two partitions; return their error codes."""
    data = []
    for index, (producer_id, transactional) in enumerate((first, second)):
        records = encode_batch(
            [(b"k", b"v", (), NOW_MS)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=transactional,
        )
        data.append(PartitionProduceData(index=index, records=memoryview(bytearray(records))))
    topics = [TopicProduceData(name="out", partition_data=data)]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics, transactional_id=name)
    [topic] = bench.ask(request, 12).response.responses
    return [each.error_code for each in topic.partition_responses]


@pytest.mark.parametrize(
    ("kinds", "name", "codes"),
    [
        ((True, True), "x", [49, 49]),
        ((True, True), None, [53, 53]),
        ((True, False), None, [53, 53]),
        ((False, True), None, [53, 53]),
        ((True, False), "x", [0, 0]),
        ((False, False), None, [0, 0]),
    ],
)
def test_a_request_with_two_producers(kinds: tuple[bool, bool], name: str | None, codes: list[int]) -> None:
    bench = BrokerBench()
    first, second = bench.initialize("x")[1], bench.initialize("y")[1]
    assert write_both(bench, (first, kinds[0]), (second, kinds[1]), name) == codes
    written = [bench.stable(("out", index))[1] for index in (0, 1)]
    assert written == [int(not code) for code in codes]


def test_clients_add_no_internal_topics() -> None:
    bench = BrokerBench()
    _, producer_id, epoch = bench.initialize()
    assert bench.add(producer_id, epoch, ("t", 0), ("__transaction_state", 0)) == [55, 29]
    assert bench.end(producer_id, epoch, version=4)[0] == 48


def test_a_pending_offset_that_is_removed_does_not_come_back() -> None:
    bench = BrokerBench()
    _, producer_id, epoch = bench.initialize()
    assert bench.commit_offset(producer_id, epoch, 7) == 0
    place = OffsetDeleteRequestPartition(partition_index=0)
    topics = [OffsetDeleteRequestTopic(name="t", partitions=[place])]
    assert bench.ask(OffsetDeleteRequest(group_id="g", topics=topics), 0).response.error_code == 0
    assert bench.end(producer_id, epoch)[0] == 0
    assert bench.offset() == (0, -1)


def test_an_empty_group_takes_offsets_of_a_member_that_names_no_generation() -> None:
    bench = BrokerBench()
    _, producer_id, epoch = bench.initialize()
    assert bench.commit_offset(producer_id, epoch, 1) == 0
    assert bench.end(producer_id, epoch)[0] == 0
    assert bench.commit_offset(producer_id, epoch + 1, 2, member_id="m") == 0
    assert (
        bench.commit_offset(producer_id, epoch + 1, 3, member_id="m", generation_id_or_member_epoch=1) == 25
    )


def test_a_negative_epoch_is_one_of_another_producer() -> None:
    bench = BrokerBench()
    _, producer_id, _ = bench.initialize()
    assert bench.initialize(producer_id=producer_id, producer_epoch=-5)[0] == 90
    assert bench.initialize(producer_id=producer_id, producer_epoch=-1)[0] == 42


@pytest.mark.parametrize(("release", "code"), [("3.9", 90), ("4.3", 0)])
def test_a_producer_of_before_kip_890_fences_itself(release: str, code: int) -> None:
    """The producer asks twice for its next epoch while its transaction is open.

    With `transaction.version` 0 the second request is fenced; with 2 it succeeds.
    """
    bench = BrokerBench()
    bench.node.profile = Profile(release)
    _, producer_id, epoch = bench.initialize()
    assert bench.add(producer_id, epoch, ("t", 0)) == [0]
    who = {"producer_id": producer_id, "producer_epoch": epoch}
    assert bench.initialize(**who)[0] == 51
    assert bench.initialize(**who)[0] == code


@pytest.mark.parametrize(("allowed", "code"), [("false", 53), ("true", 0)])
def test_two_phase_commit_as_far_as_it_goes(allowed: str, code: int) -> None:
    """InitProducerId 6 (KIP-939), an unstable version, accepts two-phase commit without a timeout.

    A broker setting may forbid it (error 53). Keeping a prepared transaction is not supported (error 35).
    """
    bench = BrokerBench(unstable_api_versions_enable="true", transaction_two_phase_commit_enable=allowed)
    two_phase = {"version": 6, "timeout_ms": 0, "enable2_pc": True}
    assert bench.initialize(**two_phase)[0] == code
    assert bench.initialize("y", **two_phase, keep_prepared_txn=True)[0] == (code or 35)
    assert bench.initialize("y", version=6, keep_prepared_txn=True)[0] == 35
    assert bench.initialize("y", version=6)[0] == 0


def test_unstable_versions_are_not_offered_without_being_enabled() -> None:
    assert BrokerBench().node.routes[22].max_version == 5
    assert BrokerBench(unstable_api_versions_enable="true").node.routes[22].max_version == 6
