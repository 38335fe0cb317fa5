"""Brokers for tests of Apache Kafka that run in a JVM: a line of JSON on a socket asks, a line answers.

Run by `judging` as a process: prints its port, serves one connection, and ends with it. One test is served
at a time. Its brokers have the ids, ports and settings that Apache Kafka's harness would give to its own.
"""

from __future__ import annotations

import json
import logging
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from free_ports import free_ports
from penstock import Broker
from penstock.broker.cluster import Cluster
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.levels import LEVELS
from penstock.errors import PenstockError

OF_THE_HARNESS = {"unstable.feature.versions.enable", "unstable.api.versions.enable"}
"""Switches for features under development, which a broker that users run does not have."""

PLUGINS = {
    "alter.config.policy.class.name": "",
    "client.quota.callback.class": "",
    "create.topic.policy.class.name": "",
    "group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.",
    "group.share.assignors": "org.apache.kafka.coordinator.group.assignor.",
    "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.",
}
"""Settings that name Java classes, and what begins the names of those that a broker has of its own."""

PLAIN_LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="plain-admin" password="plain-admin-secret" '
    'user_plain-admin="plain-admin-secret" user_plain-user1="plain-user1-secret";'
)
"""The users that the harness gives to brokers with SASL, and its clients log in with."""


class Lacking(Exception):
    """What a test asks for, and brokers outside its JVM cannot have: it is not judged."""


class Brokers:
    """The brokers of one test: one, or a cluster whose ids begin at 0."""

    def __init__(self, wanted: dict[str, Any], directory: Path) -> None:
        self.count: int = wanted["brokers"]
        own = {int(node): texts for node, texts in wanted["own"].items() if texts}
        if any(node >= self.count for node in own):
            raise Lacking("settings of a controller by itself")
        self.ports = free_ports(self.count)
        settings = self._settings(wanted)
        self._served: Broker | Cluster
        if self.count == 1:
            settings |= own.get(0, {}) | self._listening(wanted, 0)
            if "log.dirs" not in settings:
                names = [str(directory / f"disk{number}") for number in range(wanted["disks"])]
                settings["log.dirs"] = ",".join(names)
            self._served = Broker(host="localhost", port=self.ports[0], config=settings)
        else:
            self._served = Cluster(
                self.count,
                None if "log.dirs" in settings else str(directory),
                "localhost",
                self.ports,
                config=settings,
            )
            for place, node in enumerate(self._served._nodes.values()):
                texts = own.get(node.id, {})
                node.rack = texts.get("broker.rack")
                node._texts.update(texts | self._listening(wanted, place))
                node.config = BrokerConfig(node._texts)
        self._served.start()

    def _listening(self, wanted: dict[str, Any], place: int) -> dict[str, str]:
        listener = f"{wanted['listener']}://localhost:{self.ports[place]}"
        return {"listeners": listener, "advertised.listeners": listener}

    def _settings(self, wanted: dict[str, Any]) -> dict[str, str]:
        listener, protocol = wanted["listener"], wanted["protocol"]
        settings = {
            "node.id": "0",
            "default.replication.factor": "1",
            "listener.security.protocol.map": f"{listener}:{protocol},CONTROLLER:PLAINTEXT",
        }
        if protocol.startswith("SASL"):
            settings |= {
                "sasl.enabled.mechanisms": "PLAIN",
                f"listener.name.{listener.lower()}.plain.sasl.jaas.config": PLAIN_LOGIN,
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "allow.everyone.if.no.acl.found": "false",
                "super.users": "User:plain-admin",
            }
        if wanted["metadata"]:
            if wanted["metadata"] not in LEVELS:
                raise Lacking(f"metadata.version {wanted['metadata']}")
            settings["penstock.metadata.version"] = wanted["metadata"]
        for name, own in PLUGINS.items():
            for text in filter(None, wanted["settings"].get(name, "").split(",")):
                if "." in text and not (own and text.startswith(own)):
                    raise Lacking(f"the test's own class {text.rpartition('.')[2]} in the broker")
        asked = {name: text for name, text in wanted["settings"].items() if name not in OF_THE_HARNESS}
        return settings | asked

    def stop(self) -> None:
        self._served.close()

    def move(self, ask: str, node: int) -> None:
        """Stop a broker in order, or start it again."""
        if isinstance(self._served, Broker):
            _ = self._served.close() if ask == "stop broker" else self._served.start()
        elif ask == "stop broker":
            self._served.stop(node)
        else:
            self._served.start(node)


def answer(question: dict[str, Any], running: list[Brokers], directory: Path) -> dict[str, Any]:
    """Do what is asked, to the brokers of the test before, too; return the answer."""
    ask = question["ask"]
    if ask in {"start", "stop"}:
        while running:
            running.pop().stop()
        for left in directory.iterdir():
            shutil.rmtree(left, ignore_errors=True)
    if ask == "start":
        running.append(Brokers(question, directory))
        return {"ports": running[0].ports}
    if ask != "stop":
        running[0].move(ask, question["id"])
    return {}


def serve(connection: socket.socket, directory: Path) -> None:
    """Answer every line until the connection ends."""
    running: list[Brokers] = []
    with connection.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            try:
                found = answer(json.loads(line), running, directory)
            except Lacking as lacking:
                found = {"lacks": str(lacking)}
            except (PenstockError, OSError, ValueError) as error:
                found = {"error": str(error)}
            lines.write(json.dumps(found) + "\n")
            lines.flush()
    while running:
        running.pop().stop()


def main() -> int:
    logging.basicConfig(level=logging.WARNING, format="broker: %(message)s")
    with (
        tempfile.TemporaryDirectory(prefix="verdicts-", ignore_cleanup_errors=True) as name,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        print(listening.getsockname()[1], flush=True)
        connection, _ = listening.accept()
        serve(connection, Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
