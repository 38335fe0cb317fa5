"""Tests that move files and directories away from a running broker: it acknowledges no more writes there."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.bench_node import NOW_MS, batch_of, make_node, make_topic, produce
from log.log_laws import T0, fill
from penstock import Broker, Producer
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.stores import open_store
from penstock.broker.node import Node
from penstock.clock import ManualClock
from penstock.errors import PenstockError, StorageError
from penstock.log.disk.disk_log import DiskLog
from penstock.protocol.error_codes import ErrorCode
from penstock.v07.byte_log import ByteLog, ByteLogConfig


def remove_data(data: Path) -> None:
    shutil.rmtree(data)


def move_data(data: Path) -> None:
    data.rename(data.with_name("elsewhere"))


def replace_data(data: Path) -> None:
    move_data(data)
    shutil.copytree(data.with_name("elsewhere"), data)


def remove_partition(data: Path) -> None:
    shutil.rmtree(data / "t-0")


def move_partition(data: Path) -> None:
    (data / "t-0").rename(data / "elsewhere")


def replace_partition(data: Path) -> None:
    move_partition(data)
    shutil.copytree(data / "elsewhere", data / "t-0")


def remove_segment(data: Path) -> None:
    (data / "t-0" / f"{0:020d}.log").unlink()


def replace_segment(data: Path) -> None:
    path = data / "t-0" / f"{0:020d}.log"
    path.with_suffix(".copy").write_bytes(path.read_bytes())
    os.replace(path.with_suffix(".copy"), path)


WAYS: list[Callable[[Path], None]] = [
    remove_data,
    move_data,
    replace_data,
    remove_partition,
    move_partition,
    replace_partition,
    remove_segment,
    replace_segment,
]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def node(tmp_path: Path, clock: ManualClock) -> Node:
    node = make_node(open_store(BrokerConfig({"log.dirs": str(tmp_path / "data")}), clock), clock)
    make_topic(node)
    assert produce(node, batch_of(b"x")).error_code == 0
    return node


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("keeps_house", [True, False])
def test_within_a_second_nothing_more_is_acknowledged(
    node: Node, clock: ManualClock, tmp_path: Path, way: Callable[[Path], None], keeps_house: bool
) -> None:
    way(tmp_path / "data")
    if keeps_house:  # half a second later a record would still be taken; not once it was noticed
        clock.advance(500)
        (problem,) = node.maintain(clock.now_ms())
        assert "put it back" in str(problem)
    else:
        clock.advance(1000)
    for _ in range(3):
        answer = produce(node, batch_of(b"x"))
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "put it back" in answer.error_message
    node.store.abandon()


def test_it_is_said_once_and_what_is_put_back_is_written_to_again(
    node: Node, clock: ManualClock, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    move_partition(data)
    said = set()
    for _ in range(5):
        clock.advance(1000)
        said |= {str(problem) for problem in node.maintain(clock.now_ms())}
        assert produce(node, batch_of(b"x")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(said) == 1
    (data / "elsewhere").rename(data / "t-0")
    assert node.maintain(clock.now_ms()) == []
    assert produce(node, batch_of(b"x")).base_offset == 1
    node.store.close()


def test_nothing_is_made_in_a_directory_that_took_the_place_of_ours(
    node: Node, clock: ManualClock, tmp_path: Path
) -> None:
    move_data(tmp_path / "data")
    (tmp_path / "data").mkdir()
    clock.advance(1000)
    with pytest.raises(StorageError, match="put it back"):
        make_topic(node, "new")
    with pytest.raises(StorageError, match="put it back"):
        node.store.end_checkpoint(())
    with pytest.raises(StorageError, match="put it back"):
        node.store.close()
    assert list((tmp_path / "data").iterdir()) == []


def test_a_partition_that_is_gone_before_its_first_use_is_not_begun_anew(
    tmp_path: Path, clock: ManualClock
) -> None:
    config = BrokerConfig({"log.dirs": str(tmp_path / "data")})
    node = make_node(open_store(config, clock), clock)
    make_topic(node)
    produce(node, batch_of(b"x"))
    node.store.close()
    node = make_node(open_store(config, clock), clock)
    remove_partition(tmp_path / "data")
    assert produce(node, batch_of(b"x")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not (tmp_path / "data" / "t-0").exists()
    node.store.abandon()


def test_what_was_removed_is_not_said_to_be_on_the_disk(tmp_path: Path) -> None:
    log = DiskLog(str(tmp_path / "t-0"), now_ms=T0)
    fill(log, 2)
    pending = log.pending_flush()
    shutil.rmtree(tmp_path / "t-0")
    with pytest.raises(StorageError, match="put it back"):
        pending.sync()


def test_idle_logs_are_looked_at_in_turn_and_cost_no_descriptors(
    node: Node, clock: ManualClock, tmp_path: Path
) -> None:
    make_topic(node, "many", partitions=20)
    for index in range(20):
        assert produce(node, batch_of(b"x"), topic="many", partition=index).error_code == 0
    node.store.close()
    node = make_node(open_store(BrokerConfig({"log.dirs": str(tmp_path / "data")}), clock), clock)
    for partition in node.cluster.partitions():
        assert partition.log.end_offset
    before = len(os.listdir("/proc/self/fd"))
    assert node.maintain(clock.now_ms()) == []
    assert len(os.listdir("/proc/self/fd")) <= before
    shutil.rmtree(tmp_path / "data" / "many-7")
    (problem,) = node.maintain(clock.now_ms())
    assert "many-7" in str(problem)
    node.store.abandon()


@pytest.mark.parametrize("way", WAYS)
def test_a_log_of_kafka_07(tmp_path: Path, way: Callable[[Path], None]) -> None:
    log = ByteLog(str(tmp_path / "data" / "t-0"), ByteLogConfig(), now_ms=T0, is_clean=True)
    (path,) = (tmp_path / "data" / "t-0").iterdir()
    path.rename(path)
    log.append(memoryview(b"0123456789"), 1, now_ms=T0)
    if way in (remove_segment, replace_segment):
        if way is remove_segment:
            path.unlink()
        else:
            path.with_suffix(".copy").write_bytes(b"0123456789")
            os.replace(path.with_suffix(".copy"), path)
    else:
        way(tmp_path / "data")
    log.append(memoryview(b"x"), 1, now_ms=T0 + 999)
    for _ in range(2):
        with pytest.raises(StorageError, match="put it back"):
            log.append(memoryview(b"x"), 1, now_ms=T0 + 1000)


def send_for_ever(producer: Producer) -> None:
    while True:
        producer.send("t", b"2").result()


def test_a_running_broker_says_so_in_its_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """This test runs a whole broker with sockets and the system clock."""
    broker = Broker(tmp_path / "data").start()
    try:
        with Producer(broker.bootstrap_servers, config={"delivery.timeout.ms": 3000}) as producer:
            producer.send("t", b"1").result()
            move_data(tmp_path / "data")
            with pytest.raises(PenstockError):
                send_for_ever(producer)
    finally:
        with pytest.raises(StorageError):
            broker.close()
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert any("put it back" in line for line in lines)
