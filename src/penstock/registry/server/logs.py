"""Stores the records of a registry in memory, or in the topic ``_schemas`` of any Kafka.

The topic has the format of Confluent's registry: one partition, compacted, keys and values in JSON. A
registry reads the topic from the beginning, and then all records that other registries write.

If several registries share the topic, the elected one writes in transactions with a shared transactional id.
Initializing the id fences the previously elected registry, so that two registries never write at the same
time.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.client.blocking.admin import Admin
from penstock.client.blocking.consumer import Consumer
from penstock.client.blocking.producer import Producer
from penstock.common.logs import logger_named
from penstock.errors import (
    ConfigError,
    KafkaError,
    PenstockError,
    ProducerFencedError,
    RequestTimeoutError,
    TransactionError,
    UnsupportedVersionError,
)
from penstock.model import LATEST, TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.registry.server.state import LogRecord, RegistryState, no_leader

TOPIC = "_schemas"
WRITE_TIMEOUT_S = 30.0
POLL_MS = 200
CATCH_UP_TIMEOUT_S = 5.0
"""The longest time, in seconds, that `catch_up` waits until the topic is read to its end."""
TRANSACTION_TIMEOUT_MS = 15_000
CLOSE_TIMEOUT_S = 2.0
_log = logger_named("penstock.registry")


class RegistryMemoryLog:
    """A log for tests, which applies records to the state, and stores them nowhere else."""

    def __init__(self) -> None:
        self.state = RegistryState()
        self.lock = threading.RLock()

    def ready(self) -> int:
        """Return 0, the only term, since no other registry has this state."""
        return 0

    def write(self, records: list[LogRecord], term: int) -> None:
        """Apply records to the state."""
        with self.lock:
            for key, value in records:
                self.state.apply(key, value)

    def catch_up(self) -> None:
        """Do nothing, since the state is always current."""

    def close(self) -> None:
        """Do nothing, since nothing is open."""


class TopicLog:
    """A log that stores records in a topic; its state reflects all records of the topic.

    A term is a period in which no other registry writes. Records of a request of one term are not written in
    the next. Without a `transactional_id`, no other registry may write at the same time. The topic is then
    read to its end before each request, since other registries may have written before.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        config: Mapping[str, object] | None = None,
        topic: str = TOPIC,
        transactional_id: str | None = None,
    ) -> None:
        """Create the topic if it is missing, and read it to its end.

        With a `transactional_id`, nothing is written before `lead` is called.

        Raises:
            ConfigError: the topic has several partitions.
            KafkaError, NetworkError, RequestTimeoutError: the cluster refuses a request, or does not answer.
        """
        self.state = RegistryState()
        self.lock = threading.RLock()
        self.on_fenced: Callable[[], None] = lambda: None
        """A function that is called when another registry has taken over the right to write."""
        self._servers, self._config = bootstrap_servers, {**(config or {})}
        self._partition = TopicPartition(topic, 0)
        self._transactional_id = transactional_id
        self._applied = 0
        self._news = threading.Condition(self.lock)
        self._is_closed = False
        self._failure: PenstockError | None = None
        self._writing = threading.Lock()
        self._leads = transactional_id is None
        self._term = 0
        self._is_doubtful = False
        """True if the outcome of the last write is unknown: the topic may have its records now or later."""
        _prepare(bootstrap_servers, config, topic)
        self._admin = Admin(bootstrap_servers, config, default_api_timeout_ms=CATCH_UP_TIMEOUT_S * 1000)
        self._producer: Producer[bytes, bytes] | None = None
        if transactional_id is None:
            self._producer = Producer(bootstrap_servers, config)
        reading = {**self._config, "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        self._consumer: Consumer[bytes, bytes] = Consumer(bootstrap_servers, reading)
        self._consumer.assign([self._partition])
        self._consumer.seek_to_beginning(self._partition)
        self._thread = threading.Thread(target=self._follow, name="penstock-registry-log", daemon=True)
        self._thread.start()
        self._wait_for(self._end())

    def lead(self) -> None:
        """Begin a term: fence the registry that wrote before, and read all that it has written.

        Raises:
            KafkaError, TransactionError, NetworkError, RequestTimeoutError: the cluster refuses a request,
                or does not answer in time. The call can be repeated.
        """
        with self._writing:
            self._leads = True
            self._begin_term()

    def resign(self) -> None:
        """End the term. Returns when no write is in progress."""
        with self._writing:
            if self._transactional_id is not None:
                self._leads = False
                self._stop_producer()

    def ready(self) -> int:
        """Wait until the state has all records of the topic, and return the current term.

        Raises:
            RefusedError: this registry is not elected.
            PenstockError: as in `lead`, if the outcome of the last write is unknown.
        """
        with self._writing:
            if not self._leads:
                raise no_leader()
            if self._is_doubtful or self._producer is None:
                self._begin_term()
            elif self._transactional_id is None:
                self._wait_for(self._end())
            return self._term

    def write(self, records: list[LogRecord], term: int) -> None:
        """Write records that a request of term `term` produced; return when they are read back.

        Raises:
            RefusedError: the term has ended, or another registry has fenced this one.
            KafkaError, TransactionError, NetworkError, RequestTimeoutError: the records cannot be written,
                or not be read back in time. The topic may have them nevertheless.
        """
        if not records:
            return
        with self._writing:
            if self._producer is None or term != self._term:
                raise no_leader()
            self._is_doubtful = True
            try:
                with self._producer.at_once():
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
            except TransactionError as error:
                if _is_fenced(self._producer, error):
                    self._leads = False
                    self._stop_producer()
                    self.on_fenced()
                    raise no_leader() from error
                raise
            self._wait_for(offsets[-1] + 1)
            self._is_doubtful = False

    def catch_up(self) -> None:
        """Wait until the state has all records that the topic has at the time of the call.

        Raises:
            KafkaError, NetworkError, RequestTimeoutError: the topic cannot be read, or not in time.
        """
        self._wait_for(self._end(), CATCH_UP_TIMEOUT_S)

    def close(self) -> None:
        """Stop reading the topic, and close the connections."""
        with self._news:
            self._is_closed = True
        self._thread.join()
        self._consumer.close()
        with self._writing:
            self._stop_producer()
        self._admin.close()

    def _begin_term(self) -> None:
        if self._transactional_id is not None:
            self._stop_producer()
            self._producer = self._fencing_producer(self._transactional_id)
        self._wait_for(self._end())
        self._term += 1
        self._is_doubtful = False

    def _fencing_producer(self, transactional_id: str) -> Producer[bytes, bytes]:
        made: Producer[bytes, bytes] = Producer(
            self._servers,
            self._config,
            transactional_id=transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            max_block_ms=WRITE_TIMEOUT_S * 1000,
        )
        try:
            made.init_transactions()
        except UnsupportedVersionError:
            made.close(timeout=0)
            _log.warning("brokers before Kafka 0.11 do not fence an elected registry that hangs")
            return Producer(self._servers, self._config)
        except BaseException:
            made.close(timeout=0)
            raise
        return made

    def _stop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            try:
                producer.close(timeout=CLOSE_TIMEOUT_S)
            except PenstockError as error:
                _log.info("the producer of the registry was not closed in order: %s", error)

    def _end(self) -> int:
        found = self._admin.list_offsets({self._partition: LATEST}, isolation="read_committed")
        end = found[self._partition]
        return 0 if end is None else end.offset

    def _wait_for(self, offset: int, timeout_s: float = WRITE_TIMEOUT_S) -> None:
        deadline = time.monotonic() + timeout_s
        with self._news:
            while self._applied < offset:
                if self._failure is not None:
                    raise self._failure
                left = deadline - time.monotonic()
                if left <= 0:
                    raise RequestTimeoutError(
                        f"the registry has read topic {self._partition.topic} up to offset {self._applied}, "
                        f"not {offset}, in {timeout_s:.0f} s"
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
        """Apply a record to the state. Log a warning for a malformed record, and ignore it."""
        try:
            found: dict[str, Any] = json.loads(key or b"")
            self.state.apply(found, None if value is None else json.loads(value))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, PenstockError) as error:
            _log.warning(
                "offset %d of topic %s is no record of a registry: %r", offset, self._partition.topic, error
            )


def _is_fenced(producer: Producer[bytes, bytes], error: TransactionError) -> bool:
    """Return True if another producer now uses the transactional id. The check aborts the transaction."""
    if isinstance(error, ProducerFencedError):
        return True
    try:
        producer.abort_transaction()
    except ProducerFencedError:
        return True
    except PenstockError:
        pass
    return False


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
