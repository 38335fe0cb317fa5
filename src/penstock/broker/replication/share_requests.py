"""`SharedRequest`: sends a request about share partitions to their share coordinators.

A share coordinator stores the state of a share partition. The part of the response for a share partition is
complete when the coordinator's in-sync replicas have the state. If a share partition has no coordinator, the
request is retried until it times out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.broker.groups.share_state.requests import KINDS, answer_of, keys_of, part_of
from penstock.broker.groups.share_state.service import ShareStateOutcome
from penstock.broker.replication.commitment import Commitment, call_when_committed
from penstock.broker.requests.purgatory import Wait
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from penstock.broker.groups.share_state.keys import ShareKey
    from penstock.broker.node import Node
    from penstock.broker.partitions.partition import Partition

RETRY_S = 0.05
"""The seconds between attempts if a share coordinator is not available yet or its replicas lag."""

_COMES_LATER = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


Reach: TypeAlias = "Callable[[int], Node | None]"
"""A function that returns the node with a given id, or None if that node cannot be reached now."""


class SharedRequest:
    """Sends one request to share coordinators. `done` is called once, with the complete response."""

    def __init__(self, node: Node, reach: Reach, request: Any, done: Callable[[Any], None]) -> None:
        self._node = node
        self._reach = reach
        self._request = request
        self._done = done
        self._kind = KINDS[request.API_KEY]
        self._left: dict[ShareKey, Any] = dict(keys_of(request))
        """A dict from share partition to its part of the request, for the parts that no coordinator has
        accepted yet."""
        self._stored: dict[ShareKey, tuple[ShareStateOutcome, Commitment]] = {}
        """A dict from share partition to its result, for results that a coordinator has stored but that
        are not replicated yet."""
        self._outcomes: dict[ShareKey, ShareStateOutcome] = {}
        self._deadline = 0.0

    def begin(self) -> None:
        """Send the request to the coordinators; `done` is called now, or later by the node's purgatory."""
        timeout_ms = self._node.config.integer("share.coordinator.write.timeout.ms")
        self._deadline = self._node.clock.monotonic() + timeout_ms / 1000
        self._go_on()

    def _go_on(self) -> None:
        """Send the outstanding parts, check if stored results are replicated, and wait if any are missing."""
        for key in list(self._stored):
            self._look(key)
        for key in list(self._left):
            self._ask(key)
        if not self._left and not self._stored:
            self._finish()
            return
        now = self._node.clock.monotonic()
        if now >= self._deadline:
            late = ShareStateOutcome(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, "the share coordinator has not answered in time"
            )
            for key in (*self._left, *self._stored):
                self._outcomes.setdefault(key, late)
            self._finish()
            return
        self._wait(now)

    def _wait(self, now: float) -> None:
        """Schedule the next attempt, after `RETRY_S` or when a coordinator's partition commits records."""
        when = min(now + RETRY_S, self._deadline)
        self._node.purgatory.park(Wait((self,), when), self._go_on)

    def _ask(self, key: ShareKey) -> None:
        asked = self._left[key]
        there = self._coordinator(key)
        if there is None:
            return
        outcome = self._kind.ask(there.share_states, key, asked)
        if outcome.code in _COMES_LATER:
            return
        del self._left[key]
        partition = self._partition(there, key)
        self._stored[key] = outcome, Commitment(partition)
        self._look(key)
        if key in self._stored:
            node = self._node
            call_when_committed(there, partition, node, lambda: node.purgatory.notify(self))

    def _look(self, key: ShareKey) -> None:
        """Accept a share partition's result if it is replicated; queue the request again if it is lost."""
        outcome, commitment = self._stored[key]
        if commitment.is_lost:
            del self._stored[key]
            self._left[key] = next(asked for each, asked in keys_of(self._request) if each == key)
        elif commitment.is_committed:
            del self._stored[key]
            self._outcomes[key] = outcome

    def _coordinator(self, key: ShareKey) -> Node | None:
        """Return the node that coordinates a share partition, or None if it cannot be reached now."""
        node = self._node
        try:
            node.share_states.create_topic(node.clock.now_ms())
        except (KafkaError, StorageError):
            return None
        return self._reach(self._partition(node, key).leader)

    @staticmethod
    def _partition(node: Node, key: ShareKey) -> Partition:
        found: Partition = node.share_states.topic.partition(key.text)
        return found

    def _finish(self) -> None:
        parts = {key: part_of(self._kind, key, outcome) for key, outcome in self._outcomes.items()}
        self._done(answer_of(self._kind, self._request, parts))
