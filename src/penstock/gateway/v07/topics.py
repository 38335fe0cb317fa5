"""The topics that the gateway shows to Kafka 0.7 clients: names, partitions, and creation on demand.

Only topics that exist are cached, so that unknown names in requests use no memory.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable

from penstock.client.background_loop import ignore_outcome
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.metadata import TopicInfo
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.since import METADATA_CREATION_SINCE
from penstock.v07.topics import InvalidTopic, WrongPartition

LOOK_AGAIN_S = 1.0
"""The shortest time in seconds between look-ups of all topics, when a leader or a partition is unknown."""

NAMES_MAX = 100
"""The most unknown topics of one request that are looked up. Further ones are treated as nonexistent."""

APPEAR_S = 5.0
"""The longest time in seconds that a newly created topic may take to appear in Metadata."""

UNKNOWN_S = 1.0
"""Seconds during which UNKNOWN_TOPIC_OR_PARTITION is accepted for a topic that is being created. Apache
Kafka with KRaft and Penstock return this error during creation; a cluster without auto-creation always
does.
"""

APPEAR_STEP_S = 0.05

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")

_THERE = (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)

_PATIENCE_S: dict[int, float] = {
    ErrorCode.NONE: APPEAR_S,
    ErrorCode.LEADER_NOT_AVAILABLE: APPEAR_S,
    ErrorCode.TOPIC_ALREADY_EXISTS: APPEAR_S,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UNKNOWN_S,
}
"""A dict from an error code to the seconds during which Metadata may return it before the topic counts as not
created. Any other code ends the attempt at once.
"""


class ClusterTopics:
    """Looks up and creates topics of the cluster. The settings of `client` must not allow topic creation."""

    def __init__(self, client: AsyncClient) -> None:
        self.created = asyncio.Event()
        """An event that is set when a topic has been created."""
        self._client = client
        self._looked_at = float("-inf")
        self._creating: dict[str, asyncio.Task[None]] = {}

    @property
    def names(self) -> list[str]:
        """The names of all topics except internal ones at the last look-up.

        Any thread may read this property.
        """
        return sorted(
            name
            for name, info in list(self._client.cluster.topics.items())
            if info.partitions and not info.is_internal and not info.error_code
        )

    def count(self, name: str) -> int:
        """Return a topic's number of partitions at the last look-up; 0 if unknown. Thread-safe."""
        info = self._client.cluster.topics.get(name)
        return 0 if info is None else len(info.partitions)

    async def look(self, *, is_urgent: bool = False) -> None:
        """Look up all topics, but at most once in `LOOK_AGAIN_S` seconds.

        Raises:
            NetworkError: no broker answers.
        """
        now = asyncio.get_running_loop().time()
        if is_urgent or now - self._looked_at >= LOOK_AGAIN_S:
            self._looked_at = now
            await self._client.refresh(all_topics=True)

    async def find(self, name: str) -> TopicInfo | None:
        """Return the metadata of a topic, or None if it does not exist.

        Raises:
            InvalidTopic: no topic can have this name.
            NetworkError: no broker answers.
        """
        _check_name(name)
        if self._usable(name) is None:
            await self.discover([name])
        return self._usable(name)

    async def discover(self, names: Iterable[str]) -> None:
        """Look up the topics in `names` that are not cached yet, without creating any.

        Raises:
            NetworkError: no broker answers.
        """
        unknown = [
            name for name in dict.fromkeys(names) if self._usable(name) is None and _NAME.fullmatch(name)
        ][:NAMES_MAX]
        if not unknown:
            return
        peer = await self._client.peer()
        if peer.versions.choose(MetadataRequest) < METADATA_CREATION_SINCE:
            await self.look()
            return
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in unknown], allow_auto_topic_creation=False
        )
        answer = await peer.request(request, self._client.request_timeout_s)
        there = [topic.name for topic in answer.topics if topic.name and topic.error_code in _THERE]
        if there:
            await self._client.refresh(there)

    async def partition(self, name: str, partition: int, *, is_discovered: bool = False) -> bool:
        """Return True if the topic has the partition, False if the topic does not exist.

        With `is_discovered`, the topic was looked up just now, and is not looked up again.

        Raises:
            WrongPartition: the topic has no such partition.
            InvalidTopic, NetworkError: as `find`.
        """
        _check_name(name)
        info = self._usable(name) if is_discovered else await self.find(name)
        if info is None:
            return False
        if partition not in info.partitions:
            if partition > 0:
                await self.look()  # it may have grown
                info = self._usable(name) or info
            if partition not in info.partitions:
                raise WrongPartition(
                    f"partition {partition} of {name}: the topic has {len(info.partitions)}, "
                    f"0 to {len(info.partitions) - 1}"
                )
        return True

    async def ensure(self, name: str) -> TopicInfo:
        """Return the metadata of a topic; create it if the cluster auto-creates topics.

        Raises:
            InvalidTopic: no topic can have this name.
            KafkaError: the topic does not exist, and cannot be created.
            NetworkError: no broker answers.
        """
        info = await self.find(name)
        if info is None:
            task = self._creating.get(name)
            if task is None:
                task = self._creating[name] = asyncio.create_task(self._create(name))
                task.add_done_callback(lambda _: self._creating.pop(name, None))
                task.add_done_callback(ignore_outcome)  # who waits for it may be gone
            await asyncio.shield(task)
            info = self._usable(name)
        if info is None:
            raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"producing to topic {name!r}")
        return info

    async def _create(self, name: str) -> None:
        """Create a topic in the cluster, and wait until it exists."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        while self._usable(name) is None:
            answer = await self._client.request(request)
            for topic in answer.topics:
                patience_s = _PATIENCE_S.get(topic.error_code)
                if patience_s is None or loop.time() > since + patience_s:
                    raise error_for(
                        topic.error_code or ErrorCode.LEADER_NOT_AVAILABLE, f"creating topic {name!r}"
                    )
            await self.discover([name])
            await asyncio.sleep(0 if self._usable(name) else APPEAR_STEP_S)
        self.created.set()

    def _usable(self, name: str) -> TopicInfo | None:
        info = self._client.cluster.topics.get(name)
        return info if info is not None and info.partitions and not info.error_code else None


def _check_name(name: str) -> None:
    """Raise InvalidTopic if `name` is not a valid name for a topic."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise InvalidTopic(
            f"{name[:249]!r} is no name for a topic: 1 to 249 letters, digits, '.', '_' and '-' are needed"
        )
