"""Penstock's tables of settings have the names, types, defaults and limits of Apache Kafka's jars."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from compat.peers import HERE, java, maven_classpath, release
from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.definition import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    ConfigKey,
)
from penstock.broker.config.kafka_keys import hidden_settings, is_known, settings_of_release
from penstock.broker.config.topic_keys import TOPIC_KEYS
from penstock.broker.config.values import BrokerConfig

pytestmark = pytest.mark.compat

TYPES = {
    "BOOLEAN": BOOLEAN,
    "CLASS": CLASS,
    "DOUBLE": DOUBLE,
    "INT": INT,
    "LIST": LIST,
    "LONG": LONG,
    "PASSWORD": PASSWORD,
    "SHORT": SHORT,
    "STRING": STRING,
}

OTHER_DEFAULTS = {
    "broker.id", "controller.listener.names", "group.initial.rebalance.delay.ms",
    "listener.security.protocol.map", "listeners", "log.dir", "node.id", "process.roles",
    "queued.max.request.bytes", "replica.fetch.backoff.ms", "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
}  # fmt: skip
"""Settings whose default differs from Kafka's on purpose.

They let Penstock run without a configuration file, or docs/reference/differences.md explains them.
"""

OTHER_LIMITS = {
    "broker.heartbeat.interval.ms", "broker.id", "broker.session.timeout.ms", "compression.gzip.level",
    "default.replication.factor", "log.cleaner.dedupe.buffer.size", "log.flush.interval.ms",
    "log.retention.hours", "log.retention.minutes", "log.retention.ms", "log.roll.jitter.ms", "log.roll.ms",
    "log.segment.bytes", "offset.metadata.max.bytes", "replica.fetch.min.bytes", "replica.fetch.wait.max.ms",
    "segment.bytes", "socket.receive.buffer.bytes", "socket.send.buffer.bytes",
}  # fmt: skip
"""Settings whose limits differ from Kafka's on purpose.

Penstock rejects invalid values that Kafka accepts or rejects elsewhere, and it accepts small segments.
"""


class Definition(NamedTuple):
    scope: str
    name: str
    type: str
    default: str
    limits: str
    hidden: str


def definitions(version: str) -> list[Definition]:
    program = HERE / "java" / "settings" / "Settings.java"
    done = java(maven_classpath(f"kafka-{release(version)}"), program, check=True)
    return [Definition(*line.split("\t")) for line in done.stdout.splitlines()]


def limits_of(text: str) -> tuple[float | None, float | None] | None:
    """Return the lowest and highest value in a validator's text; None if the text is not a range."""
    found = re.fullmatch(r"\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?\]", text)
    if found is None:
        return (None, None) if text == "null" else None
    return float(found[1]), float(found[2]) if found[2] else None


def test_the_newest_release_is_the_one_in_the_tables() -> None:
    listed, hidden = settings_of_release("4"), hidden_settings()
    wrong = []
    seen = set()
    for each in definitions("4.4"):
        key: ConfigKey | None
        if each.scope == "topic":
            key = BrokerConfig().topic_keys.get(each.name)
            is_hidden = key is not None and key.is_hidden
        else:
            seen.add(each.name)
            place = (hidden if each.hidden == "true" else listed).get(each.name)
            key = BROKER_KEYS.get(each.name) or (place.key if place is not None else None)
            is_hidden = each.name in hidden or each.name == "unstable.api.versions.enable"
            is_hidden = is_hidden or (key is not None and key.is_hidden)
        if key is None:
            wrong.append(f"{each.name} is missing")
            continue
        if is_hidden != (each.hidden == "true"):
            wrong.append(f"{each.name} is hidden: {each.hidden}")
        if key.type != TYPES[each.type]:
            wrong.append(f"{each.name} is of type {each.type}")
        default = "-" if key.default is None else f"={key.default}"
        if default != each.default and each.name not in OTHER_DEFAULTS:
            wrong.append(f"{each.name} has the default {each.default}, not {default}")
        bounds = limits_of(each.limits)
        if bounds not in (None, (key.at_least, key.at_most)) and each.name not in OTHER_LIMITS:
            wrong.append(f"{each.name} has the limits {each.limits}, not {key.at_least}, {key.at_most}")
    wrong += [f"{name} is none of its settings" for name in {*listed, *hidden} - seen]
    assert wrong == []


@pytest.mark.parametrize("version", ["3.9", "3.8", "3.6", "3.3", "2.8", "1.1", "0.10.2", "0.9"])
def test_every_name_of_older_releases_is_known(version: str) -> None:
    found = definitions(version)
    assert len(found) > 100
    names = {each.name for each in found if each.scope == "broker"}
    assert {name for name in names if not is_known(name)} == set()
    assert {each.name for each in found if each.scope == "topic"} <= {*TOPIC_KEYS}
