"""Look-ups of a partition's offsets: the earliest, the latest, the first at or after a time.

This module imports neither numpy nor records, so that planning in Spark can use it alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.retry import check_complete
from penstock.client.fetch.cursors import ISOLATION_LEVELS
from penstock.errors import KafkaError, PenstockError, UnsupportedVersionError
from penstock.model import EARLIEST, LATEST, TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.list_offsets_response import ListOffsetsResponse
from penstock.protocol.since import LIST_OFFSETS_ISOLATION_SINCE, LIST_OFFSETS_MAX_TIMESTAMP_SINCE

MAX_TIMESTAMP = -3
"""The timestamp in ListOffsets that asks for the record with the greatest timestamp (version 7 and later)."""

TIMESTAMP_VERSION = 1
"""The first version of ListOffsets that finds the offset of a record. Before it, brokers return offsets of
segments."""


class OffsetAt(NamedTuple):
    """An offset and its record's timestamp in milliseconds, or -1 if the look-up was not by time."""

    offset: int
    timestamp: int = -1


Answers = dict[TopicPartition, OffsetAt | None]


async def fetch_offsets(
    client: AsyncClient,
    questions: Mapping[TopicPartition, int],
    *,
    isolation: str = "read_uncommitted",
    timeout_ms: float | None = None,
) -> Answers:
    """Look up one offset per partition, for a time or for `EARLIEST`, `LATEST` or `MAX_TIMESTAMP`.

    A time is in milliseconds since 1970. Its offset is that of the first record at or after the time, or None
    without one. With ``read_committed``, the latest offset is the last stable offset: where the first open
    transaction begins.

    Raises:
        KafkaError: a topic or partition does not exist, or the client is not authorized for it.
        ConfigError: a topic has no such partition.
        UnsupportedVersionError: the broker is too old for times.
        NetworkError, RequestTimeoutError: no answer within `timeout_ms` (default ``default.api.timeout.ms``).
    """
    await client.bootstrap()
    answers: Answers = {}
    left = dict(questions)

    async def attempt() -> None:
        await client.topics_of({tp.topic for tp in left})
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for tp, question in left.items():
            by_leader.setdefault(await client.leader(tp), {})[tp] = question
        outcomes = await asyncio.gather(
            *(_ask(client, leader, part, isolation, answers) for leader, part in by_leader.items()),
            return_exceptions=True,
        )
        for tp in answers:
            left.pop(tp, None)
        _raise_worst(outcomes)

    if left:
        await client.retrying("looking up offsets", attempt, timeout_ms)
    return {tp: answers[tp] for tp in questions}


def _raise_worst(outcomes: Iterable[BaseException | None]) -> None:
    """Raise the first error in `outcomes` that is not retriable, else the first error, if there is any."""
    errors = [error for error in outcomes if error is not None]
    fatal = [e for e in errors if not isinstance(e, KafkaError) or not e.retriable]
    for error in [*fatal, *errors]:
        raise error


async def _ask(
    client: AsyncClient,
    leader: int,
    questions: Mapping[TopicPartition, int],
    isolation: str,
    answers: Answers,
) -> None:
    """Ask one leader for offsets, and put them into `answers`. Raise the first error of any partition."""
    peer = await client.peer(leader)
    version = peer.versions.choose(ListOffsetsRequest)
    _check_version(questions.values(), version)
    topics: dict[str, ListOffsetsTopic] = {}
    for tp, question in questions.items():
        topic = topics.setdefault(tp.topic, ListOffsetsTopic(name=tp.topic))
        topic.partitions.append(ListOffsetsPartition(partition_index=tp.partition, timestamp=question))
    request = ListOffsetsRequest(
        replica_id=-1,
        # Before Kafka 0.11 there are no transactions: everything is committed.
        isolation_level=ISOLATION_LEVELS[isolation] if version >= LIST_OFFSETS_ISOLATION_SINCE else 0,
        topics=list(topics.values()),
        timeout_ms=int(client.config.request_timeout_ms),
    )
    answer: ListOffsetsResponse = await peer.connection.request(request, version, client.request_timeout_s)
    error: PenstockError | None = None
    seen = set()
    for told in answer.topics:
        for partition in told.partitions:
            tp = TopicPartition(told.name, partition.partition_index)
            seen.add(tp)
            if partition.error_code:
                error = error or error_for(partition.error_code, f"looking up offsets of {tp}")
            elif version == 0:
                answers[tp] = (
                    OffsetAt(partition.old_style_offsets[0]) if partition.old_style_offsets else None
                )
            else:
                answers[tp] = (
                    OffsetAt(partition.offset, partition.timestamp) if partition.offset >= 0 else None
                )
    if error is not None:
        raise error
    check_complete(questions, seen, peer.connection.address, "ListOffsets")


def _check_version(questions: Iterable[int], version: int) -> None:
    if version < TIMESTAMP_VERSION and any(q not in (EARLIEST, LATEST) for q in questions):
        raise UnsupportedVersionError("offsets by time need Kafka 0.10.1 or newer")
    if version < LIST_OFFSETS_MAX_TIMESTAMP_SINCE and MAX_TIMESTAMP in questions:
        raise UnsupportedVersionError("the greatest timestamp can be asked for from Kafka 3.0 on")


async def fetch_known_offsets(
    client: AsyncClient,
    partitions: Iterable[TopicPartition],
    question: int,
    *,
    isolation: str = "read_uncommitted",
) -> dict[TopicPartition, int]:
    """Return the `EARLIEST` or `LATEST` offset of each partition, as `question` says. Both always exist.

    Raises as `fetch_offsets`.
    """
    answers = await fetch_offsets(client, dict.fromkeys(partitions, question), isolation=isolation)
    known: dict[TopicPartition, int] = {}
    for tp, answer in answers.items():
        if answer is None:
            raise error_for(ErrorCode.OFFSET_NOT_AVAILABLE, f"offsets of {tp}")
        known[tp] = answer.offset
    return known


def list_offsets(
    bootstrap_servers: str,
    questions: Mapping[TopicPartition, int],
    *,
    isolation: str = "read_uncommitted",
    config: Mapping[str, object] | None = None,
) -> Answers:
    """Return offsets as `fetch_offsets` does, from blocking code, on a new connection.

    For repeated look-ups use `Admin.list_offsets`, which keeps its connection open.
    """
    from penstock.client.background_loop import run
    from penstock.client.config import ClientConfig

    parsed = ClientConfig.parse(config, {"bootstrap_servers": bootstrap_servers})

    async def ask() -> Answers:
        async with AsyncClient(parsed) as client:
            return await fetch_offsets(client, questions, isolation=isolation)

    return run(ask())
