"""Old third-party clients through a gateway to three Apache Kafka 4.3 nodes whose leaders are killed.

Each client writes numbers, and a second process of the same client reads them while two leaders die. All
acknowledged numbers are read, and in each partition they arrive in the order in which they were written.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from compat.kafka_cluster import NODES, KafkaCluster
from compat.peers import (
    CACHE,
    HERE,
    go_program,
    java_command,
    maven_classpath,
    need,
    node_program,
    python_program,
    until,
)
from penstock.client import Admin
from penstock.gateway import Gateway

pytestmark = [pytest.mark.compat, pytest.mark.soak, pytest.mark.timeout(900)]

PARTITIONS = 3
PATIENCE_S = 240.0

BETWEEN_DEATHS = 30
"""The number of records that must be written before a node is killed or started again."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster("4.3.0", tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


class Running:
    """A running client program, with the lines that it has printed, split into words."""

    def __init__(self, command: list[str], path: Path, stdin: int = subprocess.DEVNULL) -> None:
        self.lines: list[list[str]] = []
        self.errors = path
        with path.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=stdin, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):  # else it was killed in the middle of it
                self.lines.append(line.split())

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reading.join(PATIENCE_S)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def said(self, word: str) -> list[list[str]]:
        return [line[1:] for line in list(self.lines) if line[:1] == [word]]

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def told(self) -> str:
        """The last 2,000 characters of the program's standard error."""
        return self.errors.read_text(errors="replace")[-2000:]


def topic_of(cluster: KafkaCluster, name: str, partitions: int = PARTITIONS) -> str:
    with Admin(bootstrap_servers=cluster.servers) as admin:
        admin.create_topic(name, partitions=partitions, replication_factor=NODES)
    return name


def wait(holds: Callable[[], object], what: str, *running: Running) -> None:
    """Wait until a condition holds; fail if a program that the condition needs has ended."""
    until(lambda: holds() or any(each.has_ended for each in running), what, PATIENCE_S)
    assert holds(), f"waited in vain, since a program has ended: {what}"


def leaders_die(cluster: KafkaCluster, gateway: Gateway, count: Callable[[], int], *running: Running) -> None:
    """Kill two nodes in turn while a client writes; start the first again before killing the second."""
    for node in (0, 1):
        for act in (cluster.kill, cluster.start):
            before = count()
            wait(lambda before=before: count() > before + BETWEEN_DEATHS, f"written: {count()}", *running)
            act(node)
    wait(lambda: not any(each.is_away for each in gateway.node_ports), "nodes are back")


def check_order(places: list[tuple[int, int]]) -> None:
    """Assert that numbers in a partition arrive in ascending order, ignoring repeated deliveries."""
    for partition in {place for place, _ in places}:
        firsts = list(dict.fromkeys(number for place, number in places if place == partition))
        assert firsts == sorted(firsts)


def kafka_python(release: str) -> list[str]:
    name = f"kafka-python-{release}"
    return [str(python_program(name)), str(HERE / name / "main.py")]


def kafka_node() -> list[str]:
    return [need("node"), str(node_program("kafka-node-2.0") / "main.js")]


def librdkafka() -> list[str]:
    return [sys.executable, str(HERE / "librdkafka_older.py")]


CLIENTS: dict[str, tuple[Callable[[], list[str]], tuple[str, ...], tuple[str, ...]]] = {
    "kafka-python-0.9": (lambda: kafka_python("0.9"), (), ("group",)),
    "kafka-python-1.4": (lambda: kafka_python("1.4"), (), ("group",)),
    "kafka-node-2.0": (kafka_node, (), ("group",)),
    "sarama-0.8.2": (lambda: [str(go_program("older-sarama"))], ("0.8.2.0",), ("0.8.2.0",)),
    "sarama-0.10.0": (lambda: [str(go_program("older-sarama"))], ("0.10.0.0",), ("0.10.0.0",)),
    "librdkafka-0.8.2": (librdkafka, ("0.8.2.2",), ("0.8.2.2", "")),
    "librdkafka-0.9": (librdkafka, ("0.9.0.1",), ("0.9.0.1", "group")),
}
"""For each client: a function that returns its command, and arguments of its writer and its reader.

The arguments follow the servers and the topic.
"""


@pytest.mark.parametrize("client", CLIENTS)
def test_what_old_clients_write_is_read_while_leaders_die(
    cluster: KafkaCluster, tmp_path: Path, client: str
) -> None:
    program, write, read = CLIENTS[client]
    command = program()
    topic = topic_of(cluster, f"of-{client}")
    with ExitStack() as stack:
        gateway = stack.enter_context(Gateway(to=cluster.servers))
        servers = gateway.bootstrap_servers
        writer = stack.enter_context(
            Running([*command, "write", servers, topic, *write], tmp_path / "writer")
        )
        reader = stack.enter_context(Running([*command, "read", servers, topic, *read], tmp_path / "reader"))
        try:
            wait(lambda: reader.said("r"), "read", writer, reader)
            leaders_die(cluster, gateway, lambda: len(writer.said("ack")), writer, reader)
            writer.stop()
            acknowledged = {int(number) for (number,) in writer.said("ack")}

            def found() -> list[tuple[int, int]]:
                return [(int(partition), int(number)) for partition, number in reader.said("r")]

            wait(lambda: acknowledged <= {number for _, number in found()}, "all is read", reader)
        except BaseException:
            print(client, writer.told, reader.told, [str(each) for each in gateway.node_ports], sep="\n")
            raise
        check_order(found())
        versions = {(row.api, row.version) for row in gateway.clients()}
    assert len(acknowledged) > 4 * BETWEEN_DEATHS
    assert "Produce" in {api for api, _ in versions}


@pytest.mark.parametrize("client", ["brod", "samsa"])
def test_clients_of_0_7_write_and_read_while_leaders_die(
    cluster: KafkaCluster, tmp_path: Path, client: str
) -> None:
    """Kafka 0.7 has no acknowledgements or retries: records that arrive are in order, each once."""
    libraries = python2_libraries()
    topic = topic_of(cluster, f"of-{client}", 1)
    command = java_command(
        maven_classpath("jython"),
        "org.python.util.jython",
        HERE / "python2" / "main.py",
        options=(f"-Dpython.path={libraries}", f"-Dpython.cachedir={tmp_path}"),
    )
    with ExitStack() as stack:
        gateway = stack.enter_context(Gateway(to=cluster.servers, v07_port=0, v07_messages="plain"))
        port = str(gateway.v07_port)
        writer = stack.enter_context(Running([*command, "write", client, port, topic], tmp_path / "writer"))
        reader = stack.enter_context(Running([*command, "read", client, port, topic], tmp_path / "reader"))
        try:
            wait(lambda: reader.said("r"), "read", writer, reader)
            leaders_die(cluster, gateway, lambda: len(reader.said("r")), writer, reader)
            writer.stop()
            sent = len(writer.said("sent"))
        except BaseException:
            print(client, writer.told, reader.told, sep="\n")
            raise
        numbers = [int(number) for (number,) in reader.said("r")]
    assert numbers == sorted(set(numbers)), "in order, each once"
    assert set(numbers) <= set(range(sent + 1))
    assert len(numbers) > 4 * BETWEEN_DEATHS


def python2_libraries() -> Path:
    """Return the directory with the Python 2 client libraries, which Jython runs.

    The current Python installs them there, but cannot import them.
    """
    requirements = HERE / "python2" / "requirements.txt"
    target = CACHE / "python2"
    if not (target / ".installed").exists():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
        subprocess.run([*install, "--target", str(target), "-r", str(requirements)], check=True)
        (target / ".installed").touch()
    return target


@pytest.mark.parametrize("release", ["0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3"])
def test_console_tools_write_and_read_while_leaders_die(
    cluster: KafkaCluster, tmp_path: Path, release: str
) -> None:
    """The producer tool prints no acknowledgements: all records must be stored after it exits normally."""
    topic = topic_of(cluster, f"console-{release}")
    classpath = maven_classpath(f"kafka-{release}")
    with ExitStack() as stack:
        gateway = stack.enter_context(Gateway(to=cluster.servers))
        servers = gateway.bootstrap_servers
        # Producers since 0.9 do not heed --sync; of several in flight, one that is tried again is overtaken.
        one_in_flight = tmp_path / "producer.properties"
        one_in_flight.write_text("max.in.flight.requests.per.connection=1\n")
        retries = ("--message-send-max-retries", 1000, "--retry-backoff-ms", 300)
        producing = java_command(
            classpath,
            "kafka.tools.ConsoleProducer",
            *("--broker-list", servers, "--topic", topic, "--request-required-acks", -1, "--sync"),
            *(*retries, "--property", "parse.key=true", "--property", "key.separator=:"),
            *("--request-timeout-ms", 60_000),
            *(() if release.startswith("0.8") else ("--producer.config", one_in_flight)),
        )
        if release.startswith("0.8"):
            consuming = [
                java_command(
                    classpath,
                    "kafka.tools.SimpleConsumerShell",
                    *("--broker-list", servers, "--topic", topic, "--partition", partition, "--offset", -2),
                )
                for partition in range(PARTITIONS)
            ]
        else:
            consuming = [
                java_command(
                    classpath,
                    "kafka.tools.ConsoleConsumer",
                    *("--new-consumer", "--bootstrap-server", servers, "--topic", topic, "--from-beginning"),
                )
            ]
        writer = stack.enter_context(Running(producing, tmp_path / "writer", subprocess.PIPE))
        readers = [
            stack.enter_context(Running(each, tmp_path / f"reader-{number}"))
            for number, each in enumerate(consuming)
        ]
        assert writer.process.stdin is not None
        stopping = threading.Event()
        written: list[int] = []

        def type_on() -> None:
            stdin = writer.process.stdin
            assert stdin is not None
            while not stopping.wait(0.02):
                number = len(written)
                stdin.write(f"k{number % 7}:{number}\n")
                stdin.flush()
                written.append(number)
            stdin.close()

        typing = threading.Thread(target=type_on)
        typing.start()

        def read() -> list[int]:
            lines = [line for each in readers for line in list(each.lines) if line]
            return [int(line[0]) for line in lines if line[0].isdigit()]

        try:
            wait(read, "read", writer)
            # The shell of 0.8 ends with the leader that it reads from. The producer of 0.9 adds to batches
            # that it has to send again, and ends ("Memory records is not writable").
            if not release.startswith(("0.8", "0.9")):
                leaders_die(cluster, gateway, lambda: len(set(read())), writer, *readers)
            stopping.set()
            typing.join()
            assert writer.process.wait(PATIENCE_S) == 0
            wait(lambda: set(read()) >= set(written), "all is read")
        except BaseException:
            print(release, writer.told, *(each.told for each in readers), sep="\n")
            raise
        finally:
            stopping.set()
        for key in range(7):
            of_key = list(dict.fromkeys(number for number in read() if number % 7 == key))
            assert of_key == sorted(of_key)
