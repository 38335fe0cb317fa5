"""A transaction coordinator for tests.

By default its writes are stored at once, and partitions accept every transaction marker.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from penstock.broker.transactions.coordinator import TransactionCoordinator
from penstock.broker.transactions.initialization import Initialization
from penstock.broker.transactions.outbox import ApiOutcome, Markers
from penstock.broker.transactions.records import read_record
from penstock.broker.transactions.settings import TransactionSettings
from penstock.broker.transactions.transaction import Instant, Transaction
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.transaction_log_value import TransactionLogValue

START_MS = 1_795_000_000_000
ID = "t"


class Bench:
    """A transaction coordinator whose requests are answered before the calls return.

    With `stores` or `marks` turned off, writes or transaction markers wait, and so do answers that depend on
    them.
    """

    def __init__(self, *, level: int = 2, settings: TransactionSettings | None = None) -> None:
        self.ids = count(4000)
        self.settings = settings or TransactionSettings()
        self.level = level
        self.uptime_s = 0.0
        self.skew_ms = 0
        self.stores = True
        self.store_error = ErrorCode.NONE
        self.marks = True
        self.mark_errors: dict[tuple[str, int], ErrorCode] = {}
        self.log: list[tuple[bytes, bytes | None]] = []
        self.sent: list[Markers] = []
        self.answers: dict[object, ApiOutcome] = {}
        self.epoch = 0
        self.coordinator = self.begin()

    def begin(self) -> TransactionCoordinator:
        """Start a coordinator that has the state in the log."""
        self.coordinator = TransactionCoordinator(self.settings, 50, lambda: next(self.ids), self.level)
        values: dict[int, dict[str, TransactionLogValue]] = {}
        for key, value in self.log:
            record = read_record(key, value)
            assert record is not None
            known = values.setdefault(self.coordinator.registry.partition_of(record.transactional_id), {})
            known.pop(record.transactional_id, None)
            if record.value is not None:
                known[record.transactional_id] = record.value
        for index in range(50):
            assert self.coordinator.load(index, self.epoch, values.get(index, {}), self.now) == []
        self.settle()
        return self.coordinator

    @property
    def now(self) -> Instant:
        return Instant(START_MS + int(self.uptime_s * 1000) + self.skew_ms, self.uptime_s)

    def wait(self, seconds: float) -> None:
        """Move the clock, and let the coordinator act at each of its deadlines."""
        until = self.uptime_s + seconds
        while (due := self.coordinator.next_deadline()) is not None and due <= until:
            self.uptime_s = max(self.uptime_s, due)
            self.coordinator.advance(self.now)
            self.settle()
        self.uptime_s = until

    def settle(self) -> None:
        """Carry out the writes and markers that the coordinator has requested."""
        outbox = self.coordinator.registry.outbox
        while True:
            busy = False
            if self.stores:
                for store in outbox.take_stores():
                    busy = True
                    if self.store_error:
                        self.coordinator.registry.not_stored(store, self.store_error, self.now)
                    else:
                        self.log.append(store.record)
                        self.coordinator.registry.stored(store, self.now)
            if self.marks:
                for markers in outbox.take_markers():
                    busy = True
                    self.sent.append(markers)
                    outcomes = {one: self.mark_errors.get(one, ErrorCode.NONE) for one in markers.partitions}
                    self.coordinator.marking.marked(markers, outcomes, self.now)
            self.answers.update(outbox.take_replies())
            if not busy:
                return

    def answer(self, ticket: object) -> ApiOutcome:
        self.settle()
        return self.answers.pop(ticket)

    # --- requests ----------------------------------------------------------------------------------------

    def initialize(
        self, producer_id: int = -1, epoch: int = -1, *, transactional_id: str = ID, timeout_ms: int = 60_000
    ) -> tuple[int, int, int]:
        """Initialize a transactional id; return error code, producer id and epoch."""
        ticket = object()
        request = Initialization(transactional_id, timeout_ms, producer_id, epoch)
        self.coordinator.initialize(request, ticket, self.now)
        found = self.answer(ticket)
        return int(found.error), found.producer_id, found.epoch

    def add(
        self,
        producer_id: int,
        epoch: int,
        partitions: Iterable[tuple[str, int]] = (("a", 0),),
        *,
        implicit: bool = False,
        connection: int = -1,
        transactional_id: str = ID,
    ) -> int:
        ticket = object()
        self.coordinator.add_partitions(
            transactional_id,
            producer_id,
            epoch,
            partitions,
            ticket,
            self.now,
            is_implicit=implicit,
            connection=connection,
        )
        return int(self.answer(ticket).error)

    def end(
        self,
        producer_id: int,
        epoch: int,
        commit: bool = True,
        *,
        new: bool = True,
        connection: int = -1,
        transactional_id: str = ID,
    ) -> ApiOutcome:
        ticket = object()
        self.coordinator.end(
            transactional_id,
            producer_id,
            epoch,
            commit,
            ticket,
            self.now,
            raises_epoch=new,
            connection=connection,
        )
        return self.answer(ticket)

    def ask_to_end(self, producer_id: int, epoch: int, commit: bool = True, *, new: bool = True) -> object:
        """Ask to end a transaction, like `end`, where the answer must wait; return the request's ticket."""
        ticket = object()
        self.coordinator.end(ID, producer_id, epoch, commit, ticket, self.now, raises_epoch=new)
        self.settle()
        return ticket

    @property
    def transaction(self) -> Transaction:
        return self.coordinator.registry.transactions[ID]

    @property
    def state(self) -> str:
        return self.transaction.state.value
