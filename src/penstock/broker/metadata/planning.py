"""`Planner`: checks the topics that a request creates, extends or deletes, before anything is changed.

It checks them against the existing topics, the other topics of the request, and the limits of one request. A
`Planner` is made for one request and changes nothing: the cluster then makes all changes in one batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.broker.config.penstock_keys import CHANGES_MAX
from penstock.broker.config.topic_names import check_topic_name
from penstock.broker.config.values import TOPIC_CHARACTERS_MAX, Suggestions, TopicConfig
from penstock.broker.metadata.image import folded
from penstock.errors import ConfigError, KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.partition_record import PartitionRecord

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.metadata.image import ClusterImage
    from penstock.broker.metadata.metadata_log import MetadataLog
    from penstock.broker.metadata.replica_manager import Topic
    from penstock.broker.quota_entities import PartitionsCharge
    from penstock.broker.requests.quotas import MutationTokens
    from penstock.protocol.message import Message

PARTITIONS_PER_REQUEST_MAX = 10_000
"""The maximum number of new partitions in one request: Kafka's limit, which protects memory."""


class PlannedTopic(NamedTuple):
    """A topic that passed all checks and can be created."""

    name: str
    partitions: int
    config: TopicConfig
    assignments: Sequence[tuple[int, ...]]
    """The broker ids of each partition's replicas: one tuple per partition, in order of partitions."""

    @property
    def replication_factor(self) -> int:
        """The number of replicas of the first partition."""
        return len(self.assignments[0])


class Placing(Protocol):
    """The interface of the object that chooses the brokers for the replicas of new partitions."""

    def place(self, partitions: int, factor: int) -> Sequence[tuple[int, ...]]:
        """Choose the brokers for each replica of new partitions; return their ids.

        Raises:
            KafkaError: INVALID_REPLICATION_FACTOR (38).
        """

    def check_assignment(self, replicas: Sequence[int]) -> None:
        """Check replicas that a client has assigned.

        Raises:
            KafkaError: INVALID_REPLICA_ASSIGNMENT (39).
        """

    def in_sync_of(self, replicas: Sequence[int]) -> tuple[int, ...]:
        """Return the ISR of a new partition: the ids in `replicas` whose brokers are alive."""


class Authority(Protocol):
    """A broker's interface to the writer of the metadata log: the broker itself, or the controller."""

    cluster_id: str
    size: int
    """The number of brokers in the cluster, including those that do not run yet."""
    mutation_tokens: MutationTokens
    """The token buckets of controller mutation quotas. They limit the partitions that clients create or
    delete.
    """

    @property
    def placing(self) -> Placing:
        """The object that chooses the brokers for the replicas of new partitions."""

    @property
    def log_on_disk(self) -> MetadataLog | None:
        """The metadata log in this broker's own data directory; None if there is none on disk."""

    @property
    def end_offset(self) -> int:
        """The offset after the last metadata record."""

    @property
    def epoch(self) -> int:
        """The leader epoch of the metadata log."""

    def catch_up(self) -> None:
        """Apply at the broker all metadata records in the log, if the controller can be reached."""

    def commit(self, records: Sequence[Message], now_ms: int) -> None:
        """Write metadata records and apply them. The caller has checked them against the newest metadata.

        Raises:
            StorageError: the records could not be written, others were written before them, or the authority
                cannot be reached.
        """

    def directories_of(self, name: str, index: int, replicas: Sequence[int]) -> list[bytes] | None:
        """Return a directory id for each replica of a new partition; None if the level has no such ids."""


def partition_record(
    authority: Authority, name: str, topic_id: bytes, index: int, replicas: Sequence[int]
) -> PartitionRecord:
    """Return the record of a new partition with the planned replicas."""
    in_sync = authority.placing.in_sync_of(replicas)
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=list(in_sync),
        leader=in_sync[0] if in_sync else -1,
        leader_epoch=0,
        partition_epoch=0,
        directories=authority.directories_of(name, index, replicas),
    )


class PlannedCluster(Protocol):
    """The interface of the cluster's metadata against which a `Planner` checks changes."""

    image: ClusterImage
    config: BrokerConfig
    authority: Authority

    @property
    def topics(self) -> Mapping[str, Topic]:
        """A mapping from name to topic."""

    @property
    def plain_config(self) -> TopicConfig:
        """The effective settings of topics without settings of their own."""

    def topic(self, name: str) -> Topic:
        """Return the topic with this name.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3).
        """


class Planner:
    """Checks and counts the changes to topics that one request may make.

    `excess_code` is the error code for changes beyond the limits of one request; it should be retriable, if
    the request's version has a retriable one. `charge` counts the partitions against the client's quota.
    """

    def __init__(
        self,
        cluster: PlannedCluster,
        excess_code: ErrorCode = ErrorCode.POLICY_VIOLATION,
        charge: PartitionsCharge | None = None,
    ) -> None:
        self._cluster = cluster
        self._charge = charge
        self._suggestions = Suggestions()
        self._excess_code = excess_code
        self._topics_max = self._topics_left = cluster.config.integer(CHANGES_MAX)
        self._partitions_left = PARTITIONS_PER_REQUEST_MAX
        self._excess: KafkaError | None = None
        self._folded: dict[str, str] = {}

    def new_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        assignments: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str | None] | None = None,
    ) -> PlannedTopic:
        """Check that a topic can be created, and return a `PlannedTopic`.

        A partition count or replication factor of -1 stands for the broker's default. `excess_code` is the
        error for a request that creates too many topics or partitions.

        Raises:
            KafkaError: INVALID_TOPIC_EXCEPTION (17), TOPIC_ALREADY_EXISTS (36), INVALID_PARTITIONS (37),
                INVALID_REPLICATION_FACTOR (38), INVALID_REPLICA_ASSIGNMENT (39), INVALID_CONFIG (40),
                INVALID_REQUEST (42) or POLICY_VIOLATION (44), as it applies, or `excess_code`.
        """
        self._check_room()
        check_topic_name(name)
        cluster = self._cluster
        if name in cluster.topics:
            raise error_for(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        other = cluster.image.folded_names.get(folded(name)) or self._folded.get(folded(name))
        if other is not None:
            raise error_for(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
            )
        if assignments:
            if partitions != -1 or replication_factor != -1:
                raise error_for(
                    ErrorCode.INVALID_REQUEST,
                    "with replicas assigned by hand, partitions and replication factor must be -1",
                )
            self._check_assignments(assignments)
            partitions = len(assignments)
            placed: Sequence[tuple[int, ...]] = [tuple(assignments[index]) for index in range(partitions)]
        else:
            partitions = self._partition_count(partitions)
            placed = self._place(partitions, replication_factor)
        config = self._topic_config(configs or {})
        self._take(partitions)
        self._folded[folded(name)] = name
        return PlannedTopic(name, partitions, config, placed)

    def growth(
        self, name: str, count: int, assignments: Sequence[Sequence[int]] | None
    ) -> Sequence[Sequence[int]]:
        """Check that a topic may get `count` partitions in all; return the broker ids for the new ones.

        `assignments` has the broker ids that the client has chosen, or is None.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3), INVALID_PARTITIONS (37), INVALID_REPLICATION_FACTOR
                (38), INVALID_REPLICA_ASSIGNMENT (39) or POLICY_VIOLATION (44), as it applies, or
                `excess_code`.
        """
        self._check_room()
        topic = self._cluster.topic(name)
        have = len(topic.partitions)
        if count == have:
            raise error_for(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
        if count < have:
            raise error_for(
                ErrorCode.INVALID_PARTITIONS,
                f"The topic {name} currently has {have} partition(s); {count} would not be an increase.",
            )
        if count - have > PARTITIONS_PER_REQUEST_MAX:
            self._partition_count(count - have)
        # Data that another broker has written may name replicas that no broker of this cluster has.
        authority = self._cluster.authority
        factor = min(len(topic.partitions[0].replicas), authority.size)
        if assignments is not None:
            if len(assignments) != count - have:
                raise error_for(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"Attempted to add {count - have} additional partition(s), but"
                    f"{' only' * (len(assignments) < count - have)} {len(assignments)} assignment(s)"
                    " were specified.",
                )
            self._check_brokers(dict(enumerate(assignments, have)), factor)
        else:
            assignments = authority.placing.place(count - have, factor)
        self._take(count - have)
        return assignments

    def removal(self, partitions: int) -> None:
        """Count the deletion of a topic with `partitions` partitions against the limits of the request.

        Raises:
            KafkaError: `excess_code` beyond the limits, or THROTTLING_QUOTA_EXCEEDED (89).
        """
        self._check_room()
        if self._charge is not None:
            self._charge.take(partitions)
        self._topics_left -= 1

    # --- limits of one request ---------------------------------------------------------------------------

    @property
    def excess(self) -> KafkaError | None:
        """The error for a further topic if the request has reached the limit of changes, else None."""
        if self._topics_left > 0:
            return None
        if self._excess is None:
            self._excess = error_for(
                self._excess_code,
                f"more than {self._topics_max} topics in one request ({CHANGES_MAX}); ask again for the rest",
            )
        return self._excess

    def _check_room(self) -> None:
        excess = self.excess
        if excess is not None:
            raise excess.with_traceback(None)  # it is raised for each of the rest

    def _take(self, partitions: int) -> None:
        """Count the new partitions of a checked change against the request's limit and the client's quota.

        Raises:
            KafkaError: POLICY_VIOLATION (44) or `excess_code`: too many partitions;
                THROTTLING_QUOTA_EXCEEDED (89): more than the client's quota allows now.
        """
        if partitions > self._partitions_left:
            code = self._excess_code
            if code is ErrorCode.THROTTLING_QUOTA_EXCEEDED or partitions > PARTITIONS_PER_REQUEST_MAX:
                code = ErrorCode.POLICY_VIOLATION  # Kafka's own limit, and its error for it
            raise error_for(code, f"more than {PARTITIONS_PER_REQUEST_MAX} partitions in one request")
        if self._charge is not None:
            self._charge.take(partitions)
        self._partitions_left -= partitions
        self._topics_left -= 1

    # --- checks of one topic -----------------------------------------------------------------------------

    def _partition_count(self, partitions: int) -> int:
        if partitions == -1:
            return self._cluster.config.integer("num.partitions")
        if partitions <= 0:
            raise error_for(
                ErrorCode.INVALID_PARTITIONS, f"a topic needs at least one partition, not {partitions}"
            )
        if partitions > PARTITIONS_PER_REQUEST_MAX:
            raise error_for(
                ErrorCode.POLICY_VIOLATION,
                f"{partitions} partitions at once; the most is {PARTITIONS_PER_REQUEST_MAX}",
            )
        return partitions

    def _place(self, partitions: int, factor: int) -> Sequence[tuple[int, ...]]:
        if factor == -1:
            factor = self._cluster.config.integer("default.replication.factor")
        if factor <= 0:
            raise error_for(
                ErrorCode.INVALID_REPLICATION_FACTOR, f"a topic needs at least one replica, not {factor}"
            )
        return self._cluster.authority.placing.place(partitions, factor)

    def _check_assignments(self, assignments: Mapping[int, Sequence[int]]) -> None:
        if sorted(assignments) != list(range(len(assignments))):
            raise error_for(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "partitions should be a consecutive 0-based integer sequence;"
                f" {len(assignments)} are assigned, from {min(assignments)} to {max(assignments)}",
            )
        if len(assignments) > PARTITIONS_PER_REQUEST_MAX:
            self._partition_count(len(assignments))
        self._check_brokers(assignments, len(assignments[0]))

    def _check_brokers(self, assignments: Mapping[int, Sequence[int]], factor: int) -> None:
        """Check the assigned replicas of new partitions; each partition needs `factor` replicas."""
        placing = self._cluster.authority.placing
        for index, replicas in assignments.items():
            try:
                placing.check_assignment(replicas)
            except KafkaError as error:
                raise error_for(ErrorCode(error.code), f"partition {index}: {error.detail}") from None
            if len(replicas) != factor:
                raise error_for(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"partition {index} has {len(replicas)} replica(s); all partitions of a topic need as"
                    f" many as its first, which has {factor}",
                )
            if not placing.in_sync_of(replicas):
                raise error_for(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"All brokers specified in the manual partition assignment for partition {index} are"
                    " fenced or in controlled shutdown.",
                )

    def _topic_config(self, configs: Mapping[str, str | None]) -> TopicConfig:
        texts = {name: text for name, text in configs.items() if text is not None}
        if len(texts) < len(configs):
            missing = ", ".join(name for name in configs if name not in texts)
            raise error_for(
                ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {missing}"
            )
        if not texts:
            return self._cluster.plain_config
        if sum(map(len, texts.values())) > TOPIC_CHARACTERS_MAX:
            raise error_for(
                ErrorCode.POLICY_VIOLATION,
                f"the settings of a topic have at most {TOPIC_CHARACTERS_MAX} characters",
            )
        try:
            config = TopicConfig(self._cluster.config, texts, self._suggestions)
            config.check_together()
        except ConfigError as error:
            raise error_for(ErrorCode.INVALID_CONFIG, str(error)) from None
        return config


def excess_code(knows_quotas: bool) -> ErrorCode:
    """Return the error code for too many changes in a request, if possible a retriable one."""
    return ErrorCode.THROTTLING_QUOTA_EXCEEDED if knows_quotas else ErrorCode.POLICY_VIOLATION
