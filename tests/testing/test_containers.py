"""Tests of the Docker-free replacement for Testcontainers' Kafka: methods, variables, pytest option."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from for_each import for_each
from free_ports import free_ports
from penstock import Admin, Producer, read_topic
from penstock.errors import ConfigError
from penstock.testing.containers import (
    ContainerError,
    KafkaContainer,
    RedpandaContainer,
    SchemaRegistryContainer,
)
from penstock.testing.containers.docker_client import client_of, from_env
from penstock.testing.containers.environment import (
    ClientListener,
    listener_at,
    read_environment,
    setting_name,
)
from penstock.testing.containers.images import KafkaImage, docker_container_of, name_of
from penstock.testing.containers.unavailable import DockerContainer, Network, network_of
from penstock.testing.containers.waiting import LogMessageWaitStrategy, wait_for_logs


def test_what_is_produced_can_be_read() -> None:
    with KafkaContainer().with_kraft().with_cluster_id("AAAAAAAAAAAAAAAAAAAAAQ") as kafka:
        servers = kafka.get_bootstrap_server()
        assert servers == f"{kafka.get_container_host_ip()}:{kafka.get_exposed_port(9093)}"
        with Producer(bootstrap_servers=servers) as producer:
            producer.send("orders", b"ticket")
        assert read_topic("orders", servers)["value"].to_pylist() == [b"ticket"]
        with Admin(bootstrap_servers=servers) as admin:
            assert admin.describe_cluster().cluster_id == "AAAAAAAAAAAAAAAAAAAAAQ"
        wait_for_logs(kafka, r".*\[KafkaServer id=\d+\] started.*")
        LogMessageWaitStrategy(kafka.wait_for).wait_until_ready(kafka)
        with pytest.raises(TimeoutError, match="does not match"):
            wait_for_logs(kafka, "never")
        assert kafka.get_wrapped_container().status == "running"
    assert kafka.get_wrapped_container().status == "exited"


@pytest.mark.parametrize(
    ("variable", "setting"),
    [
        ("KAFKA_NUM_PARTITIONS", "num.partitions"),
        ("KAFKA_CFG_NUM_PARTITIONS", "num.partitions"),
        ("KAFKA_A__B___C", "a_b-c"),
        ("CLUSTER_ID", None),
    ],
)
def test_the_setting_of_a_variable(variable: str, setting: str | None) -> None:
    assert setting_name(variable) == setting


def test_variables_are_settings_or_remarks() -> None:
    variables = {
        "KAFKA_NUM_PARTITIONS": 3,
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_NUM_PARTITONS": 4,
        "TZ": "UTC",
    }
    reading = read_environment(variables)
    assert reading.settings == {"num.partitions": "3"}
    (remark,) = reading.remarks
    assert "num.partitons" in remark
    assert "num.partitions" in remark


def test_the_listener_of_clients_is_the_one_on_the_port_of_the_container() -> None:
    variables = {
        "KAFKA_LISTENERS": "SSL://0.0.0.0:9093,BROKER://0.0.0.0:9092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,SSL:SSL",
    }
    assert listener_at(9093, variables) == ClientListener("SSL", "SSL")
    assert listener_at(9092, variables) == ClientListener("BROKER", "PLAINTEXT")
    assert listener_at(1, variables) is None


def test_a_secured_listener_has_the_users_that_the_variables_name() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="secret";'
    kafka = KafkaContainer(listener_name="CLIENTS", security_protocol="SASL_PLAINTEXT")
    kafka.with_env("KAFKA_SASL_ENABLED_MECHANISMS", "PLAIN")
    kafka.with_env("KAFKA_LISTENER_NAME_CLIENTS_PLAIN_SASL_JAAS_CONFIG", jaas)
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "secret",
    }
    with kafka, Admin(kafka.get_bootstrap_server(), config=login) as admin:
        assert admin.list_topics() == []


def test_a_value_that_does_not_fit_stops_the_start() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        KafkaContainer(env={"KAFKA_NUM_PARTITIONS": "many"}).start()


@for_each(
    [
        (
            "kafka-topics --bootstrap-server localhost:9092 --create --topic a --partitions 1",
            b"Created topic a.\n",
        ),
        (["kafka-topics.sh", "--list"], b"a\n"),
        ("bash -c 'echo hello | kafka-console-producer --topic a'", b""),
        (
            "/opt/kafka/bin/kafka-console-consumer.sh --topic a --from-beginning --max-messages 1",
            b"hello\nProcessed a total of 1 messages\n",
        ),
        (
            "kafka-configs --alter --entity-type topics --entity-name a"
            " --add-config retention.ms=60000,cleanup.policy=[compact,delete]",
            b"Completed updating config for topic a.\n",
        ),
        ("kafka-get-offsets --topic a --time -1", b"a:0:1\n"),
        (
            "kafka-console-consumer --topic a --group g --from-beginning --max-messages 1",
            b"hello\nProcessed a total of 1 messages\n",
        ),
        (
            "kafka-consumer-groups --describe --group g",
            b"\nGROUP           TOPIC           PARTITION       CURRENT-OFFSET  LOG-END-OFFSET  LAG\n"
            b"g               a               0               1               1               0\n",
        ),
        (
            "kafka-consumer-groups --reset-offsets --group g --topic a:0 --to-earliest --execute",
            b"\nGROUP TOPIC PARTITION NEW-OFFSET\ng a 0 0\n",
        ),
        (
            "bash -c 'kafka-consumer-groups --delete --group g 2>&1; kafka-consumer-groups --list'",
            b"Deletion of requested consumer groups (g) was successful.\n",
        ),
        ("kafka-topics --delete --topic a", b""),
        ("sh -c 'cub kafka-ready -b kafka:9092 1 20 && kafka-topics --list'", b"__consumer_offsets\n"),
        ("rpk topic create b -p 3", b"b  OK\n"),
    ],
)
def test_command_lines_of_kafkas_tools(
    command: str | list[str], expected: bytes, kafka: KafkaContainer
) -> None:
    """The commands run in this order, as in a user's session in a container."""
    assert kafka.exec(command) == (0, expected)


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaContainer]:
    with KafkaContainer() as container:
        yield container


def test_a_tool_describes_the_settings_that_another_one_made(kafka: KafkaContainer) -> None:
    kafka.exec("kafka-topics --create --topic s --config retention.ms=60000")
    code, output = kafka.exec("kafka-configs --describe --entity-type topics --entity-name s")
    assert code == 0
    assert b"  retention.ms=60000\n" in output
    with pytest.raises(ContainerError, match="--entity-type"):
        kafka.exec("kafka-configs --describe --entity-type users")


def test_a_tool_that_fails_says_so_and_other_programs_are_refused(kafka: KafkaContainer) -> None:
    code, output = kafka.exec("kafka-topics --delete --topic none")
    assert code == 1
    assert b"Error while executing" in output
    for command in ("rm -rf /", "bash -c 'kafka-topics --list; ls'", "kafka-topics --list > /tmp/x", ""):
        with pytest.raises(ContainerError, match="takes a real container"):
            kafka.exec(command)
    code, output = kafka.exec("bash -c 'kafka-topics --delete --topic none && kafka-topics --list'")
    assert code == 1
    assert output.count(b"\n") == 1  # what follows && is not run


def test_a_redpanda_has_a_schema_registry() -> None:
    with RedpandaContainer() as container:
        url = container.get_schema_registry_address()
        with urllib.request.urlopen(f"{url}/subjects") as answer:
            assert json.load(answer) == []
        assert url.endswith(f":{container.get_exposed_port(8081)}")
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{url}/subjects")


def test_what_takes_docker_says_so(kafka: KafkaContainer) -> None:
    with pytest.raises(ContainerError, match="not served"):
        kafka.get_exposed_port(2181)
    with pytest.raises(ContainerError, match="needs Docker"):
        kafka.get_docker_client().run("postgres:16")
    with pytest.raises(ContainerError, match="call start"):
        KafkaContainer().get_bootstrap_server()
    with pytest.raises(ContainerError, match="call start"):
        RedpandaContainer().get_schema_registry_address()
    with pytest.raises(ContainerError, match="needs no container"):
        SchemaRegistryContainer()
    with pytest.raises(ValueError, match="Kraft"):
        KafkaContainer("confluentinc/cp-kafka:6.2.0").with_kraft()


def test_a_broker_with_tls_is_where_its_certificate_says() -> None:
    plain, secure = ClientListener("PLAINTEXT", "PLAINTEXT"), ClientListener("S", "SSL")
    assert (plain.has_tls, secure.has_tls) == (False, True)
    told = secure.settings("127.0.0.1", 7, "localhost")["advertised.listeners"]
    assert told == "S://localhost:7"
    assert "advertised.listeners" not in plain.settings("127.0.0.1", 0, "127.0.0.1")


class DockerException(Exception):
    """A stand-in for the exception that the package docker raises without Docker."""


def test_a_network_takes_no_docker() -> None:
    class Real:
        def __init__(self, fails: bool) -> None:
            if fails:
                raise DockerException("no daemon")

    made = network_of(Real)
    assert isinstance(made(False), Real)
    with made(True) as network:
        assert isinstance(network, Network)
    with pytest.raises(TypeError):
        made()


# --- images of Kafka by the generic class -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("apache/kafka", "apache/kafka"),
        ("confluentinc/cp-kafka:7.6.1", "confluentinc/cp-kafka"),
        ("registry.local:5000/team/confluentinc/cp-kafka@sha256:ab", "confluentinc/cp-kafka"),
        ("postgres:16", "postgres"),
    ],
)
def test_the_name_of_an_image(image: str, name: str) -> None:
    assert name_of(image) == name


def test_a_docker_container_with_an_image_of_kafka_listens_where_it_is_bound() -> None:
    port = free_ports(1)[0]
    kafka = (
        DockerContainer("confluentinc/cp-kafka:7.6.1", hostname="inside")
        .with_env("KAFKA_NODE_ID", "0")
        .with_env("KAFKA_LISTENERS", f"PLAINTEXT://:9092,CONTROLLER://:9093,EXTERNAL://:{port}")
        .with_env("KAFKA_ADVERTISED_LISTENERS", f"PLAINTEXT://inside:9092,EXTERNAL://127.0.0.1:{port}")
        .with_env("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "EXTERNAL:PLAINTEXT,PLAINTEXT:PLAINTEXT")
        .with_env("KAFKA_NUM_PARTITIONS", 3)
        .with_bind_ports(port, port)
    )
    assert isinstance(kafka, KafkaImage)
    with kafka, Admin(bootstrap_servers=f"127.0.0.1:{port}") as admin:
        assert kafka.get_exposed_port(port) == port
        assert kafka.exec("kafka-topics --create --topic t").exit_code == 0
        [topic] = admin.describe_topics(["t"])
        assert [each.leader for each in topic.partitions] == [0, 0, 0]
        assert b"nodeId=0] Kafka Server started" in kafka.get_logs()[0]


def test_an_exposed_port_of_the_plainest_image_is_a_free_one() -> None:
    with DockerContainer("apache/kafka").with_exposed_ports(9092) as kafka:
        with Admin(bootstrap_servers=f"127.0.0.1:{kafka.get_exposed_port(9092)}") as admin:
            assert list(admin.list_topics()) == []
        with pytest.raises(ContainerError, match="port 8080"):
            kafka.get_exposed_port(8080)


@pytest.mark.parametrize("make", [KafkaContainer, lambda: DockerContainer("apache/kafka")])
def test_a_registry_finds_the_broker_by_its_name_in_the_network(make: Callable[[], Any]) -> None:
    registry = (
        DockerContainer("confluentinc/cp-schema-registry")
        .with_env("SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS", "PLAINTEXT://broker:9092")
        .with_env("SCHEMA_REGISTRY_LISTENERS", "http://0.0.0.0:8085")
        .with_exposed_ports(8085)
    )
    with make().with_network_aliases("broker") as kafka, registry:
        url = f"http://127.0.0.1:{registry.get_exposed_port(8085)}/subjects"
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert json.loads(answer.read()) == []
        assert b"Server started, listening for requests" in registry.get_logs()[0]
        with Admin(bootstrap_servers=kafka.get_bootstrap_server()) as admin:
            assert [each.name for each in admin.describe_topics(["_schemas"])] == ["_schemas"]
    assert registry.status == "exited"
    with pytest.raises(ContainerError, match="SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS"):
        DockerContainer("confluentinc/cp-schema-registry:7.6.1").start()


def test_containers_on_the_network_of_the_host_listen_at_the_ports_of_their_listeners() -> None:
    kafka_port, registry_port = free_ports(2)
    kafka = (
        DockerContainer("confluentinc/cp-kafka:7.6.0")
        .with_env("KAFKA_LISTENERS", f"CONTROLLER://localhost:9093,PLAINTEXT://0.0.0.0:{kafka_port}")
        .with_env("KAFKA_ADVERTISED_LISTENERS", f"PLAINTEXT://localhost:{kafka_port}")
        .with_env("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER")
        .with_kwargs(network_mode="host")
    )
    registry = (
        DockerContainer("confluentinc/cp-schema-registry:7.6.0")
        .with_env("SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS", f"localhost:{kafka_port}")
        .with_env("SCHEMA_REGISTRY_LISTENERS", f"http://0.0.0.0:{registry_port}")
        .with_kwargs(network_mode="host")
    )
    with kafka, registry, Admin(bootstrap_servers=f"localhost:{kafka_port}") as admin:
        assert admin.list_topics(include_internal=True) == ["_schemas"]
        with urllib.request.urlopen(f"http://localhost:{registry_port}/subjects", timeout=10) as answer:
            assert json.loads(answer.read()) == []


def test_a_registry_finds_the_broker_by_the_address_that_docker_reports() -> None:
    client = from_env()
    network = client.networks.create("tests", driver="bridge")
    with KafkaContainer() as kafka:
        container = client.containers.get(kafka.get_wrapped_container().id)
        network.connect(container.id, aliases=["the-broker"])
        report = container.attrs["NetworkSettings"]
        address = report["Networks"]["tests"]["IPAddress"]
        assert kafka.get_docker_client().bridge_ip(container.id) == address
        assert report["Ports"]["9093/tcp"][0]["HostPort"] == str(kafka.get_exposed_port(9093))
        for name in (address, "the-broker"):
            registry = DockerContainer("confluentinc/cp-schema-registry").with_exposed_ports(8081)
            registry.with_env("SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS", f"PLAINTEXT://{name}:9092")
            with registry:
                network.connect(registry.get_wrapped_container(), aliases=["the-broker"])  # as some suites do
                registry.get_wrapped_container().restart()
                url = f"http://127.0.0.1:{registry.get_exposed_port(8081)}/subjects"
                with urllib.request.urlopen(url, timeout=10) as answer:
                    assert json.loads(answer.read()) == []
                with pytest.raises(ContainerError, match="cannot be paused"):
                    registry.get_wrapped_container().pause()
        assert container in client.containers.list()
    assert (container.status, container.ports) == ("exited", {})
    network.remove()


def test_without_docker_its_library_has_the_stand_ins_alone() -> None:
    def real(**options: Any) -> Any:
        raise DockerException("no daemon")

    def broken() -> Any:
        raise TypeError

    client = client_of(real)(timeout=3)
    assert client.ping()
    with pytest.raises(ContainerError, match="no such container: none"):
        client.containers.get("none")
    with pytest.raises(ContainerError, match=r"client\.containers\.run needs Docker.*no daemon"):
        client.containers.run("redis:7")
    with pytest.raises(ContainerError, match=r"client\.images needs Docker"):
        _ = client.images
    with pytest.raises(ContainerError, match="no such container"):
        client.networks.create("n").connect("none")
    with pytest.raises(TypeError):
        client_of(broken)()


def test_with_docker_its_library_has_both() -> None:
    class Containers:
        def get(self, container_id: str) -> str:
            return f"real {container_id}"

        def list(self, **options: Any) -> list[Any]:
            return ["real"]

    class RealNetwork:
        id = "7"

        def __init__(self) -> None:
            self.connected: list[Any] = []

        def connect(self, container: Any, **options: Any) -> None:
            self.connected.append(container)

    class RealNetworks:
        made = RealNetwork()

        def create(self, name: str, **options: Any) -> RealNetwork:
            return self.made

    class Real:
        containers, networks, images, api = Containers(), RealNetworks(), "real images", "api"

    client = client_of(Real)()
    with KafkaContainer() as kafka:
        ours = kafka.get_wrapped_container()
        assert client.containers.get(ours.name) is ours
        assert client.containers.get("redis") == "real redis"
        assert {ours, "real"} <= set(client.containers.list())
        assert client.images == "real images"
        network = client.networks.create("n")
        network.connect(ours)
        network.connect("redis")
        assert RealNetworks.made.connected == ["redis"]
        assert "n" in ours.networks


def test_other_images_and_what_is_built_on_the_class_are_left_alone() -> None:
    class Real:
        def __init__(self, image: str, size: int = 0) -> None:
            self.image, self.size = image, size

    changed = docker_container_of(Real)
    assert changed("redis:7", size=3).size == 3

    class KafkaOfSomebody(changed):  # type: ignore[misc, valid-type]
        pass

    assert isinstance(KafkaOfSomebody("apache/kafka"), Real)
    with pytest.raises(ContainerError, match="redis:7 takes Docker"):
        DockerContainer("redis:7").start()


@for_each(["installed", "missing", "a directory of that name"])
def test_the_library_of_docker_is_imported_as_before(case: str, tmp_path: Path) -> None:
    root = tmp_path / case
    package = root / "docker"
    root.mkdir()
    if case != "missing":
        package.mkdir()
    if case == "installed":
        (package / "errors.py").write_text("class DockerException(Exception):\n    pass\n")
        (package / "__init__.py").write_text(
            "from . import errors\ndef from_env(): raise errors.DockerException('no daemon')\nversion = 7\n"
        )
    program = (
        "from penstock.testing.containers.imports import install; install()\n"
        "import docker\n"
        "if hasattr(docker, 'from_env'):\n"
        "    import docker.errors\n"
        "    print(docker.from_env().ping(), docker.errors.DockerException.__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=60, check=True
    )
    expected = {"installed": "True DockerException", "missing": "True ContainerError"}
    assert done.stdout.strip() == expected.get(case, "")


def test_the_newer_place_of_the_package_is_found_beside_an_older_package(tmp_path: Path) -> None:
    core = tmp_path / "testcontainers" / "core"
    core.mkdir(parents=True)
    for directory in (core.parent, core):
        (directory / "__init__.py").write_text("")
    (core / "network.py").write_text("class Network:\n    pass\n")
    (core / "container.py").write_text(
        "class DockerContainer:\n    def __init__(self, image):\n        pass\n"
    )
    program = (
        "from penstock.testing.containers.imports import install; install();"
        "from testcontainers.community.kafka import KafkaContainer;"
        "from testcontainers.core.network import Network;"
        "from testcontainers.core.container import DockerContainer as D;"
        "made = [KafkaContainer, type(Network()), type(D('apache/kafka')), type(D('redis')).__base__];"
        "print(*(each.__module__ for each in made))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [
        "penstock.testing.containers.kafka",
        "testcontainers.core.network",
        "penstock.testing.containers.images",
        "testcontainers.core.container",
    ], done.stderr


SUITE = """
import pytest
from pytest_kafka import make_kafka_server, make_zookeeper_process
from testcontainers.kafka import KafkaContainer

import penstock.testing.containers as ours
from penstock import Admin

zookeeper_proc = make_zookeeper_process("bin/zookeeper-server-start.sh")
kafka_server = make_kafka_server("bin/kafka-server-start.sh", "zookeeper_proc")


def test_container(kafka):
    assert KafkaContainer is ours.KafkaContainer
    assert kafka.get_bootstrap_server()


def test_server(kafka_server):
    process, port = kafka_server
    with Admin(bootstrap_servers=f"127.0.0.1:{port}") as admin:
        assert admin.list_topics() == []
    assert process.poll() is None
"""

CONFTEST = """
import pytest
from testcontainers.kafka import KafkaContainer


@pytest.fixture(scope="session")
def kafka():
    with KafkaContainer() as container:
        yield container
"""


@pytest.mark.parametrize("way", ["option", "file"])
def test_suites_written_for_other_packages_run_unchanged(tmp_path: Path, way: str) -> None:
    (tmp_path / "test_it.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    options = ["--penstock-containers"] if way == "option" else []
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\n" + ("penstock_containers = true\n" if not options else "")
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "2 passed" in done.stdout
