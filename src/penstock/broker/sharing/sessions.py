"""Share sessions (KIP-932): the partitions that a member of a share group fetches from this broker.

A session belongs to one member of one group, and to the connection on which it was begun. When the connection
ends, the session ends, and the records that the member had acquired are released. The session's epoch counts
requests, fetches and acknowledgements in one sequence, so that no request is processed twice. The module does
not depend on partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

FIRST_EPOCH, FINAL_EPOCH = 0, -1
"""The session epochs of the requests that begin a session, and that end it."""

EPOCH_MAX = 2**31 - 1

MEMBER_ID_CHARACTERS_MAX = 36
"""The maximum characters of a member id: the length of a UUID as text."""

SESSION_BYTES, PARTITION_BYTES = 900, 250
"""The approximate memory in bytes of a session, and of each partition in it."""

TopicIdPartition = tuple[bytes, int]
"""A topic id, and the number of a partition."""


class MemberKey(NamedTuple):
    """The key of a member: its share group and member id."""

    group_id: str
    member_id: str


class SessionBudget(Protocol):
    """The interface of the memory budget for state that a broker keeps for clients."""

    def has_room_for(self, size: int, *, stays: bool = False) -> bool:
        """Return True if the budget has room for `size` more bytes."""


class ShareSession:
    """The partitions that one member fetches. `epoch` is the session epoch of the latest request."""

    __slots__ = ("epoch", "key", "owner", "partitions")

    def __init__(self, key: MemberKey, owner: OwnedShareSessions) -> None:
        self.key = key
        self.owner = owner
        self.epoch = FIRST_EPOCH
        self.partitions: dict[TopicIdPartition, bool] = {}
        """A dict from partition, in the order of addition, to True if a response has contained the
        partition.
        """

    @property
    def next_epoch(self) -> int:
        """Return the session epoch that the next request must have."""
        return self.epoch + 1 if self.epoch < EPOCH_MAX else 1

    def in_turn(self) -> list[TopicIdPartition]:
        """Return the partitions in rotated order: each request begins with another one, for fairness."""
        found = list(self.partitions)
        if not found:
            return found
        begin = self.epoch % len(found)
        return found[begin:] + found[:begin]


class OwnedShareSessions:
    """The share sessions begun on one connection, as a `SessionResource` of the connection."""

    def __init__(self, close_one: Callable[[ShareSession], None]) -> None:
        self._close_one = close_one
        self.sessions: dict[MemberKey, ShareSession] = {}

    def close(self) -> None:
        """End all sessions, because the connection has ended."""
        for session in list(self.sessions.values()):
            self._close_one(session)


class ShareSessions:
    """The share sessions of one broker. `most` returns `group.share.max.share.sessions`."""

    def __init__(self, most: Callable[[], int], kept: SessionBudget) -> None:
        self._most = most
        self._kept = kept
        self._sessions: dict[MemberKey, ShareSession] = {}
        self._partition_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory of all sessions in bytes."""
        return SESSION_BYTES * len(self._sessions) + PARTITION_BYTES * self._partition_count

    def get(self, key: MemberKey) -> ShareSession | None:
        """Return the session of a member, or None if it has none."""
        return self._sessions.get(key)

    def of_group(self, group_id: str, member_id: str | None = None) -> list[ShareSession]:
        """Return the sessions of all members of a group, or of one member."""
        return [
            session
            for key, session in self._sessions.items()
            if key.group_id == group_id and member_id in (None, key.member_id)
        ]

    def begin(self, key: MemberKey, owner: OwnedShareSessions) -> ShareSession:
        """Begin a session, replacing an earlier one of the same member.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED (133).
        """
        self.remove(self._sessions.get(key))
        if len(self._sessions) >= self._most() or not self._kept.has_room_for(SESSION_BYTES, stays=True):
            raise error_for(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                "the broker has as many share sessions as it may (group.share.max.share.sessions)",
            )
        session = self._sessions[key] = owner.sessions[key] = ShareSession(key, owner)
        return session

    def find(self, key: MemberKey, epoch: int) -> ShareSession:
        """Return the session that a request continues; set its epoch to the request's session epoch.

        The final epoch ends a session, and is valid at any time.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND (122), INVALID_SHARE_SESSION_EPOCH (123).
        """
        session = self._sessions.get(key)
        if session is None:
            raise error_for(ErrorCode.SHARE_SESSION_NOT_FOUND, f"member {key.member_id} has no share session")
        if epoch != FINAL_EPOCH:
            if epoch != session.next_epoch:
                raise error_for(
                    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                    f"the share session expects epoch {session.next_epoch}, the request has {epoch}",
                )
            session.epoch = epoch
        return session

    def is_open(self, session: ShareSession) -> bool:
        """Return True if a session has neither ended nor been replaced."""
        return self._sessions.get(session.key) is session

    def add(self, session: ShareSession, partitions: Iterable[TopicIdPartition]) -> None:
        """Add partitions to a session, so that it fetches from them.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED (133), there is no memory for the partitions.
        """
        new = [each for each in partitions if each not in session.partitions]
        if new and not self._kept.has_room_for(PARTITION_BYTES * len(new), stays=True):
            raise error_for(ErrorCode.SHARE_SESSION_LIMIT_REACHED, "the broker has no memory for more")
        before = len(session.partitions)
        session.partitions.update(dict.fromkeys(new, False))
        self._partition_count += len(session.partitions) - before

    def forget(self, session: ShareSession, partitions: Iterable[TopicIdPartition]) -> None:
        """Remove partitions from a session, so that it no longer fetches from them."""
        for each in partitions:
            if session.partitions.pop(each, None) is not None:
                self._partition_count -= 1

    def remove(self, session: ShareSession | None) -> None:
        """End a session; do nothing if it is None or has already ended."""
        if session is not None and self.is_open(session):
            del self._sessions[session.key]
            session.owner.sessions.pop(session.key, None)
            self._partition_count -= len(session.partitions)


def member_of(group_id: str | None, member_id: str | None) -> MemberKey:
    """Return the key of the member that sends a request.

    Raises:
        KafkaError: INVALID_REQUEST (42), the group id is missing, or the member id is empty or too long.
    """
    if group_id is None or not member_id or len(member_id) > MEMBER_ID_CHARACTERS_MAX:
        raise _invalid("a request of a share group needs a group id, and a member id of 1 to 36 characters")
    return MemberKey(group_id, member_id)


def _invalid(text: str) -> KafkaError:
    return error_for(ErrorCode.INVALID_REQUEST, text)
