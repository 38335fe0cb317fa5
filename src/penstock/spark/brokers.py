"""What planning asks the brokers: which partitions there are, and where their logs begin and end.

Imports nothing heavy. A streaming query keeps one of these, with its connection, as long as it runs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from penstock.client.background import run
from penstock.client.client import AsyncClient
from penstock.client.config import ConsumerConfig
from penstock.client.offsets import fetch_offsets
from penstock.errors import KafkaError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.options import Selection

METADATA_AGE_MAX_S = 1.0
"""How long an answer about topics counts. An idle query asks for offsets a hundred times a second."""

_NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


def client_config(bootstrap_servers: str, client: Mapping[str, str]) -> ConsumerConfig:
    """The options of the client, checked.

    Raises:
        ConfigError: an option is unknown, malformed, or belongs to a producer.
    """
    return ConsumerConfig.parse(client, {"bootstrap_servers": bootstrap_servers})


class Brokers:
    """A connection to the cluster, for questions. Connects when first asked."""

    def __init__(self, bootstrap_servers: str, client: Mapping[str, str]) -> None:
        self._config = client_config(bootstrap_servers, client)
        self._client: AsyncClient | None = None
        self._counts: dict[Selection, tuple[float, dict[str, int]]] = {}

    def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            run(client.close())

    def partition_counts(self, selection: Selection) -> dict[str, int]:
        """How many partitions each topic of `selection` has; topics that do not exist are left out.

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

    def lookup(self, questions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """ListOffsets: EARLIEST, LATEST or milliseconds since 1970 to the offset; None where none is so late.

        Raises:
            KafkaError: a partition does not exist, or may not be read.
            NetworkError, RequestTimeoutError: no broker answers.
        """
        return run(self._lookup(questions)) if questions else {}

    async def _connected(self) -> AsyncClient:
        if self._client is None:
            self._client = AsyncClient(self._config)
        await self._client.bootstrap()
        return self._client

    async def _partition_counts(self, selection: Selection) -> dict[str, int]:
        client = await self._connected()
        names = sorted({*selection.topics, *(where.topic for where in selection.partitions)})

        async def ask() -> None:
            await client.refresh(names, all_topics=selection.pattern is not None)

        # A broker that restarts must not end a query that runs for months.
        await client.retrying("looking up topics", ask)
        if selection.pattern is not None:
            topics = client.cluster.topics.values()
            names = [t.name for t in topics if not t.is_internal and selection.matches(t.name)]
        counts = {}
        for name in names:
            try:
                counts[name] = len((await client.topic(name)).partitions)
            except KafkaError as error:
                if error.code not in _NOT_THERE:
                    raise
        return counts

    async def _lookup(self, questions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        client = await self._connected()
        answers = await fetch_offsets(client, questions, isolation=self._config.isolation_level)
        return {where: None if answer is None else answer.offset for where, answer in answers.items()}
