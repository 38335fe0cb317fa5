"""The clients of a test history: they write and read one topic, half of them in transactions.

What they write and read is recorded for the checks.
"""

from __future__ import annotations

import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from histories.clients import CLIENTS, TRANSACTION_S, Client, Row
from histories.rules import Story, Transaction
from penstock import Admin, Consumer, TopicPartition
from penstock.errors import PenstockError
from penstock.testing.chaos.events import LogRecord
from penstock.testing.chaos.evidence import FinalLog

PARTITIONS = 4
OPERATIONS = 4
"""The most sends and polls within one transaction."""
ABORTED_SHARE = 0.15
PAUSE_S = 0.004
"""The default pause of a client between two transactions, in seconds."""
LEAVING_S = 120.0
"""The time in which the last call of each client must return, in seconds."""
READER_ATTEMPTS = 5
"""The number of attempts to create the client that reads everything at the end."""
READING_S = 600.0
"""The time in which a client must have read everything at the end, in seconds.

Records that it has not returned by then count as missing.
"""
SETTLING_S = 60.0
"""The longest wait for the end of transactions that clients have left open, in seconds."""


class Worker(threading.Thread):
    """A thread that runs one client at a time, and replaces it with a new one after an error."""

    def __init__(self, workload: Workload, kind: str, number: int, transactional: bool) -> None:
        super().__init__(name=f"{kind} {number}", daemon=True)
        self._workload = workload
        self.kind, self._number, self._transactional = kind, number, transactional
        self._rng = random.Random(workload.seed * 1000 + number)
        self._values = 0
        self._positions = dict.fromkeys(range(PARTITIONS), 0)
        self.failures = 0
        self.done = 0
        self.error: BaseException | None = None

    def position(self, partition: int) -> int:
        """Return the offset after the last record of a partition that the client has returned."""
        return self._positions[partition]

    def run(self) -> None:
        lives = 0
        while not self._workload.stopping.is_set():
            lives += 1
            client: Client | None = None
            try:
                identity = f"{self._workload.topic}-{self._number}" if self._transactional else None
                client = CLIENTS[self.kind](self._workload.servers, identity)
                self._live(client, self._number * 100_000 + lives)
            except Exception:  # of whatever kind the library has
                self.failures += 1
                time.sleep(0.05)
            finally:
                if client is not None:
                    try:
                        client.close()
                    except Exception:
                        self.failures += 1

    def _live(self, client: Client, identity: int) -> None:
        record, places = self._workload.story.history.record, self._workload.places
        client.seek(self._workload.topic, self._positions)
        record.moved(places, identity)
        turn = 0
        while not self._workload.stopping.is_set():
            turn += 1
            if self._transactional:
                self._transact(client, identity, turn)
            else:
                waiting = [self._send(client, identity, 0) for _ in range(self._rng.randint(1, OPERATIONS))]
                self._poll(client, identity)
                for wait in waiting:
                    wait()
            self.done += 1
            self._workload.stopping.wait(self._rng.uniform(0, 2) * self._workload.pause_s)

    def _transact(self, client: Client, identity: int, turn: int) -> None:
        transaction = Transaction(f"transaction {turn} of {self.name} ({identity})")
        self._workload.add(transaction)
        client.begin()
        try:
            waiting = []
            for _ in range(self._rng.randint(1, OPERATIONS)):
                if self._rng.random() < 0.6:
                    waiting.append(self._send(client, identity, turn, transaction))
                else:
                    rows = self._poll(client, identity)
                    transaction.reads += [
                        (TopicPartition(each.topic, each.partition), each.offset) for each in rows
                    ]
            for wait in waiting:
                wait()
        except Exception:
            client.abort()
            transaction.is_committed = False
            raise
        if self._rng.random() < ABORTED_SHARE:
            client.abort()
            transaction.is_committed = False
            return
        transaction.committing_s = time.monotonic()
        client.commit()
        transaction.is_committed = True

    def _send(
        self, client: Client, identity: int, turn: int, transaction: Transaction | None = None
    ) -> Callable[[], None]:
        self._values += 1
        partition = self._rng.randrange(PARTITIONS)
        value = b"%d.%d.%d" % (self._number, identity, self._values)
        outcome: list[Any] = ["unknown", -1, ""]
        self._workload.story.history.record.sent(
            self._workload.topic,
            partition,
            value,
            client=identity,
            transaction=turn,
            delivery=lambda: tuple(outcome),  # type: ignore[arg-type, return-value]
        )
        if transaction is not None:
            transaction.writes.append((TopicPartition(self._workload.topic, partition), value))
        wait = client.send(self._workload.topic, partition, value)

        def settle() -> None:
            offset = wait()
            if (
                transaction is None
            ):  # of a transaction the acknowledgement is the commit: `_divided` judges it
                outcome[:] = "acknowledged", offset, ""

        return settle

    def _poll(self, client: Client, identity: int) -> list[Row]:
        rows = client.poll(0.01)
        now = time.monotonic()
        by_partition: dict[int, list[Row]] = {}
        for each in rows:
            by_partition.setdefault(each.partition, []).append(each)
            self._positions[each.partition] = each.offset + 1
            self._workload.story.seen_s.setdefault(
                (TopicPartition(each.topic, each.partition), each.offset), now
            )
        for some in by_partition.values():
            self._workload.story.history.record.polled(some, identity)
        return rows


class Workload:
    """The threads of all clients of one history; their writes and reads are recorded in a `Story`."""

    def __init__(
        self, servers: str, topic: str, kinds: Sequence[str], seed: int, pause_s: float = PAUSE_S
    ) -> None:
        """`pause_s` is the mean pause of a client between two transactions, in seconds."""
        self.servers, self.topic, self.seed = servers, topic, seed
        self.kinds, self.pause_s = kinds, pause_s
        self.places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        self.story = Story()
        self.stopping = threading.Event()
        self.hung: list[str] = []
        """The libraries of clients with a call that did not return; their threads are abandoned."""
        self._lock = threading.Lock()
        self._copies: dict[TopicPartition, list[LogRecord]] = {tp: [] for tp in self.places}
        """Copies of each partition's first records, made before DeleteRecords was called."""
        self._copied_to = dict.fromkeys(self.places, 0)
        pairs = [(kind, transactional) for kind in kinds for transactional in (False, True)]
        self.workers = [Worker(self, kind, number, flag) for number, (kind, flag) in enumerate(pairs, 1)]

    def add(self, transaction: Transaction) -> None:
        with self._lock:
            self.story.transactions.append(transaction)

    def start(self) -> None:
        for each in self.workers:
            each.start()

    def delete_records(self, rng: random.Random) -> str:
        """Delete records of a partition that all clients have read.

        The checks later use a copy of these records.
        """
        tp = rng.choice(self.places)
        start, lowest = self._copied_to[tp], min(each.position(tp.partition) for each in self.workers)
        if start >= lowest:
            return "nothing deleted"
        before = rng.randint(start + 1, lowest)
        try:
            records = self._records(tp, start, before, may_be_open=False)
            if records is None:
                return "nothing deleted"
            self._copies[tp] += records
            self._copied_to[tp] = before
            with Admin(self.servers) as admin:
                admin.delete_records({tp: before})
        except PenstockError:
            return "deletions failed"  # it may have been made all the same
        return "records deleted"

    def finish(self) -> None:
        """Stop the clients, wait until the transactions they left open have ended, and read everything."""
        self.stopping.set()
        deadline = time.monotonic() + LEAVING_S
        for each in self.workers:
            each.join(max(0, deadline - time.monotonic()))
        late = [each for each in self.workers if each.is_alive()]
        self.hung = sorted({each.kind for each in late})
        frames = sys._current_frames()
        for each in late:  # the page counts them; where they stand helps whoever looks for the reason
            stack = traceback.format_stack(frames[each.ident or 0]) if each.ident in frames else ()
            print(f"{each.name} did not come back:\n{''.join(stack)}", file=sys.stderr, flush=True)
        ends = self._settled_ends()
        for tp in self.places:
            is_open = self._stable_end(tp) < ends[tp]
            rest = self._records(tp, self._copied_to[tp], ends[tp], may_be_open=is_open) or []
            self.story.history.logs[tp] = FinalLog([*self._copies[tp], *rest], 0, ends[tp])
        with Consumer(self.servers) as consumer:
            self.story.starts |= consumer.beginning_offsets(self.places)
        for number, kind in enumerate(self.kinds):
            client = self._reader(kind)
            if client is None:
                self.hung.append(kind)
            else:
                self._read_all(kind, client, -1 - number, ends)

    def _reader(self, kind: str) -> Client | None:
        """Return a new client of a library, or None if several attempts to connect failed."""
        for _ in range(READER_ATTEMPTS):
            try:
                return CLIENTS[kind](self.servers, None)
            except Exception as error:  # of whatever kind the library has
                print(f"{kind} could not be made for reading: {error!r}", file=sys.stderr, flush=True)
        return None

    def _stable_end(self, tp: TopicPartition) -> int:
        with Consumer(self.servers, isolation_level="read_committed") as consumer:
            return consumer.end_offsets([tp])[tp]

    def _settled_ends(self) -> dict[TopicPartition, int]:
        deadline = time.monotonic() + SETTLING_S
        time.sleep(min(TRANSACTION_S, 1))
        while True:
            try:
                with Consumer(self.servers) as consumer:
                    ends = dict(consumer.end_offsets(self.places))
                if all(self._stable_end(tp) == end for tp, end in ends.items()):
                    return ends
            except PenstockError:
                ends = {}
            if time.monotonic() > deadline and ends:
                return ends
            time.sleep(0.2)

    def _records(
        self, tp: TopicPartition, start: int, end: int, *, may_be_open: bool
    ) -> list[LogRecord] | None:
        """Return the records of a partition with the state of each, such as aborted.

        Return None if they could not be read in time.
        """
        committed = self._read(tp, start, end, "read_committed")
        every = self._read(tp, start, end, "read_uncommitted")
        if (committed is None or every is None) and not may_be_open:
            return None
        visible = {each.offset for each in committed or ()}
        hidden = "open" if may_be_open else "aborted"
        return [
            LogRecord(
                tp.topic,
                tp.partition,
                each.offset,
                each.key,  # type: ignore[arg-type]
                each.value,  # type: ignore[arg-type]
                state="committed" if each.offset in visible else hidden,
            )
            for each in every or ()
        ]

    def _read(self, tp: TopicPartition, start: int, end: int, isolation: str) -> list[Row] | None:
        """Return the records from `start` to `end` without markers; None if they were not read in time."""
        rows: list[Row] = []
        deadline = time.monotonic() + READING_S
        with Consumer(self.servers, isolation_level=isolation) as consumer:
            consumer.assign([tp])
            consumer.seek(tp, start)
            while consumer.position(tp) < end:
                if time.monotonic() > deadline:
                    return None
                found = consumer.poll(timeout_ms=200)
                rows += [
                    Row(each.topic, each.partition, each.offset, each.key, each.value)
                    for each in found
                    if each.offset < end
                ]
        return rows

    def _read_all(self, kind: str, client: Client, identity: int, ends: dict[TopicPartition, int]) -> None:
        """Read everything with a new client of a library, for the check `unseen`."""
        wanted = {
            (tp, each.offset)
            for tp, log in self.story.history.logs.items()
            for each in log.records
            if each.state == "committed" and each.offset >= self.story.starts[tp]
        }
        seen: set[tuple[TopicPartition, int]] = set()
        try:
            client.seek(self.topic, {tp.partition: start for tp, start in self.story.starts.items()})
            deadline = time.monotonic() + READING_S
            while not wanted <= seen and time.monotonic() < deadline:
                by_partition: dict[int, list[Row]] = {}
                for each in client.poll(0.2):
                    by_partition.setdefault(each.partition, []).append(each)
                    seen.add((TopicPartition(each.topic, each.partition), each.offset))
                for some in by_partition.values():
                    self.story.history.record.polled(some, identity)
        finally:
            client.close()
        self.story.readers[kind] = seen
