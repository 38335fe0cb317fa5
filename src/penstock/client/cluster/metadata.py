"""A client's metadata of the cluster: brokers, topics, leaders. Pure state, made from responses.

The metadata never go back to an older leader (KIP-320: a response with a lower leader epoch is out of date),
nor to a topic that a new topic of the same name has replaced. This module does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.addresses import Address
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError, KafkaError, TopicRecreatedError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.uuid import uuid_to_text

if TYPE_CHECKING:
    from penstock.protocol.messages.metadata_response import (
        MetadataResponse,
        MetadataResponsePartition,
        MetadataResponseTopic,
    )

NO_TOPIC_ID = bytes(16)
NO_NODE = -1

LATE_ANSWERS_MAX = 5
"""The number of responses in a row with a topic's former id that are ignored as stale. The next one is
accepted, since the cluster may have been restored to an earlier state."""


class BrokerNode(NamedTuple):
    """A broker of the cluster: node id, host, port and rack."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


class PartitionInfo(NamedTuple):
    """A partition, its leader and its replicas. `leader` is -1 while there is none."""

    partition: int
    leader: int
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    in_sync_replicas: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    error_code: int = 0


class TopicInfo(NamedTuple):
    """A topic's metadata, with a dict from partition number to partition."""

    name: str
    partitions: Mapping[int, PartitionInfo]
    topic_id: bytes = NO_TOPIC_ID
    is_internal: bool = False
    error_code: int = 0


class Lineage(NamedTuple):
    """A topic's newest id, its former id, and the number of stale responses in a row with the former id."""

    topic_id: bytes
    former_id: bytes
    late_answers: int = 0


class ClusterMetadata:
    """The latest known state of the cluster, merged from Metadata responses."""

    def __init__(self) -> None:
        self.nodes: dict[int, BrokerNode] = {}
        self.topics: dict[str, TopicInfo] = {}
        self.controller_id = NO_NODE
        self.cluster_id: str | None = None
        self.is_complete = False
        """True if `topics` has all topics of the cluster, from a response to a request for all."""
        self._names: dict[bytes, str] = {}
        self._lineages: dict[str, Lineage] = {}

    def update(self, answer: MetadataResponse, asked: Iterable[str] | None) -> None:
        """Merge one response. `asked` are the requested topics, or None for all.

        A requested topic with an error is kept with the error and without partitions, unless the error leaves
        the known partitions valid (no leader now).
        """
        self.nodes = {b.node_id: BrokerNode(b.node_id, b.host, b.port, b.rack) for b in answer.brokers}
        self.controller_id = answer.controller_id
        self.cluster_id = answer.cluster_id or self.cluster_id
        told = {topic.name: topic for topic in answer.topics if topic.name is not None}
        if asked is None:
            self.is_complete = True
            for name in [name for name in self.topics if name not in told]:
                self._forget(name)
        for name, topic in told.items():
            self._update_topic(name, topic)

    def _update_topic(self, name: str, told: MetadataResponseTopic) -> None:
        known = self.topics.get(name)
        topic_id = bytes(told.topic_id)
        if self._is_late(name, topic_id):
            return
        if known is not None and known.topic_id != topic_id:
            self._names.pop(known.topic_id, None)
            known = None
        if told.error_code and not told.partitions:
            if known is None or told.error_code != ErrorCode.LEADER_NOT_AVAILABLE:
                self.topics[name] = TopicInfo(name, {}, topic_id, told.is_internal, told.error_code)
            return
        partitions = {
            p.partition_index: _newer(known.partitions.get(p.partition_index) if known else None, p)
            for p in sorted(told.partitions, key=lambda p: p.partition_index)
        }
        self.topics[name] = TopicInfo(name, partitions, topic_id, told.is_internal, told.error_code)
        if topic_id != NO_TOPIC_ID:
            self._names[topic_id] = name

    def _is_late(self, name: str, topic_id: bytes) -> bool:
        """Return True if a response is stale: it has the id that the topic had before it was created anew."""
        lineage = self._lineages.get(name)
        if topic_id == NO_TOPIC_ID:
            return False
        if lineage is None or topic_id not in lineage[:2] or lineage.late_answers >= LATE_ANSWERS_MAX:
            self._lineages[name] = Lineage(topic_id, NO_TOPIC_ID if lineage is None else lineage.topic_id)
            return False
        is_late = topic_id == lineage.former_id
        self._lineages[name] = lineage._replace(late_answers=lineage.late_answers + 1 if is_late else 0)
        return is_late

    def _forget(self, name: str) -> None:
        self._lineages.pop(name, None)
        self._names.pop(self.topics.pop(name).topic_id, None)

    def partition(self, where: TopicPartition) -> PartitionInfo | None:
        topic = self.topics.get(where.topic)
        return topic.partitions.get(where.partition) if topic else None

    def leader(self, where: TopicPartition) -> int | None:
        """Return the node id of a partition's leader; None if the partition or its leader is not known."""
        info = self.partition(where)
        return info.leader if info and info.leader in self.nodes else None

    def note_leader(
        self, where: TopicPartition, leader: int, leader_epoch: int, node: BrokerNode | None
    ) -> bool:
        """Store a partition's leader from another API's response (KIP-951), if its leader epoch is newer.

        Returns True if the leader can be asked now. `node` is the leader's address, or None.
        """
        topic = self.topics.get(where.topic)
        info = self.partition(where)
        if topic is None or info is None or leader < 0 or leader_epoch <= info.leader_epoch:
            return False
        if node is not None:
            self.nodes = {**self.nodes, leader: node}
        moved = info._replace(leader=leader, leader_epoch=leader_epoch, error_code=0)
        self.topics[where.topic] = topic._replace(partitions={**topic.partitions, where.partition: moved})
        return leader in self.nodes

    def topic_id(self, name: str) -> bytes:
        """Return the id of a topic, or the zero id if it is not known."""
        topic = self.topics.get(name)
        return topic.topic_id if topic else NO_TOPIC_ID

    def name_of(self, topic_id: bytes) -> str | None:
        return self._names.get(bytes(topic_id))

    def partitions_of(self, name: str) -> list[int]:
        """Return the partition numbers of a topic in order, or an empty list if the topic is not known."""
        topic = self.topics.get(name)
        return sorted(topic.partitions) if topic else []

    def unknown_topic_hint(self, name: str) -> str:
        """Return the end of an error message for an unknown topic: topics with names similar to `name`."""
        usable = [t.name for t in self.topics.values() if t.partitions and not t.is_internal]
        return did_you_mean(name, usable, 3, quoted=True)


def _newer(known: PartitionInfo | None, told: MetadataResponsePartition) -> PartitionInfo:
    if known is not None and 0 <= told.leader_epoch < known.leader_epoch:
        return known
    leader = NO_NODE if told.error_code == ErrorCode.LEADER_NOT_AVAILABLE else told.leader_id
    return PartitionInfo(
        told.partition_index,
        leader,
        told.leader_epoch,
        tuple(told.replica_nodes),
        tuple(told.isr_nodes),
        tuple(told.offline_replicas),
        told.error_code,
    )


def no_such_topic(name: str, cluster: ClusterMetadata, *, was_to_be_created: bool = False) -> KafkaError:
    """Return the exception for a topic that does not exist.

    If `was_to_be_created`, the message adds that brokers have not created it, although the client allowed it.
    """
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    why = ", and the broker does not create topics that are asked for" if was_to_be_created else ""
    hint = cluster.unknown_topic_hint(name) or "; make it: penstock topic create, or Admin.create_topic()"
    return KafkaError(code, code.name, f"topic {name!r} does not exist{why}{hint}")


MOMENT_S = 0.3
"""The time in seconds that a change of the cluster may take to reach all brokers."""


def no_such_partition(partition: TopicPartition, count: int) -> ConfigError:
    """Return the exception for a partition number that the topic does not have."""
    has = f"{count} partitions, 0 to {count - 1}" if count > 1 else "one partition, 0"
    return ConfigError(f"topic {partition.topic!r} has {has}: there is no partition {partition.partition}")


def is_recreated(known_id: bytes, topic_id: bytes) -> bool:
    """Return True if both ids are known and differ, so that the topic was deleted and created anew."""
    return topic_id != known_id and NO_TOPIC_ID not in (known_id, topic_id)


def recreated(name: str, known_id: bytes, topic_id: bytes, why: str) -> TopicRecreatedError:
    """Return the exception for a topic whose id has changed; `why` ends the message."""
    code = ErrorCode.OFFSET_OUT_OF_RANGE
    what = (
        f"topic {name!r} was deleted and created anew: its id was {uuid_to_text(known_id)} and is "
        f"{uuid_to_text(topic_id)}"
    )
    return TopicRecreatedError(code, code.name, f"{what}; {why}", detail=what)
