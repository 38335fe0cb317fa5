"""A connection to brokers for planning: partitions of topics, and the offsets where logs begin and end.

Imports nothing heavy. A streaming query keeps one connection open as long as it runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.client.background_loop import run
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.metadata import NO_TOPIC_ID
from penstock.client.config import ClientConfig, ConsumerConfig
from penstock.client.fetch.offsets import fetch_offsets
from penstock.errors import ConfigError, KafkaError, RequestTimeoutError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.source.options import Selection

if TYPE_CHECKING:
    from penstock.spark.source.group_offsets import GroupCommits

METADATA_AGE_MAX_S = 1.0
"""The age in seconds up to which topic metadata are reused: an idle query plans 100 times a second."""

NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
"""The error codes of brokers for a topic that was deleted."""

LOOKUP_PATIENCE_MS = 3_000
"""The timeout for looking up offsets; after that, the lookup checks that the topics still exist."""


def client_config(bootstrap_servers: str, client: Mapping[str, object]) -> ConsumerConfig:
    """Return the checked client options of a reader.

    Raises:
        ConfigError: an option is unknown, malformed, or belongs to a producer.
    """
    return ConsumerConfig.parse(client, {"bootstrap_servers": bootstrap_servers}, prefix="kafka.")


def presume_login(config: ClientConfig) -> None:
    """Make clients of this process retry a refused login, as during the rotation of a secret.

    Another process of the query has logged in with the same secret before, so the secret is not mistyped.
    """
    if config.security is not None:
        from penstock.client.security.rotation import presume_accepted

        presume_accepted(config.bootstrap_servers, config.security)


class MetadataConnection:
    """A connection to the cluster for metadata requests, opened by the first request."""

    def __init__(self, bootstrap_servers: str, client: Mapping[str, object]) -> None:
        self._config = client_config(bootstrap_servers, client)
        self._client: AsyncClient | None = None
        self._counts: dict[Selection, tuple[float, dict[str, int]]] = {}

    def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            run(client.close())

    def partition_counts(self, selection: Selection) -> dict[str, int]:
        """Return how many partitions each topic of `selection` has; topics that do not exist are left out.

        Raises:
            KafkaError: a topic may not be read.
            NetworkError, RequestTimeoutError: no broker answers.
        """
        known = self._counts.get(selection)
        now = time.monotonic()
        if known is None or now - known[0] > METADATA_AGE_MAX_S:
            known = now, run(self._partition_counts(selection))
            self._counts[selection] = known
        return known[1]

    def topic_ids(self, topics: Iterable[str]) -> dict[str, bytes]:
        """Return the ids of topics whose partitions have been counted, without topics that have no id."""
        cluster = self._opened().cluster
        found = {topic: cluster.topic_id(topic) for topic in topics}
        return {topic: topic_id for topic, topic_id in found.items() if topic_id != NO_TOPIC_ID}

    def lookup(self, questions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the offset for EARLIEST, LATEST or a time of each partition; None if no record is as late.

        A time is in milliseconds since 1970. The result leaves out partitions that no longer exist.

        Raises:
            KafkaError: a partition may not be read.
            NetworkError, RequestTimeoutError: no broker answers.
        """
        return run(self._lookup(questions)) if questions else {}

    def group_commits(self, group_id: str) -> GroupCommits:
        """Return an object that commits offsets to a group over this connection."""
        from penstock.spark.source.group_offsets import GroupCommits

        return GroupCommits(self._opened(), group_id)

    def _opened(self) -> AsyncClient:
        if self._client is None:
            self._client = AsyncClient(self._config)
        return self._client

    async def _connected(self) -> AsyncClient:
        client = self._opened()
        await client.bootstrap()
        return client

    async def _partition_counts(self, selection: Selection) -> dict[str, int]:
        client = await self._connected()
        names = sorted({*selection.topics, *(tp.topic for tp in selection.partitions)})

        async def ask() -> None:
            await client.refresh(names, all_topics=selection.pattern is not None)

        # A broker that restarts must not end a query that runs for months.
        await client.retrying("looking up topics", ask)
        if selection.pattern is not None:
            topics = client.cluster.topics.values()
            names = [t.name for t in topics if not t.is_internal and selection.matches(t.name)]
        return await self._counts_of(names)

    async def _counts_of(self, names: Iterable[str]) -> dict[str, int]:
        client = await self._connected()
        counts = {}
        for name in names:
            try:
                counts[name] = len((await client.topic(name)).partitions)
            except KafkaError as error:
                if error.code not in NOT_THERE:
                    raise
        return counts

    async def _still_there(self, questions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        client = await self._connected()
        names = {tp.topic for tp in questions}
        await client.retrying("looking up topics", lambda: client.refresh(names))
        counts = await self._counts_of(sorted(names))
        return {tp: question for tp, question in questions.items() if tp.partition < counts.get(tp.topic, 0)}

    async def _lookup(self, questions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        client = await self._connected()
        deadline = time.monotonic() + self._config.default_api_timeout_ms / 1000
        left = dict(questions)
        while left:
            left_ms = max(1.0, (deadline - time.monotonic()) * 1000)
            try:
                answers = await fetch_offsets(
                    client,
                    left,
                    isolation=self._config.isolation_level,
                    timeout_ms=min(LOOKUP_PATIENCE_MS, left_ms),
                )
                break
            except (ConfigError, KafkaError, RequestTimeoutError) as error:
                # A topic may have been deleted, or created anew, since its partitions were counted.
                existing = await self._still_there(left)
                is_final = isinstance(error, KafkaError) or left_ms <= LOOKUP_PATIENCE_MS
                if len(existing) == len(left) and is_final:
                    raise
                left = existing
        else:
            answers = {}
        return {tp: None if answer is None else answer.offset for tp, answer in answers.items()}
