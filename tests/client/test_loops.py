"""Tests of consumer loops of every style in one group, while members come, go, fail, stall and are killed.

For every style: no record is lost, so that every committed record has been processed, and at the end all are.
No committed record is read again: a call that began after an offset was seen committed returns no record
below it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Admin, Broker, Consumer, Producer
from penstock.client import AsyncConsumer
from penstock.errors import KafkaError, NetworkError
from penstock.model import TopicPartition

PATIENCE_S = 240.0
"""The time in seconds after which a run is taken to hang.

Members come and go for seconds, and on a busy machine for minutes.
"""
PARTITIONS = 6
PADDING = b"x" * 200
Place = tuple[int, int]


class Failure(Exception):
    """The exception of an application that cannot continue."""


class Ledger:
    """The processed records and committed offsets of all members, with the checks on both."""

    def __init__(self, servers: str, topic: str, group: str) -> None:
        self.servers, self.topic, self.group = servers, topic, group
        self.worked: dict[int, set[int]] = defaultdict(set)
        self.committed: dict[int, int] = {}
        self.written: dict[int, int] = dict.fromkeys(range(PARTITIONS), 0)
        self.faults: list[str] = []
        self._lock = threading.Lock()

    def before_a_call(self) -> dict[int, int]:
        """Return the offsets known to be committed; the next call must return no record below them."""
        with self._lock:
            return dict(self.committed)

    def handed_out(self, who: str, before: dict[int, int], place: Place) -> None:
        if place[1] < before.get(place[0], 0):
            self.faults.append(f"{who}: {place} came although {before[place[0]]} was committed")

    def work_off(self, place: Place) -> None:
        with self._lock:
            self.worked[place[0]].add(place[1])

    def look(self, admin: Admin) -> None:
        """Fetch the committed offsets, and check that all records below them have been processed."""
        found = admin.list_group_offsets(self.group)
        with self._lock:
            for (_, partition), at in found.items():
                missing = set(range(self.committed.get(partition, 0), at.offset)) - self.worked[partition]
                if missing:
                    self.faults.append(f"partition {partition}: {at.offset} committed without {missing}")
                if at.offset < self.committed.get(partition, 0):
                    self.faults.append(f"partition {partition}: commits went back to {at.offset}")
                self.committed[partition] = max(at.offset, self.committed.get(partition, 0))

    def is_complete(self) -> bool:
        with self._lock:
            return all(self.worked[p] >= set(range(count)) for p, count in self.written.items())

    def write(self, producer: Producer, count: int, dice: random.Random) -> None:
        for _ in range(count):
            partition = dice.randrange(PARTITIONS)
            producer.send(self.topic, PADDING, partition=partition, headers=[("n", b"1")])
            self.written[partition] += 1
        producer.flush()


class Member(threading.Thread):
    """A thread that stands for a process with one style of consumer loop.

    The test decides when and how it ends.
    """

    def __init__(self, ledger: Ledger, name: str, shape: str, seed: int, options: dict[str, Any]) -> None:
        super().__init__(name=f"{name} {shape}", daemon=True)
        self.ledger, self.shape = ledger, shape
        self.dice = random.Random(seed)
        self.options = {
            "group_id": ledger.group,
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 50,
            "session_timeout_ms": 3_000,
            "auto_commit_interval_ms": self.dice.choice((1, 30, 300)),
            "max_poll_interval_ms": 1_500,
            "fetch_max_wait_ms": 50,
            "enable_auto_commit": not shape.startswith("commit"),
            "max_partition_fetch_bytes": self.dice.choice((1_024, 5_000, 1 << 20)),
            **options,
        }
        self.ending = ""
        """The way to end: ``leave``, ``fail`` while processing, or ``die`` without leaving.

        Empty while the member runs.
        """
        self.stall_s = 0.0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            if self.shape.endswith("asyncio"):
                asyncio.run(self._run_asyncio())
            else:
                self._run()
        except Failure:
            pass
        except BaseException as error:
            self.error = error

    # -- what every application does

    def work(self, before: dict[int, int], places: list[Place]) -> None:
        """Receive records and process them one by one, or fail in the middle."""
        for place in places:
            self.ledger.handed_out(self.name, before, place)
        for place in places:
            if self.ending in ("fail", "die") and self.dice.random() < 0.3:
                raise Failure
            # A coroutine that blocks its event loop is a process that stands still: nobody can tell it.
            if self.stall_s and not self.shape.endswith("asyncio"):
                stall_s, self.stall_s = self.stall_s, 0.0
                time.sleep(stall_s)
            self.ledger.work_off(place)

    def should_end(self) -> bool:
        if self.ending in ("fail", "die"):
            raise Failure
        return bool(self.ending)

    # -- blocking

    def _run(self) -> None:
        consumer = Consumer(self.ledger.servers, **self.options)
        try:
            by_hand = self.shape == "commit when revoked"
            on_revoked = (lambda _: commit(consumer)) if by_hand else None
            consumer.subscribe(self.ledger.topic, on_revoked=on_revoked, on_lost=lambda _: None)
            getattr(self, "_" + self.shape.replace(" ", "_"))(consumer)
        except BaseException:
            if self.ending == "die":
                consumer._run(consumer._consumer.let_go())
            else:
                consumer.close(has_failed=True)
            raise
        consumer.close()

    def _lists(self, consumer: Consumer) -> None:
        while not self.should_end():
            before = self.ledger.before_a_call()
            records = consumer.poll(self.dice.choice((0, 20, 100)), max_records=self.dice.randint(1, 40))
            self.work(before, [(r.partition, r.offset) for r in records])

    def _iteration(self, consumer: Consumer) -> None:
        """Iterate over the consumer with `for`, break after some records, and start again."""
        while not self.should_end():
            length = self.dice.randint(1, 60)
            before = self.ledger.before_a_call()
            for number, record in enumerate(consumer):
                self.work(before, [(record.partition, record.offset)])
                if number >= length or self.should_end():
                    break
                before = self.ledger.before_a_call()

    def _arrow(self, consumer: Consumer) -> None:
        while not self.should_end():
            before = self.ledger.before_a_call()
            self.work(before, rows_of(consumer.poll_arrow(50, batch_bytes=self.dice.choice((300, 1 << 20)))))

    def _everything(self, consumer: Consumer) -> None:
        """Use all ways to read, one after another, with pauses."""
        while not self.should_end():
            before = self.ledger.before_a_call()
            roll = self.dice.random()
            if roll < 0.3:
                records = consumer.poll(20, max_records=self.dice.randint(1, 9))
                self.work(before, [(r.partition, r.offset) for r in records])
            elif roll < 0.6:
                self.work(before, rows_of(consumer.poll_arrow(20, batch_bytes=500)))
            elif roll < 0.9:
                if any(consumer.lag().values()) and not consumer.paused():
                    for record in consumer:
                        self.work(before, [(record.partition, record.offset)])
                        if self.dice.random() < 0.3 or self.should_end():
                            break
                        before = self.ledger.before_a_call()
            elif consumer.paused():
                consumer.resume(consumer.paused())
            else:
                consumer.pause(self.dice.sample(consumer.assignment(), len(consumer.assignment()) // 2))

    def _commit_each_record(self, consumer: Consumer) -> None:
        while not self.should_end():
            before = self.ledger.before_a_call()
            for record in consumer:
                self.work(before, [(record.partition, record.offset)])
                place = TopicPartition(record.topic, record.partition)
                with contextlib.suppress(KafkaError):
                    consumer.commit({place: record.offset + 1} if self.dice.random() < 0.5 else None)
                if self.should_end():
                    break
                before = self.ledger.before_a_call()

    def _commit_lists(self, consumer: Consumer) -> None:
        while not self.should_end():
            before = self.ledger.before_a_call()
            records = consumer.poll(50, max_records=self.dice.randint(1, 40))
            self.work(before, [(r.partition, r.offset) for r in records])
            commit(consumer)

    def _commit_in_the_background(self, consumer: Consumer) -> None:
        while not self.should_end():
            before = self.ledger.before_a_call()
            records = consumer.poll(50, max_records=self.dice.randint(1, 40))
            self.work(before, [(r.partition, r.offset) for r in records])
            if records:
                consumer.commit_async(when_done=lambda offsets, error: None)

    def _commit_when_revoked(self, consumer: Consumer) -> None:
        self._lists(consumer)

    # -- asyncio

    async def _run_asyncio(self) -> None:
        consumer = AsyncConsumer(self.ledger.servers, **self.options)
        try:
            consumer.subscribe(self.ledger.topic)
            await getattr(self, "_" + self.shape.replace(" ", "_"))(consumer)
        except BaseException:
            if self.ending == "die":
                await consumer.let_go()
            else:
                await consumer.close(has_failed=True)
            raise
        await consumer.close()

    async def _iteration_in_asyncio(self, consumer: AsyncConsumer) -> None:
        while not self.should_end():
            before = self.ledger.before_a_call()
            records: AsyncIterator[Any]
            async with contextlib.aclosing(consumer.__aiter__()) as records:  # type: ignore[type-var]
                async for record in records:
                    self.work(before, [(record.partition, record.offset)])
                    if self.dice.random() < 0.05 or self.should_end():
                        break
                    before = self.ledger.before_a_call()

    async def _impatience_in_asyncio(self, consumer: AsyncConsumer) -> None:
        """Cancel calls that take long; a cancelled call must not have consumed records."""
        while not self.should_end():
            before = self.ledger.before_a_call()
            roll = self.dice.random()
            places: list[Place] = []
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.dice.choice((0.001, 0.01, 0.1))):
                    if roll < 0.5:
                        records = await consumer.poll(1_000, max_records=20)
                        places = [(r.partition, r.offset) for r in records]
                    else:
                        places = rows_of(await consumer.poll_arrow(1_000))
            self.work(before, places)

    async def _commit_lists_in_asyncio(self, consumer: AsyncConsumer) -> None:
        while not self.should_end():
            before = self.ledger.before_a_call()
            records = await consumer.poll(50, max_records=self.dice.randint(1, 40))
            self.work(before, [(r.partition, r.offset) for r in records])
            with contextlib.suppress(KafkaError):
                await consumer.commit()


SHAPES = (
    "lists",
    "iteration",
    "arrow",
    "everything",
    "commit each record",
    "commit lists",
    "commit in the background",
    "commit when revoked",
    "iteration in asyncio",
    "impatience in asyncio",
    "commit lists in asyncio",
)


def commit(consumer: Consumer) -> None:
    """Commit, and ignore an error: the uncommitted records are delivered again."""
    with contextlib.suppress(KafkaError):
        consumer.commit()


def rows_of(batch: Any) -> list[Place]:
    if batch is None:
        return []
    columns = batch.column("partition").to_pylist(), batch.column("offset").to_pylist()
    return list(zip(*columns, strict=True))


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker(config={"group.min.session.timeout.ms": "100"}) as broker:
        yield broker.bootstrap_servers


numbers = itertools.count()


def run_loops(servers: str, seed: int, seconds: float, endings: tuple[str, ...], strategy: str) -> None:
    dice = random.Random(seed)
    name = f"loops-{seed}-{next(numbers)}"
    ledger = Ledger(servers, name, f"group-{name}")
    names = itertools.count()
    shapes = dice.sample(SHAPES, len(SHAPES))
    living: list[Member] = []
    everybody: list[Member] = []

    def begin() -> None:
        options = {"partition_assignment_strategy": strategy}
        number = next(names)
        shape = shapes[number % len(shapes)]
        living.append(Member(ledger, f"m{number}", shape, dice.randrange(1 << 30), options))
        everybody.append(living[-1])
        living[-1].start()

    with Admin(servers) as admin, Producer(servers) as producer:
        admin.create_topic(name, PARTITIONS)

        def go_on(is_done: Callable[[], bool], what: str) -> None:
            deadline = time.monotonic() + PATIENCE_S
            while not is_done() and not ledger.faults:
                assert time.monotonic() < deadline, (what, [(m.name, m.is_alive(), m.error) for m in living])
                # Loops over records end only when there is one.
                ledger.write(producer, 6, dice)
                for late in [m for m in living if isinstance(m.error, NetworkError)]:
                    living.remove(late)
                    begin()
                time.sleep(0.02)
                ledger.look(admin)

        end = time.monotonic() + seconds
        while time.monotonic() < end and not ledger.faults:
            ledger.write(producer, dice.randint(1, 60), dice)
            roll = dice.random()
            if len(living) < 2 or (roll < 0.25 and len(living) < 5):
                begin()
            elif roll < 0.4:
                living.pop(dice.randrange(len(living))).ending = dice.choice(endings)
            elif roll < 0.43:
                dice.choice(living).stall_s = dice.choice((0.1, 0.4, 2.0))
            time.sleep(dice.random() * 0.1)
            ledger.look(admin)
        while len(living) < 3:
            begin()
        target = dict(ledger.written)
        go_on(
            lambda: all(ledger.worked[p] >= set(range(n)) for p, n in target.items()), "records are missing"
        )
        for member in living:
            member.ending = "leave"
        go_on(lambda: not any(member.is_alive() for member in everybody), "loops do not end")
        ledger.look(admin)
    # Who starts while there is no broker is told so.
    broken = [m for m in everybody if m.error is not None and not isinstance(m.error, NetworkError)]
    errors = [f"{member.name}: {member.error!r}" for member in broken]
    assert not ledger.faults, ledger.faults[:5]
    assert not errors, errors


@pytest.mark.timeout(600)
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_loops_of_every_shape(servers: str, strategy: str) -> None:
    run_loops(servers, 1, 2.5, ("leave", "fail"), strategy)


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
@pytest.mark.parametrize("seed", range(5))
def test_loops_of_every_shape_for_long(servers: str, strategy: str, seed: int) -> None:
    run_loops(servers, seed, 20, ("leave", "fail", "die"), strategy)


def start_broker(directory: Path, port: int) -> tuple[subprocess.Popen[bytes], int]:
    where = [
        "--port",
        str(port),
        "--data-dir",
        str(directory),
        "--config",
        "group.min.session.timeout.ms=100",
    ]
    process = subprocess.Popen([sys.executable, "-m", "penstock.broker", *where], stdout=subprocess.PIPE)
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    return process, int(line.split(" listening on ")[1].split(",")[0].rpartition(":")[2])


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_loops_while_the_broker_is_killed(tmp_path: Path, strategy: str) -> None:
    """The broker is killed with SIGKILL every few seconds.

    No commit is lost, so that no committed record is read again.
    """
    dice = random.Random(5)
    process, port = start_broker(tmp_path, 0)
    stopping = threading.Event()

    def kill() -> None:
        nonlocal process
        while not stopping.wait(dice.uniform(1.5, 4)):
            process.kill()
            process.communicate()
            process, _ = start_broker(tmp_path, port)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        run_loops(f"127.0.0.1:{port}", 1, 30, ("leave", "fail"), strategy)
    finally:
        stopping.set()
        killer.join()
        process.kill()
        process.communicate()
