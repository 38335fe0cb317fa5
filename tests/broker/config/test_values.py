"""Tests of settings: their names, types and bounds, and which of several sources of a value wins."""

from __future__ import annotations

import pytest

from for_each import for_each
from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.definition import ConfigKey
from penstock.broker.config.topic_keys import TOPIC_KEYS
from penstock.broker.config.values import (
    SOURCE_DEFAULT,
    SOURCE_STATIC_BROKER,
    SOURCE_TOPIC,
    BrokerConfig,
    TopicConfig,
    parse,
    settings_texts,
)
from penstock.errors import ConfigError


@for_each([*BROKER_KEYS.values(), *TOPIC_KEYS.values()], name=lambda key: key.name)
def test_every_default_fits_its_own_key(key: ConfigKey) -> None:
    parse(key, key.default)
    assert key.doc.endswith(".")


@for_each(TOPIC_KEYS.values(), name=lambda key: key.name)
def test_a_broker_without_settings_gives_topics_kafkas_defaults(key: ConfigKey) -> None:
    for synonym, _ in key.synonyms:
        assert synonym in BROKER_KEYS
    assert TopicConfig(BrokerConfig()).text(key.name) == key.default


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("num.partition", "num.partitions"), ("log.retention.hour", "log.retention.hours")],
)
def test_an_unknown_keyword_is_refused_with_the_nearest(name: str, suggestion: str) -> None:
    """A keyword argument that is no setting raises ConfigError, which suggests the nearest name.

    The same unknown key in Kafka's dotted form is accepted and listed as `unheeded`, as Kafka only warns.
    """
    with pytest.raises(ConfigError, match=f"Unknown configuration {name}; did you mean {suggestion}"):
        settings_texts({}, {name.replace(".", "_"): 1})
    assert settings_texts({name: 1}, {}) == {name: "1"}
    assert BrokerConfig({name: "1"}).unheeded == [name]


def test_an_unknown_setting_of_a_topic_is_refused_in_kafkas_words() -> None:
    with pytest.raises(
        ConfigError, match=r"^Unknown topic config name: cleanup\.polcy; did you mean cleanup\."
    ):
        TopicConfig(BrokerConfig(), {"cleanup.polcy": "compact"})


def test_an_unknown_name_of_ours_is_refused() -> None:
    """An unknown key that begins with `penstock.` raises an error: it must be a misspelt setting.

    No configuration file for Apache Kafka has keys with this prefix.
    """
    with pytest.raises(ConfigError, match=r"penstock\.metrics\.prt; did you mean penstock\.metrics\.port"):
        BrokerConfig({"penstock.metrics.prt": "9"})


def test_the_hidden_size_of_segments_goes_before_the_other() -> None:
    assert TopicConfig(BrokerConfig(), {"internal.segment.bytes": "100"}).segment_bytes == 100
    assert TopicConfig(BrokerConfig(), {"segment.bytes": "2000000"}).segment_bytes == 2_000_000


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("num.partitions", "many", "expected a whole number"),
        ("num.partitions", "0", "Value must be at least 1"),
        ("num.partitions", "3000000000", "Value must be no more than 2147483647"),
        ("auto.create.topics.enable", "yes", "expected true or false"),
        ("log.cleanup.policy", "shred", "String must be one of: delete, compact"),
        ("log.cleaner.min.cleanable.ratio", "half", "expected a number"),
        ("log.cleaner.min.cleanable.ratio", "1.1", "Value must be no more than 1"),
        (
            "compression.type",
            "zip",
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        ("process.roles", "broker,king", "String must be one of: broker, controller"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(name: str, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value .* for configuration {name}: {reason}"):
        BrokerConfig({name: text})


def test_a_topic_overrides_the_broker_and_the_broker_the_default() -> None:
    broker = BrokerConfig({"log.retention.hours": "2", "log.retention.bytes": "9"})
    assert TopicConfig(broker)["retention.ms"] == 7_200_000
    assert TopicConfig(broker).source("retention.ms") == SOURCE_STATIC_BROKER
    assert TopicConfig(broker, {"retention.ms": "5"})["retention.ms"] == 5
    sources = [
        setting.source
        for setting in TopicConfig(broker, {"retention.bytes": "5"}).settings("retention.bytes")
    ]
    assert sources == [SOURCE_TOPIC, SOURCE_STATIC_BROKER, SOURCE_DEFAULT]


def test_the_stronger_synonym_wins_and_never_stays_never_in_every_unit() -> None:
    both = BrokerConfig({"log.retention.hours": "2", "log.retention.ms": "9"})
    assert TopicConfig(both)["retention.ms"] == 9
    assert TopicConfig(BrokerConfig({"log.retention.hours": "-1"}))["retention.ms"] == -1


def test_node_id_has_an_older_name() -> None:
    assert BrokerConfig().node_id == 1
    assert BrokerConfig({"broker.id": "4"}).node_id == 4
    assert BrokerConfig({"broker.id": "4", "node.id": "5"}).node_id == 5


def test_data_directory() -> None:
    assert BrokerConfig().data_dir is None
    assert BrokerConfig({"log.dir": "/a"}).data_dir == "/a"
    assert BrokerConfig({"log.dir": "/a", "log.dirs": "/b"}).data_dir == "/b"
    assert BrokerConfig({"log.dirs": "/a, /b,,/a"}).data_dirs == ["/a", "/b"]
    assert BrokerConfig({"log.dirs": "/a,/b"}).data_dir == "/a"
    assert BrokerConfig().data_dirs == []


def test_what_a_produce_needs_is_worked_out_once() -> None:
    config = TopicConfig(BrokerConfig(), {"cleanup.policy": "compact,delete", "compression.type": "zstd"})
    assert config.compacted
    assert config.deletes_old
    assert config.inspects_records
    assert config.codec_name == "zstd"
    assert not TopicConfig(BrokerConfig()).inspects_records
