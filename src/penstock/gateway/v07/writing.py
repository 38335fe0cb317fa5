"""Produces message sets of Kafka 0.7 to the cluster: idempotent, acknowledged by all in-sync replicas."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence

from penstock.client.produce.delivery import Delivery
from penstock.client.produce.producer import AsyncProducer
from penstock.common.failures import LimitedLog
from penstock.errors import KafkaError, PenstockError
from penstock.gateway.v07.counts import Counts07
from penstock.gateway.v07.topics import ClusterTopics
from penstock.protocol.error_codes import ErrorCode
from penstock.records.compression.codecs import UnpackLimits
from penstock.v07.message_set import PlainMessage, iter_messages
from penstock.v07.topics import WrongPartition
from penstock.v07.wire import ANY_PARTITION, ProducePart

BLOCK_MS = 120_000
"""The producer's ``max.block.ms``: how long a full buffer may block a connection, equal to the longest time
for an acknowledgement.
"""

PIECE = 500
"""The number of messages after which producing a large set pauses, so that the event loop can handle other
connections.
"""

_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)

Failed = Callable[[PenstockError], object]


class ClusterWriter:
    """Produces messages of Kafka 0.7 clients to the cluster. While its buffer is full, callers wait."""

    def __init__(
        self,
        to: str | Sequence[str],
        config: Mapping[str, object],
        topics: ClusterTopics,
        counts: Counts07,
        unpack: UnpackLimits,
        log: LimitedLog,
        dice: random.Random | None = None,
    ) -> None:
        options = {**config, "acks": "all", "max.block.ms": BLOCK_MS}  # idempotent, where brokers can (0.11)
        self._producer: AsyncProducer[bytes, bytes] = AsyncProducer(to, options)
        self._topics = topics
        self._counts = counts
        self._unpack = unpack
        self._log = log
        self._dice = dice or random.Random()

    async def close(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` seconds until accepted messages are acknowledged, then close.

        Messages without an acknowledgement are lost, and logged.
        """
        await self._producer.close(timeout_s)

    async def choose_partition(self, part: ProducePart) -> ProducePart:
        """Return `part` with a partition number that the topic has; -1 is replaced by a random number.

        Raises:
            InvalidTopic, WrongPartition: the topic name is invalid, or the topic has no such partition.
            KafkaError: there is no such topic, and the cluster does not create it.
            NetworkError: no broker answers.
        """
        topic, partition, data = part
        if partition < ANY_PARTITION:
            raise WrongPartition(f"partition {partition} of {topic}: partitions are numbered from 0")
        count = len((await self._topics.ensure(topic)).partitions)
        if partition == ANY_PARTITION:
            return ProducePart(topic, self._dice.randrange(count), data)
        await self._topics.partition(topic, partition)
        return part

    async def write(self, part: ProducePart, size: int, failed: Failed) -> None:
        """Produce the messages in the first `size` bytes of a set, in order; wait while the buffer is full.

        `failed` is called once, later, if the cluster does not accept all of them.

        Raises:
            PenstockError: the producer does not accept a message.
        """
        topic, partition, data = part
        watched: list[Delivery] = []
        for number, message in enumerate(iter_messages(memoryview(data)[:size], 0, self._unpack), 1):
            await self._send(topic, partition, message, watched)
            if number % PIECE == 0:
                await asyncio.sleep(0)
        reported: list[PenstockError] = []

        def settled(delivery: Delivery) -> None:
            error = delivery.exception(0)
            if error is None or reported:
                return
            reported.append(error)
            if isinstance(error, KafkaError) and error.code in _TOO_LARGE:
                self.drop(topic, 1, str(error))
                return
            self._counts.lost_sets += 1
            failed(error)

        for delivery in watched:
            delivery.add_done_callback(settled)

    async def _send(self, topic: str, partition: int, message: PlainMessage, watched: list[Delivery]) -> None:
        """Send one message.

        Adds the first delivery of each producer batch to `watched`, since all records of a batch have the
        same outcome.
        """
        try:
            accepted = self._producer.try_send(topic, message.payload, None, partition, None, ())
            if accepted is None:
                accepted = (
                    await self._producer.send_when_possible(
                        topic, message.payload, None, partition, None, ()
                    ),
                    True,
                )
        except KafkaError as error:
            if error.code not in _TOO_LARGE:
                raise
            self.drop(topic, 1, str(error))
            return
        self._counts.produced += 1
        if accepted[1] or not watched:
            watched.append(accepted[0])

    def drop(self, topic: str, count: int, reason: str) -> None:
        """Count and log messages that are dropped because they are too large, as 0.7 does."""
        self._counts.dropped += count
        self._log.write(
            logging.WARNING, "dropped messages", "dropped %d messages for %s: %s", count, topic, reason
        )
