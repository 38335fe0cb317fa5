"""The broker is killed under load: acknowledged records are stored once, in order and without gaps."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from broker.histories.checker import History, Write, violations
from compat.peers import PATIENCE_S, free_ports

pytestmark = pytest.mark.compat

PARTITIONS = 3
SETTINGS = {
    "log.flush.interval.messages": "1",
    "num.partitions": str(PARTITIONS),
    # Kills also meet rolling, and indexes of several segments.
    "log.segment.bytes": "200000",
    "log.index.interval.bytes": "500",
}


class Victim:
    """A broker process that is killed and comes back on the same port, with the same directory."""

    def __init__(self, directory: Path) -> None:
        [self.port] = free_ports(1)
        self._command = [sys.executable, "-m", "penstock.broker", "--port", str(self.port)]
        self._command += ["--data-dir", str(directory)]
        for name, value in SETTINGS.items():
            self._command += ["--config", f"{name}={value}"]
        self.start()

    def start(self) -> None:
        self._popen = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._popen.stdout is not None
        assert self._popen.stdout.readline().startswith("penstock broker")

    def end(self, number: int = signal.SIGKILL) -> None:
        self._popen.send_signal(number)
        with self._popen:
            self._popen.wait(PATIENCE_S)


class Load:
    """Idempotent producers that retry while the broker restarts, and a history of what they sent."""

    def __init__(self, port: int, producers: int = 2) -> None:
        self.history = History()
        self.acknowledged = 0
        self.failures: list[str] = []
        self._port = port
        self._number = 0
        self._producers = [Producer(self._settings()) for _ in range(producers)]

    def _settings(self) -> dict[str, str | int | float | bool]:
        return {
            "bootstrap.servers": f"127.0.0.1:{self._port}",
            "enable.idempotence": True,
            "linger.ms": 2,
            "batch.num.messages": 50,
            "message.timeout.ms": 120_000,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 10,
            "retry.backoff.max.ms": 100,
            "log_level": 0,
        }

    def run(self, seconds: float) -> None:
        """Write records for `seconds`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for index, producer in enumerate(self._producers):
                if len(producer) < 1000:
                    for _ in range(20):
                        self._write(f"producer {index}", producer)
                producer.poll(0.001)

    def _write(self, name: str, producer: Producer) -> None:
        self._number += 1
        partition = self._number % PARTITIONS
        write = Write(name, ("t", partition), b"%d %s" % (self._number, b"v" * (self._number % 300)))
        self.history.writes.append(write)

        def delivered(error: object, message: Message) -> None:
            if error is None:
                write.offset = message.offset()
                self.acknowledged += 1
            else:
                self.failures.append(str(error))

        producer.produce("t", write.value, partition=partition, on_delivery=delivered)

    def finish(self) -> None:
        """Wait until all records are acknowledged."""
        for producer in self._producers:
            assert producer.flush(PATIENCE_S) == 0

    def read_back(self) -> None:
        """Read every partition completely, and add the records to the history."""
        consumer = Consumer(
            {
                "bootstrap.servers": f"127.0.0.1:{self._port}",
                "group.id": "checker",
                "enable.auto.commit": False,
                "check.crcs": True,
            }
        )
        for partition in range(PARTITIONS):
            place = TopicPartition("t", partition, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=PATIENCE_S)
            consumer.assign([place])
            log = self.history.logs["t", partition] = []
            while not log or log[-1][0] + 1 < end:
                log += [(found.offset(), found.value()) for found in consumer.consume(1000, 0.1)]
        consumer.close()


def kill_again_and_again(directory: Path, rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    victim = Victim(directory)
    load = Load(victim.port)
    try:
        for _ in range(rounds):
            before = load.acknowledged
            while load.acknowledged == before:
                load.run(0.02)
            load.run(rng.uniform(0, 0.3))
            victim.end()
            load.run(rng.uniform(0, 0.05))
            victim.start()
        load.finish()
        load.read_back()
    finally:
        victim.end()
    assert load.failures == []
    assert violations(load.history) == []
    assert load.acknowledged == len(load.history.writes) > 100 * rounds
    assert sum(map(len, load.history.logs.values())) == load.acknowledged


def test_ten_kills(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, 10, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_kills(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, 100, seed=2)
