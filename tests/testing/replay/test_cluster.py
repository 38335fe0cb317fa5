"""Tests of replaying a recorded cluster to an application: unrecorded requests are reported by name."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock import Admin, Consumer, Producer
from penstock.errors import ConfigError, PenstockError
from penstock.model import TopicPartition
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.framing import decode_response, encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.init_producer_id_response import InitProducerIdResponse
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.records.batch import encode_batch
from penstock.testing.replay import NotRecordedError, PlayedCluster, Recording, mask_all
from testing.replay.shop import COUNT, capture, order, read_orders, write_orders
from testing.replay.talks import captured


def recording() -> Recording:
    return Recording.from_pcap(capture())


def ask(cluster: PlayedCluster, request: Message, version: int) -> Message:
    """Send one request over a connection of its own, and return the response."""
    host, _, port = cluster.bootstrap_servers.split(",")[0].rpartition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(b"".join(encode_request(request, version, 7, "me")))
        file = connection.makefile("rb")
        frame = file.read(int.from_bytes(file.read(4), "big"))
    return decode_response(frame, API_TABLE[request.API_KEY or 0].response, version)[1]


@contextmanager
def refused(text: str) -> Iterator[PlayedCluster]:
    """Yield a replayed cluster, and check that the block ends with an error that matches `text`."""
    with pytest.raises(NotRecordedError, match=text), recording().cluster() as cluster:
        yield cluster


def test_the_application_runs_as_it_did() -> None:
    with recording().cluster() as cluster:
        write_orders(cluster.bootstrap_servers)
        assert read_orders(cluster.bootstrap_servers) == [order(number) for number in range(COUNT)]
        assert cluster.unasked == []


def test_offsets_are_the_recorded_ones_however_records_are_divided() -> None:
    with recording().cluster() as cluster, Producer(cluster.bootstrap_servers) as producer:
        offsets = []
        for number in range(COUNT):
            headers = [("trace", b"t-%d" % number)]
            sent = producer.send("orders", order(number), key=b"k%d" % number, headers=headers)
            offsets.append(sent.result(timeout=10).offset)
        assert offsets == list(range(COUNT))


def test_what_is_still_to_come_is_listed() -> None:
    with recording().cluster() as cluster:
        write_orders(cluster.bootstrap_servers, 4)
        unasked = cluster.unasked
        assert "Produce to orders-0: 6 records were not written" in unasked
        assert any(each.startswith("LeaveGroup v") for each in unasked)
        read_orders(cluster.bootstrap_servers)


def test_reading_from_the_middle() -> None:
    with (
        recording().cluster() as cluster,
        Consumer(cluster.bootstrap_servers, config={"client.id": "desk"}) as consumer,
    ):
        partition = TopicPartition("orders", 0)
        consumer.assign([partition])
        consumer.seek(partition, 6)
        rows = consumer.poll(timeout_ms=10_000)
        assert [row.offset for row in rows] == list(range(6, COUNT))
        consumer.seek(partition, 0)
        assert len(consumer.poll(timeout_ms=10_000)) == COUNT


def test_another_value_is_named() -> None:
    with (
        refused(
            r"Produce v\d+ of 'shop': orders-0: record 0 of the request has value .*, recorded is"
        ) as cluster,
        Producer(cluster.bootstrap_servers, config={"client.id": "shop"}) as producer,
    ):
        sent = producer.send("orders", b"other", key=b"k0", headers=[("trace", b"t-0")])
        with pytest.raises(PenstockError):
            sent.result(timeout=10)


def test_masked_values_are_not_compared() -> None:
    masked = Recording.from_pcap(capture(), mask=mask_all("values", "headers"))
    with masked.cluster() as cluster, Producer(cluster.bootstrap_servers) as producer:
        assert producer.send("orders", b"other", key=b"k0").result(timeout=10).offset == 0
        with pytest.raises(PenstockError):
            producer.send("orders", b"other", key=b"k0").result(timeout=10)
        assert "has key b'k0', recorded is b'k1'" in cluster.unrecorded[0]
        cluster.unrecorded.clear()


def test_places_masked_in_other_topics_are_compared(tmp_path: Path) -> None:
    rules = [mask_all("values", "headers"), mask_all("keys", topics="others")]
    masked = Recording.from_pcap(capture(), mask=rules)
    masked.save(tmp_path / "it.rec")
    loaded = Recording.load(tmp_path / "it.rec")
    assert loaded.masked == ("headers", "keys:others", "values")
    with loaded.cluster() as cluster, Producer(cluster.bootstrap_servers) as producer:
        with pytest.raises(PenstockError):
            producer.send("orders", b"other", key=b"other").result(timeout=10)
        assert "has key b'other', recorded is b'k0'" in cluster.unrecorded[0]
        cluster.unrecorded.clear()


def test_more_records_than_were_recorded() -> None:
    with refused("orders-0: 1 records more than were recorded") as cluster:
        write_orders(cluster.bootstrap_servers)
        write_orders(cluster.bootstrap_servers, 1)


def test_another_api_is_named() -> None:
    with (
        refused("CreateTopics v.*: no request of this API is recorded") as cluster,
        Admin(cluster.bootstrap_servers) as admin,
        pytest.raises(PenstockError, match="not recorded"),
    ):
        admin.create_topic("more")


def test_another_group_is_named() -> None:
    version = next(each.version for each in recording().exchanges if each.api == "FindCoordinator")
    with refused(
        r"FindCoordinator v6 of 'me': coordinator_keys is \('other',\), recorded is \('desk',\)"
    ) as cluster:
        answer = ask(cluster, FindCoordinatorRequest(coordinator_keys=["other"]), version)
        assert answer.coordinators[0].error_code == -1  # type: ignore[attr-defined]


def test_another_version_is_named() -> None:
    with refused(r"Metadata v1 of 'me': recorded are versions \d+") as cluster:
        ask(cluster, MetadataRequest(topics=[]), 1)


def test_another_topic_is_named() -> None:
    version = next(each.version for each in recording().exchanges if each.api == "Metadata")
    with refused("no Metadata of topic 'others' is recorded") as cluster:
        ask(cluster, MetadataRequest(topics=[MetadataRequestTopic(name="others")]), version)


def test_metadata_is_put_together_with_addresses_of_the_player() -> None:
    version = next(each.version for each in recording().exchanges if each.api == "Metadata")
    topics = [MetadataRequestTopic(name="orders")]
    with recording().cluster() as cluster:
        for flag in (True, False):  # with the other flag it was never asked
            request = MetadataRequest(topics=topics, include_topic_authorized_operations=flag)
            answer = ask(cluster, request, version)
            assert [topic.name for topic in answer.topics] == ["orders"]  # type: ignore[attr-defined]
            (broker,) = answer.brokers  # type: ignore[attr-defined]
            assert f"{broker.host}:{broker.port}" == cluster.bootstrap_servers


def test_clients_are_led_to_the_recorded_versions() -> None:
    with recording().cluster() as cluster:
        for version in (0, 3):
            answer = ask(cluster, ApiVersionsRequest(), version)
            offered = {each.api_key: each for each in answer.api_keys}  # type: ignore[attr-defined]
            produce = {each.version for each in recording().exchanges if each.api == "Produce"}
            assert {offered[ApiKey.PRODUCE].min_version, offered[ApiKey.PRODUCE].max_version} == produce


def test_a_newer_api_versions_is_answered_as_kafka_does() -> None:
    with recording().cluster() as cluster:
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port)), 10) as connection:
            frame = bytearray(b"".join(encode_request(ApiVersionsRequest(), 4, 7, "me")))
            frame[6:8] = (99).to_bytes(2, "big")
            connection.sendall(frame)
            file = connection.makefile("rb")
            answer = file.read(int.from_bytes(file.read(4), "big"))
        assert answer[4:6] == (35).to_bytes(2, "big")


def by_hand(*talks: tuple[Message, Message, int]) -> Recording:
    return Recording.from_pcap(captured(*talks))


def test_every_broker_has_a_port() -> None:
    brokers = [MetadataResponseBroker(node_id=each, host=f"kafka-{each}", port=9092) for each in (3, 5)]
    coordinator = FindCoordinatorResponse(node_id=5, host="kafka-5", port=9092)
    made = by_hand(
        (MetadataRequest(topics=[]), MetadataResponse(brokers=brokers), 9),
        (FindCoordinatorRequest(key="desk"), coordinator, 3),
    )
    with made.cluster() as cluster:
        metadata: Any = ask(cluster, MetadataRequest(topics=[]), 9)
        assert ",".join(f"{each.host}:{each.port}" for each in metadata.brokers) == cluster.bootstrap_servers
        found: Any = ask(cluster, FindCoordinatorRequest(key="desk"), 3)
        assert (found.host, found.port) == (metadata.brokers[1].host, metadata.brokers[1].port)
        assert metadata.brokers[0].port != metadata.brokers[1].port


def fetch(offset: int, *, session_id: int = 0, epoch: int = -1, names: bool = True) -> FetchRequest:
    partitions = [FetchPartition(partition=0, fetch_offset=offset)]
    topics = [FetchTopic(topic="orders", partitions=partitions)] if names else []
    return FetchRequest(topics=topics, session_id=session_id, session_epoch=epoch, max_wait_ms=1)


def fetched(records: bytes = b"", code: int = 0) -> FetchResponse:
    part = PartitionData(error_code=code, high_watermark=9, records=records)
    return FetchResponse(session_id=7, responses=[FetchableTopicResponse(topic="orders", partitions=[part])])


def answered(cluster: PlayedCluster, offset: int) -> PartitionData:
    answer: Any = ask(cluster, fetch(offset), 11)
    (part,) = answer.responses[0].partitions
    assert isinstance(part, PartitionData)
    return part


def test_a_fetch_is_answered_by_offset_and_not_by_session() -> None:
    batches = [encode_batch([(None, b"%d" % each, (), 0)], base_offset=each) for each in range(4)]
    made = by_hand(
        (fetch(0, epoch=0), FetchResponse(session_id=7, responses=[]), 11),
        (fetch(0, session_id=7, epoch=1, names=False), fetched(code=6), 11),
        (fetch(0, session_id=7, epoch=2, names=False), fetched(b"".join(batches)), 11),
        (fetch(4, session_id=7, epoch=3), FetchResponse(session_id=7), 11),
    )
    with made.cluster() as cluster:
        assert answered(cluster, 0).error_code == 6  # in the recorded order
        assert bytes(answered(cluster, 0).records) == b"".join(batches)
        assert bytes(answered(cluster, 2).records) == b"".join(batches[2:])
        assert bytes(answered(cluster, 0).records) == b"".join(batches)
        for _ in range(2):
            assert (answered(cluster, 4).records, answered(cluster, 4).high_watermark) == (b"", 9)
        refusal: Any = ask(cluster, fetch(8), 11)
        assert refusal.error_code == -1
        assert cluster.unrecorded == ["Fetch v11 of 'me': orders-0: no fetch at offset 8 was recorded"]
        cluster.unrecorded.clear()


def test_a_partition_that_never_had_records_is_empty() -> None:
    made = by_hand((fetch(0, epoch=0), FetchResponse(session_id=7), 11))
    with made.cluster() as cluster:
        assert (answered(cluster, 0).records, answered(cluster, 0).error_code) == (b"", 0)


def test_a_write_that_failed_fails_again_and_is_then_taken() -> None:
    def write(*values: bytes) -> ProduceRequest:
        records = encode_batch([(None, value, (), 0) for value in values])
        part = PartitionProduceData(index=0, records=records)
        return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="orders", partition_data=[part])])

    def written(offset: int, code: int = 0) -> ProduceResponse:
        part = PartitionProduceResponse(index=0, base_offset=offset, error_code=code)
        return ProduceResponse(responses=[TopicProduceResponse(name="orders", partition_responses=[part])])

    made = by_hand(
        (write(b"a"), written(5), 9),
        (write(b"b", b"c"), written(-1, code=6), 9),
        (write(b"b", b"c"), written(6), 9),
    )
    with made.cluster() as cluster:
        for values, offset, code in (((b"a",), 5, 0), ((b"b",), -1, 6), ((b"b",), 6, 0), ((b"c",), 7, 0)):
            answer: Any = ask(cluster, write(*values), 9)
            (part,) = answer.responses[0].partition_responses
            assert (part.base_offset, part.error_code) == (offset, code)
        assert cluster.unasked == []


def test_what_changes_something_is_answered_once() -> None:
    made = by_hand(
        (InitProducerIdRequest(), InitProducerIdResponse(producer_id=4, producer_epoch=0), 3),
        (HeartbeatRequest(group_id="g"), HeartbeatResponse(error_code=27), 3),
        (HeartbeatRequest(group_id="g", generation_id=9), HeartbeatResponse(), 3),
    )
    with made.cluster() as cluster:
        answers: list[Any] = [ask(cluster, HeartbeatRequest(group_id="g"), 3) for _ in range(3)]
        assert [each.error_code for each in answers] == [27, 0, 0]
        answers = [ask(cluster, InitProducerIdRequest(producer_id=8), 3) for _ in range(2)]
        assert [each.producer_id for each in answers] == [4, -1]
        assert cluster.unrecorded == ["InitProducerId v3 of 'me': it was made more often than recorded"]
        cluster.unrecorded.clear()


def test_bytes_that_are_no_request_are_named() -> None:
    with refused("a frame that is no request") as cluster:
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert connection.recv(1) == b""


def test_an_error_of_the_block_keeps_its_place() -> None:
    def run() -> None:
        with recording().cluster() as cluster:
            ask(cluster, MetadataRequest(topics=[]), 1)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        run()
    assert "Metadata v1" in caught.value.__notes__[0]


def test_what_was_not_recorded_goes_to_a_broker() -> None:
    with recording().cluster(otherwise="broker") as cluster:
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_topic("more")
        write_orders(cluster.bootstrap_servers, 3, topic="more")
        assert cluster.broker is not None
        with Consumer(cluster.broker.bootstrap_servers) as consumer:
            consumer.assign([TopicPartition("more", 0)])
            consumer.seek(TopicPartition("more", 0), 0)
            assert len(consumer.poll(timeout_ms=10_000)) == 3
        assert read_orders(cluster.bootstrap_servers) == [order(number) for number in range(COUNT)]
        assert cluster.unrecorded == []


def test_another_choice_is_refused() -> None:
    with pytest.raises(ConfigError, match="'error' or 'broker'"):
        recording().cluster(otherwise="panic")  # type: ignore[arg-type]
