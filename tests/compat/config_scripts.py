"""Request scripts about the configuration of brokers, loggers, groups and client metrics.

Tests run each script against Penstock and against Apache Kafka, and compare the answers.
"""

from __future__ import annotations

from typing import Any

from compat.scripts import APPEND, BROKER, BROKER_LOGGER, DELETE, SET, SUBTRACT, script
from compat.transcript import Talk
from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.inert_keys import settings_of_release

METRICS, GROUP = 16, 32
ABOUT_THIS_BROKER = {
    "advertised.listeners", "broker.id", "controller.listener.names", "controller.quorum.voters", "log.dir",
    "group.initial.rebalance.delay.ms", "initial.broker.registration.timeout.ms",
    "listener.security.protocol.map", "listeners", "log.dirs", "node.id",
    "num.io.threads", "num.network.threads", "offsets.topic.num.partitions",
    "offsets.topic.replication.factor", "process.roles", "replica.fetch.backoff.ms",
    "share.coordinator.state.topic.min.isr", "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.min.isr", "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
}  # fmt: skip
"""Settings that are left out of the comparison, since the test sets them differently for each broker."""

Edit = tuple[str, int, str | None]

GROUP_VALUES = (
    ("consumer.session.timeout.ms", ("44999", "45000", "60000", "60001", "0", "x", "-1", " 50000 ")),
    ("consumer.heartbeat.interval.ms", ("4999", "5000", "15000", "15001", "0")),
    ("consumer.assignment.interval.ms", ("-1", "0", "15000", "15001")),
    ("share.session.timeout.ms", ("44999", "45000", "60001")),
    ("share.heartbeat.interval.ms", ("4999", "15000", "15001")),
    ("share.record.lock.duration.ms", ("999", "14999", "15000", "60000", "60001")),
    ("share.auto.offset.reset", ("earliest", "none", "LATEST", "by_duration:PT1H", "by_duration:-PT1H")),
    ("share.auto.offset.reset", ("by_duration:xyz", "by_duration:P1DT2.5S", "by_duration:P")),
    ("share.isolation.level", ("read_committed", "READ_COMMITTED", "x")),
    ("share.delivery.count.limit", ("1", "2", "10", "11")),
    ("share.partition.max.record.locks", ("99", "100", "10000", "10001")),
    ("share.renew.acknowledge.enable", ("false", "x")),
    ("errors.deadletterqueue.copy.record.enable", ("true", "x")),
    ("errors.deadletterqueue.topic.name", ("dlq.a", "__a", "other", "a b", "")),
    ("share.assignment.interval.ms", ("15000", "15001")),
    ("streams.session.timeout.ms", ("44999", "60001")),
    ("streams.heartbeat.interval.ms", ("4999", "15001")),
    ("streams.num.standby.replicas", ("-1", "2", "3")),
    ("streams.num.warmup.replicas", ("-1", "0", "20", "21")),
    ("streams.task.offset.interval.ms", ("0", "14999", "15000")),
    ("streams.acceptable.recovery.lag", ("-1", "0", "9223372036854775807")),
    ("streams.assignor.offload.enable", ("false", "x")),
    ("streams.assignor.name", ("sticky", "highly_available", "")),
    ("streams.rack.aware.assignment.tags", ("zone,rack", "zone , zone", "", "a,,b")),
    ("streams.initial.rebalance.delay.ms", ("-1", "0", "2147483647", "2147483648")),
    ("no.such.setting", ("1",)),
)


def edit(t: Talk, version: int, kind: int, name: str, *edits: Edit, only: bool = False) -> None:
    configs = [{"name": n, "config_operation": o, "value": v} for n, o, v in edits]
    entry = {"resource_type": kind, "resource_name": name, "configs": configs}
    t.ask("IncrementalAlterConfigs", version, {"resources": [entry], "validate_only": only})
    t.settle()


def replace(t: Talk, version: int, kind: int, name: str, *texts: tuple[str, str | None]) -> None:
    configs = [{"name": n, "value": v} for n, v in texts]
    entry = {"resource_type": kind, "resource_name": name, "configs": configs}
    t.ask("AlterConfigs", version, {"resources": [entry], "validate_only": False})
    t.settle()


def describe(t: Talk, kind: int, name: str, keys: list[str] | None = None, **more: Any) -> None:
    entry = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    t.each("DescribeConfigs", {"resources": [entry], "include_synonyms": True, **more})


def list_kinds(t: Talk, *kinds: int) -> None:
    t.each("ListConfigResources", {"resource_types": list(kinds)})


@script
def group_configs(t: Talk) -> None:
    group, other = t.name("g"), t.name("a/b c")
    for version in t.versions("IncrementalAlterConfigs"):
        for setting, values in GROUP_VALUES:
            for value in values:
                edit(t, version, GROUP, group, (setting, SET, value), only=True)
        timeout = "consumer.session.timeout.ms"
        edit(t, version, GROUP, "", (timeout, SET, "50000"))
        edit(t, version, GROUP, group, (timeout, SET, "50000"))
        edit(t, version, GROUP, group, (timeout, SET, "50000"), (timeout, SET, "51000"))
        edit(t, version, GROUP, group, (timeout, SET, None))
        for operation in (APPEND, SUBTRACT):
            edit(t, version, GROUP, group, (timeout, operation, "50000"))
        edit(t, version, GROUP, group, ("no.such.setting", DELETE, None))
        edit(t, version, GROUP, group, ("no.such.setting", APPEND, "x"))
        edit(t, version, GROUP, other, (timeout, SET, "51000"), ("share.auto.offset.reset", SET, "earliest"))
        warmups, tags = "streams.num.warmup.replicas", "streams.rack.aware.assignment.tags"
        edit(t, version, GROUP, group, (warmups, SET, "3"), (tags, SET, "zone, rack"))
        edit(t, version, GROUP, group, (tags, APPEND, "room"), (tags, SUBTRACT, "zone"))
        for keys in (None, [], [timeout, "nope"], [warmups, tags, "streams.task.offset.interval.ms"]):
            describe(t, GROUP, group, keys)
        for name in (other, t.name("unknown"), ""):
            describe(t, GROUP, name)
        for kinds in ((GROUP,), (GROUP, METRICS)):
            list_kinds(t, *kinds)
        edit(t, version, GROUP, group, *((name, DELETE, None) for name in (timeout, warmups, tags)))
        edit(t, version, GROUP, other, (timeout, DELETE, None), ("share.auto.offset.reset", DELETE, ""))
        list_kinds(t, GROUP)
    for version in t.versions("AlterConfigs"):
        replace(t, version, GROUP, group, ("consumer.heartbeat.interval.ms", "6000"))
        replace(t, version, GROUP, group, ("consumer.session.timeout.ms", "50000"))
        describe(t, GROUP, group, ["consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"])
        for texts in (("nope", "1"), ("share.isolation.level", "x"), ("share.isolation.level", None)):
            replace(t, version, GROUP, group, texts)
        for name in ("", group, other):
            replace(t, version, GROUP, name)
        list_kinds(t, GROUP)


@script
def metrics_configs(t: Talk) -> None:
    name = t.name("m")
    for version in t.versions("IncrementalAlterConfigs"):
        for setting, value in (
            *(("interval.ms", value) for value in ("99", "100", "3600000", "3600001")),
            *(("metrics", value) for value in ("org.apache.kafka.,foo", "*", "")),
            *(("match", value) for value in ("client_id=a.*,client_software_name=b", "client_id", "nope=b")),
            *(("match", value) for value in ("client_id=[", "", "client_source_port=1")),
            ("nope", "x"),
        ):
            edit(t, version, METRICS, name, (setting, SET, value))
        edit(t, version, METRICS, name, ("metrics", APPEND, "bar"))
        edit(t, version, METRICS, "", ("interval.ms", SET, "100"))
        describe(t, METRICS, name)
        describe(t, METRICS, "")
        describe(t, METRICS, t.name("none"), ["metrics"])
        list_kinds(t, METRICS)
        replace(t, t.latest("AlterConfigs"), METRICS, name, ("interval.ms", "200"))
        describe(t, METRICS, name, ["interval.ms"])
        replace(t, t.latest("AlterConfigs"), METRICS, name)
        list_kinds(t, METRICS)
    replace(t, t.latest("AlterConfigs"), METRICS, "")


@script
def broker_configs(t: Talk) -> None:
    described = {*BROKER_KEYS, *settings_of_release("3"), *settings_of_release("4")} - ABOUT_THIS_BROKER
    describe(t, BROKER, "1", sorted(name for name in described if not name.startswith("penstock.")))
    relogin, prefix = "sasl.kerberos.min.time.before.relogin", "listener.name.internal."
    for version in t.versions("IncrementalAlterConfigs"):

        def both(setting: str, value: str | None, operation: int = SET, version: int = version) -> None:
            for name in ("1", ""):
                edit(t, version, BROKER, name, (setting, operation, value))

        both(relogin, "58000")
        both("no.such.setting", "x")
        both("ssl.keystore.type", "PEM")
        both(f"{prefix}ssl.keystore.type", "PEM")
        both(f"{prefix}ssl.keystore.password", "secret")
        both("background.threads", "11")
        both("max.connections", "500")
        both("max.connections.per.ip", "400")
        both("leader.replication.throttled.rate", "1000")
        both("log.cleaner.io.max.bytes.per.second", "1e6")
        set_now = [relogin, "no.such.setting", "max.connections", "background.threads", "num.partitions"]
        set_now += [f"{prefix}ssl.keystore.{name}" for name in ("type", "password")]
        set_now += ["leader.replication.throttled.rate", "log.cleaner.io.max.bytes.per.second"]
        describe(t, BROKER, "1", set_now)
        describe(t, BROKER, "", set_now)
        for setting, value in (
            ("max.connections", "-5"),
            ("max.connections", "x"),
            ("background.threads", "0"),
            ("num.io.threads", "0"),
            ("log.cleaner.backoff.ms", "-1"),
            ("log.retention.ms", "x"),
            ("leader.replication.throttled.rate", "x"),
            ("node.id", "9"),
            ("broker.heartbeat.interval.ms", "9"),
            ("zookeeper.connect", "x"),
        ):
            both(setting, value)
        for operation in (APPEND, SUBTRACT):
            both("no.such.setting", "x", operation)
            both("max.connections", "1", operation)
        both("node.id", None, DELETE)
        for setting in (*set_now, "max.connections.per.ip", "zookeeper.connect", "ssl.keystore.type"):
            both(setting, None, DELETE)
        describe(t, BROKER, "1", set_now)
        describe(t, BROKER, "", set_now)
    for version in t.versions("AlterConfigs"):
        for texts in (("no.such.setting", "z"), ("node.id", "9"), ("log.cleaner.threads", None)):
            replace(t, version, BROKER, "1", texts)
            describe(t, BROKER, "1", ["no.such.setting"])
        replace(t, version, BROKER, "1")
        replace(t, version, BROKER, "2")


@script
def logger_configs(t: Talk) -> None:
    for version in t.versions("IncrementalAlterConfigs"):
        for only in (True, False):
            edit(t, version, BROKER_LOGGER, "1", ("root", SET, "INFO"), only=only)
        describe(t, BROKER_LOGGER, "1", ["root", "nope"])
        for edits in (
            ("no.such.logger", SET, "INFO"),
            ("no.such.logger", DELETE, None),
            ("root", SET, "NOISE"),
            ("root", SET, "info"),
            ("root", SET, None),
            ("root", DELETE, None),
            ("root", APPEND, "INFO"),
            ("root", SUBTRACT, "INFO"),
        ):
            edit(t, version, BROKER_LOGGER, "1", edits)
        for name in ("2", "x", ""):
            edit(t, version, BROKER_LOGGER, name, ("root", SET, "INFO"))
            describe(t, BROKER_LOGGER, name)
        edit(t, version, BROKER_LOGGER, "1", ("root", SET, "WARN"))
    replace(t, t.latest("AlterConfigs"), BROKER_LOGGER, "1", ("root", "INFO"))
    for kinds in ((BROKER_LOGGER,), (BROKER, BROKER_LOGGER)):
        list_kinds(t, *kinds)
