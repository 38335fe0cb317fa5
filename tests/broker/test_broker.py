"""Tests of the class `Broker`: start, stop, restart, and clear error messages when it cannot start."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import pytest

from broker.bench_node import batch_of, produce_request
from broker.wire_client import WireClient, is_well
from penstock import Broker
from penstock.errors import ConfigError, NetworkError, StorageError
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic


def put(broker: Broker) -> int:
    """Append one record to topic ``t``; return its offset."""
    with WireClient(broker.port) as client:
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        answer = client.ask(produce_request(batch_of(b"a")), 9)
    return int(answer.responses[0].partition_responses[0].base_offset)


def test_with() -> None:
    with Broker() as broker:
        assert broker.port > 0
        assert broker.bootstrap_servers == f"127.0.0.1:{broker.port}"
        assert is_well(broker.port)
        assert "running" in repr(broker)
    assert "stopped" in repr(broker)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", broker.port))


def test_async_with() -> None:
    async def use() -> int:
        async with Broker() as broker:
            assert await asyncio.get_running_loop().run_in_executor(None, is_well, broker.port)
            return broker.port

    port = asyncio.run(use())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_starting_and_stopping_twice_is_harmless() -> None:
    broker = Broker()
    broker.close()
    assert broker.start() is broker.start()
    broker.close()
    broker.close()


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_a_restart_keeps_port_and_data(place: str, tmp_path: Path) -> None:
    broker = Broker(tmp_path / "data" if place == "disk" else None)
    ports = set()
    for offset in range(3):
        with broker:
            ports.add(broker.port)
            assert put(broker) == offset
    assert len(ports) == 1


def test_clients_that_are_connected_do_not_keep_it_from_stopping() -> None:
    others = set(threading.enumerate())
    with Broker() as broker:
        client = WireClient(broker.port)
    assert client.is_closed_by_peer()
    client.socket.close()
    started = set(threading.enumerate()) - others
    assert not [thread for thread in started if thread.name.startswith("penstock-broker")]


def test_settings_come_by_keyword_or_under_kafkas_names() -> None:
    broker = Broker(num_partitions=3, auto_create_topics_enable=False, config={"broker.rack": "r"})
    assert broker.config.integer("num.partitions") == 3
    assert not broker.config.boolean("auto.create.topics.enable")
    assert broker.config.text("broker.rack") == "r"
    assert Broker(process_roles=["broker", "controller"]).config["process.roles"] == ["broker", "controller"]
    with pytest.raises(ConfigError, match=r"did you mean num\.partitions"):
        Broker(num_partition=3)


def test_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(NetworkError, match=f"port {port} on 127.0.0.1 is in use"):
            Broker(port=port).start()


@pytest.mark.parametrize(
    ("host", "words"), [("192.0.2.1", "no such address"), ("no.such.host.invalid", "no such address")]
)
def test_an_address_that_is_not_ours(host: str, words: str) -> None:
    with pytest.raises(NetworkError, match=words):
        Broker(host=host).start()


def test_every_address_of_the_machine() -> None:
    """With a wildcard listener, Metadata returns the address to which the client has connected."""
    with Broker(host="0.0.0.0") as broker, WireClient(broker.port) as client:
        [told] = client.ask(MetadataRequest(topics=[]), 4).brokers
        assert (told.host, told.port) == ("127.0.0.1", broker.port)


def test_listeners_give_the_address_where_nothing_else_does() -> None:
    with Broker(listeners="PLAINTEXT://127.0.0.2:0") as broker:
        assert broker.bootstrap_servers.startswith("127.0.0.2:")
    assert Broker(listeners="PLAINTEXT://127.0.0.2:7", port=8).bootstrap_servers == "127.0.0.1:8"
    for listener in (
        "OTHER://127.0.0.1:7",
        "127.0.0.1:7",
        "PLAINTEXT://x",
        "PLAINTEXT://a:1,PLAINTEXT://b:2",
    ):
        with pytest.raises(ConfigError, match=r"(?i)listener"):
            Broker(listeners=listener)


def test_two_brokers_on_one_directory(tmp_path: Path) -> None:
    with Broker(tmp_path), pytest.raises(StorageError, match="in use by another broker"):
        Broker(tmp_path).start()
    with Broker(tmp_path) as broker:
        assert is_well(broker.port)


def test_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        Broker(tmp_path / "file").start()


def test_a_failed_start_can_be_repeated(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    with Broker(tmp_path), pytest.raises(StorageError):
        broker.start()
    with broker:
        assert put(broker) == 0
