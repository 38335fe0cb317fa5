"""Run one Python client on a cluster whose brokers die: ``python cluster_clients.py KIND SERVERS TOPIC``.

The client has a producer with acks=all, and a consumer group of two members that is named after the topic.
`cluster_accounts` describes the lines that the program prints and reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from typing import Any

EACH_S = 0.005
COMMON = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 500, "metadata_max_age_ms": 5_000}
"""Consumer options in the spelling of the Python libraries whose option names have underscores."""

lock = threading.Lock()


class State:
    sending = True
    reading = True
    has_failed = False


def fail(arguments: threading.ExceptHookArgs) -> None:
    """Record that a thread ended with an exception, so that the program exits with 1."""
    State.has_failed = True
    threading.__excepthook__(arguments)


def say(*words: object) -> None:
    with lock:
        print(*words, flush=True)


class Client:
    """Base class for one client library: it runs the producer and the group members on threads."""

    def __init__(self, servers: str, topic: str) -> None:
        self.servers = servers
        self.topic = topic

    def produce(self) -> int:
        """Produce while `State.sending` is true, and print each record's outcome.

        Return how many were sent.
        """
        raise NotImplementedError

    def consume(self) -> None:
        """Read records and commit their offsets while `State.reading` is true."""
        raise NotImplementedError

    def run(self) -> None:
        def produce() -> None:
            say("sent", self.produce())

        producer = threading.Thread(target=produce)
        members = [threading.Thread(target=self.consume) for _ in range(2)]
        for thread in (producer, *members):
            thread.start()
        sys.stdin.readline()
        State.sending = False
        producer.join()
        sys.stdin.readline()
        State.reading = False
        for member in members:
            member.join()
        sys.exit(State.has_failed)


class Penstock(Client):
    def produce(self) -> int:
        from penstock import Producer

        number = 0
        with Producer(self.servers, {"acks": "all", "enable.idempotence": True, "linger.ms": 1}) as producer:
            while State.sending:
                value = b"%d" % number
                report = producer.send(self.topic, value, key=value)
                report.add_done_callback(lambda done, number=number: self.answered(done, number))
                number += 1
                time.sleep(EACH_S)
            producer.flush()
        return number

    def answered(self, done: Any, number: int) -> None:
        error = done.exception()
        say("a", number) if error is None else say("e", number, error)

    def consume(self) -> None:
        from penstock import Consumer
        from penstock.errors import PenstockError

        options = {name.replace("_", "."): value for name, value in COMMON.items()}
        options |= {"group.id": self.topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        with Consumer(self.servers, options) as consumer:
            consumer.subscribe(self.topic)
            while State.reading:
                for record in consumer.poll(200):
                    say("r", int(record.value or b""))
                with contextlib.suppress(PenstockError):  # what is not committed comes again
                    consumer.commit()


class Librdkafka(Client):
    def produce(self) -> int:
        import confluent_kafka

        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.servers,
                "enable.idempotence": True,
                "linger.ms": 1,
                "log_level": 0,
                "topic.metadata.refresh.interval.ms": 5_000,
            }
        )
        number = 0
        while State.sending:
            value = b"%d" % number

            def delivered(error: object, message: object, number: int = number) -> None:
                say("a", number) if error is None else say("e", number, error)

            producer.produce(self.topic, value, key=value, on_delivery=delivered)
            producer.poll(EACH_S)
            number += 1
        producer.flush(60)
        return number

    def consume(self) -> None:
        import confluent_kafka

        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.topic,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": COMMON["session_timeout_ms"],
                "heartbeat.interval.ms": COMMON["heartbeat_interval_ms"],
                "log_level": 0,
            }
        )
        consumer.subscribe([self.topic])
        while State.reading:
            found = [each for each in consumer.consume(500, 0.2) if each.error() is None]
            for each in found:
                say("r", int(each.value() or b""))
            if found:
                with contextlib.suppress(confluent_kafka.KafkaException):  # what is not committed comes again
                    consumer.commit(asynchronous=False)
        consumer.close()


class KafkaPython(Client):
    def produce(self) -> int:
        import kafka

        producer = kafka.KafkaProducer(
            bootstrap_servers=self.servers.split(","),
            acks="all",
            enable_idempotence=True,
            metadata_max_age_ms=5_000,
        )
        number = 0
        while State.sending:
            value = b"%d" % number
            report = producer.send(self.topic, value, key=value)
            report.add_callback(lambda _, number=number: say("a", number))
            report.add_errback(lambda error, number=number: say("e", number, error))
            number += 1
            time.sleep(EACH_S)
        producer.flush(60)
        producer.close()
        return number

    def consume(self) -> None:
        import kafka
        from kafka.errors import KafkaError

        consumer = kafka.KafkaConsumer(
            self.topic,
            bootstrap_servers=self.servers.split(","),
            group_id=self.topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **COMMON,
        )
        while State.reading:
            found = []
            try:
                found = [each for part in consumer.poll(200).values() for each in part]
            except KafkaError as error:
                # It looks for the coordinator by metadata from any broker, and raises what that one's refusal
                # is, as an error to be tried again, from `poll`.
                if not error.retriable:
                    raise
            for each in found:
                say("r", int(each.value))
            if found:
                with contextlib.suppress(KafkaError):  # what is not committed comes again
                    consumer.commit()
        consumer.close()


class Aiokafka(Client):
    def produce(self) -> int:
        return asyncio.run(self._produce())

    async def _produce(self) -> int:
        import aiokafka

        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.servers, enable_idempotence=True, metadata_max_age_ms=5_000
        )
        await producer.start()
        number = 0
        try:
            while State.sending:
                value = b"%d" % number
                try:
                    await producer.send_and_wait(self.topic, value, key=value)
                    say("a", number)
                except aiokafka.errors.KafkaError as error:
                    say("e", number, error)
                number += 1
                await asyncio.sleep(EACH_S)
        finally:
            await producer.stop()
        return number

    def consume(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        import aiokafka

        consumer = aiokafka.AIOKafkaConsumer(
            self.topic,
            bootstrap_servers=self.servers,
            group_id=self.topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **COMMON,
        )
        await consumer.start()
        while State.reading:
            found = [each for part in (await consumer.getmany(timeout_ms=200)).values() for each in part]
            for each in found:
                say("r", int(each.value))
            if found:
                with contextlib.suppress(aiokafka.errors.KafkaError):  # what is not committed comes again
                    await consumer.commit()
        await consumer.stop()


KINDS = {"penstock": Penstock, "librdkafka": Librdkafka, "kafka-python": KafkaPython, "aiokafka": Aiokafka}

if __name__ == "__main__":
    threading.excepthook = fail
    KINDS[sys.argv[1]](sys.argv[2], sys.argv[3]).run()
