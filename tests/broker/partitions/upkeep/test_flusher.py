"""Tests of topics that are flushed to disk: which requests wait for a flush, and what a failed one causes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.bench_node import batch_of, produce_request
from broker.wire_client import WireClient, is_well
from penstock import Admin, Broker
from penstock.common import operating_system
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic


class Device:
    """A slow disk for tests: flushes wait until the event `gate` is set, and fail if `is_broken`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate = threading.Event()
        self.flushes = 0
        self.is_broken = False
        self.is_asked = threading.Event()
        real = operating_system.fdatasync

        def flush(fd: int) -> None:
            if not threading.current_thread().name.startswith("penstock-flush"):
                real(fd)  # the cluster's own log
                return
            self.is_asked.set()
            assert self.gate.wait(20)
            self.flushes += 1
            if self.is_broken:
                raise OSError(5, "Input/output error")
            real(fd)

        monkeypatch.setattr(operating_system, "fdatasync", flush)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    return Device(monkeypatch)


@pytest.fixture
def broker(tmp_path: Path, device: Device) -> Iterator[Broker]:
    with Broker(data_dir=str(tmp_path)) as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topic("safe", config={"flush.messages": "1"})
            admin.create_topic("fast")
        yield broker
        device.is_broken = False
        device.gate.set()


def test_only_those_wait_who_asked_for_it(broker: Broker, device: Device) -> None:
    with WireClient(broker.port) as safe, WireClient(broker.port) as fast:
        safe.send(produce_request(batch_of(b"x"), topic="safe"), 9)
        assert device.is_asked.wait(10)
        for _ in range(5):
            answer = fast.ask(produce_request(batch_of(b"x"), topic="fast"), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
        assert is_well(broker.port)
        assert device.flushes == 0
        device.gate.set()
        assert safe.receive()[1].responses[0].partition_responses[0].base_offset == 0
        assert device.flushes >= 1


def test_what_comes_meanwhile_shares_one_flush(broker: Broker, device: Device) -> None:
    clients = [WireClient(broker.port) for _ in range(20)]
    clients[0].send(produce_request(batch_of(b"x"), topic="safe"), 9)
    assert device.is_asked.wait(10)
    for client in clients[1:]:
        client.send(produce_request(batch_of(b"x"), topic="safe"), 9)
    with WireClient(broker.port) as reader:
        # All twenty are in the log, though not on the disk.
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            min_bytes=20 * len(batch_of(b"x")),
            max_wait_ms=10_000,
            topics=[FetchTopic(topic="safe", partitions=[asked])],
        )
        assert reader.ask(request, 12).responses[0].partitions[0].high_watermark == 20
    device.gate.set()
    offsets = [c.receive()[1].responses[0].partition_responses[0].base_offset for c in clients]
    assert sorted(offsets) == list(range(20))
    assert device.flushes == 2
    for client in clients:
        client.socket.close()


def test_a_device_that_fails_is_reported_to_the_producer_and_survived(broker: Broker, device: Device) -> None:
    device.gate.set()
    with WireClient(broker.port) as client:
        for broken, version, code in ((True, 9, 56), (True, 3, 6), (False, 9, 0)):
            device.is_broken = broken
            answer = client.ask(produce_request(batch_of(b"x"), topic="safe"), version)
            partition = answer.responses[0].partition_responses[0]
            assert partition.error_code == code
            assert (partition.base_offset == -1) == bool(code)
    assert is_well(broker.port)


def test_acks_0_waits_for_nothing(broker: Broker, device: Device) -> None:
    with WireClient(broker.port) as client:
        client.send(produce_request(batch_of(b"x"), topic="safe", acks=0), 9)
        assert device.is_asked.wait(10)
    assert is_well(broker.port)


def test_a_topic_deleted_meanwhile_answers_who_waits(broker: Broker, device: Device) -> None:
    with WireClient(broker.port) as first, WireClient(broker.port) as second:
        first.send(produce_request(batch_of(b"x"), topic="safe"), 9)
        assert device.is_asked.wait(10)
        second.send(produce_request(batch_of(b"x"), topic="safe"), 9)
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.delete_topics(["safe"])
        device.gate.set()
        assert first.receive()[1].responses
        assert second.receive()[1].responses
    assert is_well(broker.port)
