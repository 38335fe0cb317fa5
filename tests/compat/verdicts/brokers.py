"""Run Penstock brokers for Apache Kafka's own tests in a JVM, which sends JSON requests over a socket.

Each request and each answer is a line. `judging` runs this module as a process: it prints its port, serves
one connection, and ends with it. It serves one test at a time. The test's brokers have the ids, ports and
settings that Apache Kafka's test harness would give to its own brokers.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pytest

from compat.kerberos import Realm
from compat.peers import kerberos_library
from compat.verdicts.judging import release
from free_ports import free_ports
from penstock import Broker
from penstock.broker.cluster import Cluster
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.image import ALL_BROKERS
from penstock.broker.metadata.levels import LEVELS
from penstock.broker.network import connection
from penstock.broker.network.listeners import listeners_of
from penstock.broker.network.server import Server
from penstock.broker.security.login_file import PROPERTY, login_settings
from penstock.broker.session import ANONYMOUS, Principal, Session
from penstock.errors import PenstockError
from penstock.security.sasl_server import LoginOutcome

OF_THE_HARNESS = {"unstable.feature.versions.enable", "unstable.api.versions.enable"}
"""Settings of Kafka's test harness for features under development; Penstock's brokers do not get them."""

PLUGINS = {
    "alter.config.policy.class.name": "",
    "client.quota.callback.class": "",
    "create.topic.policy.class.name": "",
    "group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.",
    "group.share.assignors": "org.apache.kafka.coordinator.group.assignor.",
    "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.",
}
"""Settings that name Java classes, with the prefix of the class names that Penstock implements.

An empty prefix means that Penstock implements none.
"""

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

PLAIN_LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="plain-admin" password="plain-admin-secret" '
    'user_plain-admin="plain-admin-secret" user_plain-user1="plain-user1-secret";'
)
"""The JAAS configuration with the users of brokers and clients in Kafka's test harness."""


class Lacking(Exception):
    """A test needs a feature that brokers outside its JVM cannot have, so the test is skipped."""


OF_CONTROLLERS = ("controller.", "log.dir", "metadata.log.dir", "process.roles", "initial.broker.")
"""Prefixes of settings that are not passed on: for controllers, and for directories set elsewhere."""

Builder = Callable[[str, Principal], Principal]
"""A principal builder: a function from a listener's name and a client's principal to a principal."""


def by_listener(**principals: Principal) -> Builder:
    return lambda listener, shown: principals.get(listener, shown)


def by_certificate(names: dict[str, str], rest: str | None) -> Builder:
    """Return a builder for DNs such as ``O=A server,CN=localhost``.

    `names` is a dict from a common name, or from the organization after `A`, to a principal's name. `rest` is
    the name of all other principals; with None they keep their DN.
    """

    def build(_: str, shown: Principal) -> Principal:
        found = re.fullmatch("O=A (.*?),CN=(.*?)", shown.name)
        if found is None:
            return ANONYMOUS
        name = names.get(found[2]) or names.get(found[1]) or rest
        return shown if name is None else Principal("User", name)

    return build


def by_user(_: str, shown: Principal) -> Principal:
    """Return the harness's PLAIN users under their names without ``plain-``, and all others as anonymous."""
    name = {"plain-admin": "admin", "plain-user": "user"}.get(shown.name)
    return ANONYMOUS if name is None else Principal("User", name)


def by_group(listener: str, shown: Principal) -> Principal:
    """Return a user's principal as a group; the user ``scram-user`` becomes the group ``testGroup``."""
    if shown == ANONYMOUS:
        return shown
    return Principal("Group", "testGroup" if shown.name == "scram-user" else shown.name)


OWN_BUILDERS = {
    "kafka.api.AbstractAuthorizerIntegrationTest$PrincipalBuilder": by_listener(
        BROKER=Principal("User", "broker"), CLIENT=Principal("User", "client")
    ),
    "kafka.api.GroupEndToEndAuthorizationTest$GroupPrincipalBuilder": by_group,
    "kafka.api.PlaintextEndToEndAuthorizationTest$TestClientPrincipalBuilder": by_listener(
        CLIENT=Principal("User", "client")
    ),
    "kafka.api.PlaintextEndToEndAuthorizationTest$TestServerPrincipalBuilder": by_listener(
        SERVER=Principal("User", "server")
    ),
    "kafka.api.SaslPlainSslEndToEndAuthorizationTest$TestPrincipalBuilder": by_user,
    "kafka.api.SslAdminIntegrationTest$TestPrincipalBuilder": by_certificate(
        {"server": "server", "super-user": "server", "client": "client"}, "ANONYMOUS"
    ),
    "kafka.api.SslEndToEndAuthorizationTest$TestPrincipalBuilder": by_certificate(
        {"server": "server", "super-user": "server"}, None
    ),
}
"""Replacements for the principal builders of Kafka's tests, keyed by their class names."""

OWN_AUTHORIZERS = {"kafka.api.SslAdminIntegrationTest$TestableStandardAuthorizer"}
"""Authorizer classes of Kafka's tests that decide like Kafka's own authorizer.

They only add delays or record requests, so Penstock's authorizer replaces them.
"""

OWN_LOGINS = {
    "kafka.api.SaslPlainSslEndToEndAuthorizationTest$TestServerCallbackHandler": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="plain-admin" password="broker-password" user_plain-admin="broker-password" '
        'user_plain-user="user1-password" user_plain-user2="plain-user2-secret";'
    )
}
"""JAAS configurations that replace callback handlers of Kafka's tests, keyed by their class names."""

OF_NO_USE = {"kafka.api.SaslPlainSslEndToEndAuthorizationTest$TestClientCallbackHandler"}
"""Callback handlers for logins between Kafka's brokers.

They are ignored, since Penstock's brokers use a listener of their own for that.
"""

LOGIN_METRICS = {
    (LoginOutcome.SUCCESSFUL, False): "successful-authentication-total",
    (LoginOutcome.FAILED, False): "failed-authentication-total",
    (LoginOutcome.SUCCESSFUL, True): "successful-reauthentication-total",
    (LoginOutcome.FAILED, True): "failed-reauthentication-total",
    (LoginOutcome.EXPIRED, False): "expired-connections-killed-count",
    (LoginOutcome.EXPIRED, True): "expired-connections-killed-count",
}
"""A dict from a login's outcome, and True for a reauthentication, to Kafka's metric of such logins."""

SUPERUSER = Principal("User", "verdicts")
"""The super user of the extra listener, over which this module sends requests to the brokers."""


RELEASE = release().rpartition(".")[0]
"""The release of Kafka whose tests these are: later releases answer a few of their requests differently."""


class Known(Session):
    """A broker session whose principal comes from the principal builders of the running test."""

    builders: ClassVar[list[Builder]] = []
    _shown = ANONYMOUS

    @property  # type: ignore[override]
    def principal(self) -> Principal:
        principal = self._shown
        for build in self.builders:
            principal = build(self.listener_name, principal)
        return principal

    @principal.setter
    def principal(self, shown: Principal) -> None:
        self._shown = shown


def replace_classes(texts: dict[str, str]) -> None:
    """Replace settings that name Java classes of Kafka's tests with the equivalents in this module."""
    for name, text in list(texts.items()):
        if text in OWN_BUILDERS:
            if OWN_BUILDERS[text] not in Known.builders:
                Known.builders.append(OWN_BUILDERS[text])
            del texts[name]
        elif text in OWN_LOGINS:
            texts[name.replace("sasl.server.callback.handler.class", "sasl.jaas.config")] = OWN_LOGINS[text]
            del texts[name]
        elif text in OF_NO_USE:
            del texts[name]
        elif text in OWN_AUTHORIZERS:
            texts[name] = AUTHORIZER


STOP_S = 0.2
"""Seconds to wait after stopping a cluster, before the test gets its answer.

The test then checks that its clients left no threads. With Apache Kafka such threads end while the brokers
stop.
"""

RESTART_S = 0.5
"""Seconds to wait after restarting a broker, before the test gets its answer.

Apache Kafka opens a broker's port about that long before the broker is ready. Tests rely on clients having
reconnected by then.
"""


class Brokers:
    """The Penstock brokers of one test: one broker, or a cluster with ids from 0."""

    def __init__(self, wanted: dict[str, Any], directory: Path) -> None:
        self.count: int = wanted["brokers"]
        self.listeners: list[dict[str, int]] = []
        if wanted.get("whole"):
            wanted |= self._whole(wanted)
        own = {int(node): texts for node, texts in wanted["own"].items() if texts}
        if not wanted.get("whole") and any(node >= self.count for node in own):
            raise Lacking("settings of a controller by itself")
        free = iter(free_ports(self.count + sum(map(len, self.listeners))))
        self.ports = list(islice(free, self.count))
        self.listeners = [dict(zip(each, free, strict=False)) for each in self.listeners]
        settings = self._settings(wanted)
        self._served: Broker | Cluster
        if self.count == 1:
            settings |= next(iter(own.values())) if wanted.get("whole") else own.get(0, {})
            settings |= self._listening(wanted, 0)
            if "log.dirs" not in settings:
                names = [str(directory / f"disk{number}") for number in range(wanted["disks"])]
                settings["log.dirs"] = ",".join(names)
            self._served = Broker(host="localhost", port=self.ports[0], config=settings, as_version=RELEASE)
        else:
            self._served = Cluster(
                self.count,
                None if "log.dirs" in settings else str(directory),
                "localhost",
                self.ports,
                config=settings,
                as_version=RELEASE,
            )
            for place, node in enumerate(self._served._nodes.values()):
                texts = own.get(node.id, {})
                node.rack = texts.get("broker.rack")
                node._texts.update(texts | self._listening(wanted, place))
                node.config = BrokerConfig(node._texts)
        self._served.start()

    def _whole(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Return the brokers' settings with the listeners that the test specifies and an extra listener."""
        own = {}
        Known.builders = []
        for node, texts in wanted["own"].items():
            names = texts.get("controller.listener.names", "CONTROLLER").split(",")
            listeners = [each.partition("://")[0] for each in texts["listeners"].split(",")]
            self.listeners.append(dict.fromkeys((each for each in listeners if each not in names), 0))
            replace_classes(texts)
            protocols = texts.get("listener.security.protocol.map") or ",".join(
                f"{each}:{each}" for each in listeners
            )
            kept = texts.keys() - OF_THE_HARNESS - {"listeners", "advertised.listeners"}
            own[node] = {name: texts[name] for name in kept if not name.startswith(OF_CONTROLLERS)} | {
                "listener.security.protocol.map": f"{protocols},VERDICTS:PLAINTEXT",
                "super.users": f"{texts.get('super.users', '')};{SUPERUSER}".strip(";"),
            }
            if self.count == 1 and ("log.dirs" in texts or "log.dir" in texts):
                own[node]["log.dirs"] = texts.get("log.dirs") or texts["log.dir"]
            if wanted.get("login"):
                theirs = [
                    each for each in texts["listeners"].split(",") if each.partition("://")[0] not in names
                ]
                config = BrokerConfig(
                    {"listeners": ",".join(theirs), "listener.security.protocol.map": protocols}
                )
                own[node] |= login_settings(PROPERTY + wanted["login"], listeners_of(config), own[node])
        Known.builders.append(by_listener(VERDICTS=SUPERUSER))
        common = dict(set.intersection(*(set(each.items()) for each in own.values())))
        return {"own": own, "settings": common}

    def _listening(self, wanted: dict[str, Any], place: int) -> dict[str, str]:
        listener = f"{wanted['listener']}://localhost:{self.ports[place]}"
        if wanted.get("whole"):
            more = (f"{name}://localhost:{port}" for name, port in self.listeners[place].items())
            listener = ",".join([listener, *more])
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
                "authorizer.class.name": AUTHORIZER,
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

    def partition(self, node: int, topic: str, index: int) -> dict[str, Any]:
        """Return the offsets and leadership of a broker's replica; an empty dict if it has no replica."""
        served = self._served
        if isinstance(served, Cluster):
            return served._call(lambda: self._partition(served._nodes[node].server, topic, index))
        if served.server is None:
            return {}
        return served._call(lambda server: self._partition(server, topic, index))

    def _partition(self, server: Server | None, topic: str, index: int) -> dict[str, Any]:
        """Read a partition's state in the broker's own thread, since the broker may be opening the log."""
        known = None if server is None else server.node.cluster.topics.get(topic)
        if known is None or index >= len(known.partitions):
            return {}
        found = known.partitions[index]
        if not found.is_kept_here:
            return {}
        high_watermark, _, start = found.bounds
        ends = {"start": start, "end": found.log.end_offset, "high": high_watermark}
        return ends | {"leads": found.leads, "epoch": found.leader_epoch}

    def changes(self, node: int) -> dict[str, str]:
        """Return the broker settings that clients changed dynamically; none if the broker is stopped."""
        server = self._server(node)
        if server is None:
            return {}
        changed = server.node.cluster.image.broker_configs
        return {**changed.get(ALL_BROKERS, {}), **changed.get(str(node), {})}

    def counts(self, node: int) -> dict[str, int]:
        """Return the numbers of logins at a broker, keyed by the names of Kafka's metrics."""
        found = dict.fromkeys(LOGIN_METRICS.values(), 0)
        server = self._server(node)
        for security in () if server is None else server.securities.values():
            for ending, count in security.logins.counts.items():
                found[LOGIN_METRICS[ending]] += count
        return found

    def tokens(self, node: int) -> int:
        """Return the number of delegation tokens that a broker knows."""
        server = self._server(node)
        return 0 if server is None else len(server.node.cluster.security.tokens)

    def _server(self, node: int) -> Server | None:
        served = self._served
        return served.server if isinstance(served, Broker) else served._nodes[node].server

    def move(self, ask: str, node: int) -> None:
        """Stop a broker cleanly, or start it again."""
        served = self._served
        if ask == "stop broker":
            _ = served.close() if isinstance(served, Broker) else served.stop(node)
        else:
            _ = served.start() if isinstance(served, Broker) else served.start(node)
            time.sleep(RESTART_S)


class Kerberos:
    """The KDC of a test.

    Its files have the same names in every test, since libraries cache the names.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._realm: Realm | None = None

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Start or stop the KDC, or add principals to it; return the location of its files."""
        try:
            kerberos_library()
        except (pytest.skip.Exception, pytest.fail.Exception) as error:  # a program of Kerberos is missing
            raise Lacking(f"a Kerberos server: {error}") from None
        if question["ask"] == "start kerberos":
            self.stop()
            self._realm = Realm("EXAMPLE.COM", self._directory)
            self._realm.start()
            os.environ.update(self._realm.environment)
        elif question["ask"] == "stop kerberos":
            self.stop()
        else:
            assert self._realm is not None
            keytab = Path(question["keytab"])
            keytab.unlink(missing_ok=True)
            self._realm.add(keytab, question["principals"])
        return {"file": str(self._directory / "krb5.conf")}

    def stop(self) -> None:
        if self._realm is not None:
            self._realm.stop()
            shutil.rmtree(self._directory, ignore_errors=True)
        self._realm = None


def answer(
    question: dict[str, Any], running: dict[int, Brokers], kerberos: Kerberos, directory: Path
) -> dict[str, Any]:
    """Execute a JSON request for one cluster, for all clusters, or for Kerberos; return the answer."""
    ask = question["ask"]
    if ask.endswith("kerberos"):
        return kerberos.answer(question)
    if ask == "stop all":
        kerberos.stop()
        for number in list(running):
            running.pop(number).stop()
        for left in directory.iterdir():
            shutil.rmtree(left, ignore_errors=True)
        return {}
    number = question["cluster"]
    if ask == "start":
        running[number] = Brokers(question, directory / str(number))
        return {"ports": running[number].ports, "listeners": running[number].listeners}
    if ask == "stop":
        if number in running:
            running.pop(number).stop()
            time.sleep(STOP_S)
        shutil.rmtree(directory / str(number), ignore_errors=True)
    elif number not in running:
        return {}  # a test that is not judged, as its brokers could not begin, goes on to its end
    elif ask == "partition":
        return running[number].partition(question["id"], question["topic"], question["index"])
    elif ask == "changes":
        return running[number].changes(question["id"])
    elif ask == "counts":
        return running[number].counts(question["id"])
    elif ask == "tokens":
        return {"tokens": running[number].tokens(question["id"])}
    else:
        running[number].move(ask, question["id"])
    return {}


def serve(asking: socket.socket, directory: Path) -> None:
    """Answer each request line of a connection until the connection ends."""
    running: dict[int, Brokers] = {}
    kerberos = Kerberos(directory / "kerberos")
    with asking.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            try:
                found = answer(json.loads(line), running, kerberos, directory)
            except Lacking as lacking:
                found = {"lacks": str(lacking)}
            except PenstockError as error:
                found = {"error": str(error)}
            except Exception as error:  # ends one test, and not the brokers of all that come after it
                found = {"error": f"{type(error).__name__}: {error}"}
            lines.write(json.dumps(found) + "\n")
            lines.flush()
    answer({"ask": "stop all"}, running, kerberos, directory)


def main() -> int:
    connection.Session = Known  # type: ignore[misc]
    logging.basicConfig(level=logging.WARNING, format="broker: %(message)s")
    with (
        tempfile.TemporaryDirectory(prefix="verdicts-", ignore_cleanup_errors=True) as name,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        print(listening.getsockname()[1], flush=True)
        asking, _ = listening.accept()
        serve(asking, Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
