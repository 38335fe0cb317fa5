"""ISR proposals of a leader to the controller: collected, and sent in one request at a time. Without I/O.

As in brokers of Apache Kafka (AlterPartition, KIP-497), proposals made while a request is in flight are sent
together in the next request. Kafka retries 50 ms after each failure; here the pause grows, since all nodes
share one event loop with the controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.broker.replication.transport.messages import IsrChange, Proposal, ProposalAnswer
from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from penstock.broker.replication.followers import Followers
    from penstock.broker.replication.local_replica import LocalReplica

CHANGES_MAX = 1_000
"""The maximum number of partitions in one request, because a request blocks the event loop while it is
processed."""

RETRY_S = 0.05
"""The pause in seconds after the first failure; it doubles with each further failure."""

RETRY_MAX_S = 1.0

JITTER = 0.2
"""The random variation of a pause, as a fraction of the pause, so that leaders that failed together do not
retry together."""

ANSWER_S = 1.0
"""The timeout of a response in seconds; it doubles with each failure. Within a process a message may be lost
without a connection error; but if the timeout is too short, requests are repeated whose responses are only
late."""

ANSWER_MAX_S = 30.0
"""The longest timeout of a response in seconds: `controller.socket.timeout.ms` of Apache Kafka."""

FAILURES_MAX = 10
"""The upper limit of the failure counter. At this count, pauses and timeouts have reached their maximum."""

_REFUSED = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.STALE_BROKER_EPOCH)
"""Errors after which a proposal is dropped. After other errors it is repeated until newer metadata of the
partition arrive, because the controller may have written it."""


class _Item(NamedTuple):
    replica: LocalReplica
    followers: Followers
    change: IsrChange

    @property
    def is_settled(self) -> bool:
        """True if the metadata of the partition are newer than this proposal."""
        replica = self.replica
        return replica.followers is not self.followers or replica.epoch != self.change.partition_epoch


class Spreading(Protocol):
    """A source of random pauses; `random.Random` is one."""

    def uniform(self, least: float, most: float, /) -> float:
        """Return a random number between `least` and `most`."""


class IsrProposals:
    """The pending ISR proposals of a node, at most one for each partition."""

    def __init__(self, node_id: int, random: Spreading) -> None:
        self._node_id = node_id
        self._random = random
        self._unsent: dict[LocalReplica, _Item] = {}
        self._asked: list[_Item] = []
        """The proposals in the request that is in flight; empty without one."""
        self._number = 0
        self._answer_by: float | None = None
        """The monotonic time, in seconds, at which the response to the request in flight counts as lost;
        None without a request.
        """
        self._failures = 0
        """The number of requests that have failed since the last success."""
        self._not_before = 0.0

    def add(self, local: LocalReplica, in_sync: Sequence[int]) -> None:
        """Queue a new ISR of a partition that this node leads for the next request."""
        partition, followers = local.partition, local.followers
        assert followers is not None
        followers.pending = True
        members = []
        for replica in in_sync:
            follower = followers.get(replica)
            # The broker epoch that was seen to be in sync is proposed, also when the proposal is repeated.
            members.append((replica, -1 if follower is None else follower.broker_epoch))
        change = IsrChange(
            partition.topic_id, partition.index, partition.leader_epoch, local.epoch, tuple(members)
        )
        self._unsent[local] = _Item(local, followers, change)

    def settled(self, replica: LocalReplica) -> None:
        """Drop the proposal of a partition whose metadata have changed."""
        self._unsent.pop(replica, None)

    def request(self, broker_epoch: int, now_s: float) -> Proposal | None:
        """Return the next AlterPartition request; None if nothing is pending or it is too early.

        It is too early while a response is awaited, and in the pause after a failure. `broker_epoch` is the
        node's own broker epoch.
        """
        if self._answer_by is not None:
            if now_s < self._answer_by:
                return None
            self._fail(now_s)
        if now_s < self._not_before or not self._unsent:
            return None
        self._asked = [self._unsent.pop(each) for each in list(islice(self._unsent, CHANGES_MAX))]
        self._number += 1
        self._answer_by = now_s + min(ANSWER_S * 2.0**self._failures, ANSWER_MAX_S)
        changes = tuple(item.change for item in self._asked)
        return Proposal(self._node_id, broker_epoch, changes, self._number)

    def answered(self, number: int, answer: ProposalAnswer | None, now_s: float) -> bool:
        """Handle the response to the request `number`; `answer` is None if no response will come.

        Returns True if the controller has metadata that this node lacks. The response to an earlier request
        is ignored: the controller may have accepted the later request.
        """
        if number != self._number or self._answer_by is None:
            return False
        if answer is None:
            self._fail(now_s)
            return False
        is_missing = has_failed = False
        errors = answer.errors or (answer.error,) * len(self._asked)
        for item, error in zip(self._asked, errors, strict=True):
            if item.is_settled:
                continue
            if error in _REFUSED:
                has_failed = True
                item.followers.pending, item.followers.joining = False, None
                continue
            is_missing = True
            if error:
                has_failed = True
                self._unsent[item.replica] = item
        self._end(now_s, has_failed=has_failed)
        return is_missing

    def _fail(self, now_s: float) -> None:
        """Queue the proposals of the failed request again: without a response their outcome is unknown."""
        again = {item.replica: item for item in self._asked if not item.is_settled}
        self._unsent = {**again, **self._unsent}
        self._end(now_s, has_failed=True)

    def _end(self, now_s: float, *, has_failed: bool) -> None:
        self._answer_by, self._asked = None, []
        if not has_failed:
            self._failures = 0
            return
        pause_s = min(RETRY_S * 2.0**self._failures, RETRY_MAX_S)
        self._not_before = now_s + pause_s * self._random.uniform(1 - JITTER, 1 + JITTER)
        self._failures = min(self._failures + 1, FAILURES_MAX)

    def next_turn(self) -> float | None:
        """Return the time to call `request` next, in seconds, or None if there is nothing to propose."""
        if self._answer_by is not None:
            return self._answer_by
        return self._not_before if self._unsent else None
