"""Sends requests to transaction coordinators about transactional ids of other processes, with asyncio."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from penstock.client.admin.transactions import TransactionAdministration
from penstock.client.producer_id import NO_PRODUCER_ID, ProducerId
from penstock.client.transactions.coordinators import (
    UnsentError,
    find_coordinator,
    speaks_implicit_adds,
    take_step,
)
from penstock.client.transactions.steps import (
    NO_NODE,
    AddPartitions,
    End,
    FindCoordinator,
    Initialize,
    Step,
    StepAnswer,
)
from penstock.errors import KafkaError, NetworkError, UnsupportedVersionError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import TRANSACTION_KEY
from penstock.spark.exactly_once.decision import TaskTransaction
from penstock.spark.exactly_once.settlement import TransactionFate, fate_after_end

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient

MOVED = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
UNENDED_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort")
UNKNOWN_STATE = ""


class Coordinators:
    """The transaction coordinators of a cluster, with a cache of the node for each transactional id."""

    def __init__(self, client: AsyncClient, timeout_ms: int) -> None:
        self._client = client
        self._transactions = TransactionAdministration(client)
        self._timeout_ms = timeout_ms
        self._nodes: dict[str, int] = {}

    async def end(self, transaction: TaskTransaction, *, is_commit: bool) -> TransactionFate:
        """Commit or abort a transaction; return UNCLEAR if its coordinator does not have it open any more.

        Raises:
            KafkaError: access to the transactional id is denied.
            NetworkError, RequestTimeoutError: the coordinator does not answer.
        """
        await self._client.bootstrap()
        owner = ProducerId(transaction.producer_id, transaction.epoch)

        def step() -> Step:
            return End(owner, is_commit, speaks_implicit_adds(self._client))

        name = transaction.transactional_id
        answer = await self._ask(name, step, f"ending transaction {name!r}")
        fate = fate_after_end(answer.code)
        if fate is None:
            raise error_for(answer.code, f"ending transaction {name!r}")
        return fate

    async def fence(self, name: str) -> None:
        """Abort the transaction of a transactional id, and fence the producer that uses it.

        Raises the errors of `end`.
        """
        await self.initialize(name)

    async def initialize(self, name: str) -> ProducerId:
        """Take over a transactional id (InitProducerId); return its producer id with a new epoch.

        Raises the errors of `end`."""
        await self._client.bootstrap()
        answer = await self._ask(name, lambda: Initialize(NO_PRODUCER_ID), f"fencing {name!r}")
        if answer.code:
            raise error_for(answer.code, f"fencing {name!r}")
        return answer.owner

    async def add_partitions(
        self, transaction: TaskTransaction, partitions: Iterable[TopicPartition]
    ) -> None:
        """Add partitions to a transaction, as brokers before KIP-890 require. Raises the errors of `end`."""
        step = AddPartitions(ProducerId(transaction.producer_id, transaction.epoch), frozenset(partitions))
        what = f"adding partitions to transaction {transaction.transactional_id!r}"
        answer = await self._ask(transaction.transactional_id, lambda: step, what)
        for code in (answer.code, *answer.codes.values()):
            if code:
                raise error_for(code, what)

    async def state_of(self, name: str) -> str:
        """Return Kafka's name for the state of a transactional id; "" if brokers do not return it.

        Raises the errors of `end`.
        """
        try:
            description = await self._transactions.describe(name)
        except UnsupportedVersionError:
            return UNKNOWN_STATE
        except KafkaError as error:
            if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            return UNKNOWN_STATE
        return description.state

    async def open_ids(self, prefix: str) -> list[str]:
        """Return the transactional ids that begin with `prefix` and have an open transaction.

        The list is empty if the brokers cannot list transactions. Raises the errors of `end`.
        """
        try:
            found = await self._transactions.listings(states=["Ongoing"])
        except UnsupportedVersionError:
            return []
        return [each.transactional_id for each in found if each.transactional_id.startswith(prefix)]

    async def _ask(self, name: str, step: Callable[[], Step], what: str) -> StepAnswer:
        answers: list[StepAnswer] = []

        async def attempt() -> None:
            node = await self._node(name)
            try:
                answer = await take_step(self._client, step(), node, name, self._timeout_ms)
            except UnsentError as error:
                self._nodes.pop(name, None)
                raise NetworkError(str(error)) from error
            except NetworkError:
                self._nodes.pop(name, None)
                raise
            for code in (answer.code, *answer.codes.values()):
                self._check(name, code, what)
            answers.append(answer)

        await self._client.retrying(what, attempt)
        return answers[-1]

    def _check(self, name: str, code: int, what: str) -> None:
        """Raise the error for `code` if it is retriable; drop a coordinator that has moved from the cache."""
        if code in MOVED:
            self._nodes.pop(name, None)
        error = error_for(code, what) if code else None
        if error is not None and error.retriable:
            raise error

    async def _node(self, name: str) -> int:
        node = self._nodes.get(name, NO_NODE)
        if node == NO_NODE:
            try:
                answer = await find_coordinator(self._client, FindCoordinator(TRANSACTION_KEY, name))
            except UnsentError as error:
                raise NetworkError(str(error)) from error
            if answer.code:
                raise error_for(answer.code, f"looking for the coordinator of transactional id {name!r}")
            node = self._nodes[name] = answer.node
        return node
