"""The interface of a member's state machine to its driver and its session, for every group protocol.

`membership.Membership` implements the classic protocol, `consumer_membership.ConsumerMembership` that of
KIP-848; members of share groups need the driver only. All are sans-I/O: `take_requests` returns requests, and
`answered` takes outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Protocol

from penstock.client.group.requests import AssignmentChange, MemberSettings, Outgoing
from penstock.client.group.timeouts import Timeouts
from penstock.errors import PenstockError
from penstock.model import TopicPartition


class Phase(Enum):
    """The member's state at the coordinator, after the coordinator's last answer."""

    OUT = "not in the group, and not asked to be"
    UNJOINED = "about to join"
    JOINING = "the request to join is under way"
    ASSIGNING = "the leader counts partitions"
    SYNCING = "SyncGroup is under way"
    STABLE = "a member with an assignment"
    FENCED = "another member has taken the instance id"


class Driven(Protocol):
    """The interface of a member's state machine that its driver uses, for all kinds of groups.

    Times are milliseconds of a monotonic clock.
    """

    timeouts: Timeouts
    name_of: Callable[[int | None], object]
    """A function that returns the name of a node for error messages."""

    @property
    def settings(self) -> MemberSettings:
        """The settings of the member."""

    @property
    def phase(self) -> Phase:
        """The member's state at the coordinator: for example out of the group, joining, or stable."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The names of the subscribed topics."""

    @property
    def group_topics(self) -> set[str]:
        """The topics whose metadata the driver must keep fresh."""

    @property
    def outbox(self) -> list[Outgoing]:
        """The requests to be sent."""

    @property
    def wake_at(self) -> float:
        """The latest time (ms) at which `advance` must be called."""

    def take_requests(self) -> list[Outgoing]:
        """Return the requests to be sent, and empty the outbox."""

    def answered(self, ticket: int, outcome: object, now: float) -> None:
        """Act on a request's response, or on its error if it has failed."""

    def advance(self, now: float) -> None:
        """Put the requests that are due at the time `now` into the outbox."""

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Set the topics to subscribe to."""

    def polled(self, now: float) -> None:
        """Record that the application has asked for records."""

    def counted(self, counts: Mapping[str, int], now: float) -> None:
        """Process the partition counts of topics after a refresh of the metadata."""


class StateMachine(Driven, Protocol):
    """The methods of a consumer group member's state machine that its session calls."""

    @property
    def member_id(self) -> str:
        """The member's id, or an empty string while it has none."""

    @property
    def generation(self) -> int:
        """The generation, or the member epoch, under which commits are sent."""

    @property
    def rejoin_reason(self) -> str:
        """The reason for which the member has lost its partitions, or joins again."""

    @property
    def lost_by(self) -> int:
        """The error code that commits get after the membership was lost."""

    @property
    def is_member(self) -> bool:
        """True if the coordinator's last answer has confirmed the member."""

    @property
    def reads_as_member(self) -> bool:
        """True if committed offsets are read under the member's id and epoch (KIP-848)."""

    @property
    def awaits_generation(self) -> bool:
        """True if a request is in flight whose response may have a newer generation."""

    @property
    def must_act(self) -> bool:
        """True if there is a change to notify the application of, or an error to raise."""

    def poll_begins(self, now: float) -> None:
        """Record that the application waits for records."""

    def poll_ends(self, now: float) -> None:
        """Record that a poll has returned, with or without records."""

    def leave(self, now: float) -> None:
        """Begin to leave the group, after the application has given up its partitions."""

    def next_change(self) -> AssignmentChange | None:
        """Return the next change to notify the application of, or None."""

    def confirm(self, change: AssignmentChange, now: float) -> None:
        """Record that the application has been notified of a change."""

    def take_error(self) -> PenstockError | None:
        """Return the error that the next poll must raise, or None, and clear that error."""

    def refused(self, code: int, generation: int, now: float) -> None:
        """Act on an error about the member in a response to OffsetCommit or OffsetFetch.

        `generation` is the generation or epoch that the request had.
        """

    def kept_since(self, generation: int) -> frozenset[TopicPartition]:
        """Return the partitions that the application has had continuously since the given generation."""
