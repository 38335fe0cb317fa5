"""Tests of settings without an effect, which the broker checks, stores and lists, and of logger levels."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import NOW_MS, ask, make_node, make_topic
from broker.handlers.test_admin_changes import APPEND, BROKER, DELETE, SET, alter, described
from for_each import for_each
from penstock.broker.config.alterations import BROKER_TEXTS_MAX, KEPT_RESOURCES_MAX
from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.definition import DOUBLE, ConfigKey
from penstock.broker.config.inert_keys import broker_setting, listed_settings, settings_of_release
from penstock.broker.config.log_levels import LEVELS
from penstock.broker.config.values import BrokerConfig, canonical
from penstock.broker.metadata.stores import open_store
from penstock.broker.node import Node
from penstock.clock import ManualClock
from penstock.protocol.field_values import LOGGER_RESOURCE
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.list_config_resources_request import ListConfigResourcesRequest

TOPIC, METRICS, GROUP = 2, 16, 32
SESSION = "consumer.session.timeout.ms"


def listed(node: Node, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
    answer = ask(node, ListConfigResourcesRequest(resource_types=list(kinds)), version)
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


def all_of(node: Node, kind: int, name: str) -> dict[str, Any]:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    (result,) = ask(node, DescribeConfigsRequest(resources=[resource]), 4).results
    assert result.error_code == 0, result.error_message
    return {entry.name: entry for entry in result.configs}


# --- groups and metrics -------------------------------------------------------------------------------------


def test_a_group_has_what_was_set_for_it_and_the_rest_from_the_broker() -> None:
    node = make_node()
    assert alter(node, (SESSION, SET, " 50000 "), kind=GROUP, name="g") == (0, None)
    entry = described(node, SESSION, GROUP, "g")
    assert (entry.value, entry.config_source, entry.read_only) == ("50000", 8, False)
    assert [(s.name, s.value, s.source) for s in entry.synonyms] == [
        (SESSION, "50000", 8),
        (f"group.{SESSION}", "45000", 5),
    ]
    assert alter(node, ("group.consumer.assignment.interval.ms", SET, "7"), kind=BROKER, name="")[0] == 0
    entry = described(node, "consumer.assignment.interval.ms", GROUP, "other")
    assert (entry.value, entry.config_source) == ("7", 3)
    assert listed(node, GROUP) == [(GROUP, "g")]
    assert alter(node, (SESSION, DELETE, None), kind=GROUP, name="g")[0] == 0
    assert listed(node, GROUP) == []


@for_each(
    [
        (GROUP, "", [(SESSION, SET, "50000")], 42),
        (GROUP, "g", [(SESSION, SET, "44999")], 40),
        (GROUP, "g", [(SESSION, SET, "x")], 40),
        (GROUP, "g", [(SESSION, APPEND, "5")], 40),
        (GROUP, "g", [("nope", SET, "5")], 40),
        (GROUP, "g", [("share.auto.offset.reset", SET, "by_duration:PT")], 40),
        (GROUP, "g", [("streams.num.standby.replicas", SET, "3")], 40),
        (METRICS, "", [("interval.ms", SET, "100")], 42),
        (METRICS, "m", [("interval.ms", SET, "99")], 42),
        (METRICS, "m", [("nope", SET, "1")], 42),
        (METRICS, "m", [("match", SET, "client_id=[")], 40),
        (METRICS, "m", [("metrics", APPEND, "a")], 40),
        (BROKER, "1", [("nope", APPEND, "a")], 40),
        (BROKER, "1", [("broker.heartbeat.interval.ms", SET, "5")], 42),
        (BROKER, "1", [("ssl.keystore.type", SET, "PEM")], 42),
        (BROKER, "1", [("background.threads", SET, "0")], 42),
        (BROKER, "1", [("background.threads", SET, "4")], 42),
        (BROKER, "", [("background.threads", SET, "21")], 42),
        (BROKER, "1", [("log.cleaner.threads", SET, "3")], 42),
        (BROKER, "1", [("listener.name.a.num.network.threads", SET, "7")], 42),
        (
            BROKER,
            "",
            [("listener.name.a.ssl.keystore.password", SET, "x"), ("log.cleaner.threads", SET, "2")],
            42,
        ),
        (BROKER, "1", [("log.initial.task.delay.ms", SET, "5")], 42),
        (BROKER, "", [("sasl.kerberos.min.time.before.relogin", SET, "5")], 42),
        (LOGGER_RESOURCE, "1", [("nope", SET, "INFO")], 40),
        (LOGGER_RESOURCE, "1", [("root", SET, "LOUD")], 40),
        (LOGGER_RESOURCE, "1", [("root", DELETE, None)], 42),
        (LOGGER_RESOURCE, "1", [("root", APPEND, "INFO")], 42),
        (LOGGER_RESOURCE, "2", [("root", SET, "INFO")], 42),
    ]
)
def test_what_is_refused_changes_nothing(kind: int, name: str, changes: Any, code: int) -> None:
    node = make_node()
    before = node.cluster.metadata_end_offset
    found, message = alter(node, *changes, kind=kind, name=name)
    assert found == code
    assert message
    assert node.cluster.metadata_end_offset == before


def test_numbers_of_threads_are_halved_or_doubled_step_by_step() -> None:
    node = make_node()
    for number in ("20", "40", "21", "10", "5"):
        assert alter(node, ("background.threads", SET, number), kind=BROKER, name="1") == (0, None)
    assert alter(node, ("background.threads", SET, "900"), kind=BROKER, name="") == (
        0,
        None,
    )  # behind the other
    assert alter(node, ("listener.name.a.num.network.threads", SET, "6"), kind=BROKER, name="") == (0, None)


def test_bounds_of_groups_are_those_of_the_broker() -> None:
    heartbeats = {f"group.consumer.{each}heartbeat.interval.ms": 50 for each in ("", "min.")}
    node = make_node(
        **{"group.consumer.min.session.timeout.ms": 100, "group.consumer.max.size": 5, **heartbeats}
    )
    assert alter(node, (SESSION, SET, "100"), kind=GROUP, name="g") == (0, None)
    assert alter(node, (SESSION, SET, "99"), kind=GROUP, name="g")[0] == 40
    assert described(node, SESSION, GROUP, "g").value == "100"


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_sessions_of_a_group_are_longer_than_the_time_between_heartbeats(kind: str) -> None:
    session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    node = make_node(**{f"group.{kind}.max.heartbeat.interval.ms": 60_000})
    refused = 40, f"{session} must be greater than {heartbeat}"
    assert alter(node, (heartbeat, SET, "45000"), kind=GROUP, name="g") == refused
    assert alter(node, (heartbeat, SET, "45000"), (session, SET, "45001"), kind=GROUP, name="g") == (0, None)
    assert alter(node, (session, DELETE, None), kind=GROUP, name="g") == refused
    assert alter(node, (heartbeat, DELETE, None), (session, DELETE, None), kind=GROUP, name="g") == (0, None)


def test_hidden_settings_are_listed_where_they_are_set() -> None:
    hidden = "log.initial.task.delay.ms"
    assert hidden not in all_of(make_node(), BROKER, "1")
    entry = all_of(make_node(**{hidden: 7, "my.own.thing": 8}), BROKER, "1")
    assert (entry[hidden].value, entry[hidden].read_only, entry[hidden].is_sensitive) == ("7", True, False)
    assert (entry["my.own.thing"].value, entry["my.own.thing"].is_sensitive) == (None, True)


def test_the_hidden_setting_of_topics_is_listed_where_it_is_set() -> None:
    node = make_node()
    make_topic(node, "plain")
    make_topic(node, "small", **{"internal.segment.bytes": "2000"})
    assert "internal.segment.bytes" not in all_of(node, TOPIC, "plain")
    assert all_of(node, TOPIC, "small")["internal.segment.bytes"].value == "2000"
    assert node.cluster.topic("small").config.segment_bytes == 2000
    assert "message.downconversion.enable" not in all_of(node, TOPIC, "plain")
    assert "message.downconversion.enable" in BrokerConfig(as_version="3.9").topic_keys


def test_what_a_peer_can_make_grow_has_an_end() -> None:
    node = make_node()
    node.cluster.image.resource_configs = {
        (GROUP, str(n)): {SESSION: "50000"} for n in range(KEPT_RESOURCES_MAX)
    }
    assert alter(node, (SESSION, SET, "50000"), kind=GROUP, name="one more")[0] == 44
    assert alter(node, (SESSION, SET, "51000"), kind=GROUP, name="7")[0] == 0
    many = [(f"x{n}", SET, "") for n in range(BROKER_TEXTS_MAX + 1)]
    assert alter(node, *many, kind=BROKER, name="1")[0] == 44
    assert alter(node, *many[1:], kind=BROKER, name="1")[0] == 0


@pytest.mark.parametrize(
    ("release", "groups", "metrics"), [("3.6", 0, 0), ("3.9", 0, 3), ("4.0", 6, 3), ("4.1", 10, 3)]
)
def test_only_releases_that_had_them_have_them(release: str, groups: int, metrics: int) -> None:
    node = Node(config := BrokerConfig({}, release), open_store(config, ManualClock()), ManualClock())
    for kind, name, value, count in (
        (GROUP, SESSION, "50000", groups),
        (METRICS, "interval.ms", "100", metrics),
    ):
        assert alter(node, (name, SET, value), kind=kind, name="x")[0] == (0 if count else 42)
        if count > 3:
            assert len(all_of(node, kind, "x")) == count


# --- the broker ---------------------------------------------------------------------------------------------


def test_settings_that_nobody_knows_are_kept_and_not_shown() -> None:
    node = make_node()
    assert alter(node, ("no.such", SET, "secret"), kind=BROKER, name="1")[0] == 0
    assert alter(node, ("no.such", SET, "other"), kind=BROKER, name="")[0] == 0
    entry = described(node, "no.such", BROKER, "1")
    assert (entry.value, entry.is_sensitive, entry.read_only, entry.config_type) == (None, True, True, 0)
    assert [(s.value, s.source) for s in entry.synonyms] == [(None, 2), (None, 3)]
    assert node.cluster.config.dynamic["no.such"] == "secret"


def test_settings_of_kafka_are_listed_with_its_defaults() -> None:
    entries = all_of(make_node(), BROKER, "1")
    assert len(entries) > 300
    relogin = entries["sasl.kerberos.min.time.before.relogin"]
    assert (relogin.value, relogin.read_only, relogin.documentation) == ("60000", False, None)
    assert entries["ssl.keystore.password"].is_sensitive
    assert "penstock.0.7.port" not in entries
    assert "penstock.0.7.port" in listed_settings(BrokerConfig({"penstock.0.7.port": "0"}))


def test_behind_the_name_of_a_listener_its_security_can_be_set() -> None:
    node = make_node()
    name = "listener.name.internal.ssl.keystore.type"
    assert alter(node, (name, SET, "PEM"), kind=BROKER, name="1")[0] == 0
    entry = described(node, name, BROKER, "1")
    assert [(s.name, s.value, s.source) for s in entry.synonyms] == [
        (name, "PEM", 2),
        ("ssl.keystore.type", "JKS", 5),
    ]


@pytest.mark.parametrize("release", ["3", "4"])
def test_the_table_knows_nothing_that_means_something(release: str) -> None:
    table = settings_of_release(release)
    assert not set(table) & set(BROKER_KEYS)
    config = BrokerConfig()
    for name, setting in table.items():
        if setting.key.type != 9:
            canonical(setting.key, setting.key.default)
        assert broker_setting(config, name).key.name == name


@pytest.mark.parametrize(
    ("text", "shown"),
    [("0.5", "0.5"), ("1e6", "1000000.0"), ("1e7", "1.0E7"), ("0.00012", "1.2E-4"), ("inf", "Infinity")],
)
def test_numbers_are_shown_as_java_writes_them(text: str, shown: str) -> None:
    assert canonical(ConfigKey("x", DOUBLE, None, ""), text) == shown


def test_everything_kept_is_there_after_a_restart(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    first = BrokerConfig({"log.dirs": str(tmp_path)})
    node = Node(first, open_store(first, clock), clock)
    for kind, name, setting, value in (
        (GROUP, "g", SESSION, "50000"),
        (METRICS, "m", "metrics", "a,b"),
        (BROKER, "1", "no.such", "x"),
        (BROKER, "", "background.threads", "11"),
    ):
        assert alter(node, (setting, SET, value), kind=kind, name=name)[0] == 0
    node.store.close()
    config = BrokerConfig({"log.dirs": str(tmp_path)})
    again = Node(config, open_store(config, clock), clock)
    assert again.cluster.resource_configs == node.cluster.resource_configs
    assert (again.config.dynamic, again.config.dynamic_defaults) == (
        {"no.such": "x"},
        {"background.threads": "11"},
    )
    assert listed(again, METRICS, GROUP) == [(GROUP, "g"), (METRICS, "m")]
    assert listed(again, version=0) == [(METRICS, "m")]
    again.store.close()


# --- loggers ------------------------------------------------------------------------------------------------


@pytest.fixture
def levels() -> Iterator[None]:
    ours = [logging.getLogger("penstock"), logging.getLogger("penstock.broker")]
    before = [logger.level for logger in ours]
    yield
    for logger, level in zip(ours, before, strict=True):
        logger.setLevel(level)


@pytest.mark.usefixtures("levels")
def test_levels_of_loggers_are_set_and_left_to_the_one_above() -> None:
    node = make_node()
    for level in LEVELS:
        assert alter(node, ("root", SET, level), kind=LOGGER_RESOURCE, name="1")[0] == 0
        assert described(node, "root", LOGGER_RESOURCE, "1").value == level
    assert alter(node, ("penstock.broker", SET, "DEBUG"), kind=LOGGER_RESOURCE, name="1", dry=True)[0] == 0
    assert described(node, "penstock.broker", LOGGER_RESOURCE, "1").value == "FATAL"
    assert alter(node, ("penstock.broker", SET, "DEBUG"), kind=LOGGER_RESOURCE, name="1")[0] == 0
    assert logging.getLogger("penstock.broker").level == logging.DEBUG
    assert alter(node, ("penstock.broker", DELETE, None), kind=LOGGER_RESOURCE, name="1")[0] == 0
    assert described(node, "penstock.broker", LOGGER_RESOURCE, "1").value == "FATAL"
    assert listed(node, LOGGER_RESOURCE) == [(LOGGER_RESOURCE, "1")]
