"""Where the records of a registry are kept: in memory, or in the topic ``_schemas`` of any Kafka.

The topic is that of Confluent's registry, record for record: one partition, compacted, keys and values in
JSON. A registry reads it from the beginning, and follows what others write.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.client.blocking.admin import Admin
from penstock.client.blocking.consumer import Consumer
from penstock.client.blocking.producer import Producer
from penstock.common.logs import logger_named
from penstock.errors import ConfigError, KafkaError, PenstockError, RequestTimeoutError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.registry.server.state import LogRecord, RegistryState

TOPIC = "_schemas"
WRITE_TIMEOUT_S = 30.0
POLL_MS = 200
_log = logger_named("penstock.registry")


class MemoryLog:
    """Keeps records in the state alone: for tests."""

    def __init__(self) -> None:
        self.state = RegistryState()
        self.lock = threading.RLock()

    def write(self, records: list[LogRecord]) -> None:
        """Change the state by records."""
        with self.lock:
            for key, value in records:
                self.state.apply(key, value)

    def close(self) -> None:
        """There is nothing to close."""


class TopicLog:
    """Keeps records in a topic, and the state as all records of the topic say."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        config: Mapping[str, object] | None = None,
        topic: str = TOPIC,
    ) -> None:
        """Create the topic where it is missing, and read it to its end.

        Raises:
            ConfigError: the topic has several partitions.
            KafkaError, NetworkError, RequestTimeoutError: the cluster refuses, or does not answer.
        """
        self.state = RegistryState()
        self.lock = threading.RLock()
        self._partition = TopicPartition(topic, 0)
        self._applied = 0
        self._news = threading.Condition(self.lock)
        self._is_closed = False
        self._failure: PenstockError | None = None
        _prepare(bootstrap_servers, config, topic)
        self._producer: Producer[bytes, bytes] = Producer(bootstrap_servers, config)
        reading = {**(config or {}), "auto_offset_reset": "earliest"}
        self._consumer: Consumer[bytes, bytes] = Consumer(bootstrap_servers, reading)
        self._consumer.assign([self._partition])
        self._consumer.seek_to_beginning(self._partition)
        end = self._consumer.end_offsets([self._partition])[self._partition]
        self._thread = threading.Thread(target=self._follow, name="penstock-registry-log", daemon=True)
        self._thread.start()
        self._wait_for(end)

    def write(self, records: list[LogRecord]) -> None:
        """Write records, and return when the state has them.

        Raises:
            KafkaError, NetworkError, RequestTimeoutError: they cannot be written, or not be read in time.
        """
        deliveries = [
            self._producer.send(
                self._partition.topic,
                None if value is None else json.dumps(value, separators=(",", ":")).encode(),
                key=json.dumps(key, separators=(",", ":")).encode(),
                partition=0,
            )
            for key, value in records
        ]
        offsets = [delivery.result(timeout=WRITE_TIMEOUT_S).offset for delivery in deliveries]
        if offsets:
            self._wait_for(offsets[-1] + 1)

    def close(self) -> None:
        """Stop following the topic."""
        with self._news:
            self._is_closed = True
        self._thread.join()
        self._consumer.close()
        self._producer.close()

    def _wait_for(self, offset: int) -> None:
        deadline = time.monotonic() + WRITE_TIMEOUT_S
        with self._news:
            while self._applied < offset:
                if self._failure is not None:
                    raise self._failure
                left = deadline - time.monotonic()
                if left <= 0:
                    raise RequestTimeoutError(
                        f"the registry has read topic {self._partition.topic} up to offset {self._applied}, "
                        f"not {offset}, in {WRITE_TIMEOUT_S:.0f} s"
                    )
                self._news.wait(left)

    def _follow(self) -> None:
        while not self._is_closed:
            try:
                records = self._consumer.poll(POLL_MS)
                position = self._consumer.position(self._partition)
            except PenstockError as error:
                _log.error("the registry cannot read topic %s: %s", self._partition.topic, error)
                with self._news:
                    self._failure = error
                    self._news.notify_all()
                time.sleep(POLL_MS / 1000)
                continue
            with self._news:
                self._failure = None
                for record in records:
                    self._apply(record.offset, record.key, record.value)
                self._applied = max(self._applied, position)
                self._news.notify_all()

    def _apply(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Change the state by a record. One that makes no sense is passed over, with a warning."""
        try:
            found: dict[str, Any] = json.loads(key or b"")
            self.state.apply(found, None if value is None else json.loads(value))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, PenstockError) as error:
            _log.warning(
                "offset %d of topic %s is no record of a registry: %r", offset, self._partition.topic, error
            )


def _prepare(bootstrap_servers: str | Sequence[str], config: Mapping[str, object] | None, topic: str) -> None:
    with Admin(bootstrap_servers, config) as admin:
        try:
            admin.create_topic(topic, 1, config={"cleanup.policy": "compact"})
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        (found,) = admin.describe_topics([topic])
        if len(found.partitions) != 1:
            raise ConfigError(f"topic {topic} has {len(found.partitions)} partitions: a registry needs one")
