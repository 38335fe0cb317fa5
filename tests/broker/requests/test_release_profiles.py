"""Tests of release profiles, with which a broker behaves as an older Kafka; requests are raw frames."""

from __future__ import annotations

import gzip
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import batch_of, produce_request
from broker.wire_client import WireClient
from for_each import for_each
from penstock import Broker
from penstock.broker.config.values import BrokerConfig, TopicConfig
from penstock.broker.handlers import ROUTES
from penstock.broker.requests.release_profiles import Profile
from penstock.errors import ConfigError
from penstock.log import scan_log
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.releases import RELEASES, release
from penstock.records.format.batch_header import split_batches
from penstock.records.legacy import encode_message, encode_message_set, iter_messages

VERSIONS = ApiVersionsRequest(client_software_name="x", client_software_version="1")
NOW_MS = 1_700_000_000_000


@contextmanager
def client_of(as_version: str, **settings: Any) -> Iterator[WireClient]:
    broker = Broker(as_version=as_version, **settings)
    with broker, WireClient(broker.port) as client:
        yield client


def ask_for_topic(client: WireClient, version: int = 0, name: str = "t") -> tuple[int, int]:
    """Send Metadata for a topic; return its error code and its number of partitions."""
    answer = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), version)
    return answer.topics[0].error_code, len(answer.topics[0].partitions)


def produce(client: WireClient, records: bytes, version: int, acks: int = -1, timeout_ms: int = 1000) -> Any:
    request = produce_request(records, acks=acks)
    request.timeout_ms = timeout_ms
    return client.ask(request, version).responses[0].partition_responses[0]


def fetch(client: WireClient, version: int, offset: int = 0, max_wait_ms: int = 0, partition: int = 0) -> Any:
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="t", partitions=[asked])]
    request = FetchRequest(min_bytes=1, max_wait_ms=max_wait_ms, topics=topics)
    return client.ask(request, version).responses[0].partitions[0]


# --- what is offered ----------------------------------------------------------------------------------------


@for_each([name for name, each in RELEASES.items() if each.numbers >= (0, 10)])
def test_api_versions_are_the_release_s(name: str) -> None:
    """A profile offers the APIs and versions of its release, as far as Penstock implements them."""
    profile = Profile(name)
    routes = profile.routes(ROUTES)
    offered = release(name).api_versions(receiver=True)
    assert routes.keys() == offered.keys() & ROUTES.keys()
    for key, (low, high) in profile.offers(routes).items():
        assert low == min(offered[key][0], routes[key].min_version)
        assert high == min(offered[key][1], ROUTES[key].max_version)


@pytest.mark.parametrize(
    ("as_version", "key", "expected"),
    [
        ("0.10.0", 0, (0, 2)),
        ("0.10.2", 1, (0, 3)),
        ("0.11", 1, (0, 5)),
        ("1.1", 3, (0, 5)),
        ("2.8", 0, (0, 9)),
        ("3.9", 1, (0, 17)),
        ("4.0", 1, (4, 17)),
        ("4.0", 18, (0, 4)),
    ],
)
def test_some_that_are_known(as_version: str, key: int, expected: tuple[int, int]) -> None:
    with client_of(as_version) as client:
        answer = client.ask(VERSIONS, 0)
        assert {e.api_key: (e.min_version, e.max_version) for e in answer.api_keys}[key] == expected


def test_what_is_not_offered_ends_the_connection() -> None:
    with client_of("0.10.2") as client:
        client.send(InitProducerIdRequest(), 0)
        assert client.is_closed_by_peer()
    with client_of("4.0") as client:
        client.send(FetchRequest(), 3)
        assert client.is_closed_by_peer()


def test_api_versions_of_the_future() -> None:
    """ApiVersions v3 before 2.4 gets UNSUPPORTED_VERSION in version 0, without a list of APIs.

    Since 2.4 brokers support version 3.
    """
    for as_version, keys in (("0.10.2", []), ("1.1", []), ("2.3", [])):
        with client_of(as_version) as client:
            client.socket.sendall(client.bytes_of(VERSIONS, 3))
            body = client.receive_frame()[4:]
            assert struct.unpack(">hi", body) == (35, len(keys))
    with client_of("2.8") as client:
        assert client.ask(VERSIONS, 3).error_code == 0


def test_before_0_9_unknown_requests_end_the_connection() -> None:
    with client_of("0.8.2") as client:
        client.send(VERSIONS, 0)
        assert client.is_closed_by_peer()


def test_0_9_overlooks_what_it_does_not_know() -> None:
    with client_of("0.9") as client:
        client.send(VERSIONS, 0)
        client.send(MetadataRequest(topics=[]), 0)
        number, answer = client.receive()
        assert number == 2
        assert len(answer.brokers) == 1


def test_0_8_looks_at_no_version() -> None:
    """Kafka 0.8 ignores the version in a request: it reads and answers version 0."""
    with client_of("0.8.1") as client:
        client.socket.sendall(client.bytes_of(MetadataRequest(topics=[]), 1))
        body = client.receive_frame()[4:]
        # Version 0: brokers without racks, then topics; no controller in between.
        count, node_id, length = struct.unpack_from(">iih", body)
        assert (count, node_id) == (1, 1)
        assert body[10 + length + 4 :] == b"\0\0\0\0"


# --- formats ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("as_version", "magic", "produce_version", "fetch_version"),
    [("0.8.2", 0, 0, 0), ("0.9", 0, 1, 1), ("0.10.0", 1, 2, 2), ("0.10.2", 1, 2, 3), ("1.1", 2, 3, 6)],
)
def test_the_format_of_its_age_is_stored(
    tmp_path: Path, as_version: str, magic: int, produce_version: int, fetch_version: int
) -> None:
    for run in range(2):
        with client_of(as_version, data_dir=tmp_path) as client:
            if run == 0:
                ask_for_topic(client)
            if magic == 2:
                records = bytes(batch_of(b"a", b"b"))
            else:
                records = encode_message_set([(b"k", b"a", NOW_MS), (b"k", b"b", NOW_MS)], magic)
            answer = produce(client, records, produce_version)
            assert (answer.error_code, answer.base_offset) == (0, 2 * run)
            found = fetch(client, fetch_version)
            assert {each for _, _, each in split_batches(found.records)} == {magic}
            assert found.high_watermark == 2 * run + 2
            later = fetch(client, fetch_version, offset=2 * run + 1)
            assert len(later.records) < len(found.records) or magic == 2
        stored = (tmp_path / "t-0" / f"{0:020}.log").read_bytes()
        assert {each for _, _, each in split_batches(stored)} == {magic}


def test_a_newer_release_takes_an_older_one_s_data_over(tmp_path: Path) -> None:
    with client_of("0.10.2", data_dir=tmp_path) as client:
        ask_for_topic(client)
        assert produce(client, encode_message_set([(b"k", b"a", NOW_MS)], 1), 2).error_code == 0
    with client_of("2.8", data_dir=tmp_path) as client:
        assert produce(client, batch_of(b"b"), 9).base_offset == 1
        assert [magic for _, _, magic in split_batches(fetch(client, 11).records)] == [1, 2]
    values = [v for table in scan_log(str(tmp_path), "t") for v in table.column("value").to_pylist()]
    assert values == [b"a", b"b"]


def test_a_format_from_the_future_is_corrupt() -> None:
    with client_of("0.10.2") as client:
        ask_for_topic(client)
        assert produce(client, batch_of(b"a"), 2).error_code == 2
    with client_of("0.9") as client:
        ask_for_topic(client)
        assert produce(client, batch_of(b"a"), 1).error_code == 2


@pytest.mark.parametrize("as_version", ["0.8.2", "0.9"])
@pytest.mark.parametrize("codec", [None, 0, 1], ids=["plain", "wrapper of magic 0", "wrapper of magic 1"])
def test_before_0_10_nobody_looked_at_the_magic(as_version: str, codec: int | None) -> None:
    """Before 0.10 brokers did not check the magic byte: kafka-node puts magic 1 into a wrapper of magic 0.

    Consumers of that time are given magic 0.
    """
    inner = encode_message_set([(b"k", b"a", NOW_MS), (None, b"b", NOW_MS)], 1)
    wrapped = inner if codec is None else encode_message(codec, 0, None, gzip.compress(inner), NOW_MS, 1)
    with client_of(as_version) as client:
        ask_for_topic(client)
        assert produce(client, wrapped, 0).error_code == 0
        records = fetch(client, 0).records
        assert {magic for _, _, magic in split_batches(records)} == {0}
        found = [
            each for start, end, _ in split_batches(records) for each in iter_messages(records, start, end)
        ]
        assert [(each.magic, each.offset, bytes(each.value)) for each in found] == [
            (0, 0, b"a"),
            (0, 1, b"b"),
        ]


def test_from_0_10_on_a_wrapper_holds_its_own_magic() -> None:
    inner = encode_message_set([(b"k", b"a", NOW_MS)], 1)
    with client_of("0.10.2") as client:
        ask_for_topic(client)
        wrapped = encode_message(0, 0, None, gzip.compress(inner), NOW_MS, 1)
        assert produce(client, wrapped, 2).error_code == 2


# --- ways of old --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("as_version", "code"), [("0.8.0", 5), ("0.9", 5), ("1.1", 5), ("2.8", 5), ("3.9", 3), ("4.0", 3)]
)
def test_a_new_topic_takes_a_moment(as_version: str, code: int) -> None:
    version = 4 if as_version == "4.0" else 0
    with client_of(as_version) as client:
        assert ask_for_topic(client, version) == (code, 0)
        assert ask_for_topic(client, version) == (0, 1)


def test_acks_above_one() -> None:
    message = encode_message_set([(None, b"a", -1)], 0)
    with client_of("0.8.2") as client:
        ask_for_topic(client)
        begin = time.monotonic()
        assert produce(client, message, 0, acks=2, timeout_ms=60_000).base_offset == 0
        assert time.monotonic() - begin < 30
        assert produce(client, message, 0, acks=-1).base_offset == 1
        assert produce(client, message, 0, acks=-2).base_offset == 2
    with client_of("0.9") as client:
        ask_for_topic(client)
        assert produce(client, message, 1, acks=2).error_code == 21


def test_a_fetch_that_fails_waits_in_0_8() -> None:
    """A Fetch with one failed partition waits for the full `max_wait_ms` in 0.8.

    Later releases answer it at once.
    """

    def seconds(as_version: str, max_wait_ms: int) -> float:
        with client_of(as_version) as client:
            ask_for_topic(client)
            begin = time.monotonic()
            good = FetchPartition(partition=0, partition_max_bytes=1000)
            bad = FetchPartition(partition=7, partition_max_bytes=1000)
            topics = [FetchTopic(topic="t", partitions=[good, bad])]
            answer = client.ask(FetchRequest(min_bytes=1, max_wait_ms=max_wait_ms, topics=topics), 0)
            assert [each.error_code for each in answer.responses[0].partitions] == [0, 3]
            return time.monotonic() - begin

    assert seconds("0.8.2", 200) >= 0.2
    assert seconds("0.9", 600_000) < 600


def test_errors_that_were_not_known_yet() -> None:
    assert Profile("0.8.1").code_of(17) == -1
    assert Profile("0.9").code_of(76) == 2
    assert Profile("1.1").code_of(76) == 2
    assert Profile("2.8").code_of(76) == 76
    assert Profile("0.11").code_of(56) == 6
    assert Profile("4.0").code_of(133) == -1
    with client_of("0.8.0") as client:
        assert ask_for_topic(client, name="a topic with blanks")[0] == -1
    with client_of("0.9") as client:
        assert ask_for_topic(client, name="a topic with blanks")[0] == 17


def test_defaults_of_the_age() -> None:
    assert BrokerConfig({}, "0.8.2").integer("message.max.bytes") == 1_000_000
    assert TopicConfig(BrokerConfig({}, "0.9")).max_message_bytes == 1_000_012
    assert TopicConfig(BrokerConfig({"message.max.bytes": "5"}, "0.9")).max_message_bytes == 5
    assert BrokerConfig({}, "0.9").integer("group.max.session.timeout.ms") == 30_000
    assert BrokerConfig({}, "4.0").integer("message.max.bytes") == 1_048_588


def test_times_are_looked_up_as_ever() -> None:
    with client_of("0.8.2") as client:
        ask_for_topic(client)
        produce(client, encode_message_set([(None, b"a", -1)], 0), 0)
        asked = ListOffsetsPartition(partition_index=0, timestamp=-1, max_num_offsets=2)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[asked])])
        assert client.ask(request, 0).topics[0].partitions[0].old_style_offsets == [1, 0]


def test_releases_that_never_were() -> None:
    with pytest.raises(ConfigError, match=r"0\.8\.0 is the first"):
        Broker(as_version="0.7")
    with pytest.raises(ConfigError, match="no release"):
        Broker(as_version="new")
    assert Profile("2.8.2").name == "2.8"
