"""The state machine of a transactional producer: calls, answers and time go in, steps come out. No I/O.

A step is one request to a coordinator; only one is in flight at a time. The machine follows the Java producer
in both protocols:

- Before KIP-890, the producer adds each partition and group to the transaction before their first batch or
  offsets. The epoch stays the same, unless a request is in doubt: then the next transaction gets a new epoch
  (KIP-360).
- With KIP-890, brokers add partitions and groups, and every end of a transaction gives the next epoch.

A request is in doubt if its response was lost: a copy of it may still arrive. In the old protocol, a late
EndTxn would end the next transaction (KAFKA-17754); a new epoch prevents this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.client.group.offsets import GroupMetadata, OffsetAndMetadata
from penstock.client.producer_id import NO_PRODUCER_ID, ProducerId
from penstock.client.transactions.pauses import Pauses
from penstock.client.transactions.states import ProducerEvent, ProducerPhase, next_state
from penstock.client.transactions.steps import (
    NO_NODE,
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    End,
    FindCoordinator,
    Initialize,
    Step,
    StepAnswer,
    TransactionCoordinates,
)
from penstock.client.transactions.verdicts import Verdict, judge_batch, judge_step
from penstock.errors import (
    KafkaError,
    PenstockError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionFatalError,
)
from penstock.model import TopicPartition
from penstock.protocol.error_codes import error_for
from penstock.protocol.field_values import GROUP_KEY, TRANSACTION_KEY

OPEN = frozenset((ProducerPhase.IN_TRANSACTION, ProducerPhase.COMMITTING))
"""The states of a transaction in which batches and offsets may be sent."""


class _Offsets(NamedTuple):
    """Offsets of a group that are to be added to the transaction."""

    group: GroupMetadata
    offsets: Mapping[TopicPartition, OffsetAndMetadata]


class TransactionMachine:
    """Decides the requests for one producer's transactions. All calls must be on one event loop."""

    def __init__(self, transactional_id: str, pauses: Pauses) -> None:
        self.transactional_id = transactional_id
        self.state = ProducerPhase.UNINITIALIZED
        self.owner = NO_PRODUCER_ID
        self.error: PenstockError | None = None
        """The error of the transaction, the producer, or the last attempt to get a producer id; None without
        one."""
        self.is_implicit = False
        """True if the current transaction follows KIP-890: brokers add partitions, and each end raises the
        epoch."""
        self.ended = 0
        """The number of transactions that have been committed or aborted."""
        self._pauses = pauses
        self._partitions: set[TopicPartition] = set()
        self._to_add: set[TopicPartition] = set()
        self._groups: set[str] = set()
        self._offsets: _Offsets | None = None
        self._is_commit = False
        self._is_started = False
        """True if the transaction may exist at the coordinator, so that it must be ended there."""
        self._is_in_doubt = False
        self._coordinators: dict[tuple[int, str], int] = {}
        self._asking: Step | None = None

    # -- calls of the application

    def initialize(self) -> None:
        """Ask for a producer id, which fences other producers of the transactional id."""
        self._check()
        self._go(ProducerEvent.INITIALIZE)
        self.error = None

    def begin(self, *, is_implicit: bool) -> None:
        """Begin a transaction, without a request. `is_implicit` chooses the protocol of KIP-890."""
        self._check()
        self._go(ProducerEvent.BEGIN)
        self._forget_transaction(is_implicit)

    def send_offsets(self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Ask to add a group's offsets to the transaction.

        The coordinators have accepted them once `has_offsets` is False.
        """
        self._check()
        self._go(ProducerEvent.SEND_OFFSETS)
        self._offsets = _Offsets(group, offsets)

    def prepare(self) -> TransactionCoordinates:
        """Accept no more records; return the ids with which any process can end the transaction."""
        self._check()
        self._go(ProducerEvent.PREPARE)
        return TransactionCoordinates(self.transactional_id, *self.owner)

    def commit(self) -> None:
        """Begin a commit: EndTxn is sent as soon as all batches are acknowledged."""
        self._check()
        self._go(ProducerEvent.COMMIT)
        self._is_commit = True

    def abort(self) -> None:
        """Begin an abort: EndTxn is sent as soon as no batch is in flight."""
        if self.state is ProducerPhase.FATAL_ERROR:
            self._check()
        self._go(ProducerEvent.ABORT)
        self.error = None
        self._is_commit = False
        self._to_add.clear()
        self._offsets = None

    # -- what the batches say and ask

    @property
    def has_offsets(self) -> bool:
        """True while offsets wait to be added to the transaction."""
        return self._offsets is not None

    @property
    def is_dropping(self) -> bool:
        """True if batches that are not in flight must be failed, because the transaction is being aborted."""
        return self.state in (
            ProducerPhase.ABORTING,
            ProducerPhase.ABORTABLE_ERROR,
            ProducerPhase.FATAL_ERROR,
        )

    def admits(self, tp: TopicPartition) -> bool:
        """Return True if batches of a partition may be sent now.

        Before KIP-890, the partition must be added to the transaction first, and this call requests that.
        """
        if self.state not in OPEN:
            return False
        if tp in self._partitions:
            return True
        if self.is_implicit:
            self._partitions.add(tp)
            self._is_started = True
            return True
        self._to_add.add(tp)
        return False

    def batch_failed(self, error: PenstockError, *, is_numbered: bool) -> None:
        """Record that a batch has failed permanently. If `is_numbered`, it leaves a gap in the sequence."""
        if is_numbered:
            self._is_in_doubt = True
        verdict = judge_batch(error.code if isinstance(error, KafkaError) else None)
        if verdict in (Verdict.FATAL, Verdict.FENCED):
            self._fail_for_good(error, verdict)
        elif self.state in OPEN:
            self._fail(error)

    # -- steps

    def next_step(self, now: float, *, is_settled: bool) -> Step | None:
        """Return the next step to send, or None. `now` is in monotonic seconds.

        `is_settled` means that all batches of a commit are acknowledged, or that an abort has none in flight.
        """
        if self._asking is not None or now < self._pauses.until:
            return None
        step = self._due(is_settled)
        if step is None:
            return None
        place = self.place_of(step)
        if place not in self._coordinators:
            step = FindCoordinator(*place)
        self._asking = step
        return step

    @property
    def wake_at(self) -> float:
        """The time to call `next_step` again, in monotonic seconds; infinite while a step is in flight."""
        return self._pauses.until if self._asking is None else float("inf")

    def place_of(self, step: Step) -> tuple[int, str]:
        """Return a step's coordinator type (group or transaction), and the group id or transactional id."""
        if isinstance(step, CommitOffsets):
            return GROUP_KEY, step.group.group_id
        return TRANSACTION_KEY, self.transactional_id

    def node_of(self, step: Step) -> int:
        """Return the node id of the coordinator of a step, or `NO_NODE` if the id is not known."""
        return self._coordinators.get(self.place_of(step), NO_NODE)

    def _due(self, is_settled: bool) -> Step | None:
        if self.state is ProducerPhase.INITIALIZING:
            return Initialize(self.owner)
        if self.state in OPEN and self._to_add:
            return AddPartitions(self.owner, frozenset(self._to_add))
        if self.state in OPEN and self._offsets is not None:
            group, offsets = self._offsets
            if not self.is_implicit and group.group_id not in self._groups:
                return AddOffsets(self.owner, group.group_id)
            return CommitOffsets(self.owner, group, offsets, self.is_implicit)
        if self.state in (ProducerPhase.COMMITTING, ProducerPhase.ABORTING) and is_settled:
            if self._is_started:
                return End(self.owner, self._is_commit, self.is_implicit)
            self._end(self.owner)
            return self._due(is_settled)
        return None

    def answered(self, step: Step, answer: StepAnswer, now: float) -> PenstockError | None:
        """Act on a coordinator's answer; return its error if the step must be sent again, else None."""
        self._asking = None
        codes = [answer.code, *answer.codes.values()]
        verdict, code = max((judge_step(step, code), code) for code in codes)
        if verdict is Verdict.DONE:
            self._pauses.clear()
            self._done(step, answer)
            return None
        error = error_for(code, _telling(step, self.transactional_id))
        if verdict is Verdict.FIND:
            self._coordinators.pop(self.place_of(step), None)
        if verdict in (Verdict.RETRY, Verdict.FIND):
            self._pauses.after_refusal(code, now)
            return error
        self._pauses.clear()
        if verdict is Verdict.REFUSED:
            self._refuse(error)
        elif verdict in (Verdict.ABORT, Verdict.ABORT_AND_RAISE):
            self._is_in_doubt |= verdict is Verdict.ABORT_AND_RAISE
            self._fail_step(step, error)
        else:
            self._fail_for_good(error, verdict)
        return None

    def lost(self, step: Step, now: float, *, is_sent: bool) -> None:
        """Act on a missing response. If `is_sent`, the request may have arrived, or may still arrive."""
        self._asking = None
        if not isinstance(step, FindCoordinator):
            self._coordinators.pop(self.place_of(step), None)
            if is_sent and not isinstance(step, Initialize):
                self._is_started = self._is_in_doubt = True
        self._pauses.after_loss(now)

    def failed(self, step: Step, error: PenstockError) -> None:
        """Act on a step that cannot be sent at all: an unsupported version, or a refused login."""
        self._asking = None
        self._refuse(error)

    # -- what steps lead to

    def _done(self, step: Step, answer: StepAnswer) -> None:
        if isinstance(step, FindCoordinator):
            self._coordinators[step.kind, step.key] = answer.node
        elif isinstance(step, Initialize):
            self.owner = answer.owner
            self._is_in_doubt = False
            self._go(ProducerEvent.INITIALIZED)
        elif isinstance(step, AddPartitions):
            self._is_started = True
            self._partitions |= step.partitions
            self._to_add -= step.partitions
        elif isinstance(step, AddOffsets):
            self._is_started = True
            self._groups.add(step.group_id)
        elif isinstance(step, CommitOffsets):
            self._is_started = True
            self._offsets = None
        else:
            self._end(answer.owner if step.raises_epoch else self.owner)

    def _end(self, owner: ProducerId) -> None:
        wants_epoch = self._is_in_doubt and not self.is_implicit
        self.owner = owner
        self.ended += 1
        self._forget_transaction(self.is_implicit)
        self._go(ProducerEvent.ENDED_IN_DOUBT if wants_epoch else ProducerEvent.ENDED)

    def _forget_transaction(self, is_implicit: bool) -> None:
        self.is_implicit = is_implicit
        self._partitions.clear()
        self._to_add.clear()
        self._groups.clear()
        self._offsets = None
        self._is_started = self._is_in_doubt = False

    # -- errors

    def _check(self) -> None:
        """Raise the error of a failed transaction or producer, before a call that is not allowed after it."""
        if self.error is not None and self.state in (
            ProducerPhase.ABORTABLE_ERROR,
            ProducerPhase.FATAL_ERROR,
        ):
            raise self.error

    def _go(self, event: ProducerEvent) -> None:
        self.state = next_state(self.state, event)

    def _refuse(self, error: PenstockError) -> None:
        if self.state is ProducerPhase.INITIALIZING and self.owner == NO_PRODUCER_ID:
            self._go(ProducerEvent.REFUSED)
            self.error = error
        else:
            self._fail_for_good(error, Verdict.FATAL)

    def _fail_step(self, step: Step, error: PenstockError) -> None:
        if isinstance(step, CommitOffsets | AddOffsets | FindCoordinator):
            self._offsets = None
        if isinstance(step, CommitOffsets):
            self._is_started = True
        if self.state in OPEN:
            self._fail(error)

    def _fail(self, error: PenstockError) -> None:
        self._go(ProducerEvent.FAILED)
        self._to_add.clear()
        self._offsets = None
        told = TransactionAbortableError(
            f"the transaction of {self.transactional_id!r} cannot be committed; abort it, then do its work "
            f"again: {error}"
        )
        told.__cause__ = error
        self.error = told

    def _fail_for_good(self, error: PenstockError, verdict: Verdict) -> None:
        if self.state is ProducerPhase.FATAL_ERROR:
            return
        self._go(ProducerEvent.FAILED_FOR_GOOD)
        self._offsets = None
        if verdict is Verdict.FENCED:
            told: TransactionFatalError = ProducerFencedError(
                f"another producer uses {self.transactional_id!r}, or the transaction ran into its timeout: "
                f"close this producer; {error}"
            )
        else:
            told = TransactionFatalError(
                f"the producer of {self.transactional_id!r} cannot go on: close it; {error}"
            )
        told.__cause__ = error
        self.error = told


def _telling(step: Step, transactional_id: str) -> str:
    """Return a phrase that describes a step, for error messages."""
    if isinstance(step, FindCoordinator):
        kind = "transactional id" if step.kind == TRANSACTION_KEY else "group"
        return f"looking for the coordinator of {kind} {step.key!r}"
    if isinstance(step, Initialize):
        return f"getting a producer id for {transactional_id!r}"
    if isinstance(step, AddPartitions):
        return f"adding {', '.join(sorted(map(str, step.partitions)))} to the transaction"
    if isinstance(step, AddOffsets):
        return f"adding group {step.group_id!r} to the transaction"
    if isinstance(step, CommitOffsets):
        return f"offsets of group {step.group.group_id!r} in the transaction"
    return "committing the transaction" if step.is_commit else "aborting the transaction"
