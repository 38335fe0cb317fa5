"""The metadata of a partition: its name, the leader and its epoch, the replicas."""

from __future__ import annotations

from penstock.printable import printable
from penstock.protocol.error_codes import ErrorCode, error_for

NO_LEADER = -1


class PartitionState:
    """One partition as the metadata have it. It begins without a leader."""

    __slots__ = ("in_sync", "index", "leader", "leader_epoch", "replicas", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: bytes, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.leader = NO_LEADER
        """The node that leads the partition."""
        self.leader_epoch = -1
        self.replicas: tuple[int, ...] = ()
        """The nodes that are to keep the partition."""
        self.in_sync: tuple[int, ...] = ()
        """Those of them that have all that is committed."""

    def __repr__(self) -> str:
        return printable(f"<Partition {self.topic}-{self.index}>")

    def become(
        self, leader: int, leader_epoch: int, replicas: tuple[int, ...], in_sync: tuple[int, ...]
    ) -> None:
        """Take the leader and the replicas of the cluster's metadata. Epochs never go back."""
        self.leader = leader
        self.leader_epoch = max(self.leader_epoch, leader_epoch)
        self.replicas = replicas
        self.in_sync = in_sync

    @property
    def leads(self) -> bool:
        """Whether this node leads the partition, by the metadata that it has. A broker by itself leads
        all.
        """
        return True

    def check_is_kept(self) -> None:
        """Raises KafkaError: NOT_LEADER_OR_FOLLOWER (6). A broker by itself keeps every partition."""

    def check_leads(self) -> None:
        """Check that this node leads the partition, which a broker by itself does.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER (6).
        """

    def check_leader_epoch(self, leader_epoch: int, *, any_replica: bool = False) -> None:
        """Compare the leader epoch of a request with the partition's; -1 stands for none.

        `any_replica` says whether a replica that does not lead may serve the request.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH (74) or UNKNOWN_LEADER_EPOCH (75).
        """
        if leader_epoch in (-1, self.leader_epoch):
            return
        older = leader_epoch < self.leader_epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise error_for(code, f"the client has epoch {leader_epoch}, the broker {self.leader_epoch}")
