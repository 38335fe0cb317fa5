"""A simulation of the transaction coordinator, partitions and clients, with one clock, from one seed.

Requests are delayed, lost and repeated; the broker is killed between any two steps; writes to its disk fail;
partitions are unavailable; clients die or live on as zombies.

Coordinator and partitions are the broker's; neither needs a socket. The method `run` of `World(seed)` raises
AssertionError, with the seed, if an invariant is broken.

After a quiet period: every transaction has ended, the last stable offset of every partition is its end
offset, and the history of what was written and read has no anomaly.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from itertools import count
from random import Random
from typing import Any, NamedTuple

from broker.transactions.history import Fate, History, Read, Unit, anomalies
from penstock.broker.partitions.producers.producer_state import Producers, SeenBatch
from penstock.broker.partitions.producers.transactions import AbortedTransaction, Transactions, Verification
from penstock.broker.transactions.answers import answer_of_produce
from penstock.broker.transactions.coordinator import TransactionCoordinator
from penstock.broker.transactions.initialization import Initialization
from penstock.broker.transactions.outbox import ApiOutcome, Markers, StoreRecord
from penstock.broker.transactions.records import read_record
from penstock.broker.transactions.settings import TransactionSettings
from penstock.broker.transactions.states import FINISHED
from penstock.broker.transactions.transaction import Instant, TopicPartition
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.transaction_log_value import TransactionLogValue
from penstock.records.aborted import AbortedTransactions

START_MS = 1_795_000_000_000
PARTITIONS: list[TopicPartition] = [("a", 0), ("a", 1), ("b", 0), ("__consumer_offsets", 3)]
IDS = ("one", "two", "three")
LOG_PARTITIONS = 5
REQUEST_TIMEOUT_S = 2.0
QUIET_S = 120.0
"""The length of the quiet period in seconds, in which every timeout can expire."""

SETTINGS = TransactionSettings(abort_interval_ms=700)

RETRIABLE = frozenset((6, 14, 15, 16, 19, 51))
TIMED_OUT = ApiOutcome(ErrorCode.REQUEST_TIMED_OUT)


class Entry(NamedTuple):
    """One batch in a simulated partition: a value, or a transaction marker if `value` is None."""

    producer_id: int
    epoch: int
    sequence: int
    value: str | None
    is_commit: bool = False
    coordinator_epoch: int = 0
    version: int = 0


class SimulatedPartition:
    """A simulated partition with its log in a list.

    A restart recovers the producer and transaction state from the list.
    """

    def __init__(self) -> None:
        self.log: list[Entry] = []
        self.aborted: list[AbortedTransaction] = []
        self.away_until_s = 0.0
        self.restart()

    def restart(self) -> None:
        entries, self.log, before = self.log, [], self.aborted
        self.producers = Producers(10**12)
        self.transactions = Transactions(self.producers)
        self.aborted = []
        for entry in entries:
            self._write(entry)
        assert [one[:3] for one in self.aborted] == [one[:3] for one in before], "the index is rebuilt"

    def _write(self, entry: Entry) -> None:
        offset = len(self.log)
        self.log.append(entry)
        if entry.value is not None:
            batch = SeenBatch(entry.sequence, entry.sequence, offset, offset, 0)
            self.producers.record(entry.producer_id, entry.epoch, batch, 0)
            self.transactions.record_data(entry.producer_id, offset)
            return
        aborted = self.transactions.record_marker(
            entry.producer_id,
            entry.epoch,
            entry.coordinator_epoch,
            entry.is_commit,
            offset,
            0,
            0,
            transaction_version=entry.version,
        )
        if aborted is not None:
            self.aborted.append(aborted)

    def append(
        self, producer_id: int, epoch: int, sequence: int, value: str, verification: Verification | None
    ) -> None:
        if self.producers.judge(producer_id, epoch, sequence, 1, 0) is None:
            self.transactions.check_append(producer_id, epoch, sequence, True, verification)
            self._write(Entry(producer_id, epoch, sequence, value))

    def mark(self, markers: Markers) -> None:
        self.transactions.check_marker(
            markers.producer_id, markers.epoch, markers.coordinator_epoch, markers.client_version
        )
        self._write(
            Entry(
                markers.producer_id,
                markers.epoch,
                -1,
                None,
                markers.is_commit,
                markers.coordinator_epoch,
                markers.client_version,
            )
        )

    @property
    def stable_offset(self) -> int:
        return self.transactions.last_stable_offset(0, len(self.log))

    def read(self, committed_only: bool) -> tuple[tuple[int, str], ...]:
        """Return the offsets and values that a consumer gets, by the rules of Java's consumer."""
        upto = self.stable_offset if committed_only else len(self.log)
        listed = [(one.producer_id, one.first_offset) for one in self.aborted] if committed_only else []
        skipped = AbortedTransactions(listed)
        rows = []
        for offset, entry in enumerate(self.log[:upto]):
            if entry.value is None:
                if not entry.is_commit:
                    skipped.end_transaction(entry.producer_id, offset)
            elif not skipped.is_aborted(entry.producer_id, offset):
                rows.append((offset, entry.value))
        return tuple(rows)


class Request(NamedTuple):
    """A request of a client to the coordinator or to a partition's leader."""

    kind: str
    transactional_id: str
    producer_id: int
    epoch: int
    is_new: bool
    partition: TopicPartition = ("", 0)
    sequence: int = 0
    value: str = ""
    is_commit: bool = False


Talk = Generator[Request, ApiOutcome, None]


class FencedError(Exception):
    """The error that ends a client which has been fenced."""


class Client:
    """A simulated producer with a transactional id; its program is a generator of requests."""

    def __init__(self, world: World, transactional_id: str, name: str) -> None:
        self.world = world
        self.id = transactional_id
        self.name = name
        self.is_new = world.random.random() < 0.5
        """True if the client uses the transaction protocol of KIP-890."""
        self.lives = True
        self.connection = next(world.connections)
        self.producer_id = self.epoch = -1
        self.sequences: dict[TopicPartition, int] = {}
        self.talk = self.program()
        self._pending: object | None = None
        self._request: Request | None = None
        world.after(world.random.uniform(0, 1), lambda: self._go_on(None))

    # --- what it does ------------------------------------------------------------------------------------

    def program(self) -> Talk:
        try:
            yield from self.initialize()
            for number in count():
                if self.world.is_quiet:
                    return
                yield from self.transact(self.world.history.begin(f"{self.name}.{number}"))
        except FencedError:
            return

    def request(self, kind: str, **what: Any) -> Request:
        return Request(kind, self.id, self.producer_id, self.epoch, self.is_new, **what)

    def ask(self, request: Request, tries: int = 60) -> Generator[Request, ApiOutcome, ApiOutcome]:
        """Send a request until it gets an answer that is no timeout and no retriable error."""
        for _ in range(tries):
            outcome = yield request
            if outcome is not TIMED_OUT and outcome.error not in RETRIABLE:
                return outcome
        return TIMED_OUT

    def initialize(self) -> Talk:
        outcome = yield from self.ask(self.request("initialize"))
        if outcome is TIMED_OUT or outcome.error:
            raise FencedError
        self.producer_id, self.epoch = outcome.producer_id, outcome.epoch
        self.sequences = {}

    def transact(self, unit: Unit) -> Talk:
        random = self.world.random
        wants_commit = random.random() < 0.7
        failed = False
        added: set[TopicPartition] = set()
        for number in range(random.choice((0, 1, 1, 2, 3, 6))):
            partition = random.choice(PARTITIONS)
            if not self.is_new and partition not in added:
                outcome = yield from self.ask(self.request("add", partition=partition), 8)
                if outcome.error:
                    failed = True
                    break
            added.add(partition)
            value = f"{unit.name}/{number}"
            sequence = self.sequences.get(partition, 0)
            unit.write(f"{partition[0]}-{partition[1]}", value)
            write = self.request("produce", partition=partition, sequence=sequence, value=value)
            outcome = yield from self.ask(write, 6)
            if outcome.error:
                failed = True
                break
            self.sequences[partition] = sequence + 1
        if not added and not (self.is_new and failed):
            return
        yield from self.finish(unit, wants_commit and not failed, failed)

    def finish(self, unit: Unit, commit: bool, failed: bool) -> Talk:
        if commit:
            unit.fate = Fate.UNKNOWN
        outcome = yield from self.ask(self.request("end", is_commit=commit))
        if outcome.error:
            raise FencedError
        if commit:
            unit.fate = Fate.COMMITTED
        if self.is_new:
            self.producer_id, self.epoch = outcome.producer_id, outcome.epoch
            self.sequences = {}
        elif failed:
            yield from self.initialize()  # whether the last batch was written is not known: new epoch

    # --- its connections ---------------------------------------------------------------------------------

    def _go_on(self, outcome: ApiOutcome | None) -> None:
        if not self.lives:
            return
        try:
            request = next(self.talk) if outcome is None else self.talk.send(outcome)
        except StopIteration:
            self.lives = False
            return
        self.world.after(self.world.random.choice((0.0, 0.001, 0.05, 0.4)), lambda: self._send(request))

    def _send(self, request: Request) -> None:
        if not self.lives:
            return
        world = self.world
        ticket = self._pending = object()
        connection = self.connection

        def answered(outcome: ApiOutcome) -> None:
            if self._pending is not ticket:
                return
            self._pending = None
            if outcome.closes_connection:
                self.connection = next(world.connections)
                outcome = TIMED_OUT
            self._go_on(outcome)

        def timed_out() -> None:
            if self._pending is ticket:
                self._pending = None
                self.connection = next(world.connections)
                self._go_on(TIMED_OUT)

        world.after(REQUEST_TIMEOUT_S, timed_out)
        world.deliver(request, connection, answered)


class World:
    """One simulated run of transactions; the seed decides the order of all events."""

    def __init__(self, seed: int, chaos_s: float = 60.0, level: int | None = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.level = level if level is not None else 2
        self.now_s = 0.0
        self.chaos_s = chaos_s
        self.is_quiet = False
        self.history = History()
        self.connections = count(1)
        self.crashes = 0
        self._ids = count(1000)
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._cut = 0
        """The number of the last connection that a crash has ended."""
        self._lanes: dict[int, float] = {}
        """For each connection, the arrival time of its last request; requests arrive in order."""
        self.log: list[tuple[bytes, bytes | None]] = []
        self.partitions = {partition: SimulatedPartition() for partition in PARTITIONS}
        self.stable = dict.fromkeys(PARTITIONS, 0)
        self.clients: list[Client] = []
        self._under_way: dict[object, Callable[[], None]] = {}
        """The pending disk writes. A crash may come before or after each of them."""
        self._wake_at_s = float("inf")
        self._names = count()
        self.coordinator = self._start()

    # --- time --------------------------------------------------------------------------------------------

    @property
    def now(self) -> Instant:
        return Instant(START_MS + int(self.now_s * 1000), self.now_s)

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now_s + seconds, next(self._order), what))

    def run(self) -> World:
        try:
            self._run()
        except AssertionError as error:
            raise AssertionError(f"seed {self.seed}: {error}") from error
        return self

    def _run(self) -> None:
        for transactional_id in IDS:
            self._new_client(transactional_id)
        self.after(1, self._meddle)
        self.after(0.5, self._look)
        while self._queue:
            when, _, what = heapq.heappop(self._queue)
            if when > self.chaos_s + QUIET_S:
                break
            self.now_s = when
            if when > self.chaos_s:
                self.is_quiet = True
            what()
        self._judge()

    # --- what goes wrong ---------------------------------------------------------------------------------

    def _meddle(self) -> None:
        if self.is_quiet:
            return
        what = self.random.random()
        if what < 0.35:
            self._crash()
        elif what < 0.6:
            partition = self.partitions[self.random.choice(PARTITIONS)]
            partition.away_until_s = self.now_s + self.random.uniform(0.1, 8)
        elif what < 0.9:
            self._new_client(self.random.choice(IDS))
        self.after(self.random.expovariate(1 / 3), self._meddle)

    def _new_client(self, transactional_id: str) -> None:
        """Start another client of an id.

        Its predecessors die, or live on as zombies.
        """
        for client in self.clients:
            if client.id == transactional_id and self.random.random() < 0.5:
                client.lives = False
        self.clients.append(Client(self, transactional_id, f"{transactional_id}{next(self._names)}"))

    def _crash(self) -> None:
        """Kill the broker and start it again; each pending write takes effect or is lost."""
        self.crashes += 1
        self._cut = next(self.connections)
        waiting, self._under_way = self._under_way, {}
        for write in waiting.values():
            if self.random.random() < 0.5:
                write()
        for partition in self.partitions.values():
            partition.restart()
        self.coordinator = self._start()

    def _start(self) -> TransactionCoordinator:
        coordinator = TransactionCoordinator(SETTINGS, LOG_PARTITIONS, lambda: next(self._ids), self.level)
        values: dict[int, dict[str, TransactionLogValue]] = {}
        for key, value in self.log:
            record = read_record(key, value)
            assert record is not None
            assert record.value is not None
            values.setdefault(coordinator.registry.partition_of(record.transactional_id), {})[
                record.transactional_id
            ] = record.value
        self.coordinator = coordinator
        for index in range(LOG_PARTITIONS):
            assert coordinator.load(index, self.crashes, values.get(index, {}), self.now) == []
        self._pump()
        return coordinator

    # --- the broker --------------------------------------------------------------------------------------

    def _on_disk(self, write: Callable[[], None], then: Callable[[], None]) -> None:
        """Carry out a write after a while, then call `then`.

        A crash before may lose the write, and cancels the call.
        """
        key = object()
        self._under_way[key] = write

        def do() -> None:
            if self._under_way.pop(key, None) is not None:
                write()
                then()

        self.after(self.random.choice((0.0, 0.0, 0.001, 0.02, 0.3)), do)

    def _pump(self) -> None:
        coordinator, outbox = self.coordinator, self.coordinator.registry.outbox
        for store in outbox.take_stores():
            self._store(coordinator, store)
        for markers in outbox.take_markers():
            self._mark(coordinator, markers)
        for ticket, outcome in outbox.take_replies():
            ticket(outcome)  # type: ignore[operator]
        deadline = coordinator.next_deadline()
        if deadline is not None and (deadline < self._wake_at_s or self._wake_at_s < self.now_s):
            self._wake_at_s = deadline
            self.after(max(0.0, deadline - self.now_s), self._wake)

    def _wake(self) -> None:
        self._wake_at_s = float("inf")
        self.coordinator.advance(self.now)
        self._pump()

    def _store(self, coordinator: TransactionCoordinator, store: StoreRecord) -> None:
        fails = not self.is_quiet and self.random.random() < 0.03

        def write() -> None:
            if not fails:
                self.log.append(store.record)

        def then() -> None:
            if fails:
                coordinator.registry.not_stored(store, ErrorCode.NOT_ENOUGH_REPLICAS, self.now)
            else:
                coordinator.registry.stored(store, self.now)
            self._pump()

        self._on_disk(write, then)

    def _mark(self, coordinator: TransactionCoordinator, markers: Markers) -> None:
        outcomes: dict[TopicPartition, ErrorCode] = {}

        def one(partition: TopicPartition) -> None:
            def write() -> None:
                target = self.partitions[partition]
                try:
                    if target.away_until_s > self.now_s:
                        outcomes[partition] = ErrorCode.NOT_LEADER_OR_FOLLOWER
                    else:
                        target.mark(markers)
                        outcomes[partition] = ErrorCode.NONE
                except KafkaError as error:
                    outcomes[partition] = ErrorCode(error.code)

            def then() -> None:
                if len(outcomes) == len(markers.partitions):
                    coordinator.marking.marked(markers, outcomes, self.now)
                    self._pump()

            self._on_disk(write, then)

        for partition in markers.partitions:
            one(partition)

    def deliver(self, request: Request, connection: int, answered: Callable[[ApiOutcome], None]) -> None:
        """Carry a request to the broker, on time, late, or not at all, and its answer back."""
        random = self.random
        delay = random.uniform(0.0005, 0.01)
        if not self.is_quiet:
            if random.random() < 0.02:
                return  # the connection is cut before it
            if random.random() < 0.04:
                delay = random.uniform(0.5, 9)
        arrives = max(self.now_s + delay, self._lanes.get(connection, 0.0))
        self._lanes[connection] = arrives
        loses_answer = not self.is_quiet and random.random() < 0.03

        def reply(outcome: ApiOutcome) -> None:
            if not loses_answer:
                self.after(random.uniform(0.0005, 0.01), lambda: answered(outcome))

        self.after(arrives - self.now_s, lambda: self._arrive(request, connection, reply))

    def _arrive(self, request: Request, connection: int, reply: Callable[[ApiOutcome], None]) -> None:
        if connection > self._cut:  # connections end with the process that they lead to
            self._handle(request, connection, reply)

    def _handle(self, request: Request, connection: int, reply: Callable[[ApiOutcome], None]) -> None:
        coordinator, now = self.coordinator, self.now
        name, producer_id, epoch = request.transactional_id, request.producer_id, request.epoch
        if request.kind == "initialize":
            coordinator.initialize(Initialization(name, 6_000, producer_id, epoch), reply, now)
        elif request.kind == "add":
            coordinator.add_partitions(
                name, producer_id, epoch, [request.partition], reply, now, connection=connection
            )
        elif request.kind == "end":
            coordinator.end(
                name,
                producer_id,
                epoch,
                request.is_commit,
                reply,
                now,
                raises_epoch=request.is_new,
                connection=connection,
            )
        else:
            self._produce(request, reply, self.now_s + 0.1)
        self._pump()

    def _produce(self, request: Request, reply: Callable[[ApiOutcome], None], until_s: float) -> None:
        target = self.partitions[request.partition]
        if target.away_until_s > self.now_s:
            reply(ApiOutcome(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return
        crashes = self.crashes
        version = 12 if request.is_new else 11

        def append(verification: Verification | None) -> None:
            if crashes != self.crashes:
                return
            try:
                target.append(
                    request.producer_id, request.epoch, request.sequence, request.value, verification
                )
            except KafkaError as error:
                reply(ApiOutcome(ErrorCode(error.code)))
            else:
                reply(ApiOutcome())

        try:
            verification = target.transactions.begin_verification(
                request.producer_id, request.epoch, request.sequence, request.is_new, 0
            )
        except KafkaError as error:
            reply(ApiOutcome(ErrorCode(error.code)))
            return
        if verification is None:
            append(None)
            return

        def judged(outcome: ApiOutcome) -> None:
            if outcome.error == ErrorCode.CONCURRENT_TRANSACTIONS and request.is_new and self.now_s < until_s:
                if crashes == self.crashes:
                    self.after(0.02, lambda: self._try_again(request, reply, until_s, crashes))
            elif outcome.error:
                reply(ApiOutcome(answer_of_produce(outcome.error, version)))
            else:
                self.after(self.random.choice((0.0, 0.01, 0.5)), lambda: append(verification))

        name, producer_id, epoch = request.transactional_id, request.producer_id, request.epoch
        if request.is_new:
            self.coordinator.add_partitions(
                name, producer_id, epoch, [request.partition], judged, self.now, is_implicit=True
            )
        else:
            verified = self.coordinator.verify(name, producer_id, epoch, [request.partition])
            judged(ApiOutcome(verified[request.partition]))

    def _try_again(
        self, request: Request, reply: Callable[[ApiOutcome], None], until_s: float, crashes: int
    ) -> None:
        if crashes == self.crashes:
            self._produce(request, reply, until_s)
            self._pump()

    # --- judging -----------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Read a random partition as a consumer does, and check that no last stable offset goes back."""
        for partition in PARTITIONS:
            target = self.partitions[partition]
            stable = target.stable_offset
            assert stable >= self.stable[partition], f"the last stable offset of {partition} goes back"
            self.stable[partition] = stable
        partition = self.random.choice(PARTITIONS)
        committed_only = self.random.random() < 0.7
        rows = self.partitions[partition].read(committed_only)
        self.history.reads.append(Read(f"{partition[0]}-{partition[1]}", committed_only, rows))
        if not self.is_quiet:
            self.after(self.random.uniform(0.2, 2), self._look)

    def _judge(self) -> None:
        for transaction in self.coordinator.registry.transactions.values():
            assert transaction.state in FINISHED, f"{transaction.id} is {transaction.state}"
            assert transaction.storing is None
        for partition, target in self.partitions.items():
            assert target.stable_offset == len(target.log), f"{partition} is stuck at {target.stable_offset}"
            for committed_only in (True, False):
                rows = target.read(committed_only)
                name = f"{partition[0]}-{partition[1]}"
                self.history.reads.append(Read(name, committed_only, rows, is_complete=True))
        found = anomalies(self.history)
        assert not found, found[:5]
