"""Topics and cluster: created, deleted, listed, described. For asyncio.

Requests that change something go to the controller where the cluster names one (before KRaft), and are
repeated when it moves. `create_topics` returns when the topics can be used, not only when they are decided.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Unpack

from penstock.client import arguments
from penstock.client.admin.alterations import ChangeAdministration
from penstock.client.admin.groups import GroupAdministration
from penstock.client.admin.security import SecurityAdministration
from penstock.client.admin.transactions import TransactionAdministration
from penstock.client.arguments import checked, flag, one_of, optional
from penstock.client.cluster.answers import check_complete, only
from penstock.client.cluster.client import CONTROLLER, AsyncClient
from penstock.client.cluster.instance_id import HasInstanceId
from penstock.client.cluster.metadata import NO_TOPIC_ID, Node, PartitionInfo, no_such_topic
from penstock.client.config import ClientConfig
from penstock.client.fetch.cursors import ISOLATION_LEVELS
from penstock.client.fetch.offsets import Answers, fetch_offsets
from penstock.common.hints import with_hints
from penstock.errors import AuthorizationError, ConfigError, KafkaError, NetworkError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.messages.create_topics_response import CreateTopicsResponse
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.delete_topics_response import DeleteTopicsResponse
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.describe_configs_response import DescribeConfigsResponse
from penstock.protocol.uuid import uuid_to_text

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.client.options import AdminOptions
    from penstock.client.statistics import Statistics

BROKER_DEFAULT = -1
BROKER_DEFAULT_VERSION = 4
"""From here on CreateTopics takes -1 for "as the broker is configured" (KIP-464)."""

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
NAMED_DELETE_VERSION = 6
"""From here on DeleteTopics has names and ids in one list."""


@with_hints("NewTopic")
class NewTopic(NamedTuple):
    """A topic to be created. -1 leaves a number to the broker (which before Kafka 2.4 means 1)."""

    name: str
    partitions: int = 1
    replication_factor: int = BROKER_DEFAULT
    config: Mapping[str, str] = {}


@with_hints("TopicDescription")
class TopicDescription(NamedTuple):
    """A topic as the cluster describes it. `topic_id` is None where the broker has none."""

    name: str
    partitions: Sequence[PartitionInfo]
    topic_id: str | None = None
    is_internal: bool = False


@with_hints("ClusterDescription")
class ClusterDescription(NamedTuple):
    """The cluster and its brokers. `controller` is -1 where no broker answers for it."""

    cluster_id: str | None
    controller: int
    nodes: Sequence[Node]


class ConfigValue(NamedTuple):
    """A setting and where it comes from. `value` is None for sensitive ones."""

    value: str | None
    is_default: bool
    is_read_only: bool
    is_sensitive: bool


@with_hints("AsyncAdmin")
class AsyncAdmin(
    GroupAdministration,
    ChangeAdministration,
    SecurityAdministration,
    TransactionAdministration,
    HasInstanceId,
):
    """Looks after topics, settings and groups.

    >>> async with AsyncAdmin(bootstrap_servers="localhost:9092") as admin:
    ...     await admin.create_topic("orders", partitions=6)

    Options are keywords, or stand in `config` under dotted names, such as request_timeout_ms (30,000),
    default_api_timeout_ms (60,000), security_protocol, sasl_mechanism, sasl_username, sasl_password and
    ssl_cafile. `penstock.client.AdminOptions` describes all of them.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: AdminOptions | Mapping[str, object] | None = None,
        **options: Unpack[AdminOptions],
    ) -> None:
        self.config = ClientConfig.of(config, options, bootstrap_servers=bootstrap_servers)
        self._client = AsyncClient(self.config)
        self._is_closed = False
        self._client.begin_reports(self.stats)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.config.described}{', closed' if self._is_closed else ''}>"

    async def start(self) -> AsyncAdmin:
        """Reach the cluster. Optional: every call does it as well.

        Raises:
            NetworkError: no bootstrap server answers.
        """
        if self._is_closed:
            raise NetworkError("this admin client is closed")
        await self._client.bootstrap()
        return self

    async def __aenter__(self) -> AsyncAdmin:
        return await self.start()

    async def __aexit__(self, exc_type: object, exc: object, traceback: object) -> None:
        await self.close()

    def stats(self) -> Statistics:
        """Return what this client has done since it was made, and what it has in hand. From any thread.

        ``statistics.interval.ms`` and ``stats_cb`` have it reported again and again.
        """
        from penstock.client.cluster.client_statistics import client_statistics

        return client_statistics(self._client, "admin")

    async def close(self) -> None:
        """Close the connections."""
        self._is_closed = True
        await self._client.close()

    # -- topics

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = BROKER_DEFAULT,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create one topic. Raises as `create_topics`."""
        await self.create_topics([NewTopic(name, partitions, replication_factor, config or {})])

    async def create_topics(self, topics: Iterable[NewTopic | str]) -> None:
        """Create topics, and wait until every partition has a leader.

        Raises:
            KafkaError: the first topic that could not be created (36: it exists already).
            UnsupportedVersionError: the broker is older than 0.10.1.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = _new_topics(topics)
        await self.start()
        tries = 0

        async def attempt() -> None:
            nonlocal tries
            tries += 1
            # What an earlier attempt has created, although its answer was lost, is not an error.
            await self._create(wanted, exists_is_fine=tries > 1)

        await self._client.retrying("creating topics", attempt)
        names = [topic.name for topic in wanted]
        await self._client.retrying("waiting for the new topics", lambda: self._await_leaders(names))

    async def _create(self, topics: Sequence[NewTopic], *, exists_is_fine: bool) -> None:
        peer = await self._client.peer(CONTROLLER)
        version = peer.versions.choose(CreateTopicsRequest)
        request = CreateTopicsRequest(
            topics=[_creatable(topic, version) for topic in topics],
            timeout_ms=int(self.config.request_timeout_ms),
        )
        answer: CreateTopicsResponse = await peer.request(request, self._client.request_timeout_s)
        told = {topic.name for topic in answer.topics}
        check_complete([t.name for t in topics], told, peer.connection.address, "CreateTopics", "topic")
        for topic in answer.topics:
            if topic.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and exists_is_fine:
                continue
            if topic.error_code:
                raise _topic_error(topic.error_code, topic.name, topic.error_message)

    async def _await_leaders(self, names: Sequence[str]) -> None:
        await self._client.refresh(names)
        for name in names:
            info = self._client.cluster.topics.get(name)
            if info is None or not info.partitions or any(p.leader < 0 for p in info.partitions.values()):
                raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name!r}")

    async def delete_topics(self, names: Collection[str]) -> None:
        """Delete topics and everything in them.

        Raises:
            KafkaError: the first topic that could not be deleted (3: there is none).
            UnsupportedVersionError: the broker is older than 0.10.1.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = arguments.names(names, "delete_topics()")
        await self.start()
        tries = 0

        async def attempt() -> None:
            nonlocal tries
            tries += 1
            await self._delete(wanted, gone_is_fine=tries > 1)

        await self._client.retrying("deleting topics", attempt)

    async def _delete(self, names: Sequence[str], *, gone_is_fine: bool) -> None:
        peer = await self._client.peer(CONTROLLER)
        version = peer.versions.choose(DeleteTopicsRequest)
        request = DeleteTopicsRequest(timeout_ms=int(self.config.request_timeout_ms))
        if version >= NAMED_DELETE_VERSION:
            request.topics = [DeleteTopicState(name=name) for name in names]
        else:
            request.topic_names = list(names)
        answer: DeleteTopicsResponse = await peer.request(request, self._client.request_timeout_s)
        told = {topic.name for topic in answer.responses}
        check_complete(names, told, peer.connection.address, "DeleteTopics", "topic")
        for topic in answer.responses:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                if gone_is_fine:
                    continue
                raise await self._unknown_topic(topic.name or "")
            if topic.error_code:
                raise _topic_error(topic.error_code, topic.name or "", topic.error_message)

    async def _unknown_topic(self, name: str) -> KafkaError:
        await self._client.refresh(all_topics=True)
        return no_such_topic(name, self._client.cluster)

    @checked(include_internal=flag)
    async def list_topics(self, *, include_internal: bool = False) -> list[str]:
        """The names of all topics, sorted. Raises NetworkError or RequestTimeoutError."""
        await self.start()
        await self._client.retrying("listing topics", lambda: self._client.refresh(all_topics=True))
        topics = self._client.cluster.topics.values()
        return sorted(t.name for t in topics if not t.error_code and (include_internal or not t.is_internal))

    async def describe_topics(self, names: Collection[str]) -> list[TopicDescription]:
        """Describe topics, in the order given.

        Raises:
            KafkaError: a topic does not exist, or may not be seen.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        names = arguments.names(names, "describe_topics()")
        await self.start()
        await self._client.retrying("describing topics", lambda: self._client.refresh(names))
        topics = await self._client.retrying("describing topics", lambda: self._client.topics_of(names))
        return [
            TopicDescription(
                name,
                [info.partitions[number] for number in sorted(info.partitions)],
                None if info.topic_id == NO_TOPIC_ID else uuid_to_text(info.topic_id),
                info.is_internal,
            )
            for name, info in ((name, topics[name]) for name in names)
        ]

    # -- cluster

    async def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, controller and brokers. Raises NetworkError or RequestTimeoutError."""
        await self.start()
        await self._client.retrying("describing the cluster", self._client.refresh)
        cluster = self._client.cluster
        nodes = [cluster.nodes[node_id] for node_id in sorted(cluster.nodes)]
        return ClusterDescription(cluster.cluster_id, cluster.controller_id, nodes)

    @checked(broker=optional(arguments.broker_id))
    async def describe_config(
        self, topic: str | None = None, *, broker: int | None = None
    ) -> dict[str, ConfigValue]:
        """The settings of a topic, or of a broker.

        Raises:
            KafkaError: there is no such topic or broker.
            UnsupportedVersionError: the broker is older than 0.11.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        if (topic is None) == (broker is None):
            raise ConfigError("describe_config() takes the name of a topic, or broker=, not both")
        if topic is not None:
            arguments.topic_name(topic)
        await self.start()
        if broker is not None:
            await self._client.check_node(broker)
        return await self._client.retrying(
            "describing settings", lambda: self._describe_config(topic, broker)
        )

    async def _describe_config(self, topic: str | None, broker: int | None) -> dict[str, ConfigValue]:
        resource = DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE if topic is not None else BROKER_RESOURCE,
            resource_name=topic if topic is not None else str(broker),
            configuration_keys=None,
        )
        peer = await self._client.peer(*(() if broker is None else (broker,)))
        answer: DescribeConfigsResponse = await peer.request(
            DescribeConfigsRequest(resources=[resource]), self._client.request_timeout_s
        )
        result = only(answer.results, peer.connection.address, "DescribeConfigs")
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic is not None:
            raise await self._unknown_topic(topic)
        if result.error_code:
            raise _topic_error(result.error_code, result.resource_name, result.error_message)
        return {
            setting.name: ConfigValue(
                setting.value,
                setting.is_default or setting.config_source == DEFAULT_SOURCE,
                setting.read_only,
                setting.is_sensitive,
            )
            for setting in result.configs
        }

    @checked(isolation=one_of(*ISOLATION_LEVELS))
    async def list_offsets(
        self, questions: Mapping[TopicPartition, int | datetime], *, isolation: str = "read_uncommitted"
    ) -> Answers:
        """One offset per partition: earliest, latest or by time, in milliseconds or as a datetime.

        Raises:
            KafkaError: a partition does not exist, or may not be read.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = arguments.by_partition(questions, "list_offsets()")
        for tp, question in wanted.items():
            wanted[tp] = arguments.time_ms(question, f"the question about {tp}")
        await self.start()
        return await fetch_offsets(self._client, wanted, isolation=isolation)


DEFAULT_SOURCE = 5
"""The source of a setting that has its default (KIP-226)."""


def _new_topics(topics: Iterable[NewTopic | str]) -> list[NewTopic]:
    """The topics, each as `NewTopic`.

    Raises:
        ConfigError: one topic where a list belongs, or something that describes none.
    """
    if isinstance(topics, (str, bytes, NewTopic)) or not isinstance(topics, Iterable):
        raise ConfigError(f"create_topics() takes a list of topics, not {topics!r}: use create_topic()")
    found: list[NewTopic] = []
    for given in topics:
        topic = given if isinstance(given, NewTopic) else NewTopic(given)
        name = arguments.topic_name(topic.name)
        if not isinstance(topic.config, Mapping):
            raise ConfigError(f"the settings of topic {name!r} are {topic.config!r}: a mapping is needed")
        partitions = arguments.whole(topic.partitions, f"the number of partitions of topic {name!r}")
        copies = arguments.whole(topic.replication_factor, f"the replication factor of topic {name!r}")
        found.append(NewTopic(name, partitions, copies, topic.config))
    return found


def _creatable(topic: NewTopic, version: int) -> CreatableTopic:
    partitions, copies = topic.partitions, topic.replication_factor
    if version < BROKER_DEFAULT_VERSION:
        partitions, copies = max(partitions, 1), max(copies, 1)
    return CreatableTopic(
        name=topic.name,
        num_partitions=partitions,
        replication_factor=copies,
        configs=[CreatableTopicConfig(name=name, value=str(value)) for name, value in topic.config.items()],
    )


def _topic_error(code: int, name: str, message: str | None) -> KafkaError:
    """The error with the broker's own words, where it has some."""
    plain = error_for(code, f"{name!r}")
    if not message or isinstance(plain, AuthorizationError):
        return plain  # which has advice about a missing right; brokers have none
    label = "" if plain.name in message else f" ({plain.name})"
    return KafkaError(code, plain.name, f"{message}{label}", retriable=plain.retriable)
