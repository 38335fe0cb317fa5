"""What the driver and the session of a member need of its state machine, for every group protocol.

`membership.Membership` is that of the classic protocol, `consumer_membership.ConsumerMembership` that of
KIP-848; members of share groups need the driver only. All are sans-I/O: requests come out
by `take_requests`, outcomes go in by `answered`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Protocol

from penstock.client.group.requests import Change, MemberSettings, Outgoing
from penstock.client.group.timeouts import Timeouts
from penstock.errors import PenstockError
from penstock.model import TopicPartition


class Phase(Enum):
    """The member's state at the coordinator, as of its last answer."""

    OUT = "not in the group, and not asked to be"
    UNJOINED = "about to join"
    JOINING = "the request to join is under way"
    ASSIGNING = "the leader counts partitions"
    SYNCING = "SyncGroup is under way"
    STABLE = "a member with an assignment"
    FENCED = "another member has taken the instance id"


class Driven(Protocol):
    """What the driver of a member needs of its state machine, in a group of any kind. Times are milliseconds
    of any clock that goes forward."""

    timeouts: Timeouts
    name_of: Callable[[int | None], object]
    """Returns how messages name a node."""

    @property
    def settings(self) -> MemberSettings:
        """The settings of the member."""

    @property
    def phase(self) -> Phase:
        """The member's state at the coordinator."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The names that are subscribed to."""

    @property
    def group_topics(self) -> set[str]:
        """The topics whose metadata have to be fresh."""

    @property
    def outbox(self) -> list[Outgoing]:
        """The requests to be sent."""

    @property
    def wake_at(self) -> float:
        """The time at which `advance` must be called at the latest."""

    def take_requests(self) -> list[Outgoing]:
        """Return the requests to be sent, and keep none."""

    def answered(self, ticket: int, outcome: object, now: float) -> None:
        """Take the answer to a request, or the error that came instead."""

    def advance(self, now: float) -> None:
        """Send the requests that are due."""

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Set the topics to subscribe to."""

    def polled(self, now: float) -> None:
        """Note that the application asks for records."""

    def counted(self, counts: Mapping[str, int], now: float) -> None:
        """Take the numbers of partitions that fresh metadata have."""


class StateMachine(Driven, Protocol):
    """One member of a group of consumers."""

    @property
    def member_id(self) -> str:
        """The member's id; empty while it has none."""

    @property
    def generation(self) -> int:
        """The generation, or the member epoch, under which commits are sent."""

    @property
    def rejoin_reason(self) -> str:
        """Why the member has lost its partitions, or joins again."""

    @property
    def lost_by(self) -> int:
        """The error of commits while this is no member."""

    @property
    def is_member(self) -> bool:
        """Whether the coordinator has the member, as of its last answer."""

    @property
    def reads_as_member(self) -> bool:
        """Whether committed offsets are read under the member's id and epoch (KIP-848)."""

    @property
    def awaits_generation(self) -> bool:
        """Whether an answer is under way that may have a newer generation."""

    @property
    def must_act(self) -> bool:
        """Whether the application has to do something: `next_change`, or take the error."""

    def poll_begins(self, now: float) -> None:
        """Note that the application waits for records."""

    def poll_ends(self, now: float) -> None:
        """Note that the application has got records, or none in time."""

    def leave(self, now: float) -> None:
        """Revoke everything, then leave."""

    def next_change(self) -> Change | None:
        """Return the next change to notify the application of."""

    def confirm(self, change: Change, now: float) -> None:
        """Note that the application has been notified of a change."""

    def take_error(self) -> PenstockError | None:
        """Return the error once, for the application."""

    def refused(self, code: int, generation: int, now: float) -> None:
        """Take an error of offsets sent under a generation that concerns the member."""

    def kept_since(self, generation: int) -> frozenset[TopicPartition]:
        """Return the partitions that the application has had without a break since a generation."""
