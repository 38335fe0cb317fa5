"""Tests in which system calls fail for a while: repeated requests then succeed, and no data is lost."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import NOW_MS, ask, batch_of, make_node, make_topic, produce
from penstock.broker.config.values import BrokerConfig
from penstock.broker.node import Node
from penstock.broker.partitions.disk_log_store import DiskStore
from penstock.clock import ManualClock
from penstock.errors import KafkaError, StorageError
from penstock.log.walk import walk_buffer
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from system_calls import Refusals

SETTINGS = {"log.segment.bytes": "250", "penstock.log.open.ms.max": "1000000"}


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> Refusals:
    return Refusals(monkeypatch)


class Life:
    """A broker that works on a directory while system calls may fail.

    A failed request is repeated once system calls succeed again.
    """

    def __init__(self, directory: Path, refusals: Refusals) -> None:
        self.directory, self.refusals = directory, refusals
        self.failures = 0
        self.acknowledged: dict[tuple[str, int], int] = {}
        self.starts: dict[tuple[str, int], int] = {}
        self.node = self.start()

    def start(self) -> Node:
        clock = ManualClock(NOW_MS)
        store = DiskStore(str(self.directory), BrokerConfig(SETTINGS), clock)
        try:
            return make_node(store, clock, **SETTINGS)
        except BaseException:
            store.abandon()
            raise

    def do(self, what: Callable[[], object]) -> None:
        """Call a function; if it raises an error, let system calls succeed and call it again."""
        try:
            what()
        except (StorageError, KafkaError):
            self.failures += 1
            self.refusals.disarm()
            what()

    def make(self, topic: str, partitions: int = 1) -> None:
        self.do(lambda: make_topic(self.node, topic, partitions))
        for index in range(partitions):
            self.acknowledged[topic, index] = self.starts[topic, index] = 0

    def send(self, topic: str, count: int, partition: int = 0) -> None:
        for _ in range(count):
            self.do(lambda: self._send(topic, partition))
            self.acknowledged[topic, partition] += 1

    def _send(self, topic: str, partition: int) -> None:
        answer = produce(self.node, batch_of(b"v" * 60), topic=topic, partition=partition)
        if answer.error_code:
            raise error_for(ErrorCode(answer.error_code), "")

    def delete(self, topic: str) -> None:
        self.do(
            lambda: (
                topic in self.node.cluster.topics
                and self.node.cluster.delete_topics([self.node.cluster.topic(topic)], NOW_MS)
            )
        )
        for key in [key for key in self.acknowledged if key[0] == topic]:
            del self.acknowledged[key]

    def delete_records(self, topic: str, offset: int) -> None:
        def send() -> None:
            part = DeleteRecordsPartition(partition_index=0, offset=offset)
            request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[part])])
            (found,) = ask(self.node, request, 2).topics[0].partitions
            if found.error_code:
                raise error_for(ErrorCode(found.error_code), "")

        self.do(send)
        self.starts[topic, 0] = offset

    def checkpoint(self) -> None:
        self.do(lambda: self.node.store.end_checkpoint(_synced(self.node)))

    def work(self) -> None:
        self.make("a")
        self.send("a", 4)
        self.make("b", 2)
        self.send("b", 3, 1)
        self.delete_records("a", 2)
        self.delete("b")
        self.make("b", 2)
        self.send("b", 2, 1)
        self.checkpoint()
        self.do(lambda: self.node.cluster.new_producer_id(NOW_MS))
        self.send("a", 3)

    def check(self) -> None:
        assert set(self.node.cluster.topics) == {topic for topic, _ in self.acknowledged}
        for (topic, index), count in self.acknowledged.items():
            log = self.node.cluster.topic(topic).partition(index).log
            assert log.end_offset == count
            start = self.starts[topic, index]
            found = [entry.base_offset for entry in walk_buffer(log.read(start, 1 << 30).to_bytes())]
            assert found == list(range(start, count))


def names_in(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()}


def _synced(node: Node) -> Any:
    flushes = node.store.begin_checkpoint()
    for flush in flushes:
        flush.pending.sync()
    return flushes


def calls_of_a_life(directory: Path, refusals: Refusals) -> int:
    life = Life(directory, refusals)
    refusals.count = 0
    life.work()
    count = refusals.count
    life.node.store.abandon()
    return count


def lives(
    tmp_path: Path, refusals: Refusals, start: int, step: int, at_once: int, number: int
) -> Iterator[Life]:
    for first in range(start, calls_of_a_life(tmp_path / "whole", refusals) + 1, step):
        life = Life(tmp_path / f"{first}", refusals)
        refusals.arm(first, first + at_once - 1, number)
        life.work()
        refusals.disarm()
        yield life


REFUSALS = [(1, errno.EIO), (1 << 30, errno.ENOSPC), (1 << 30, errno.EMFILE)]


@pytest.mark.parametrize(
    ("start", "step", "at_once", "number"),
    [
        *[(start, 3, *refusal) for start, refusal in enumerate(REFUSALS, 1)],
        *[pytest.param(1, 1, *refusal, marks=pytest.mark.soak) for refusal in REFUSALS],
    ],
)
def test_what_was_refused_succeeds_later_and_nothing_is_lost(
    start: int, step: int, at_once: int, number: int, tmp_path: Path, refusals: Refusals
) -> None:
    """In each run one system call, or every call from one on, fails until a request reports an error.

    A run is repeated for many of its calls; the soak run covers all of them.
    """
    failures = 0
    for life in lives(tmp_path, refusals, start, step, at_once, number):
        failures += life.failures
        life.check()
        life.node.store.abandon()
        life.node = life.start()
        life.check()
        life.node.store.close()
        left = {entry.name for entry in life.directory.iterdir() if entry.is_dir()}
        assert left == {"a-0", "b-0", "b-1", "__cluster_metadata-0"}
    assert failures > 20


@pytest.mark.parametrize("had_data", [False, True])
@pytest.mark.parametrize("is_clean", [False, True])
def test_a_start_that_was_refused_succeeds_later(
    had_data: bool, is_clean: bool, tmp_path: Path, refusals: Refusals
) -> None:
    failures = 0
    first = 0
    is_over = False
    seen: list[set[str]] = []
    while not is_over:
        first += 1
        life = Life(tmp_path / f"{first}", refusals)
        if had_data:
            life.work()
        if is_clean:
            life.node.store.close()
        else:
            life.node.store.abandon()
        if not had_data:
            shutil.rmtree(life.directory)
        refusals.arm(first, first, errno.EMFILE)
        try:
            life.node = life.start()
        except StorageError:
            failures += 1
            refusals.disarm()
            life.node = life.start()
        is_over = refusals.count < first
        refusals.disarm()
        life.make("new")
        life.send("new", 2)
        life.check()
        expected = names_in(life.directory / "__cluster_metadata-0")
        life.node.store.abandon()
        if is_over:
            whole = expected
        seen.append(expected)
    assert failures > 5
    assert all(names == whole for names in seen), "what a first start writes is there after a second one"
