"""Tests that producer ids are given out once, and that producers are recognized after a clean shutdown."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.bench_node import NOW_MS, ask, batch_of, make_node, make_topic, produce, produce_request
from broker.wire_client import WireClient
from penstock import Broker
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata import producer_ids as producer_ids_module
from penstock.broker.metadata.producer_ids import ID_LIMIT, greatest_producer_id
from penstock.broker.metadata.stores import open_disk_store
from penstock.broker.node import Node
from penstock.broker.partitions.producers import producer_state_manager
from penstock.broker.partitions.producers.producer_snapshots import ProducerSnapshots
from penstock.clock import ManualClock
from penstock.log.segments.headers import headers_behind
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest

METADATA = "__cluster_metadata-0"
ID_REQUEST = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
SEGMENT = f"{0:020d}.log"


def disk_node(path: Path) -> Node:
    clock = ManualClock(NOW_MS)
    return make_node(open_disk_store(str(path), BrokerConfig(), clock), clock)


def new_id(node: Node) -> int:
    answer = ask(node, ID_REQUEST, 4)
    assert answer.error_code == 0
    return int(answer.producer_id)


def write(node: Node, producer_id: int, sequence: int = 0) -> int:
    records = batch_of(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    answer = produce(node, records)
    assert answer.error_code == 0
    return int(answer.base_offset)


def stop(node: Node) -> None:
    """Stop a node with a clean shutdown, which writes the producer snapshots."""
    assert node.note_producers() == []
    node.store.close()


def snapshots_in(path: Path) -> list[int]:
    return ProducerSnapshots(str(path / "t-0")).offsets()


def lose(directory: Path) -> None:
    shutil.rmtree(directory / METADATA)


def cut(directory: Path) -> None:
    """Truncate the metadata log after the topic's records, so that the producer id records are lost."""
    path = directory / METADATA / SEGMENT
    ends = [entry.position + entry.size for _, entry, _ in headers_behind(str(directory / METADATA))]
    with path.open("r+b") as file:
        file.truncate(ends[1])
    for index in path.parent.glob("*index"):
        index.unlink()


@pytest.mark.parametrize("harm", [lose, cut])
@pytest.mark.parametrize("end", [stop, lambda node: node.store.abandon()], ids=["clean", "killed"])
def test_ids_begin_above_those_that_partitions_hold(
    harm: Callable[[Path], None], end: Callable[[Node], None], tmp_path: Path
) -> None:
    node = disk_node(tmp_path)
    make_topic(node)
    older = [new_id(node) for _ in range(3)]
    assert [write(node, producer_id) for producer_id in older] == [0, 1, 2]
    end(node)
    harm(tmp_path)
    again = disk_node(tmp_path)
    newer = new_id(again)
    assert newer > max(older)
    assert write(again, newer) == 3, "the first record of a new producer is no repetition"
    assert write(again, older[0]) == 0
    again.store.close()


def test_ids_begin_above_those_of_a_metadata_log_that_is_an_older_copy(tmp_path: Path) -> None:
    node = disk_node(tmp_path / "data")
    make_topic(node)
    new_id(node)
    stop(node)
    shutil.copytree(tmp_path / "data" / METADATA, tmp_path / "older")
    node = disk_node(tmp_path / "data")
    given = [new_id(node) for _ in range(1500)]
    write(node, given[-1])
    stop(node)
    lose(tmp_path / "data")
    shutil.copytree(tmp_path / "older", tmp_path / "data" / METADATA)
    again = disk_node(tmp_path / "data")
    newer = new_id(again)
    assert newer > max(given)
    assert write(again, newer) == 1
    stop(again)
    last = disk_node(tmp_path / "data")
    assert new_id(last) > newer, "what was skipped is in the metadata log from then on"
    last.store.close()


def test_ids_in_snapshots_count_where_the_batches_have_gone(tmp_path: Path) -> None:
    node = disk_node(tmp_path)
    make_topic(node)
    write(node, 7000)
    node.cluster.topic("t").partition(0).delete_records(-1)
    stop(node)
    lose(tmp_path)
    again = disk_node(tmp_path)
    assert new_id(again) > 7000
    again.store.close()


def test_ids_that_no_broker_gave_out_do_not_use_up_the_numbers(tmp_path: Path) -> None:
    node = disk_node(tmp_path)
    make_topic(node)
    for producer_id in (2**63 - 1, ID_LIMIT):
        write(node, producer_id)
    first = new_id(node)
    stop(node)
    again = disk_node(tmp_path)
    assert first < new_id(again) < 3000
    again.store.close()


def test_damage_hides_no_ids_of_other_segments(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    node = disk_node(tmp_path)
    make_topic(node, segment_bytes="100")
    for producer_id in (5, 6000, 7):
        write(node, producer_id)
    node.store.abandon()
    logs = sorted((tmp_path / "t-0").glob("*.log"))
    assert len(logs) == 3
    data = bytearray(logs[0].read_bytes())
    data[16] = 9  # the magic
    logs[0].write_bytes(data)
    assert greatest_producer_id([str(tmp_path / "t-0"), str(tmp_path / "none")]) == 6000
    assert "is damaged: no batch at position 0" in caplog.text
    assert "none are not known to the end" in caplog.text


def test_what_lies_before_a_snapshot_is_not_walked(tmp_path: Path) -> None:
    node = disk_node(tmp_path)
    make_topic(node, index_interval_bytes="200")
    for sequence in range(100):
        write(node, 1, sequence)
    stop(node)
    seen = [entry.base_offset for _, entry, _ in headers_behind(str(tmp_path / "t-0"), 60)]
    assert seen == list(range(60, 100))
    assert list(headers_behind(str(tmp_path / "t-0"), 100)) == []
    (tmp_path / "t-0" / f"{0:020d}.index").write_bytes(bytes.fromhex("0000000100000007"))
    assert len(list(headers_behind(str(tmp_path / "t-0"), 60))) == 40, "an index that lies costs a walk"


def test_a_garbled_snapshot_costs_a_walk(tmp_path: Path) -> None:
    node = disk_node(tmp_path)
    make_topic(node)
    write(node, 4321)
    stop(node)
    assert snapshots_in(tmp_path) == [1]
    (tmp_path / "t-0" / f"{1:020d}.snapshot").write_bytes(b"\0\1garbage")
    assert greatest_producer_id([str(tmp_path / "t-0")]) == 4321
    again = disk_node(tmp_path)
    assert write(again, 4321) == 0
    again.store.close()


# --- through a server ------------------------------------------------------------------------------------


def fill(client: WireClient) -> None:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    assert client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5).topics[0].error_code == 0
    producer_id = client.ask(ID_REQUEST, 4).producer_id
    batch = batch_of(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0)
    assert client.ask(produce_request(batch), 9).responses[0].partition_responses[0].error_code == 0


def test_requests_wait_for_the_search_and_are_answered_once_each(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker, WireClient(broker.port) as client:
        fill(client)
    lose(tmp_path)
    with Broker(data_dir=tmp_path) as broker, WireClient(broker.port) as client:
        with WireClient(broker.port) as other:
            sent = [each.send(ID_REQUEST, 4) for each in (client, other, client)]
            answers = [each.receive() for each in (client, other, client)]
        assert [correlation_id for correlation_id, _ in answers] == sent
        ids = {answer.producer_id for _, answer in answers}
        assert len(ids) == 3
        assert min(ids) >= 1000
        assert client.ask(ID_REQUEST, 4).producer_id > max(ids)


def test_a_search_that_fails_is_told_and_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Broker(data_dir=tmp_path) as broker, WireClient(broker.port) as client:
        fill(client)

    def fail(directories: object) -> int:
        raise MemoryError

    with Broker(data_dir=tmp_path) as broker, WireClient(broker.port) as client:
        with monkeypatch.context() as patch:
            patch.setattr(producer_ids_module, "greatest_producer_id", fail)
            assert client.ask(ID_REQUEST, 4).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert "producer ids failed" in caplog.text
        assert client.ask(ID_REQUEST, 4).error_code == 0


@pytest.mark.parametrize("runs", [1, 4])
def test_a_repetition_after_a_stop_in_order_is_recognised(runs: int, tmp_path: Path) -> None:
    """After a restart the broker recognizes all five batches that can be in flight.

    This also holds after several short runs with one batch each.
    """
    for run in range(runs):
        with Broker(data_dir=tmp_path) as broker, WireClient(broker.port) as client:
            if run == 0:
                fill(client)
                for sequence in range(1, 6):
                    send(client, sequence)
            else:
                send(client, 5 + run)
        assert snapshots_in(tmp_path) == [6 + run]
    newest = 5 + runs - 1
    with Broker(data_dir=tmp_path) as broker, WireClient(broker.port) as client:
        offsets = [send(client, sequence) for sequence in range(newest - 4, newest + 1)]
        assert offsets == list(range(newest - 4, newest + 1))
        assert send(client, newest + 1) == newest + 1


def send(client: WireClient, sequence: int) -> int:
    batch = batch_of(b"v", producer_id=0, producer_epoch=0, base_sequence=sequence)
    answer = client.ask(produce_request(batch), 9).responses[0].partition_responses[0]
    assert answer.error_code == 0
    return int(answer.base_offset)


def test_the_snapshot_a_start_begins_with_moves_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start reads the batches after a producer snapshot.

    Even if all runs of the broker are short, newer snapshots keep their number small.
    """
    monkeypatch.setattr(producer_state_manager, "BATCHES_PER_SNAPSHOT", 10)
    node = disk_node(tmp_path)
    make_topic(node)
    found = []
    for sequence in range(60):
        write(node, 1, sequence)
        if sequence % 3 == 2:
            stop(node)
            found.append(snapshots_in(tmp_path))
            node = disk_node(tmp_path)
    node.store.close()
    assert found[0] == [3]
    assert found[5] == [18]
    assert found[6] == [18, 21], "more than twenty batches: from here on the one before is the base"
    assert found[7] == [18, 24]
    assert all(newest - oldest <= 23 for oldest, *_, newest in found[6:])


def test_a_log_without_any_snapshot_gets_one_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clean shutdown writes a producer snapshot, if few batches must be read for it.

    Apache Kafka assumes after a clean shutdown without a snapshot that the log has no producers.
    """
    node = disk_node(tmp_path)
    make_topic(node)
    for sequence in range(3):
        write(node, 1, sequence)
    node.store.abandon()
    node = disk_node(tmp_path)
    assert node.cluster.topic("t").partition(0).high_watermark == 3
    stop(node)
    assert snapshots_in(tmp_path) == [3]
    (tmp_path / "t-0" / f"{3:020d}.snapshot").unlink()
    monkeypatch.setattr(producer_state_manager, "BATCHES_PER_SNAPSHOT", 1)
    node = disk_node(tmp_path)
    assert node.cluster.topic("t").partition(0).high_watermark == 3
    stop(node)
    assert snapshots_in(tmp_path) == [], "a long log is not walked for it"
