"""Dead letters of a share partition (KIP-1191): the records that are not delivered again, in another topic.

A record that is rejected, or delivered as often as allowed, is first stored as `ARCHIVING`. Then its dead
letter is written, and then it is stored as `ARCHIVED`. The next leader of the partition writes the dead
letters of records that it finds `ARCHIVING`, so each is written at least once.

Only ranges of offsets wait in memory: each turn of the event loop reads and writes one batch of limited size.
If dead letters cannot be written, their records are archived without them, and a line is logged.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.requests.purgatory import Wait
from penstock.broker.sharing.dead_records import (
    DeadBatch,
    DeadRange,
    LoggedOriginals,
    NoOriginals,
    batch_of,
)
from penstock.errors import KafkaError, StorageError, UnpackLimitError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.metadata.replica_manager import Topic
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.requests.kept_state import KeptState
    from penstock.broker.requests.purgatory import DelayedOperation, Purgatory
    from penstock.broker.sharing.settings import SharingSettings
    from penstock.clock import Clock
    from penstock.common.failures import Failures, LimitedLog

ENABLED = "errors.deadletterqueue.group.enable"
"""The topic config that must be `true` for a topic to receive dead letters."""

CREATED_WITH = {ENABLED: "true", "message.timestamp.type": "CreateTime"}
"""The topic configs of a dead letter topic that the broker creates."""

ATTEMPTS = 5
"""The maximum number of attempts to write a batch of dead letters."""

BACKOFF_S = 1.0
"""The delay in seconds from the first to the second attempt to write a batch; each further delay is twice
as long.
"""

RANGE_BYTES = 300
"""The approximate memory, in bytes, of a range of records that waits for its dead letters."""

_AGAIN = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
"""The errors of a write after which the same batch of dead letters is written again later."""


class DeadLetterSettings(Protocol):
    """The interface through which dead letters read the broker's settings."""

    def integer(self, name: str) -> int: ...
    def boolean(self, name: str) -> bool: ...
    def text(self, name: str) -> str | None: ...


class DeadLetterMetadata(Protocol):
    """The interface to the cluster's metadata that dead letters need, to find or create their topic."""

    @property
    def topics(self) -> Mapping[str, Topic]: ...
    def catch_up(self) -> None:
        """Apply all metadata that have been written."""

    def topic(self, name: str) -> Topic: ...
    def plan_topic(self, name: str, *, configs: Mapping[str, str | None] | None = ...) -> Any: ...
    def create_topics(self, topics: Sequence[Any], now_ms: int) -> object: ...


class DeadLetterHost(Protocol):
    """The interface of the broker that dead letters need."""

    @property
    def config(self) -> DeadLetterSettings: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def cluster(self) -> DeadLetterMetadata: ...
    @property
    def purgatory(self) -> Purgatory: ...
    @property
    def failures(self) -> Failures: ...
    @property
    def limited_log(self) -> LimitedLog: ...
    @property
    def kept(self) -> KeptState: ...
    def append_at_leader(self, topic: str, index: int, batch: bytes, done: Callable[[int], None]) -> None:
        """Append a batch at a partition's leader; `done` gets 0 once the ISR has it, or an error code."""


class DeadLetterQueue:
    """The waiting dead letters of one share partition, which are written in order, one batch at a time.

    `archive` is called with ranges of records once they need no dead letter any more.
    """

    def __init__(
        self,
        group_id: str,
        partition: Partition,
        host: DeadLetterHost,
        settings: Callable[[], SharingSettings],
        archive: Callable[[Sequence[DeadRange]], None],
    ) -> None:
        self._group_id = group_id
        self._partition = partition
        self._host = host
        self._settings = settings
        self._archive = archive
        self._waiting: deque[DeadRange] = deque()
        self._batch: DeadBatch | None = None
        """The batch that is being written, or that waits for its next attempt; None without one."""
        self._attempts = 0
        self._parked: DelayedOperation | None = None
        self._is_sent = False
        self._has_ended = False

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory, in bytes, of the waiting ranges and of the batch in progress."""
        batch = self._batch
        size = 0 if batch is None else len(batch.data) + RANGE_BYTES * len(batch.ranges)
        return size + RANGE_BYTES * len(self._waiting)

    def add(self, ranges: Sequence[DeadRange]) -> None:
        """Queue ranges of records, whose dead letters are written later."""
        if not self._host.kept.has_room_for(RANGE_BYTES * len(ranges), stays=True):
            self._give_up(ranges, "the broker has no memory for waiting dead letters")
            return
        self._waiting.extend(ranges)
        self._soon()

    def end(self) -> None:
        """Drop all dead letters not yet written: this broker lost the leadership, or the state was reset."""
        self._has_ended = True
        self._waiting.clear()
        self._batch = None
        if self._parked is not None:
            self._host.purgatory.cancel(self._parked)

    def _soon(self, wait_s: float = 0.0) -> None:
        if self._parked is None and not self._is_sent and (self._waiting or self._batch is not None):
            when = self._host.clock.monotonic() + wait_s
            self._parked = self._host.purgatory.park(Wait((), when), self._go_on)

    def _go_on(self) -> None:
        """Write the next batch of dead letters, or retry the one whose write failed."""
        self._parked = None
        if self._has_ended:
            return
        self._attempts += 1
        try:
            self._write()
        except KafkaError as error:
            self._failed(error.code, error.detail)
        except StorageError as error:
            self._failed(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        except UnpackLimitError as error:
            self._failed(ErrorCode.MESSAGE_TOO_LARGE, str(error))
        except Exception:
            # A barrier: records may hold anything, and the leader may be another node.
            self._host.failures.caught("share groups", f"dead letters of group {self._group_id!r}")
            self._failed(ErrorCode.UNKNOWN_SERVER_ERROR, "an error in the broker")

    def _write(self) -> None:
        """Append the current or next batch of dead letters at the leader of its dead letter partition.

        Raises:
            KafkaError, StorageError, UnpackLimitError: the batch has not been written.
        """
        host, settings = self._host, self._settings()
        topic = self._topic(settings.dead_letter_topic)
        batch = self._batch
        if batch is None:
            max_bytes = topic.config.max_message_bytes
            originals = (
                LoggedOriginals(self._partition, max_bytes) if settings.copies_records else NoOriginals()
            )
            left = self._waiting.copy()  # an exception must lose none
            batch = batch_of(left, self._group_id, self._partition, originals, max_bytes, host.clock.now_ms())
            self._batch, self._waiting = batch, left
        self._is_sent = True
        try:
            index = self._partition.index % len(topic.partitions)
            host.append_at_leader(topic.name, index, batch.data, partial(self._written, batch))
        except BaseException:
            self._is_sent = False
            raise

    def _topic(self, name: str) -> Topic:
        """Return the dead letter topic of the group; create it if the broker's settings allow this.

        Raises:
            KafkaError: INVALID_CONFIG (40), the settings do not allow dead letters in this topic, or the
                topic cannot be created.
            StorageError: the topic cannot be created now.
        """
        host, cluster = self._host, self._host.cluster
        wrong = ""
        is_missing = name not in cluster.topics
        if is_missing:
            cluster.catch_up()
            is_missing = name not in cluster.topics
        prefix = host.config.text("errors.deadletterqueue.topic.name.prefix") or ""
        if not name:
            wrong = "the group has no dead letter topic"
        elif name.startswith("__"):
            wrong = f"the name of topic {name} begins with __"
        elif not is_missing and cluster.topic(name).config[ENABLED] is not True:
            wrong = f"topic {name} does not have {ENABLED}=true"
        elif is_missing and not host.config.boolean("errors.deadletterqueue.auto.create.topics.enable"):
            wrong = f"topic {name} does not exist, and the broker may not create it"
        elif not name.startswith(prefix):
            wrong = f"the name of topic {name} does not begin with {prefix}"
        if wrong:
            raise error_for(ErrorCode.INVALID_CONFIG, wrong)
        if is_missing:
            plan = cluster.plan_topic(name, configs=CREATED_WITH)
            cluster.create_topics([plan], host.clock.now_ms())
        return cluster.topic(name)

    def _written(self, batch: DeadBatch, code: int) -> None:
        """Handle the result of a write: write the next batch, or schedule another attempt."""
        if self._batch is not batch:
            return
        self._is_sent = False
        if code:
            self._failed(code, f"error {ErrorCode(code).name}")
            return
        self._batch, self._attempts = None, 0
        self._soon()
        self._archive(batch.ranges)

    def _failed(self, code: int, why: str) -> None:
        """Schedule another attempt or, after a final error, archive the records without dead letters."""
        if code in _AGAIN and self._attempts < ATTEMPTS:
            self._soon(BACKOFF_S * 2 ** (self._attempts - 1))
            return
        ranges = [*(self._batch.ranges if self._batch is not None else ()), *self._waiting]
        self._batch, self._attempts = None, 0
        self._waiting.clear()
        self._give_up(ranges, why)

    def _give_up(self, ranges: Sequence[DeadRange], why: str) -> None:
        count = sum(each.last - each.first + 1 for each in ranges)
        self._host.limited_log.write(
            logging.WARNING,
            "dead letters",
            "share group %s: %d records of %s-%d, from offset %d on, are archived without dead letters: %s",
            self._group_id,
            count,
            self._partition.topic,
            self._partition.index,
            ranges[0].first,
            why,
        )
        self._archive(ranges)
