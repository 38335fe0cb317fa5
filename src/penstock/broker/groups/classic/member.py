"""One member of a classic group: its ids, timeouts and protocols, and its waiting requests."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.printable import printable
from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from penstock.broker.coordination.timers import Timer

Ticket = Hashable
"""An object that identifies a waiting request. The caller chooses it; the outbox pairs the response with it.
"""

Protocols = tuple[tuple[str, bytes], ...]
"""A member's protocols (names of assignors) in its order of preference, each with metadata."""


MEMBER_BYTES = 1500
"""The approximate memory of a member in bytes, with its timer, without names, protocols and assignment."""


class Tally:
    """A running sum of the memory, in bytes, that the members of all groups of a coordinator use."""

    __slots__ = ("size_bytes",)

    def __init__(self) -> None:
        self.size_bytes = 0


class Caller(NamedTuple):
    """The client that sends a request, and the request's version.

    `host` is the client's address as Kafka writes it: ``/127.0.0.1``.
    """

    client_id: str
    host: str
    version: int


class Member:
    """A member of a classic group. Only the group that it belongs to modifies the object."""

    __slots__ = (
        "_assignment",
        "client_host",
        "client_id",
        "id",
        "instance_id",
        "is_new",
        "join_ticket",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
        "sync_ticket",
        "tally",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: Protocols,
        session: Timer,
        assignment: bytes = b"",
    ) -> None:
        self.id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.session = session
        self.tally: Tally | None = None
        """The coordinator's sum of memory that includes this member; None while the member is in no group."""
        self._assignment = assignment
        self.is_new = False
        """True until the first JoinGroup of the member is answered. Until then its session can expire
        while it waits.
        """
        self.join_ticket: Ticket | None = None
        self.sync_ticket: Ticket | None = None

    def __repr__(self) -> str:
        return printable(f"<Member {self.id}>")

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def assignment(self) -> bytes:
        """The member's assignment by the group's leader, in bytes that only clients interpret."""
        return self._assignment

    @assignment.setter
    def assignment(self, data: bytes) -> None:
        if self.tally is not None:
            self.tally.size_bytes += len(data) - len(self._assignment)
        self._assignment = data

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory, in bytes, that the member uses."""
        names = len(self.id) + len(self.instance_id or "") + len(self.client_id)
        return MEMBER_BYTES + names + size_of_protocols(self.protocols) + len(self._assignment)

    def join_tally(self, tally: Tally) -> None:
        """Add the member's memory to a coordinator's sum."""
        self.leave_tally()
        self.tally = tally
        tally.size_bytes += self.size_bytes

    def leave_tally(self) -> None:
        """Subtract the member's memory from its coordinator's sum."""
        if self.tally is not None:
            self.tally.size_bytes -= self.size_bytes
            self.tally = None

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for a protocol, or empty bytes if it does not support the protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


def check_ids(
    members: Container[str], instances: Mapping[str, str], member_id: str, instance_id: str | None
) -> ErrorCode:
    """Check the ids in a request; return NONE, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.

    `instances` has the member ids of static members, by instance id.
    """
    if instance_id is not None:
        holder = instances.get(instance_id)
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if holder != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in members else ErrorCode.UNKNOWN_MEMBER_ID


def vote(members: Iterable[Member], supported: dict[str, int], size: int, preferred: Member) -> str:
    """Return the protocol that most members prefer, among those that all `size` members support.

    `supported` has the number of members for each protocol. A member votes for the first of its protocols
    that all members support. In a tie, the order of the protocols of `preferred` (the leader) decides.

    Raises:
        ValueError: no protocol is supported by all members, which `ClassicGroup.accepts` prevents.
    """
    common = [name for name, _ in preferred.protocols if supported.get(name) == size]
    if len(common) > 1:
        votes = dict.fromkeys(common, 0)
        for member in members:
            votes[next(name for name, _ in member.protocols if name in votes)] += 1
        common.sort(key=lambda name: -votes[name])
    if not common:
        raise ValueError("the members have no protocol in common")
    return common[0]


def topics_of_subscription(metadata: bytes) -> list[str] | None:
    """Return the topics in the metadata of a ``consumer`` protocol, or None if they cannot be read.

    Every version of the subscription begins like version 0: an int16 version, then the topic names.
    """
    count, position = int.from_bytes(metadata[2:6], "big", signed=True), 6
    topics = []
    for _ in range(count):
        size = int.from_bytes(metadata[position : position + 2], "big", signed=True)
        name = metadata[position + 2 : position + 2 + size]
        if size < 0 or len(name) < size or position + 2 > len(metadata):
            return None
        topics.append(name.decode("utf-8", "replace"))
        position += 2 + size
    return topics if len(metadata) >= 6 and count >= 0 else None


def size_of_protocols(protocols: Protocols) -> int:
    """Return the approximate memory, in bytes, that a member's protocols use."""
    return sum(PROTOCOL_BYTES + len(name) + len(metadata) for name, metadata in protocols)


PROTOCOL_BYTES = 250
"""The approximate memory of a protocol in bytes, without its name and metadata."""


def protocols_of(pairs: Sequence[tuple[str, bytes]]) -> Protocols:
    """Return the protocols of a request, each name once.

    A request may name a protocol twice, with different metadata. The first one is used, as in all look-ups of
    Apache Kafka. If a name were counted twice, its count could differ from the number of members, and the
    group could seem to have no protocol that all members support.
    """
    protocols: dict[str, bytes] = {}
    for name, metadata in pairs:
        protocols.setdefault(name, bytes(metadata))
    return tuple(protocols.items())
