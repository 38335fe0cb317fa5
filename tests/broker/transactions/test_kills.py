"""Tests that kill a broker with SIGKILL during transactions: none is lost, incomplete, or left open.

Half of the kills come right after the answer to EndTxn, when the outcome is stored and markers are not;
Apache Kafka 4.3.0 then loses markers. The others come at random moments.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any

import pytest

from broker.transactions.history import Fate, History, Read, Unit, anomalies
from broker.wire_client import WireClient
from free_ports import free_ports
from penstock.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from penstock.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.end_txn_request import EndTxnRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.records.batch import encode_batch
from penstock.records.rows import decode_rows

PARTITIONS = 3
PATIENCE_S = 20.0
SOAK_KILLS = int(os.environ.get("PENSTOCK_SOAK_KILLS", "120"))
LATER = (14, 15, 16, 51)
SETTINGS = {"log.segment.bytes": "20000", "transaction.state.log.num.partitions": "3"}
SETTINGS["offsets.topic.num.partitions"] = "2"


class Victim:
    """A broker process that is killed and restarted on the same port, with the same directory."""

    def __init__(self, directory: Path) -> None:
        [self.port] = free_ports(1)
        self._command = [sys.executable, "-m", "penstock.broker", "--port", str(self.port)]
        self._command += ["--data-dir", str(directory)]
        for name, value in SETTINGS.items():
            self._command += ["--config", f"{name}={value}"]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("penstock broker")

    def kill(self) -> None:
        self.process.kill()
        with self.process:
            self.process.wait(30)


class Client:
    """A transactional producer, which writes to some partitions and commits an offset for its own group."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.id, self.number = f"id{number}", number
        self.is_new = number > 0
        """True if the client uses the transaction protocol of KIP-890."""
        self.pair: tuple[int, int] | None = None
        self.offsets = {-1}
        """The values that the committed offset may have: several if an outcome is unknown."""
        self._sequences: dict[tuple[int, int, int], int] = {}
        self._turn = 0

    def transaction(self, before_end: Callable[[], None], after_end: Callable[[], None]) -> None:
        """Run one transaction, with a call right before its end is requested, and one after the answer.

        Raises:
            OSError: the broker has gone.
        """
        world = self.world
        self._turn += 1
        unit = world.history.begin(f"{self.id}/{self._turn}")
        if self.pair is None:
            request = InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=60_000)
            found = world.patiently(request, 4)
            self.pair = found.producer_id, found.producer_epoch
        chosen = world.random.sample(range(PARTITIONS), world.random.randint(1, PARTITIONS))
        if not self.is_new:
            topics = [AddPartitionsToTxnTopic(name="t", partitions=chosen)]
            world.ask_well(
                AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=self.id,
                    v3_and_below_producer_id=self.pair[0],
                    v3_and_below_producer_epoch=self.pair[1],
                    v3_and_below_topics=topics,
                ),
                3,
            )
        for index in chosen:
            for _ in range(world.random.randint(1, 2)):
                self._produce(unit, index)
        offset = self._turn if world.random.random() < 0.6 else None
        if offset is not None:
            self._commit_offset(offset)
        commit = world.random.random() < 0.7
        request = EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.pair[0],
            producer_epoch=self.pair[1],
            committed=commit,
        )
        if commit:
            unit.fate = Fate.UNKNOWN
            self.offsets |= {offset} if offset is not None else set()
        before_end()
        was, self.pair = self.pair, None  # until it is answered, it is not known
        found = world.patiently(request, 5 if self.is_new else 4)
        if commit:
            unit.fate = Fate.COMMITTED
            self.offsets = {offset} if offset is not None else self.offsets
        self.pair = (found.producer_id, found.producer_epoch) if self.is_new else was
        world.ended = request
        after_end()

    def _produce(self, unit: Unit, index: int) -> None:
        assert self.pair is not None
        key = (*self.pair, index)
        sequence = self._sequences.get(key, 0)
        value = f"{unit.name}:{index}:{sequence}"
        unit.write(f"t-{index}", value)
        batch = encode_batch(
            [(b"k", value.encode(), (), 1_795_000_000_000)],
            producer_id=self.pair[0],
            producer_epoch=self.pair[1],
            base_sequence=sequence,
            is_transactional=True,
        )
        data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=index, records=batch)])
        request = ProduceRequest(acks=-1, timeout_ms=5000, transactional_id=self.id, topic_data=[data])
        self.world.ask_well(request, 12 if self.is_new else 11)
        self._sequences[key] = sequence + 1

    def _commit_offset(self, offset: int) -> None:
        assert self.pair is not None
        who = {"transactional_id": self.id, "producer_id": self.pair[0], "producer_epoch": self.pair[1]}
        if not self.is_new:
            self.world.ask_well(AddOffsetsToTxnRequest(group_id="g", **who), 3)
        place = TxnOffsetCommitRequestPartition(partition_index=self.number, committed_offset=offset)
        topics = [TxnOffsetCommitRequestTopic(name="t", partitions=[place])]
        request = TxnOffsetCommitRequest(group_id="g", topics=topics, **who)
        self.world.ask_well(request, 5 if self.is_new else 3)


class World:
    """A broker, its clients, and the history of their transactions and reads."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.random = Random(seed)
        self.history = History()
        self.broker = Victim(directory)
        self.connection = WireClient(self.broker.port)
        topic = CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
        self.ask_well(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 5)
        self.clients = [Client(self, number) for number in range(3)]
        self.ended: EndTxnRequest | None = None

    def ask_well(self, request: Any, version: int) -> Any:
        """Send a request until it succeeds; only errors that mean "retry later" are allowed before."""
        until = time.monotonic() + PATIENCE_S
        while True:
            answer = self.connection.ask(request, version)
            codes = set(error_codes(answer))
            if codes == {0}:
                return answer
            assert codes <= {0, *LATER}, f"{request} was answered {answer}"
            assert time.monotonic() < until, f"{request} is answered {codes} all the time"
            time.sleep(0.01)

    patiently = ask_well

    # --- kills -------------------------------------------------------------------------------------------

    def kill_behind_the_answer(self) -> None:
        """Kill the broker as soon as it answers an EndTxn; check that the restart writes all markers."""
        client = self.random.choice(self.clients)
        client.transaction(lambda: None, self.broker.process.kill)
        self._restart()
        until = time.monotonic() + PATIENCE_S
        while any(stable != end for stable, end in map(self.offsets, range(PARTITIONS))):
            assert time.monotonic() < until, "a marker is lost: the last stable offset stands still"
            time.sleep(0.01)
        if client.is_new:
            assert self.ended is not None
            found = self.ask_well(self.ended, 5)  # the client asks again, if the answer did not arrive
            assert (found.producer_id, found.producer_epoch) == client.pair

    def kill_at_random(self) -> None:
        """Kill the broker at a random moment of some transactions."""
        timer = Timer(self.random.uniform(0, 0.08), self.broker.process.kill)
        before_end = self.random.random() < 0.5
        if not before_end:
            timer.start()
        try:
            while True:
                client = self.random.choice(self.clients)
                client.transaction(lambda: None if timer.ident else timer.start(), lambda: None)
        except OSError:
            client.pair = None
        timer.join()
        self._restart()

    def _restart(self) -> None:
        self.broker.kill()
        self.connection.socket.close()
        self.broker.start()
        self.connection = WireClient(self.broker.port, timeout_s=30)

    # --- reading -----------------------------------------------------------------------------------------

    def fetch(self, index: int, offset: int, isolation: int) -> Any:
        asked = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=isolation,
            session_epoch=-1,
            topics=[FetchTopic(topic="t", partitions=[asked])],
        )
        return self.connection.ask(request, 12).responses[0].partitions[0]

    def offsets(self, index: int) -> tuple[int, int]:
        """Return the last stable offset and the high watermark of a partition."""
        found = self.fetch(index, 0, 0)
        return found.last_stable_offset, found.high_watermark

    def read(self, index: int, *, committed_only: bool, is_complete: bool = False) -> None:
        rows: list[tuple[int, str]] = []
        offset = 0
        while True:
            found = self.fetch(index, offset, int(committed_only))
            assert not found.error_code
            aborted = [(one.producer_id, one.first_offset) for one in found.aborted_transactions or ()]
            more, end = decode_rows(bytes(found.records), "t", index, aborted=aborted, start_offset=offset)
            rows += [(row.offset, (row.value or b"").decode()) for row in more]
            if end <= offset:
                break
            offset = end
        self.history.reads.append(Read(f"t-{index}", committed_only, tuple(rows), is_complete))

    def judge(self) -> None:
        for client in self.clients:  # aborts what is still open
            request = InitProducerIdRequest(transactional_id=client.id, transaction_timeout_ms=60_000)
            self.patiently(request, 4)
        for index in range(PARTITIONS):
            stable, end = self.offsets(index)
            assert stable == end
            for committed_only in (True, False):
                self.read(index, committed_only=committed_only, is_complete=True)
        assert anomalies(self.history) == []
        indexes = [client.number for client in self.clients]
        topics = [OffsetFetchRequestTopic(name="t", partition_indexes=indexes)]
        request = OffsetFetchRequest(group_id="g", topics=topics, require_stable=True)
        [topic] = self.connection.ask(request, 7).topics
        for place, client in zip(topic.partitions, self.clients, strict=True):
            assert place.error_code == 0
            assert place.committed_offset in client.offsets


def error_codes(part: Any) -> list[int]:
    """Return all error codes in a response, at any depth."""
    found = []
    for name in part.__slots__:
        value = getattr(part, name, None)
        if name.endswith("error_code"):
            found.append(int(value))
        elif isinstance(value, list):
            found += [code for each in value if hasattr(each, "__slots__") for code in error_codes(each)]
    return found


def live(directory: Path, seed: int, kills: int) -> World:
    world = World(directory, seed)
    try:
        for number in range(kills):
            for _ in range(3):
                world.random.choice(world.clients).transaction(lambda: None, lambda: None)
            if number % 2:
                world.kill_at_random()
            else:
                settle(world)
                world.kill_behind_the_answer()
            world.read(world.random.randrange(PARTITIONS), committed_only=world.random.random() < 0.7)
        world.judge()
    finally:
        world.connection.socket.close()
        world.broker.kill()
    return world


def settle(world: World) -> None:
    """End the transactions that killed clients left open, which would hold up the last stable offset."""
    for client in world.clients:
        if client.pair is None:
            request = InitProducerIdRequest(transactional_id=client.id, transaction_timeout_ms=60_000)
            found = world.patiently(request, 4)
            client.pair = found.producer_id, found.producer_epoch


def test_killed_in_the_middle_of_transactions(tmp_path: Path) -> None:
    world = live(tmp_path, 7, 2)
    fates = [unit.fate for unit in world.history.units]
    assert fates.count(Fate.COMMITTED) > 3


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_many_times(tmp_path: Path, seed: int) -> None:
    world = live(tmp_path, seed, SOAK_KILLS)
    fates = [unit.fate for unit in world.history.units]
    assert fates.count(Fate.COMMITTED) > SOAK_KILLS
