"""The brokers of a query on the driver: partitions and offsets, commits to a group, and outages.

Imports nothing heavy. A streaming query keeps one connection open as long as it runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.background_loop import background_loop, run
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.metadata import NO_TOPIC_ID
from penstock.client.config import ClientConfig, ConsumerConfig
from penstock.client.fetch.offsets import fetch_offsets
from penstock.common.logs import logger_named
from penstock.errors import ConfigError, KafkaError, NetworkError, PenstockError, RequestTimeoutError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.source.options import Selection

if TYPE_CHECKING:
    import asyncio

METADATA_AGE_MAX_S = 1.0
"""The age in seconds up to which topic metadata are reused: an idle query plans 100 times a second."""

NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
"""Error codes with which brokers answer for a topic that was deleted."""

LOOKUP_PATIENCE_MS = 3_000
"""The timeout in ms for looking up offsets; after that, the lookup checks that the topics still exist."""

TOLD_EVERY_S = 60.0
"""The interval in seconds at which a query that waits for brokers writes a log line."""

log = logger_named("penstock.spark")


def client_config(bootstrap_servers: str, client: Mapping[str, object]) -> ConsumerConfig:
    """Return the checked client options of a reader.

    Raises:
        ConfigError: an option is unknown, malformed, or belongs to a producer.
    """
    return ConsumerConfig.parse(client, {"bootstrap_servers": bootstrap_servers}, prefix="kafka.")


def presume_login(config: ClientConfig) -> None:
    """Make clients of this process retry a refused login, which can occur while a secret is rotated.

    Another process of the query has already logged in with the same secret, so the secret is correct.
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
        """Return a dict from each topic of `selection` to its number of partitions, without missing topics.

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
        """Return the ids of topics that `partition_counts` has returned, without topics that have no id."""
        cluster = self._opened().cluster
        found = {topic: cluster.topic_id(topic) for topic in topics}
        return {topic: topic_id for topic, topic_id in found.items() if topic_id != NO_TOPIC_ID}

    def lookup(self, questions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return each partition's offset for EARLIEST, LATEST or a time; None if all records are earlier.

        A time is in milliseconds since 1970. The result leaves out partitions that no longer exist.

        Raises:
            KafkaError: a partition may not be read.
            NetworkError, RequestTimeoutError: no broker answers.
        """
        return run(self._lookup(questions)) if questions else {}

    def group_commits(self, group_id: str) -> GroupCommits:
        """Return an object that commits offsets to a group over this connection."""
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


class GroupCommits:
    """Commits the offsets of one query, for tools that show lag, like a consumer outside the group.

    Only the checkpoint decides where the query continues: nothing is read back from the group.

    Commits never hold up a micro-batch: while one is under way, the newest offsets wait for it, and older
    waiting offsets are not sent. If brokers cannot be reached, the failure is logged and the commit tried
    again with the next micro-batch; an error that a retry cannot mend ends the query.
    """

    def __init__(self, client: AsyncClient, group_id: str) -> None:
        from penstock.client.group.coordinator import CoordinatorFinder  # few queries commit to a group
        from penstock.client.group.offsets import GroupOffsets, MemberIdentity

        self._client = client
        self._group_id = group_id
        self._offsets = GroupOffsets(client, CoordinatorFinder(client, group_id))
        self._no_member = MemberIdentity()
        self._wanted: dict[TopicPartition, int] | None = None
        self._task: asyncio.Task[None] | None = None
        self._error: PenstockError | None = None

    def submit(self, offsets: Mapping[TopicPartition, int], *, wait: bool) -> None:
        """Commit `offsets` in the background; with `wait`, return only when they are committed.

        Raises:
            KafkaError: an earlier commit was refused: no right to the group, or it has members.
        """
        if self._error is not None:
            raise self._error
        self._wanted = dict(offsets)
        if wait:
            run(self._drain())
            if self._error is not None:
                raise self._error
        else:
            background_loop().call_soon_threadsafe(self._start)

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = background_loop().create_task(self._drain())

    async def _drain(self) -> None:
        while self._wanted:
            wanted, self._wanted = self._wanted, None
            try:
                await self._client.bootstrap()
                await self._offsets.commit(wanted, lambda before: self._no_member)
            except PenstockError as error:
                if not is_outage(error):
                    self._error = self._explained(error)
                    return
                log.warning("the offsets of group %s are not committed now: %s", self._group_id, error)

    def _explained(self, error: PenstockError) -> PenstockError:
        if isinstance(error, KafkaError) and error.code == ErrorCode.UNKNOWN_MEMBER_ID:
            return KafkaError(
                error.code,
                error.name,
                f"group {self._group_id!r} has members, whose offsets are their own: "
                "name another with kafka.group.id, or leave commitOffsets out",
            )
        return error


class Patience(NamedTuple):
    """The limits of the time for which a task of a stream waits for brokers that do not answer."""

    outage_s: float
    """The longest wait in seconds, if this worker has reached the brokers before."""
    is_proven: bool
    """True if a task of the query has reached the brokers: then every worker waits for them."""


def is_outage(error: PenstockError) -> bool:
    """Return True if an error means that brokers do not answer, or cannot yet; False for other errors."""
    if isinstance(error, KafkaError):
        return error.retriable
    return isinstance(error, (NetworkError, RequestTimeoutError))


class Outage:
    """Measures the duration of an outage of brokers. A failure before the first answer is no outage.

    `limit_s` is how long an outage may last. `report` is called with a line for the log, once a minute.
    """

    def __init__(self, servers: str, limit_s: float, report: Callable[[str], None] | None = None) -> None:
        self._servers = servers
        self._limit_s = limit_s
        self._report = report or log.warning
        self._is_reached = False
        self._since: float | None = None
        self._told_at = float("-inf")

    def is_over(self, now: float) -> None:
        """Record the end of the outage: brokers have answered at the monotonic time `now` in seconds."""
        self._is_reached = True
        if self._since is not None:
            self._report(f"the brokers of {self._servers} answer again after {now - self._since:.0f} s")
        self._since = None
        self._told_at = float("-inf")

    def is_endured(self, error: PenstockError, now: float) -> bool:
        """Return True if the caller should wait on after `error`, at monotonic time `now` in seconds."""
        if not is_outage(error) or not self._is_reached:
            return False
        if self._since is None:
            self._since = now
        if now - self._since >= self._limit_s:
            return False
        if now - self._told_at >= TOLD_EVERY_S:
            self._told_at = now
            self._report(
                f"no broker of {self._servers} can be asked ({error}); the query waits up to "
                f"{self._limit_s:.0f} s (maxBrokerOutage), {now - self._since:.0f} s so far"
            )
        return True
