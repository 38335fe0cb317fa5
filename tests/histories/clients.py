"""One interface to the client libraries that the test histories use.

The libraries are Penstock, confluent-kafka, kafka-python, aiokafka and Java's kafka-clients. A `Client` is
one producer and one consumer, used by one thread. `send` returns a function that waits for the outcome and
returns the offset. Errors are the library's own exceptions.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import socket
import subprocess
import threading
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from compat.peers import HERE, java_command, maven_classpath

DELIVERY_S = 15.0
TRANSACTION_S = 8.0
"""The transaction timeout in seconds, after which the broker aborts an open transaction."""


class Row(NamedTuple):
    """A record as a client's consumer returned it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Client(Protocol):
    """A producer and a consumer of committed records; the producer is transactional if it has an id."""

    def begin(self) -> None:
        """Begin a transaction."""

    def send(self, topic: str, partition: int, value: bytes) -> Callable[[], int]:
        """Send a value; return a function that waits for the acknowledgement and returns the offset."""

    def commit(self) -> None:
        """Commit the transaction."""

    def abort(self) -> None:
        """Abort the transaction."""

    def seek(self, topic: str, positions: dict[int, int]) -> None:
        """Assign these partitions to the consumer, starting at these offsets."""

    def poll(self, wait_s: float) -> list[Row]:
        """Return the records that the consumer gets within `wait_s` seconds."""

    def close(self) -> None:
        """Close all connections, even while a transaction is open."""


class Penstock:
    """Penstock's blocking producer and consumer."""

    def __init__(self, servers: str, transactional_id: str | None) -> None:
        from penstock import Consumer, Producer

        settings: dict[str, Any] = {"linger_ms": 1, "retry_backoff_ms": 20, "reconnect_backoff_ms": 20}
        settings |= {"enable_idempotence": True}  # by default a broker that seems too old goes without
        settings |= {"delivery_timeout_ms": int(DELIVERY_S * 1000), "request_timeout_ms": 3000}
        if transactional_id is not None:
            settings |= {"transactional_id": transactional_id}
            settings |= {"transaction_timeout_ms": int(TRANSACTION_S * 1000), "max_block_ms": 20_000}
        self._producer = Producer(servers, **settings)
        self._consumer = Consumer(servers, isolation_level="read_committed", reconnect_backoff_ms=20)
        if transactional_id is not None:
            self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: bytes) -> Callable[[], int]:
        delivery = self._producer.send(topic, value, partition=partition)
        return lambda: int(delivery.result(2 * DELIVERY_S).offset)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def seek(self, topic: str, positions: dict[int, int]) -> None:
        from penstock import TopicPartition

        places = {TopicPartition(topic, partition): offset for partition, offset in positions.items()}
        self._consumer.assign(list(places))
        for place, offset in places.items():
            self._consumer.seek(place, offset)

    def poll(self, wait_s: float) -> list[Row]:
        found = self._consumer.poll(timeout_ms=int(wait_s * 1000))
        return [Row(each.topic, each.partition, each.offset, each.key, each.value) for each in found]

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._producer.close(1)
        self._consumer.close()


class Confluent:
    """The producer and the consumer of confluent-kafka, which uses librdkafka."""

    def __init__(self, servers: str, transactional_id: str | None) -> None:
        from confluent_kafka import Consumer, Producer

        common: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0, "retry.backoff.ms": 20}
        common |= {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 500, "socket.timeout.ms": 3000}
        mine = {**common, "enable.idempotence": True, "linger.ms": 1}
        mine["message.timeout.ms"] = int(DELIVERY_S * 1000)
        self._transactional = transactional_id is not None
        if transactional_id is not None:
            mine |= {
                "transactional.id": transactional_id,
                "transaction.timeout.ms": int(TRANSACTION_S * 1000),
            }
            mine["message.timeout.ms"] = int(TRANSACTION_S * 1000)
        self._producer = Producer(mine, logger=_quiet())
        theirs = {**common, "group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        self._consumer = Consumer({**theirs, "isolation.level": "read_committed"}, logger=_quiet())
        if self._transactional:
            self._producer.init_transactions(20)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: bytes) -> Callable[[], int]:
        from confluent_kafka import KafkaException

        done: list[tuple[Any, Any]] = []
        self._producer.produce(topic, value, partition=partition, on_delivery=lambda *both: done.append(both))

        def wait() -> int:
            self._producer.flush(2 * DELIVERY_S)
            if not done:
                raise TimeoutError("no report of the delivery")
            error, message = done[0]
            if error is not None:
                raise KafkaException(error)
            return int(message.offset())

        return wait

    def commit(self) -> None:
        self._producer.commit_transaction(20)

    def abort(self) -> None:
        self._producer.abort_transaction(20)

    def seek(self, topic: str, positions: dict[int, int]) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.assign([TopicPartition(topic, number, offset) for number, offset in positions.items()])

    def poll(self, wait_s: float) -> list[Row]:
        found = self._consumer.consume(500, wait_s)
        good = [each for each in found if each.error() is None]
        return [Row(each.topic(), each.partition(), each.offset(), each.key(), each.value()) for each in good]

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._producer.purge()
            self._producer.flush(1)
        self._consumer.close()


class KafkaPython:
    """The producer and the consumer of kafka-python."""

    def __init__(self, servers: str, transactional_id: str | None) -> None:
        from kafka import KafkaConsumer, KafkaProducer

        common: dict[str, Any] = {"bootstrap_servers": servers.split(","), "retry_backoff_ms": 20}
        common |= {"reconnect_backoff_ms": 20, "metadata_max_age_ms": 2000}
        mine: dict[str, Any] = {**common, "enable_idempotence": True, "request_timeout_ms": 3000}
        mine |= {"delivery_timeout_ms": int(DELIVERY_S * 1000), "max_block_ms": 20_000}
        if transactional_id is not None:
            mine |= {
                "transactional_id": transactional_id,
                "transaction_timeout_ms": int(TRANSACTION_S * 1000),
            }
        self._producer = KafkaProducer(**mine)
        self._consumer = KafkaConsumer(
            **common, group_id=None, isolation_level="read_committed", enable_auto_commit=False
        )
        if transactional_id is not None:
            self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: bytes) -> Callable[[], int]:
        sent = self._producer.send(topic, value, partition=partition)
        return lambda: int(sent.get(2 * DELIVERY_S).offset)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def seek(self, topic: str, positions: dict[int, int]) -> None:
        from kafka import TopicPartition

        places = {TopicPartition(topic, number): offset for number, offset in positions.items()}
        self._consumer.assign(list(places))
        for place, offset in places.items():
            self._consumer.seek(place, offset)

    def poll(self, wait_s: float) -> list[Row]:
        found = self._consumer.poll(int(wait_s * 1000))
        rows = [each for some in found.values() for each in some]
        return [Row(each.topic, each.partition, each.offset, each.key, each.value) for each in rows]

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._producer.close(timeout=1)
        self._consumer.close()


class Aiokafka:
    """The producer and the consumer of aiokafka; their event loop runs only during a call."""

    def __init__(self, servers: str, transactional_id: str | None) -> None:
        self._loop = asyncio.new_event_loop()
        self._call(self._start(servers, transactional_id))

    async def _start(self, servers: str, transactional_id: str | None) -> None:
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

        common: dict[str, Any] = {"bootstrap_servers": servers, "retry_backoff_ms": 20}
        mine: dict[str, Any] = {**common, "enable_idempotence": True, "request_timeout_ms": 5000}
        if transactional_id is not None:
            mine |= {
                "transactional_id": transactional_id,
                "transaction_timeout_ms": int(TRANSACTION_S * 1000),
            }
        self._producer = AIOKafkaProducer(**mine)
        self._consumer = AIOKafkaConsumer(
            **common, group_id=None, isolation_level="read_committed", enable_auto_commit=False
        )
        await self._producer.start()
        await self._consumer.start()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(work, 2 * DELIVERY_S))

    def begin(self) -> None:
        self._call(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, value: bytes) -> Callable[[], int]:
        sent = self._call(self._producer.send(topic, value, partition=partition))

        async def wait() -> int:
            return int((await sent).offset)

        return lambda: self._call(wait())

    def commit(self) -> None:
        self._call(self._producer.commit_transaction())

    def abort(self) -> None:
        self._call(self._producer.abort_transaction())

    def seek(self, topic: str, positions: dict[int, int]) -> None:
        from aiokafka import TopicPartition

        async def seek() -> None:
            places = {TopicPartition(topic, number): offset for number, offset in positions.items()}
            self._consumer.assign(list(places))
            for place, offset in places.items():
                self._consumer.seek(place, offset)

        self._call(seek())

    def poll(self, wait_s: float) -> list[Row]:
        found = self._call(self._consumer.getmany(timeout_ms=int(wait_s * 1000)))
        rows = [each for some in found.values() for each in some]
        return [Row(each.topic, each.partition, each.offset, each.key, each.value) for each in rows]

    def close(self) -> None:
        for each in (self._producer, self._consumer):
            with contextlib.suppress(Exception):
                self._loop.run_until_complete(asyncio.wait_for(each.stop(), 2))
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
            with contextlib.suppress(BaseException):
                self._loop.run_until_complete(task)
        self._loop.close()


class Java:
    """Java's producer and consumer, in one JVM for all clients of this process.

    The JVM's program (`java/histories`) takes commands as lines of text.
    """

    def __init__(self, servers: str, transactional_id: str | None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", _java_port()), timeout=4 * DELIVERY_S)
        self._lines = self._socket.makefile("rw", encoding="utf-8", newline="\n")
        times = (int(TRANSACTION_S * 1000), int(DELIVERY_S * 1000))
        try:
            self._ask("open", servers, transactional_id or "", *times)
        except BaseException:
            self._socket.close()
            raise

    def _ask(self, *words: object) -> list[str]:
        self._lines.write("\t".join(map(str, words)) + "\n")
        self._lines.flush()
        verdict, *found = self._lines.readline().rstrip("\n").split("\t")
        if verdict != "ok":
            raise RuntimeError(" ".join(found) or "the JVM has ended")
        return found

    def begin(self) -> None:
        self._ask("begin")

    def send(self, topic: str, partition: int, value: bytes) -> Callable[[], int]:
        (number,) = self._ask("send", topic, partition, value.decode())
        return lambda: int(self._ask("wait", number)[0])

    def commit(self) -> None:
        self._ask("commit")

    def abort(self) -> None:
        self._ask("abort")

    def seek(self, topic: str, positions: dict[int, int]) -> None:
        self._ask("seek", topic, *(f"{partition} {offset}" for partition, offset in positions.items()))

    def poll(self, wait_s: float) -> list[Row]:
        rows = []
        for each in self._ask("poll", int(wait_s * 1000)):
            topic, partition, offset, value = each.split(" ")
            rows.append(Row(topic, int(partition), int(offset), None, value.encode()))
        return rows

    def close(self) -> None:
        with self._socket:
            self._ask("close")


_starting = threading.Lock()


def _java_port() -> int:
    with _starting:  # all the workers of a history begin at once
        return _start_java()


@functools.cache
def _start_java() -> int:
    """Start the JVM, which is killed when this process ends; return its port."""
    command = java_command(
        maven_classpath("kafka-4.3.0"), HERE / "java" / "histories" / "HistoryClients.java"
    )
    quiet = subprocess.DEVNULL  # that brokers are away is the point
    jvm = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, text=True)
    atexit.register(jvm.kill)
    assert jvm.stdout is not None
    return int(jvm.stdout.readline())


def _quiet() -> Any:
    import logging

    logger = logging.getLogger("histories.confluent")
    logger.setLevel(logging.CRITICAL)
    return logger


CLIENTS: dict[str, Callable[[str, str | None], Client]] = {
    "penstock": Penstock,
    "confluent-kafka": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
    "kafka-clients": Java,
}
