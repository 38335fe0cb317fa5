"""Tests of three registries that share a topic and are killed, paused and restarted during registrations.

Every acknowledged schema is at every registry under its id, and no id has two schemas.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from free_ports import free_ports
from penstock import Broker, Consumer
from penstock.errors import PenstockError
from penstock.model import TopicPartition
from penstock.registry import RegistryClient, RegistryError, Schema

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1_800)]

BLOWS = int(os.environ.get("REGISTRY_KILLS", "20"))
SESSION_MS = 1_500
HERE = "127.0.0.1"


def schema(number: int) -> Schema:
    return Schema(json.dumps({"type": "fixed", "name": "f", "size": number}))


class Instance:
    """One registry in a process of its own, which tests can kill, pause and restart."""

    def __init__(self, servers: str, port: int, log: Path) -> None:
        self.url = f"http://{HERE}:{port}"
        self._log = log
        words = ["registry", "run", "-b", servers, "--port", str(port), "--advertised", HERE]
        self._command = [sys.executable, "-m", "penstock", *words, "--session-timeout-ms", str(SESSION_MS)]
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            return subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def stop(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait(60)

    def restart(self) -> None:
        self.process = self._started()

    def pause(self, seconds: float) -> None:
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)


class Ledger:
    """The ids of acknowledged registrations, and the errors of others."""

    def __init__(self) -> None:
        self.ids: dict[tuple[str, int], set[int]] = {}
        self.refused = 0
        self.codes: set[int] = set()
        self.lock = threading.Lock()


def registering(urls: list[str], seed: int, ledger: Ledger, until: threading.Event) -> None:
    """Register random schemas, some of them at several registries at once; record the results in `ledger`."""
    dice = random.Random(seed)
    while not until.is_set():
        subject, number = f"s{dice.randrange(5)}", dice.randrange(1, 4_000)
        try:
            with RegistryClient({"url": dice.choice(urls), "timeout": 15}) as client:
                found = client.register(subject, schema(number))
        except PenstockError as error:
            with ledger.lock:
                ledger.refused += 1
                if isinstance(error, RegistryError):
                    ledger.codes.add(error.code)
            time.sleep(0.05)
            continue
        with ledger.lock:
            ledger.ids.setdefault((subject, number), set()).add(found)


def answers(url: str) -> None:
    """Wait until a restarted registry answers read requests."""
    deadline = time.monotonic() + 90
    while True:
        try:
            with RegistryClient({"url": url, "timeout": 15}) as client:
                client.subjects()
            return
        except PenstockError:
            assert time.monotonic() < deadline, f"{url} does not come back"
            time.sleep(0.2)


def settled(url: str) -> RegistryClient:
    """Wait until a registry answers writes again, and return a client of it."""
    deadline = time.monotonic() + 90
    while True:
        client = RegistryClient({"url": url, "timeout": 15})
        try:
            client.register("at-the-end", schema(5_000))
            return client
        except PenstockError:
            client.close()
            assert time.monotonic() < deadline, f"{url} does not come back"
            time.sleep(0.2)


def records(servers: str) -> list[dict[str, Any]]:
    """Return the values of all schema records in the topic, oldest first."""
    found = []
    with Consumer(servers, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        partition = TopicPartition("_schemas", 0)
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        while consumer.position(partition) < end:
            found += [
                json.loads(record.value)
                for record in consumer.poll(1_000)
                if json.loads(record.key)["keytype"] == "SCHEMA"
            ]
    return found


@pytest.mark.parametrize("seed", [int(os.environ.get("REGISTRY_KILLS_SEED", "1"))])
def test_no_schema_is_lost_and_no_id_is_given_twice(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    settings = {"group.min.session.timeout.ms": "500"}
    with Broker(config=settings) as broker:
        servers = broker.bootstrap_servers
        instances = [
            Instance(servers, port, tmp_path / f"{number}.log") for number, port in enumerate(free_ports(3))
        ]
        urls = [each.url for each in instances]
        ledger, until = Ledger(), threading.Event()
        threads = [
            threading.Thread(target=registering, args=(urls, seed * 100 + number, ledger, until))
            for number in range(3)
        ]
        try:
            for url in urls:
                with settled(url) as client:
                    client.set_compatibility("NONE")
            for thread in threads:
                thread.start()
            for _ in range(BLOWS):
                time.sleep(dice.uniform(0.1, 2))
                chosen = dice.choice(instances)
                kind = dice.choice(["kill", "kill", "end", "pause", "pause"])
                if kind == "pause":
                    chosen.pause(dice.uniform(0.2, 3 * SESSION_MS / 1000))
                    continue
                chosen.stop(signal.SIGKILL if kind == "kill" else signal.SIGTERM)
                time.sleep(dice.uniform(0, 2))
                chosen.restart()
                answers(chosen.url)
            until.set()
            for thread in threads:
                thread.join()
            clients = [settled(url) for url in urls]
            by_id: dict[int, str] = {}
            for value in records(servers):
                assert by_id.setdefault(value["id"], value["schema"]) == value["schema"], value
            assert len(set(by_id.values())) == len(by_id)
            assert len(ledger.ids) > BLOWS, f"{ledger.refused} writes refused"
            assert ledger.codes <= {50001, 50003, 50004}
            for (subject, number), ids in ledger.ids.items():
                (schema_id,) = ids
                for client in clients:
                    assert json.loads(client.schema_by_id(schema_id).text) == json.loads(schema(number).text)
                    assert client.lookup(subject, schema(number)).id == schema_id
            print(f"{len(ledger.ids)} schemas, {ledger.refused} writes refused")
            for client in clients:
                client.close()
        finally:
            until.set()
            for each in instances:
                each.process.kill()
                each.process.wait()
