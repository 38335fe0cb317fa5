"""Tests of a test broker as a whole: pauses, kills, restarts, and control of its clock."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from broker.bench_node import batch_of, produce_request
from broker.wire_client import WireClient, is_well
from penstock.errors import KafkaError, NetworkError
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.testing import KafkaBroker


def offset_at(client: WireClient, topic: str, timestamp: int) -> int:
    asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(timestamp=timestamp)])
    offset = client.ask(ListOffsetsRequest(replica_id=-1, topics=[asked]), 5).topics[0].partitions[0].offset
    assert isinstance(offset, int)
    return offset


def write(broker: KafkaBroker, topic: str, *values: bytes) -> None:
    with WireClient(broker.port) as client:
        request = produce_request(batch_of(*values, time_ms=broker.clock.now_ms()), topic)
        assert client.ask(request, 9).responses[0].partition_responses[0].error_code == 0


def end_of(broker: KafkaBroker, topic: str) -> int:
    with WireClient(broker.port) as client:
        return offset_at(client, topic, -1)


def test_paused_it_answers_nobody_and_then_everybody() -> None:
    with KafkaBroker() as broker, WireClient(broker.port) as client:
        with broker.paused():
            client.socket.sendall(b"\0\0\0\x11\0\x12\0\3\0\0\0\1\0\1x\0\2a\2b\0")
            client.socket.settimeout(0.1)
            with pytest.raises(TimeoutError):
                client.receive_frame()
            with WireClient(broker.port):  # the system takes the connection; nobody answers
                broker.pause()
        client.socket.settimeout(10)
        assert client.receive_frame()[:4] == b"\0\0\0\1"


def test_closing_while_paused() -> None:
    with KafkaBroker() as broker:
        broker.pause()
    assert not broker.is_running


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
def test_restarted_it_keeps_port_and_data(tmp_path: Path, kill: bool, on_disk: bool) -> None:
    with KafkaBroker(tmp_path / "data" if on_disk else None) as broker:
        port = broker.port
        broker.create_topic("t", partitions=1)
        write(broker, "t", b"a", b"b")
        with WireClient(broker.port) as client:
            broker.restart(kill=kill)
            assert client.is_closed_by_peer()
        assert broker.port == port
        assert end_of(broker, "t") == 2
        write(broker, "t", b"c")
        assert end_of(broker, "t") == 3


def test_a_killed_broker_leaves_no_mark_of_a_clean_end(tmp_path: Path) -> None:
    mark = tmp_path / ".kafka_cleanshutdown"
    with KafkaBroker(tmp_path) as broker:
        write_topic = broker.create_topic()
        write(broker, write_topic, b"a")
        broker.kill()
        assert not broker.is_running
        assert not mark.exists()
        broker.kill()
        broker.start()
        assert end_of(broker, write_topic) == 1
        broker.close()
        assert mark.exists()


def test_time_passes_for_retention() -> None:
    with KafkaBroker() as broker:
        topic = broker.create_topic(retention_ms=60_000, segment_ms=1000)
        write(broker, topic, b"old")
        broker.advance(seconds=3600)
        write(broker, topic, b"new")
        broker.advance(seconds=3600)
        with WireClient(broker.port) as client:
            assert offset_at(client, topic, -2) >= 1
            assert is_well(broker.port)


def test_time_passes_for_those_who_wait() -> None:
    with KafkaBroker() as broker, WireClient(broker.port) as client:
        topic = broker.create_topic()
        asked = FetchTopic(topic=topic, partitions=[FetchPartition(partition_max_bytes=100)])
        with broker.faults.watch("Fetch") as fetches:
            client.send(FetchRequest(min_bytes=1, max_wait_ms=600_000, topics=[asked]), 12)
            fetches.wait()
        begin = time.monotonic()
        broker.advance(ms=600_000)
        assert client.receive()[1].error_code == 0
        assert time.monotonic() - begin < 5


def test_an_hour_makes_nobody_idle() -> None:
    with KafkaBroker() as broker, WireClient(broker.port) as client:
        topic = broker.create_topic()
        assert offset_at(client, topic, -1) == 0
        broker.advance(seconds=3600)
        assert offset_at(client, topic, -1) == 0


def test_topics_by_a_call() -> None:
    with KafkaBroker() as broker:
        first, second = broker.create_topic(), broker.create_topic()
        assert first != second
        with pytest.raises(KafkaError, match="already exists"):
            broker.create_topic(first)
        with pytest.raises(KafkaError, match=r"did you mean retention\.ms"):
            broker.create_topic("t", retention_mss=1)
    with pytest.raises(NetworkError, match="not running"):
        broker.create_topic("t")
    broker.advance(seconds=1)


def test_the_clock_travels() -> None:
    with KafkaBroker() as broker:
        topic = broker.create_topic(retention_ms=60_000)
        write(broker, topic, b"old")
        before = broker.clock.now_ms()
        broker.clock.advance(hours=1, minutes=1)
        assert broker.clock.now_ms() - before >= 3_660_000
        with WireClient(broker.port) as client:
            assert offset_at(client, topic, -2) == 1, "what retention has removed by then is gone"
        with pytest.raises(ValueError, match="cannot go back: -1000 ms"):
            broker.clock.advance(seconds=-1)
    broker.clock.advance(hours=1)  # of a broker that does not run
