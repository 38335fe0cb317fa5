from __future__ import annotations

import pytest

from for_each import for_each
from penstock.client.addresses import Address, parse_address
from penstock.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from penstock.errors import ConfigError

WHERE = {"bootstrap.servers": "a:1"}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9092", Address("localhost", 9092)),
        ("localhost", Address("localhost", 9092)),
        (" kafka.example:1 ", Address("kafka.example", 1)),
        ("PLAINTEXT://kafka:9093", Address("kafka", 9093)),
        ("[::1]:9094", Address("::1", 9094)),
        ("[::1]", Address("::1", 9092)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", ":9092", "host:port", "host:0", "host:65536", "::1", "[::1"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        ClientConfig.parse({"bootstrap.servers": text}, {})


def test_an_address_prints_as_it_is_written() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("a", 1)) == "a:1"


@for_each(
    [
        ("linger.ms", "5", "linger_ms", 5.0),
        ("linger.ms", 0.5, "linger_ms", 0.5),
        ("queue.buffering.max.ms", 7, "linger_ms", 7.0),
        ("acks", "all", "acks", -1),
        ("acks", -1, "acks", -1),
        ("request.required.acks", 1, "acks", 1),
        ("acks", "3", "acks", 3),
        ("compression.type", "LZ4", "compression_type", "lz4"),
        ("compression.type", None, "compression_type", "none"),
        ("compression.codec", "zstd", "compression_type", "zstd"),
        ("enable.idempotence", "false", "enable_idempotence", False),
        ("batch.size", "16384", "batch_size", 16384),
        ("message.timeout.ms", 1000, "delivery_timeout_ms", 1000.0),
        ("max.in.flight", 1, "max_in_flight_requests_per_connection", 1),
        ("partitioner", "consistent_random", "partitioner", "consistent_random"),
        ("socket.timeout.ms", 1, "request_timeout_ms", 1.0),
        ("security.protocol", "PLAINTEXT", "security", None),
    ]
)
def test_producer_options(name: str, value: object, field: str, parsed: object) -> None:
    assert getattr(ProducerConfig.parse({**WHERE, name: value}, {}), field) == parsed
    keyword = {name.replace(".", "_"): value}
    assert getattr(ProducerConfig.parse(WHERE, keyword), field) == parsed


@pytest.mark.parametrize(
    ("value", "parsed"),
    [
        ("earliest", "earliest"),
        ("smallest", "earliest"),
        ("end", "latest"),
        ("error", "none"),
        ("none", "none"),
    ],
)
def test_offset_reset_has_many_spellings(value: str, parsed: str) -> None:
    assert ConsumerConfig.parse(WHERE, {"auto_offset_reset": value}).auto_offset_reset == parsed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"linger.sm": 5}, "unknown option 'linger.sm'; did you mean 'linger.ms'"),
        ({"lingerms": 5}, "did you mean 'linger_ms'"),
        ({"xyzzy": 5}, "unknown option 'xyzzy'$"),
        ({"linger.ms": -1}, "'linger.ms' = -1: expected milliseconds"),
        ({"linger.ms": "soon"}, "expected a number of milliseconds"),
        ({"acks": -2}, "expected all"),
        ({"acks": 1 << 15}, "expected all"),
        ({"acks": 2, "enable.idempotence": True}, "idempotence needs acks=all"),
        ({"compression.type": "lz5"}, "did you mean 'lz4'"),
        ({"batch.size": 0}, "expected 1 to"),
        ({"batch.size": True}, "whole number"),
        ({"batch.size": 1.5}, "whole number"),
        ({"client.id": 5}, "expected text"),
        ({"enable.idempotence": "perhaps"}, "true or false"),
        ({"enable.idempotence": True, "acks": 1}, "idempotence needs acks=all"),
        ({"enable.idempotence": True, "max.in.flight": 6}, "at most 5"),
        ({"enable.idempotence": True, "retries": 0}, "needs retries"),
        ({"linger.ms": 5, "queue.buffering.max.ms": 5}, "given twice"),
        ({"auto.offset.reset": "earliest"}, "belongs to the consumer"),
        ({"transactional.id": "x", "acks": 1}, "transactions need idempotence"),
        ({"sasl.mechanisn": "PLAIN"}, "did you mean 'sasl.mechanism'"),
        ({"security.protocol": "TLS"}, "expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"value.serializer": "org.apache.kafka.StringSerializer"}, "give str.encode"),
    ],
)
def test_what_is_wrong_is_said(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ProducerConfig.parse({**WHERE, **options}, {})


def test_groups_are_configured_under_kafkas_names() -> None:
    config = ConsumerConfig.parse(
        {"group.id": "g", "partition.assignment.strategy": "CooperativeStickyAssignor, range"},
        {"bootstrap_servers": "h", "session_timeout_ms": 6000, "enable_auto_commit": "false"},
    )
    assert config.group_id == "g"
    assert config.partition_assignment_strategy == ("cooperative-sticky", "range")
    assert not config.enable_auto_commit


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition.assignment.strategy": "stiky"}, "did you mean 'sticky'"),
        ({"heartbeat.interval.ms": 45_000}, "several heartbeats must fit"),
        ({"group.instance.id": "a"}, "an instance of which group"),
        ({"group.protocol": "consumers"}, "did you mean 'consumer'"),
        ({"group.protocol": "consumer", "session.timeout.ms": 45_000}, '"session.timeout.ms" has no meaning'),
        ({"group.protocol": "consumer", "heartbeat.interval.ms": 3_000}, "the broker says it"),
        ({"group.protocol": "consumer", "partition.assignment.strategy": "range"}, "group.remote.assignor"),
        ({"group.remote.assignor": "uniform"}, '"group.remote.assignor" has no meaning .* "classic"'),
        ({"auto.offset.reset": "by_duration:1"}, "is no duration; write 90s"),
    ],
)
def test_mistakes_about_groups_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ConsumerConfig.parse(options, {"bootstrap_servers": "h"})


def test_a_reset_by_duration_is_an_age() -> None:
    config = ConsumerConfig.parse({"auto.offset.reset": "by_duration:P1DT2H"}, {"bootstrap_servers": "h"})
    assert config.reset_age_ms == 26 * 3_600_000


def test_what_is_fetched_must_be_received() -> None:
    with pytest.raises(ConfigError, match=r"fetch\.max\.bytes.*receive\.message\.max\.bytes"):
        ConsumerConfig.parse(WHERE, {"fetch_max_bytes": 300 << 20})


def test_bootstrap_servers_are_needed() -> None:
    with pytest.raises(ConfigError, match="is missing"):
        ProducerConfig.parse({}, {})


@pytest.mark.parametrize(
    ("options", "wants"),
    [
        ({}, True),
        ({"acks": 1}, False),
        ({"retries": 0}, False),
        ({"max_in_flight": 9}, False),
        ({"enable_idempotence": False}, False),
    ],
)
def test_idempotence_is_on_where_it_can_be(options: dict[str, object], wants: bool) -> None:
    assert ProducerConfig.parse(WHERE, options).wants_idempotence is wants


def test_auto_takes_the_options_of_both_group_protocols() -> None:
    config = ConsumerConfig.parse(
        {"bootstrap.servers": "h:1", "group.id": "g", "group.protocol": "auto"},
        {"session_timeout_ms": 9_000, "group_remote_assignor": "range"},
    )
    assert (config.group_protocol, config.group_remote_assignor) == ("auto", "range")
    assert config.given >= {"session_timeout_ms", "group_protocol"}


def test_a_consumer_group_leaves_to_the_broker_what_is_not_given() -> None:
    config = ConsumerConfig.parse(
        {"bootstrap.servers": "h:1", "group.id": "g", "group.protocol": "CONSUMER"}, {}
    )
    assert (config.group_protocol, config.group_remote_assignor) == ("consumer", None)
