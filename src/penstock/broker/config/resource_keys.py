"""Settings of groups (KIP-848, KIP-932, KIP-1071) and of subscriptions to client metrics (KIP-714).

The settings are checked and stored as in Apache Kafka. A setting that is not set for a group has the broker's
value. Subscriptions have an effect if the broker takes client metrics (`penstock.client.metrics`).

A resource exists from the time its first setting is set until its last setting is deleted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.broker.config.definition import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    STRING,
    ConfigKey,
    table,
)
from penstock.broker.config.group_settings import DEAD_LETTER_COPIES, DEAD_LETTER_TOPIC
from penstock.broker.config.inert_keys import UNKNOWN, broker_setting
from penstock.broker.config.values import SOURCE_DEFAULT, SOURCE_GROUP, SOURCE_METRICS, Setting, parse
from penstock.errors import ConfigError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import GROUP_RESOURCE, METRICS_RESOURCE

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig

KEPT_KINDS = (METRICS_RESOURCE, GROUP_RESOURCE)


def _own(
    name: str, doc: str, least: int | None = None, type_: int = INT, default: str | None = None
) -> ConfigKey:
    return ConfigKey(name, type_, default, doc, at_least=least)


def _internal(name: str, doc: str, least: int | None = None, type_: int = INT) -> ConfigKey:
    return ConfigKey(name, type_, None, doc, at_least=least, is_hidden=True)


_ASSIGNOR, _TAGS = "streams.assignor.name", "streams.rack.aware.assignment.tags"

_GROUP_KEYS: tuple[tuple[tuple[int, int], tuple[ConfigKey, ...]], ...] = (
    (
        (4, 0),
        (
            _own("consumer.heartbeat.interval.ms", "How often members send heartbeats.", 1),
            _own("consumer.session.timeout.ms", "How long a member may send none.", 1),
            _own(
                "share.auto.offset.reset",
                "Where the group begins to read: earliest, latest or by_duration.",
                type_=STRING,
                default="latest",
            ),
            _own("share.heartbeat.interval.ms", "How often members send heartbeats.", 1),
            _own("share.record.lock.duration.ms", "How long a member may keep a record.", 1000),
            _own("share.session.timeout.ms", "How long a member may send no heartbeat.", 1),
        ),
    ),
    (
        (4, 1),
        (
            _own(
                "share.isolation.level",
                "Whether the group reads what no transaction has committed.",
                type_=STRING,
                default="read_uncommitted",
            )._replace(choices=("read_committed", "read_uncommitted")),
            _own("streams.heartbeat.interval.ms", "How often members send heartbeats.", 1),
            _own("streams.num.standby.replicas", "Standby tasks for each task with state.", 0),
            _own("streams.session.timeout.ms", "How long a member may send no heartbeat.", 1),
        ),
    ),
    (
        (4, 2),
        (
            _own(
                "streams.initial.rebalance.delay.ms",
                "How long a group without members waits for more.",
                0,
            ),
        ),
    ),
    (
        (4, 3),
        (
            _own("consumer.assignment.interval.ms", "Least time between two assignments.", 0),
            _own("share.assignment.interval.ms", "Least time between two assignments.", 0),
            _own("share.delivery.count.limit", "How often a record is delivered at most.", 2),
            _own("share.partition.max.record.locks", "Most records in flight for each partition.", 100),
            _own(
                "share.renew.acknowledge.enable",
                "Whether members may renew the locks of records.",
                type_=BOOLEAN,
                default="true",
            ),
            _own("streams.assignment.interval.ms", "Least time between two assignments.", 0),
        ),
    ),
    (
        (4, 4),
        (
            _internal("streams.acceptable.recovery.lag", "The lag of a member that has caught up.", 0, LONG),
            _own(_ASSIGNOR, "The assignor; there is one.", type_=STRING),
            _internal("streams.assignor.offload.enable", "No effect.", type_=BOOLEAN),
            _internal("streams.num.warmup.replicas", "No effect: no assignor warms tasks up.", 0),
            _own(_TAGS, "Keys of the client tags that members must have.", type_=LIST),
            _internal("streams.task.offset.interval.ms", "How often members report task offsets.", 1),
            _own(
                DEAD_LETTER_COPIES,
                "Whether a dead letter has the key and the value of the record.",
                type_=BOOLEAN,
                default="false",
            ),
            _own(
                DEAD_LETTER_TOPIC,
                "The topic for records that are rejected or delivered too often; none if it is empty.",
                type_=STRING,
                default="",
            ),
        ),
    ),
)
"""Pairs of a release and the group settings that it introduced. The default None means the broker's
value.
"""

_METRICS_KEYS = table(
    ConfigKey("interval.ms", INT, "300000", "How often clients push metrics, in milliseconds."),
    ConfigKey(
        "match", LIST, "", "Which clients: attribute=expression, such as client_id=app-.*; all of them."
    ),
    ConfigKey("metrics", LIST, "", "Beginnings of names of metrics that clients push; * for all of them."),
)
_INTERVAL_MIN_MS, _INTERVAL_MAX_MS = 100, 3_600_000
_MATCHED = {
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
}

_OFFSET_RESET = re.compile(
    r"earliest|latest|by_duration:[pP](?=.)(\d+[dD])?([tT](?=\d)(\d+[hH])?(\d+[mM])?(\d+([.,]\d{0,9})?[sS])?)?"
)


def kept_kinds(config: BrokerConfig) -> tuple[int, ...]:
    """Return the resource types that can have settings: client metrics since 3.7, groups since 4.0."""
    if config.behaves_since(4, 0):
        return KEPT_KINDS
    return (METRICS_RESOURCE,) if config.behaves_since(3, 7) else ()


def kept_keys(config: BrokerConfig, kind: int) -> dict[str, ConfigKey]:
    """Return definitions of the settings of groups or of metrics subscriptions, depending on `kind`."""
    if kind == METRICS_RESOURCE:
        return dict(_METRICS_KEYS)
    return {key.name: key for since, keys in _GROUP_KEYS if config.behaves_since(*since) for key in keys}


def kept_settings(
    config: BrokerConfig, kind: int, texts: Mapping[str, str]
) -> list[tuple[ConfigKey, list[Setting]]]:
    """Return each setting of a resource with its values: effective value, value per source, default."""
    keys = kept_keys(config, kind)
    if kind == METRICS_RESOURCE:
        found = []
        older = not config.behaves_since(4, 0)
        for name, key in keys.items():
            if name in texts:
                setting = Setting(name, texts[name], SOURCE_METRICS)
                untyped = (key._replace(type=UNKNOWN), [setting])
                found.append(untyped if older else (key, [setting, setting]))
            elif not older:
                found.append((key, [Setting(name, key.default, SOURCE_DEFAULT)]))
        return found
    described = []
    for name, key in keys.items():
        if key.is_hidden and name not in texts:
            continue
        values = list(_from_broker(config, key))
        if name in texts:
            values.insert(0, Setting(name, texts[name], SOURCE_GROUP))
        described.append((key, [values[0]._replace(name=name), *values]))
    return described


def _from_broker(config: BrokerConfig, key: ConfigKey) -> list[Setting]:
    """Return the values that a group setting inherits from the broker, the effective value first."""
    if key.default is not None:
        return [Setting(key.name, key.default, SOURCE_DEFAULT)]
    name = "group.streams.assignors" if key.name == _ASSIGNOR else f"group.{key.name}"
    key_of_broker = broker_setting(config, name).key
    return [*config.set_texts(name), Setting(name, key_of_broker.default, SOURCE_DEFAULT)]


def check_kept_name(kind: int, name: str) -> None:
    """Check the name of a group or metrics subscription.

    Raises:
        KafkaError: INVALID_REQUEST (42): the name is empty.
    """
    if not name:
        what = "Default group resources are not allowed."
        if kind == METRICS_RESOURCE:
            what = "Client metrics subscription name must not be empty"
        raise error_for(ErrorCode.INVALID_REQUEST, what)


def check_kept(config: BrokerConfig, kind: int, texts: Mapping[str, str]) -> None:
    """Check all settings that are to be set for a group or metrics subscription.

    Raises:
        KafkaError: INVALID_CONFIG (40) or INVALID_REQUEST (42), as in Apache Kafka.
    """
    keys = kept_keys(config, kind)
    for name in texts:
        if name not in keys:
            if kind == METRICS_RESOURCE:
                raise error_for(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
            raise error_for(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
    try:
        values = {name: parse(keys[name], text) for name, text in texts.items()}
        if kind == METRICS_RESOURCE:
            _check_metrics(values)
        else:
            _check_group(config, keys, texts)
    except ConfigError as error:
        raise error_for(ErrorCode.INVALID_CONFIG, str(error)) from None


def _check_metrics(values: Mapping[str, object]) -> None:
    interval_ms = values.get("interval.ms")
    if isinstance(interval_ms, int) and not _INTERVAL_MIN_MS <= interval_ms <= _INTERVAL_MAX_MS:
        raise error_for(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between {_INTERVAL_MIN_MS}"
            f" and {_INTERVAL_MAX_MS} (1 hour)",
        )
    patterns = values.get("match")
    for item in patterns if isinstance(patterns, list) else ():
        name, equals, pattern = item.partition("=")
        if name.strip() not in _MATCHED or not equals or not _is_pattern(pattern.strip()):
            raise ConfigError(f"Illegal client matching pattern: {item}")


def _is_pattern(text: str) -> bool:
    from penstock.broker.requests.patterns import PatternError, compile_pattern  # few set any

    try:
        compile_pattern(text)
    except PatternError:
        return False
    return True


def _check_group(config: BrokerConfig, keys: Mapping[str, ConfigKey], texts: Mapping[str, str]) -> None:
    reset = texts.get("share.auto.offset.reset")
    if reset is not None and not _OFFSET_RESET.fullmatch(reset):
        raise ConfigError(
            f"Invalid value {reset} for configuration share.auto.offset.reset:"
            " expected earliest, latest or by_duration:PnDTnHnMn.nS"
        )
    tags = [tag.strip() for tag in texts.get(_TAGS, "").split(",")]
    if len(tags) != len(set(tags)):
        raise ConfigError(f"{_TAGS} must not contain duplicate tag keys.")
    if len(tags) > 1 and "" in tags:
        raise ConfigError(f"{_TAGS} must not contain empty tag keys.")
    assignors = [name.strip() for name in str(config.text("group.streams.assignors")).split(",")]
    if texts.get(_ASSIGNOR, assignors[0]) not in assignors:
        raise ConfigError(
            f"{_ASSIGNOR} '{texts[_ASSIGNOR]}' is not a registered task assignor. "
            f"Registered assignors are: [{', '.join(assignors)}]."
        )
    if texts.get(DEAD_LETTER_TOPIC, "").startswith("__"):
        raise ConfigError(f"{DEAD_LETTER_TOPIC}: DLQ topic name must not start with '__'")
    for name, text in texts.items():
        if keys[name].type == INT:
            kind, _, rest = name.partition(".")
            most = rest.removeprefix("num.")  # group.streams.max.standby.replicas
            least_name, most_name = f"group.{kind}.min.{rest}", f"group.{kind}.max.{most}"
            lower, upper = _bound(config, least_name), _bound(config, most_name)
            if lower is not None and int(text) < lower:
                raise ConfigError(f"{name} must be greater than or equal to {least_name}")
            if upper is not None and int(text) > upper:
                raise ConfigError(f"{name} must be less than or equal to {most_name}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms, heartbeat_ms = (
            int(texts[name]) if name in texts else _bound(config, f"group.{name}") or 0
            for name in (session, heartbeat)
        )
        if (session in texts or heartbeat in texts) and session_ms <= heartbeat_ms:
            raise ConfigError(f"{session} must be greater than {heartbeat}")


def _bound(config: BrokerConfig, name: str) -> int | None:
    """Return the broker's value of a setting that limits a group setting; None if it does not exist."""
    key = broker_setting(config, name).key
    if key.type == UNKNOWN:
        return None
    return next((int(each.text or 0) for each in config.settings_of(name, key)), None)
