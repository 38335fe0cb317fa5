"""Producers and readers that work while faults are injected, and the history that they record."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from broker.histories.checker import History, Place, Read, Write
from penstock import Consumer, Producer, TopicPartition
from penstock.errors import KafkaError, PenstockError
from penstock.testing import KafkaBroker

Trouble = Callable[[KafkaBroker, random.Random], None]


def refuse(broker: KafkaBroker, rng: random.Random) -> None:
    error = rng.choice(["NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"])
    broker.faults.fail("Produce", error=error, times=rng.randint(1, 3), applied=rng.random() < 0.5)


def lose(broker: KafkaBroker, rng: random.Random) -> None:
    broker.faults.drop(rng.choice(["Produce", "Fetch"]), times=1, applied=rng.random() < 0.5)


def hang_up(broker: KafkaBroker, rng: random.Random) -> None:
    api = rng.choice(["Produce", "Fetch", "Metadata"])
    broker.faults.close(api, times=rng.randint(1, 2), applied=rng.random() < 0.5, reset=rng.random() < 0.5)


def damage(broker: KafkaBroker, rng: random.Random) -> None:
    if rng.random() < 0.5:
        broker.faults.corrupt("Fetch", "records", times=1)
    else:
        broker.faults.corrupt(rng.choice(["Produce", "Fetch"]), "cut", times=1)


def dawdle(broker: KafkaBroker, rng: random.Random) -> None:
    broker.faults.delay(None, seconds=0.05, times=rng.randint(1, 5), applied=rng.random() < 0.5)


def overtake(broker: KafkaBroker, rng: random.Random) -> None:
    broker.faults.reorder("Produce", times=rng.randint(1, 2), seconds=0.02)


def pause(broker: KafkaBroker, rng: random.Random) -> None:
    with broker.paused():
        time.sleep(0.05)


def kill(broker: KafkaBroker, rng: random.Random) -> None:
    broker.restart(kill=True)


TROUBLES: list[Trouble] = [refuse, lose, hang_up, damage, dawdle, overtake, pause, kill]


class Chaos:
    """A run of producers and readers on one broker during a number of injected faults."""

    def __init__(self, broker: KafkaBroker, seed: int, *, producers: int = 3, partitions: int = 2) -> None:
        self._broker = broker
        self._rng = random.Random(seed)
        self._topic = broker.create_topic(partitions=partitions)
        self._partitions = partitions
        self._producers = producers
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._failures: list[BaseException] = []
        self.history = History()

    def run(self, troubles: int) -> History:
        """Run all clients while faults follow each other; return the history of their writes and reads."""
        threads = [
            threading.Thread(target=self._guarded, args=(self._produce, f"producer {n}"))
            for n in range(self._producers)
        ]
        threads += [
            threading.Thread(target=self._guarded, args=(self._read, f"reader {n}")) for n in range(2)
        ]
        for thread in threads:
            thread.start()
        for _ in range(troubles):
            time.sleep(self._rng.uniform(0.02, 0.1))
            self._rng.choice(TROUBLES)(self._broker, self._rng)
        self._broker.faults.clear()
        time.sleep(0.1)
        self._stopping.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        if self._failures:
            raise self._failures[0]
        for index in range(self._partitions):
            self.history.logs[self._topic, index] = self._whole(index)
        return self.history

    def _guarded(self, work: Callable[[str], None], name: str) -> None:
        try:
            work(name)
        except BaseException as error:
            self._failures.append(error)

    def _produce(self, name: str) -> None:
        servers = self._broker.bootstrap_servers
        number = 0
        settings = {
            "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 5,
            "request.timeout.ms": 400,
            "linger.ms": 1,
        }
        with Producer(bootstrap_servers=servers, config={**settings, "enable.idempotence": True}) as producer:
            while not self._stopping.is_set():
                pending = []
                for _ in range(20):
                    index = number % self._partitions
                    write = Write(name, (self._topic, index), f"{name} {number}".encode())
                    number += 1
                    with self._lock:
                        self.history.writes.append(write)
                    pending.append((write, producer.send(self._topic, write.value, partition=index)))
                for write, sent in pending:
                    try:
                        write.offset = sent.result(timeout=60).offset
                    except KafkaError as error:
                        # Retriable ones leave open whether the record is there.
                        write.refused = not error.retriable
                    except PenstockError:
                        continue

    def _read(self, name: str) -> None:
        settings = {
            "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 5,
            "request.timeout.ms": 1000,
            "check.crcs": True,
        }
        places = [TopicPartition(self._topic, index) for index in range(self._partitions)]
        position: dict[Place, int] = {}
        while not self._stopping.is_set():
            with Consumer(bootstrap_servers=self._broker.bootstrap_servers, config=settings) as consumer:
                consumer.assign(places)
                for place in places:
                    consumer.seek(place, position.get((place.topic, place.partition), 0))
                try:
                    while not self._stopping.is_set():
                        for record in consumer.poll(timeout_ms=100):
                            place = (record.topic, record.partition)
                            position[place] = record.offset + 1
                            with self._lock:
                                self.history.reads.append(
                                    Read(name, place, record.offset, record.value or b"")
                                )
                except PenstockError:
                    # Damaged records and such: begin again where it was.
                    continue

    def _whole(self, index: int) -> list[tuple[int, bytes]]:
        place = TopicPartition(self._topic, index)
        with Consumer(bootstrap_servers=self._broker.bootstrap_servers) as consumer:
            consumer.assign([place])
            consumer.seek(place, 0)
            end = consumer.end_offsets([place])[place]
            log: list[tuple[int, bytes]] = []
            while not log or log[-1][0] + 1 < end:
                log += [(record.offset, record.value or b"") for record in consumer.poll(timeout_ms=1000)]
        return log
