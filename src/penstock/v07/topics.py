"""The topics of one 0.7 broker: checks of names, partition counts, and logs that are opened when needed."""

from __future__ import annotations

import logging
import os
import random
import re
from collections.abc import Callable

from penstock.clock import Clock
from penstock.common.failures import LimitedLog
from penstock.common.logs import logger_named
from penstock.errors import DecodeError
from penstock.log.directory.files import (
    create_file,
    make_directory,
    remove_file,
    storage,
    warn_if_others_may_read,
)
from penstock.v07.byte_log import ByteLog
from penstock.v07.files import partition_directories
from penstock.v07.message_set import Judged, judge
from penstock.v07.settings import Settings
from penstock.v07.wire import ANY_PARTITION, EARLIEST_TIME, LATEST_TIME, OffsetsPart, ProducePart

logger = logger_named("penstock.v07")

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

_ILLEGAL = re.compile("[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


class InvalidTopic(DecodeError):
    """The topic name is one that no 0.7.2 broker accepts."""


class WrongPartition(DecodeError):
    """The topic does not have the requested partition on this broker."""


class Topics:
    """Opens and manages the logs of all topics below one directory.

    `created` is called with the name of each topic that is created.

    Raises:
        StorageError: the directory cannot be used.
    """

    def __init__(
        self,
        directory: str,
        settings: Settings,
        clock: Clock,
        *,
        dice: random.Random | None = None,
        created: Callable[[str], object] = lambda topic: None,
    ) -> None:
        self.directory = directory
        self.created = created
        self._settings = settings
        self._clock = clock
        self._dice = dice or random.Random()
        self._log = LimitedLog(clock.monotonic, logger)
        self._logs: dict[tuple[str, int], ByteLog] = {}
        self._name_length_max = settings.number("max.topic.name.length")
        self._message_bytes_max = settings.number("max.message.size")
        make_directory(directory)
        warn_if_others_may_read(directory)
        marker = os.path.join(directory, CLEAN_SHUTDOWN)
        is_clean = os.path.exists(marker)
        with storage("read", directory):
            partitions = partition_directories(directory)
        for topic, partition in partitions:
            self._open(topic, partition, is_clean=is_clean)
        remove_file(marker)

    @property
    def names(self) -> list[str]:
        """The topics that have a log in this directory."""
        return sorted({topic for topic, _ in self._logs})

    def partition_count(self, topic: str) -> int:
        """Return how many partitions the topic has, or would be created with."""
        return self._settings.number("num.partitions", topic)

    def log(self, topic: str, partition: int) -> ByteLog | None:
        """Return the log of a partition, or None while nothing has been produced to it.

        Raises:
            InvalidTopic, WrongPartition: there can be no such partition.
        """
        self._check(topic, partition)
        return self._logs.get((topic, partition))

    def choose_partition(self, part: ProducePart) -> ProducePart:
        """Return `part` with a random partition if it has none; create the partition's log if missing.

        Raises:
            InvalidTopic, WrongPartition: nothing was created.
            StorageError: the disk is full or fails.
        """
        topic, partition, data = part
        if partition == ANY_PARTITION:
            self._check(topic, 0)
            partition = self._dice.randrange(self.partition_count(topic))
        self._check(topic, partition)
        if (topic, partition) not in self._logs:
            self._create(topic, partition)
        return ProducePart(topic, partition, data)

    def produce(self, part: ProducePart) -> None:
        """Choose the partition of a message set, check the set, and append it.

        Raises the errors of `choose_partition`, `judge` and `store`.
        """
        assigned = self.choose_partition(part)
        self.store(assigned, judge(memoryview(part.messages)))

    def store(self, part: ProducePart, judged: Judged) -> None:
        """Append a message set that has a partition and has been checked by `judge`.

        A set with a message that is too large is dropped, with a warning: 0.7 has no error for it.

        Raises:
            StorageError: the disk is full or fails.
        """
        topic, partition, data = part
        log = self._logs[topic, partition]
        if judged.payload_bytes_max > self._message_bytes_max:
            self._log.write(
                logging.WARNING,
                "dropped messages",
                "dropped %d messages for %s-%d: one has %d bytes, max.message.size is %d",
                judged.message_count,
                topic,
                partition,
                judged.payload_bytes_max,
                self._message_bytes_max,
            )
            return
        log.append(memoryview(data)[: judged.size], judged.message_count, now_ms=self._clock.now_ms())

    def offsets(self, part: OffsetsPart) -> list[int]:
        """Return the offsets that answer a Kafka 0.7 OFFSETS request, newest first.

        Raises:
            InvalidTopic, WrongPartition: there can be no such partition.
            DecodeError: a negative count.
        """
        if part.count_max < 0:
            raise DecodeError(f"OFFSETS for {part.count_max} offsets")
        log = self.log(part.topic, part.partition)
        if log is None:
            return [0] if part.time_ms in (LATEST_TIME, EARLIEST_TIME) else []
        return log.offsets_before(part.time_ms, part.count_max, now_ms=self._clock.now_ms())

    def flush_due(self) -> None:
        """Flush the logs whose flush interval is over, and remove segments past their retention.

        Raises:
            Exception: the first error of a log, after all logs were processed.
        """
        now_ms = self._clock.now_ms()
        first: Exception | None = None
        for log in list(self._logs.values()):
            try:
                log.maintain(now_ms=now_ms)
            except Exception as error:
                first = first or error
        if first is not None:
            raise first

    def close(self) -> None:
        """Flush and close all logs, and write the file that marks a clean shutdown."""
        for log in self._logs.values():
            log.close(now_ms=self._clock.now_ms())
        self._logs.clear()
        create_file(os.path.join(self.directory, CLEAN_SHUTDOWN))

    def _check(self, topic: str, partition: int) -> None:
        if not topic or topic in (".", "..") or _ILLEGAL.search(topic):
            raise InvalidTopic(f"{topic!r} is no name for a topic: it becomes the name of a directory")
        if len(topic) > self._name_length_max:
            raise InvalidTopic(
                f"a topic name of {len(topic)} characters; max.topic.name.length is {self._name_length_max}"
            )
        count = self.partition_count(topic)
        if not 0 <= partition < count:
            raise WrongPartition(
                f"partition {partition} of {topic}: this broker has {count}, 0 to {count - 1}"
            )

    def _create(self, topic: str, partition: int) -> ByteLog:
        is_new = not any(known == topic for known, _ in self._logs)
        log = self._open(topic, partition, is_clean=True)
        if is_new:
            logger.info(
                "topic %s has come into existence, with %d partitions", topic, self.partition_count(topic)
            )
            self.created(topic)
        return log

    def _open(self, topic: str, partition: int, *, is_clean: bool) -> ByteLog:
        log = ByteLog(
            os.path.join(self.directory, f"{topic}-{partition}"),
            self._settings.log_config(topic),
            now_ms=self._clock.now_ms(),
            is_clean=is_clean,
        )
        self._logs[topic, partition] = log
        return log
