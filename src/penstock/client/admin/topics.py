"""Administration of topics for asyncio: create, add partitions, delete, list, describe.

Requests that change topics go to the controller if the cluster names one (before KRaft), and are repeated
when the controller moves. If an attempt succeeds but its response is lost, the repeated request does not
fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from penstock.client import arguments
from penstock.client.admin.refusals import refusal
from penstock.client.cluster.client import CONTROLLER
from penstock.client.cluster.metadata import NO_TOPIC_ID, PartitionInfo, no_such_topic
from penstock.client.cluster.retry import check_complete, only
from penstock.common.hints import with_hints
from penstock.errors import ConfigError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.since import DELETE_TOPICS_IDS_SINCE
from penstock.protocol.uuid import uuid_to_text

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.protocol.messages.create_partitions_response import CreatePartitionsResponse
    from penstock.protocol.messages.create_topics_response import CreateTopicsResponse
    from penstock.protocol.messages.delete_topics_response import DeleteTopicsResponse

BROKER_DEFAULT = -1
BROKER_DEFAULT_VERSION = 4
"""The first version of CreateTopics in which -1 stands for the broker's default number of partitions or
replicas (KIP-464).
"""


@with_hints("NewTopic")
class NewTopic(NamedTuple):
    """A topic to create.

    `partitions` or `replication_factor` of -1 stands for the broker's default, and before Kafka 2.4 for 1.
    """

    name: str
    partitions: int = 1
    replication_factor: int = BROKER_DEFAULT
    config: Mapping[str, str] = {}


@with_hints("TopicDescription")
class TopicDescription(NamedTuple):
    """A topic as the cluster describes it. `topic_id` is None if the broker reports no topic ids."""

    name: str
    partitions: Sequence[PartitionInfo]
    topic_id: str | None = None
    is_internal: bool = False


class TopicAdministration:
    """Creates, changes and describes topics, through the connections of a client that has been started.

    Each call raises KafkaError if a broker refuses, and NetworkError or RequestTimeoutError if no broker
    answers in time.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def create(self, topics: Sequence[NewTopic]) -> None:
        """Create topics, and wait until every partition has a leader."""
        client, tries, names = self._client, count(), [topic.name for topic in topics]
        await client.retrying("creating topics", lambda: self._create(topics, exists_is_fine=next(tries) > 0))
        await client.retrying("waiting for the new topics", lambda: self._await_leaders(names))

    async def _create(self, topics: Sequence[NewTopic], *, exists_is_fine: bool) -> None:
        peer = await self._client.peer(CONTROLLER)
        version = peer.versions.choose(CreateTopicsRequest)
        request = CreateTopicsRequest(
            topics=[_creatable(topic, version) for topic in topics],
            timeout_ms=int(self._client.config.request_timeout_ms),
        )
        answer: CreateTopicsResponse = await peer.request(request, self._client.request_timeout_s)
        told = {topic.name for topic in answer.topics}
        check_complete([t.name for t in topics], told, peer.connection.address, "CreateTopics", "topic")
        for topic in answer.topics:
            if topic.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and exists_is_fine:
                continue
            if topic.error_code:
                raise refusal(topic.error_code, repr(topic.name), topic.error_message)

    async def _await_leaders(self, names: Sequence[str]) -> None:
        await self._client.refresh(names)
        for name in names:
            info = self._client.cluster.topics.get(name)
            if info is None or not info.partitions or any(p.leader < 0 for p in info.partitions.values()):
                raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name!r}")

    async def delete(self, names: Sequence[str]) -> None:
        """Delete topics and all their records."""
        tries = count()
        await self._client.retrying(
            "deleting topics", lambda: self._delete(names, gone_is_fine=next(tries) > 0)
        )

    async def _delete(self, names: Sequence[str], *, gone_is_fine: bool) -> None:
        peer = await self._client.peer(CONTROLLER)
        version = peer.versions.choose(DeleteTopicsRequest)
        request = DeleteTopicsRequest(timeout_ms=int(self._client.config.request_timeout_ms))
        if version >= DELETE_TOPICS_IDS_SINCE:
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
                await self._client.refresh(all_topics=True)
                raise no_such_topic(topic.name or "", self._client.cluster)
            if topic.error_code:
                raise refusal(topic.error_code, repr(topic.name), topic.error_message)

    async def grow(self, topic: str, partitions: int) -> None:
        """Add partitions to a topic, so that it has `partitions` partitions in total."""
        client, tries = self._client, count()
        await client.retrying(
            "creating partitions", lambda: self._grow(topic, partitions, grown_is_fine=next(tries) > 0)
        )
        await client.retrying("waiting for the new partitions", lambda: client.refresh([topic]))

    async def _grow(self, topic: str, partitions: int, *, grown_is_fine: bool) -> None:
        client = self._client
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=topic, count=partitions, assignments=None)],
            timeout_ms=int(client.config.request_timeout_ms),
        )
        peer = await client.peer(CONTROLLER)
        answer: CreatePartitionsResponse = await peer.request(request, client.request_timeout_s)
        result = only(answer.results, peer.connection.address, "CreatePartitions")
        if result.error_code and not (grown_is_fine and result.error_code == ErrorCode.INVALID_PARTITIONS):
            raise refusal(result.error_code, f"topic {topic!r}", result.error_message)

    async def names(self, *, include_internal: bool) -> list[str]:
        """Return the names of all topics, sorted."""
        client = self._client
        await client.retrying("listing topics", lambda: client.refresh(all_topics=True))
        topics = client.cluster.topics.values()
        return sorted(t.name for t in topics if not t.error_code and (include_internal or not t.is_internal))

    async def describe(self, names: Sequence[str]) -> list[TopicDescription]:
        """Return descriptions of topics, in the order given."""
        client = self._client
        await client.retrying("describing topics", lambda: client.refresh(names))
        topics = await client.retrying("describing topics", lambda: client.topics_of(names))
        return [
            TopicDescription(
                name,
                [info.partitions[number] for number in sorted(info.partitions)],
                None if info.topic_id == NO_TOPIC_ID else uuid_to_text(info.topic_id),
                info.is_internal,
            )
            for name, info in ((name, topics[name]) for name in names)
        ]


def checked_topics(topics: Iterable[NewTopic | str]) -> list[NewTopic]:
    """Return the topics, each as `NewTopic`.

    Raises:
        ConfigError: `topics` is one topic and not a list, or an item describes no topic.
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
