"""The topic that stores the decisions of sinks: creates it if it is missing, and reads it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from penstock.client.admin.admin import AsyncAdmin
from penstock.client.admin.topics import NewTopic
from penstock.client.config import SECURITY_NAMES, ClientConfig, known_names
from penstock.client.fetch.offsets import fetch_known_offsets
from penstock.client.fetch.ranges import BATCH_BYTES, RangeReader, decode_part
from penstock.errors import DecodeError, KafkaError, RequestTimeoutError
from penstock.model import EARLIEST, LATEST, OffsetRange, TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.exactly_once.decision import NO_BATCH, RECORD_VERSION, Decision, SinkState
from penstock.spark.exactly_once.place import SinkPlace

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient

PARTITIONS = 8

SETTINGS = {
    "cleanup.policy": "compact",
    # A new driver reads its whole partition: what is not compacted yet must stay small.
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.1",
    # The decision of a batch of ten thousand tasks is half of this.
    "max.message.bytes": str(8 << 20),
}

STABLE_PAUSE_S = 0.05


async def partition_of(client: AsyncClient, place: SinkPlace) -> TopicPartition:
    """Return the partition of the state topic for a sink; create the topic if it is missing.

    Raises:
        KafkaError: the topic is missing and may not be created.
        NetworkError, RequestTimeoutError: no broker answers.
    """
    await client.bootstrap()
    try:
        topic = await client.topic(place.state_topic)
    except KafkaError as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        await _create(place)
        topic = await client.topic(place.state_topic)
    return TopicPartition(place.state_topic, place.state_partition(len(topic.partitions)))


async def _create(place: SinkPlace) -> None:
    known = known_names(ClientConfig)
    config = {
        name: value
        for name, value in place.client.items()
        if name in known or name.replace("_", ".").startswith(SECURITY_NAMES)
    }
    async with AsyncAdmin(place.bootstrap_servers, config) as admin:
        try:
            await admin.create_topics([NewTopic(place.state_topic, PARTITIONS, config=SETTINGS)])
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise KafkaError(
                    error.code,
                    error.name,
                    f"writing exactly once needs the topic {place.state_topic!r}, which cannot be created: "
                    f"{error}; have it created with cleanup.policy=compact",
                ) from error


async def read_state(client: AsyncClient, place: SinkPlace) -> SinkState:
    """Return the stored state of a sink, with everything stored before the call.

    Raises:
        DecodeError: a record does not have the form that a sink writes.
        RequestTimeoutError: a transaction of another sink stays open, or no broker answers.
        KafkaError, NetworkError: the topic cannot be read.
    """
    tp = await partition_of(client, place)
    end = (await fetch_known_offsets(client, [tp], LATEST))[tp]
    await _stable(client, tp, end)
    first = (await fetch_known_offsets(client, [tp], EARLIEST))[tp]
    state = SinkState()
    reader = RangeReader(client, [OffsetRange(*tp, first, end)], isolation="read_committed")
    try:
        await reader.start()
        while parts := await reader.next_parts():
            for part in parts:
                for batch in decode_part(part, ["key", "value"], BATCH_BYTES):
                    for key, value in zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True):
                        state = _take(state, place, key, value)
    finally:
        await reader.close()
    return state


def _take(state: SinkState, place: SinkPlace, key: bytes | None, value: bytes | None) -> SinkState:
    if key == place.decision_key:
        return state.with_decision(Decision.from_bytes(value)) if value else SinkState(None, state.finished)
    if key == place.finished_key:
        return state.with_finished(batch_of(value)) if value else SinkState(state.decision, NO_BATCH)
    return state


def finished_value(batch: int) -> bytes:
    """Return the value of the record that marks all rows of a batch as committed."""
    return json.dumps({"version": RECORD_VERSION, "batch": batch}, separators=(",", ":")).encode()


def batch_of(value: bytes) -> int:
    """Return the batch number from a record value that `finished_value` made. Raises DecodeError."""
    try:
        return int(json.loads(value)["batch"])
    except (ValueError, KeyError, TypeError) as error:
        raise DecodeError(f"a record of the sinks' topic does not hold a finished batch: {error!r}") from None


async def _stable(client: AsyncClient, tp: TopicPartition, end: int) -> None:
    """Wait until every transaction before offset `end` has ended. Those of other sinks last milliseconds.

    Raises:
        RequestTimeoutError: a transaction stays open for ``default.api.timeout.ms``.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + client.config.default_api_timeout_ms / 1000
    while (await fetch_known_offsets(client, [tp], LATEST, isolation="read_committed"))[tp] < end:
        if loop.time() > deadline:
            raise RequestTimeoutError(
                f"{tp} has had an open transaction for {client.config.default_api_timeout_ms / 1000:g} s: "
                "see 'penstock transaction list'"
            )
        await asyncio.sleep(STABLE_PAUSE_S)
