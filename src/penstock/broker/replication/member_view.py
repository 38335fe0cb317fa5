"""`MemberView`: describes the cluster to a broker's clients; passes admin requests to the controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.metadata.cluster_view import LocatedBroker, QuorumState
from penstock.broker.replication.control.elections import ElectionKind
from penstock.broker.replication.control.quorum import CONTROLLER_ID
from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from penstock.broker.metadata.brokers import BrokerStates
    from penstock.broker.metadata.cluster_view import MetadataObserver
    from penstock.broker.metadata.image import PartitionImage
    from penstock.broker.session import Session
    from penstock.protocol.message import Message


class Deciding(Protocol):
    """The controller methods for admin requests. The codes of the errors they raise become the responses."""

    def elect(self, topic: str, index: int, kind: ElectionKind) -> list[Message]:
        """Hold an election; return the records to write."""

    def reassign(
        self, topic: str, index: int, target: Sequence[int] | None, *, same_size: bool
    ) -> list[Message]:
        """Reassign a partition's replicas, or cancel a reassignment; return the records to write."""

    def unregister(self, node: int) -> list[Message]:
        """Remove a broker from the metadata; return the records to write."""

    def moving(self, wanted: Any) -> list[tuple[str, PartitionImage]]:
        """Return the partitions that are being reassigned."""


class Keeping(Protocol):
    """The interface of the metadata quorum that `MemberView` uses."""

    directory_id: bytes

    @property
    def controller(self) -> Deciding:
        """The controller, which decides about elections and reassignments."""

    def observers(self) -> list[MetadataObserver]:
        """Return the nodes that read the metadata log."""


class Choosing(Protocol):
    """A source of random choices; `random.Random` is one."""

    def choice(self, brokers: Sequence[LocatedBroker], /) -> LocatedBroker:
        """Return one of the brokers at random."""


class MemberView:
    """The cluster as one node's metadata show it. `commit` writes records that the controller returns."""

    creating_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def __init__(
        self,
        brokers: BrokerStates,
        quorum: Keeping,
        commit: Callable[[Sequence[Message], int], None],
        random: Choosing,
    ) -> None:
        self._brokers = brokers
        self._quorum = quorum
        self._commit = commit
        self._random = random

    def registered(self, session: Session) -> list[LocatedBroker]:
        """Return the registered brokers that have the connection's listener, also fenced ones."""
        listener, known = session.listener_name, self._brokers.by_id
        return [
            LocatedBroker(key, *known[key].endpoints[listener], known[key].rack, known[key].fenced)
            for key in sorted(known)
            if listener in known[key].endpoints
        ]

    def living(self, session: Session) -> list[LocatedBroker]:
        """Return the brokers that have the connection's listener and are not fenced."""
        return [each for each in self.registered(session) if not each.is_fenced]

    def controller_id(self, living: Sequence[LocatedBroker]) -> int:
        """Return the id of a random live broker, as KRaft brokers do: all forward to the controller."""
        return self._random.choice(living).id if living else -1

    def is_alive(self, broker: int) -> bool:
        """Return True if a broker is registered and not fenced."""
        return self._brokers.is_alive(broker)

    def elect(self, topic: str, index: int, kind: int, now_ms: int) -> None:
        """Let the controller hold an election. Raises the same errors as `ClusterView.elect`."""
        self._commit(self._quorum.controller.elect(topic, index, ElectionKind(kind)), now_ms)

    def reassign(
        self, topic: str, index: int, target: Sequence[int] | None, *, same_size: bool, now_ms: int
    ) -> None:
        """Let the controller begin, replace or cancel a reassignment. Errors: see `ClusterView.reassign`."""
        self._commit(self._quorum.controller.reassign(topic, index, target, same_size=same_size), now_ms)

    def moving(self, wanted: Sequence[tuple[str, int]] | None) -> list[tuple[str, PartitionImage]]:
        """Return the partitions of `wanted` that are being reassigned; None stands for all partitions."""
        return self._quorum.controller.moving(wanted)

    def unregister(self, broker: int, now_ms: int) -> None:
        """Remove a broker from the metadata. A live broker registers again with its next heartbeat."""
        self._commit(self._quorum.controller.unregister(broker), now_ms)

    def quorum(self, session: Session) -> QuorumState:
        """Return the quorum: the controller, which is the only voter, and the brokers, which read the log."""
        quorum = self._quorum
        return QuorumState(CONTROLLER_ID, quorum.directory_id, None, quorum.observers())
