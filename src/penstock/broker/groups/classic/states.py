"""The states of a classic group as tables: transitions, errors by state, and the effects of a rejoin.

A group changes its state in two ways. `TRANSITIONS.next_state` looks up (state, cause), and raises
`IllegalTransitionError` for a pair that is not listed. `BYPASSES` lists the states that are set independently
of the present one: when a group is read from the store, when a consumer group is converted to it, and when an
exception has left it partly changed. `tools/draw_group_states.py` draws the picture in the documentation from
`TRANSITIONS`.

States and their names follow Apache Kafka's classic groups.
"""

from __future__ import annotations

from enum import StrEnum

from penstock.common.transitions import Transitions
from penstock.protocol.error_codes import ErrorCode


class State(StrEnum):
    """The state of a group. The values are the names in responses of DescribeGroups and ListGroups."""

    EMPTY = "Empty"
    """A group without members; it may have committed offsets."""
    PREPARING = "PreparingRebalance"
    """The members are asked to rejoin. Their JoinGroup requests wait until all members have sent theirs."""
    COMPLETING = "CompletingRebalance"
    """A new generation has begun. The members wait in SyncGroup for the leader's assignment."""
    STABLE = "Stable"
    """The leader has assigned partitions; members get their assignment with SyncGroup."""
    DEAD = "Dead"
    """A deleted group."""


class Cause(StrEnum):
    """The cause of a state transition. The values are the labels in the documentation's state diagram."""

    MEMBER_JOINS = "a member joins"
    MEMBER_CHANGES = "the leader rejoins, or a member changes its protocols"
    MEMBER_GOES = "a member leaves, or its session ends"
    SYNC_IS_OVERDUE = "a member does not sync in time"
    NOT_STORED = "the disk refuses to store it"
    ALL_JOINED = "all have joined, or time is up"
    NO_MEMBERS_LEFT = "no members are left"
    LEADER_ASSIGNS = "the leader's assignment is stored"
    DELETED = "deleted, or expired"


TRANSITIONS = Transitions[State, Cause](
    {
        (State.EMPTY, Cause.MEMBER_JOINS): State.PREPARING,
        (State.PREPARING, Cause.ALL_JOINED): State.COMPLETING,
        (State.PREPARING, Cause.NO_MEMBERS_LEFT): State.EMPTY,
        (State.COMPLETING, Cause.LEADER_ASSIGNS): State.STABLE,
        (State.COMPLETING, Cause.MEMBER_JOINS): State.PREPARING,
        (State.COMPLETING, Cause.MEMBER_CHANGES): State.PREPARING,
        (State.COMPLETING, Cause.MEMBER_GOES): State.PREPARING,
        (State.COMPLETING, Cause.SYNC_IS_OVERDUE): State.PREPARING,
        (State.COMPLETING, Cause.NOT_STORED): State.PREPARING,
        (State.STABLE, Cause.MEMBER_JOINS): State.PREPARING,
        (State.STABLE, Cause.MEMBER_CHANGES): State.PREPARING,
        (State.STABLE, Cause.MEMBER_GOES): State.PREPARING,
        (State.STABLE, Cause.SYNC_IS_OVERDUE): State.PREPARING,
        (State.STABLE, Cause.NOT_STORED): State.PREPARING,
        (State.EMPTY, Cause.DELETED): State.DEAD,
    }
)
"""A table from (present state, cause) to the next state. A pair without an entry is illegal."""


class Bypass(StrEnum):
    """The reason why a group's state is set without a transition."""

    READ_ASSIGNED = "a generation was read from the store, with its assignments"
    READ_UNASSIGNED = "a generation was read from the store whose leader had not assigned"
    REBUILT = "an exception has left it half-changed; its members are asked to join again"
    TURNED = "a consumer group that only classic members are left of has become it"
    STARTED_OVER = "an exception has left it half-changed, again; its members are removed"


BYPASSES: dict[Bypass, State] = {
    Bypass.READ_ASSIGNED: State.STABLE,
    Bypass.READ_UNASSIGNED: State.PREPARING,
    Bypass.REBUILT: State.PREPARING,
    Bypass.TURNED: State.STABLE,
    Bypass.STARTED_OVER: State.EMPTY,
}
"""A dict from each reason to the state that is set, independently of the present state."""


class RequestKind(StrEnum):
    """The kinds of requests that a group refuses in some of its states."""

    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    COMMIT = "OffsetCommit"
    DELETE = "DeleteGroups"


REFUSALS: dict[tuple[RequestKind, State], ErrorCode] = {
    (RequestKind.SYNC, State.EMPTY): ErrorCode.UNKNOWN_MEMBER_ID,
    (RequestKind.SYNC, State.PREPARING): ErrorCode.REBALANCE_IN_PROGRESS,
    (RequestKind.HEARTBEAT, State.EMPTY): ErrorCode.UNKNOWN_MEMBER_ID,
    (RequestKind.HEARTBEAT, State.PREPARING): ErrorCode.REBALANCE_IN_PROGRESS,
    (RequestKind.COMMIT, State.COMPLETING): ErrorCode.REBALANCE_IN_PROGRESS,
    (RequestKind.DELETE, State.PREPARING): ErrorCode.NON_EMPTY_GROUP,
    (RequestKind.DELETE, State.COMPLETING): ErrorCode.NON_EMPTY_GROUP,
    (RequestKind.DELETE, State.STABLE): ErrorCode.NON_EMPTY_GROUP,
}
"""A dict from (kind of request, state of the group) to the error. A request without an entry is allowed."""


class Rejoin(StrEnum):
    """The effect of a JoinGroup request that an existing member sends."""

    WAIT = "wait for the other members"
    REPEAT = "the current generation is answered again"
    REBALANCE = "a new generation"
    RESET = "the member id is refused"


REJOINS: dict[State, tuple[Rejoin, Rejoin, Rejoin]] = {
    State.PREPARING: (Rejoin.WAIT, Rejoin.WAIT, Rejoin.WAIT),
    State.COMPLETING: (Rejoin.REPEAT, Rejoin.REPEAT, Rejoin.REBALANCE),
    State.STABLE: (Rejoin.REPEAT, Rejoin.REBALANCE, Rejoin.REBALANCE),
    State.EMPTY: (Rejoin.RESET, Rejoin.RESET, Rejoin.RESET),
}
"""The effects of a rejoin in each state: by a follower, by the leader, by a member with changed protocols.

A follower or leader with unchanged protocols may send JoinGroup again because the response was lost. A
leader that rejoins in a stable group has detected a change that is not in its protocols, such as a topic with
more partitions.
"""
