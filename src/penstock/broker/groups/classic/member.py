"""One member of a classic group: its ids, timeouts and protocols, and which of its requests wait."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.printable import printable

if TYPE_CHECKING:
    from penstock.broker.coordination.timers import Timer

Ticket = Hashable
"""Identifies one request that waits. The caller chooses it, and gets it back with the answer."""

Protocols = tuple[tuple[str, bytes], ...]
"""A member's protocols (names of assignors) in its order of preference, each with metadata."""


MEMBER_BYTES = 1500
"""About what a member takes in memory, with its timer, beside its names and data."""


class Tally:
    """The bytes of memory that the members of all groups of a coordinator take."""

    __slots__ = ("size_bytes",)

    def __init__(self) -> None:
        self.size_bytes = 0


class Caller(NamedTuple):
    """The client that sends a request, and the request's version.

    `host` is as Kafka writes it: ``/127.0.0.1``.
    """

    client_id: str
    host: str
    version: int


class Member:
    """A member. Only its group changes it."""

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
        """The count that its bytes are part of, while it is in a group."""
        self._assignment = assignment
        self.is_new = False
        """Whether its first JoinGroup has not been answered, so that it has not got its id."""
        self.join_ticket: Ticket | None = None
        self.sync_ticket: Ticket | None = None

    def __repr__(self) -> str:
        return printable(f"<Member {self.id}>")

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def assignment(self) -> bytes:
        """What the leader of the group has assigned to it, as bytes that only clients read."""
        return self._assignment

    @assignment.setter
    def assignment(self, data: bytes) -> None:
        if self.tally is not None:
            self.tally.size_bytes += len(data) - len(self._assignment)
        self._assignment = data

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory."""
        names = len(self.id) + len(self.instance_id or "") + len(self.client_id)
        return MEMBER_BYTES + names + size_of_protocols(self.protocols) + len(self._assignment)

    def join_tally(self, tally: Tally) -> None:
        """Add its bytes to a count."""
        self.leave_tally()
        self.tally = tally
        tally.size_bytes += self.size_bytes

    def leave_tally(self) -> None:
        """Take its bytes out of its count."""
        if self.tally is not None:
            self.tally.size_bytes -= self.size_bytes
            self.tally = None

    def metadata(self, protocol: str | None) -> bytes:
        """Return its metadata of a protocol; empty for one it does not have."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


def vote(members: Iterable[Member], supported: dict[str, int], size: int, preferred: Member) -> str:
    """Return the protocol that most members prefer, of those that all `size` members have.

    `supported` counts the members that have each. A member votes for the first of its own that is common;
    between equal votes, the order of `preferred` (the leader) decides.

    Raises:
        ValueError: no protocol is common, which `Group.accepts` does not let happen.
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
    """Return the topics in the metadata of a ``consumer`` protocol; None where they cannot be read.

    Every version of the subscription begins with version 0: an int16 version and the names.
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
    """Return about how many bytes of memory protocols take."""
    return sum(PROTOCOL_BYTES + len(name) + len(metadata) for name, metadata in protocols)


PROTOCOL_BYTES = 250
"""About what a protocol takes in memory beside its name and metadata."""


def protocols_of(pairs: Sequence[tuple[str, bytes]]) -> Protocols:
    """Return the protocols of a request, as a member keeps them: each name once.

    A request may name one twice, with other metadata. The first counts, as in all look-ups of Apache Kafka.
    Kept twice, the name would be counted for two members, and the group would have no protocol that as many
    members support as there are.
    """
    protocols: dict[str, bytes] = {}
    for name, metadata in pairs:
        protocols.setdefault(name, bytes(metadata))
    return tuple(protocols.items())
