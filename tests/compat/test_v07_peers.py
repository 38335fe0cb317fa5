"""A third-party Kafka 0.7 driver, for Node, against Penstock."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from compat import peers
from penstock.client import Producer
from penstock.gateway import Gateway
from penstock.testing import KafkaBroker
from penstock.v07.driver import Driver07
from penstock.v07.message_set import encode_set
from penstock.v07.server import Broker07
from penstock.v07.wire import ProducePart

pytestmark = pytest.mark.compat


def test_the_node_driver_produces_and_consumes(tmp_path: Path) -> None:
    program = peers.node_program("kafka-node-0.7")
    with Broker07(tmp_path / "logs") as broker, Driver07(broker.host, broker.port) as driver:
        process = subprocess.Popen(
            [peers.need("node"), "main.js", str(broker.port), "t", "100"],
            cwd=program,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(100)]
            assert lines == [f"t from node {number}\n" for number in range(100)]
            found = [message.payload for message in driver.messages("t", 0, 0)]
            assert found == [b"from node %d" % number for number in range(100)]
            # It knows the format of Kafka 0.6 only, which 0.7 goes on taking and giving.
            driver.connection.produce([ProducePart("t", 0, encode_set([b"from python"], magic=0))])
            assert process.stdout.readline() == "t from python\n"
        finally:
            process.kill()
            process.communicate()


def test_the_node_driver_speaks_to_a_cluster_of_today_through_a_gateway() -> None:
    """The driver cannot decompress, so the gateway sends plain messages.

    The driver cannot send offsets above 65535, which the gateway reaches after 15 messages, so the test
    uses few.
    """
    program = peers.node_program("kafka-node-0.7")
    with (
        KafkaBroker(num_partitions=1) as kafka,
        Gateway(kafka.bootstrap_servers, v07_port=0, v07_messages="plain") as gateway,
        Producer(bootstrap_servers=kafka.bootstrap_servers) as producer,
    ):
        process = subprocess.Popen(
            [peers.need("node"), "main.js", str(gateway.v07_port), "t", "10"],
            cwd=program,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(10)]
            assert [line.rstrip() for line in lines] == [f"t from node {number}" for number in range(10)]
            producer.send("t", b"from today", key=b"k").result(peers.PATIENCE_S)
            assert process.stdout.readline().rstrip() == "t from today"
        finally:
            process.kill()
            process.communicate()
