"""Tests of values of wrong types for every argument of the public calls: the error names the argument.

It also says what is needed. A value that happens to fit is accepted; a refused one raises an error of this
package, never one from an inner call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from for_each import for_each
from penstock import (
    Admin,
    Broker,
    Consumer,
    Producer,
    TopicPartition,
    read_log,
    read_topic,
    scan_topic,
    write_topic,
)
from penstock.client import TransactionCoordinates, fetch_ranges
from penstock.errors import PenstockError
from penstock.security.acls import EVERY_ACL

NewTopic = Callable[..., str]


class Odd:
    """An object that is no valid value for any argument."""

    def __repr__(self) -> str:
        return "<odd>"


WRONG: tuple[Any, ...] = (Odd(), 1.5, "x y", ["x"], {"x": 1}, b"x", True, -7)


def hold(call: Callable[..., object], arguments: dict[str, Any]) -> None:
    """Call a function with every wrong value for every argument, and check the errors."""
    for name in arguments:
        for value in WRONG:
            refused = outcome(call, {**arguments, name: value})
            if isinstance(refused, Exception) and not isinstance(refused, PenstockError):
                raise AssertionError(f"{name}={value!r}: {type(refused).__name__}: {refused}") from refused
            if isinstance(value, Odd):
                assert refused is not None, f"{name} takes an odd object"
                assert name in UNQUOTED or "odd" in str(refused).lower(), f"{name}: {refused}"


def outcome(call: Callable[..., object], arguments: dict[str, Any]) -> Exception | None:
    try:
        call(**arguments)
    except Exception as error:
        return error
    return None


UNQUOTED = {"password", "topics"}
"""Arguments whose errors do not quote the value: passwords are secret, `subscribe` lists its types."""


@pytest.fixture(scope="module")
def topic(servers: str, new_topic: NewTopic) -> str:
    name = new_topic()
    write_topic(pa.table({"value": ["a"]}), name, servers)
    return name


@pytest.fixture
def tp(topic: str) -> TopicPartition:
    return TopicPartition(topic, 0)


CONSUMER: dict[str, Callable[[TopicPartition], dict[str, Any]]] = {
    "assign": lambda tp: {"partitions": [tp]},
    "seek": lambda tp: {"partition": tp, "offset": 0},
    "pause": lambda tp: {"partitions": [tp]},
    "resume": lambda tp: {"partitions": [tp]},
    "poll": lambda tp: {"timeout_ms": 1, "max_records": 1},
    "poll_arrow": lambda tp: {"timeout_ms": 1, "columns": ["value"], "batch_bytes": 100},
    "poll_part": lambda tp: {"timeout_ms": 1},
    "partitions_for_topic": lambda tp: {"topic": tp.topic},
    "commit": lambda tp: {"offsets": {tp: 0}},
    "commit_async": lambda tp: {"offsets": {tp: 0}, "when_done": None},
    "committed": lambda tp: {"partitions": [tp]},
    "lag": lambda tp: {"partitions": [tp]},
    "position": lambda tp: {"partition": tp},
    "beginning_offsets": lambda tp: {"partitions": [tp]},
    "end_offsets": lambda tp: {"partitions": [tp]},
    "offsets_for_times": lambda tp: {"times": {tp: 0}},
    "client_instance_id": lambda tp: {"timeout": 0},
    "close": lambda tp: {"has_failed": False, "timeout": 1.0},
}


@pytest.mark.parametrize("method", CONSUMER)
def test_consumers(servers: str, tp: TopicPartition, method: str) -> None:
    with Consumer(servers, group_id=f"g-{method}", enable_auto_commit=False) as consumer:
        consumer.assign([tp])
        hold(getattr(consumer, method), CONSUMER[method](tp))


def test_subscribing(servers: str) -> None:
    with Consumer(servers, group_id="g-subscribe") as consumer:
        hold(consumer.subscribe, {"topics": ["t"]})


def test_producers(servers: str, topic: str, tp: TopicPartition) -> None:
    record = {
        "topic": topic,
        "value": b"x",
        "key": b"k",
        "partition": 0,
        "timestamp": 1,
        "headers": [],
        "event": None,
    }
    with Producer(
        servers, transactional_id="till", allow_auto_create_topics=False, topic_metadata_propagation_max_ms=50
    ) as till:
        till.begin_transaction()
        hold(till.send_offsets, {"offsets": {tp: 1}, "group": "g"})
        till.abort_transaction()
    with Producer(servers, allow_auto_create_topics=False, topic_metadata_propagation_max_ms=50) as producer:
        hold(producer.send, record)
        hold(
            producer.send_arrow,
            {"topic": topic, "data": pa.table({"value": ["x"]}), "fields": {}, "delivery": None},
        )
        hold(producer.flush, {"timeout": 1.0})
        hold(producer.close, {"timeout": 1.0})


READ = {
    "start": 0, "end": 1, "last": None, "limit": 1, "columns": ["value"], "partitions": [0],
    "isolation": "read_committed", "config": {}, "protocol": "kafka", "progress": None,
}  # fmt: skip


QUICK = {"topic.metadata.propagation.max.ms": 50, "retry.backoff.ms": 5}
ROWS = pa.table({"value": ["x"]})
LIMITS = {"unpack_max_bytes": 1 << 20, "unpack_max_records": 100}


def test_read_topic(servers: str, topic: str) -> None:
    hold(
        lambda **given: read_topic(**given),
        {**READ, "topic": topic, "bootstrap_servers": servers, "config": QUICK},
    )


def test_scan_topic(servers: str, topic: str) -> None:
    given = {"topic": topic, "bootstrap_servers": servers, "config": QUICK, "batch_bytes": 100}
    hold(lambda **given: list(scan_topic(**given)), {**READ, **given})


def test_write_topic(servers: str, topic: str) -> None:
    quick = {**QUICK, "allow.auto.create.topics": False}
    given = {"topic": topic, "bootstrap_servers": servers, "config": quick, "data": ROWS, "progress": None}
    hold(write_topic, {**given, "compression": "none", "fields": {}})


def test_read_log(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        write_topic(ROWS, "t", broker.bootstrap_servers)
    given = {name: value for name, value in READ.items() if name not in ("config", "protocol", "progress")}
    hold(read_log, {**given, **LIMITS, "directory": tmp_path, "topic": "t"})


def test_fetch_ranges(servers: str, topic: str) -> None:
    given = {"ranges": [(topic, 0, 0, 1)], "columns": ["value"], "isolation": "read_committed"}
    more = {"batch_bytes": 100, "fetch_bytes": 1_000, "fail_on_data_loss": True, "config": {}}
    hold(lambda **given: list(fetch_ranges(**given)), {"bootstrap_servers": servers, **given, **more})


def test_constructors(servers: str) -> None:
    for kind in (Producer, Consumer, Admin):
        hold(lambda kind=kind, **given: kind(**given).close(), {"bootstrap_servers": servers, "config": {}})
    own = {
        "host": "127.0.0.1",
        "port": 0,
        "config": {},
        "as_version": None,
        "listen_07": None,
        "interceptors": (),
        "clock": None,
    }
    hold(Broker, {**own, "security": None})


ADMIN: dict[str, Callable[[TopicPartition], dict[str, Any]]] = {
    "create_topics": lambda tp: {"topics": []},
    "delete_topics": lambda tp: {"names": []},
    "list_topics": lambda tp: {"include_internal": False},
    "describe_topics": lambda tp: {"names": [tp.topic]},
    "describe_config": lambda tp: {"topic": tp.topic, "broker": None},
    "create_partitions": lambda tp: {"topic": tp.topic, "count": 1},
    "delete_records": lambda tp: {"offsets": {tp: 0}},
    "describe_log_dirs": lambda tp: {"broker": None},
    "list_offsets": lambda tp: {"questions": {tp: -1}, "isolation": "read_committed"},
    "list_groups": lambda tp: {"states": ()},
    "describe_groups": lambda tp: {"group_ids": ["g"]},
    "delete_groups": lambda tp: {"group_ids": []},
    "list_group_offsets": lambda tp: {"group_id": "g", "partitions": None},
    "alter_group_offsets": lambda tp: {"group_id": "g", "offsets": {tp: 0}},
    "delete_group_offsets": lambda tp: {"group_id": "g", "partitions": [tp]},
    "list_streams_groups": lambda tp: {"states": ()},
    "describe_streams_groups": lambda tp: {"group_ids": []},
    "list_share_groups": lambda tp: {"states": ()},
    "describe_share_groups": lambda tp: {"group_ids": []},
    "list_share_group_offsets": lambda tp: {"group_id": "s", "partitions": None},
    "alter_share_group_offsets": lambda tp: {"group_id": "s", "offsets": {tp: 0}},
    "delete_share_group_offsets": lambda tp: {"group_id": "s", "topics": [tp.topic]},
    "create_acls": lambda tp: {"acls": []},
    "list_acls": lambda tp: {"wanted": EVERY_ACL},
    "delete_acls": lambda tp: {"filters": []},
    "list_users": lambda tp: {"names": ()},
    "set_password": lambda tp: {"user": "u", "password": "p", "mechanisms": [], "iterations": 4096},
    "delete_user": lambda tp: {"user": "u", "mechanisms": []},
    "set_user_quotas": lambda tp: {"user": "u", "quotas": {}},
    "set_quotas": lambda tp: {"entity": {"user": "u"}, "quotas": {}},
    "describe_producers": lambda tp: {"partitions": [tp], "broker": None},
    "list_transactions": lambda tp: {
        "states": (), "producer_ids": (), "longer_than_ms": None, "pattern": None,
    },
    "describe_transactions": lambda tp: {"transactional_ids": []},
    "fence_producer": lambda tp: {"transactional_id": "fenced"},
    "end_transaction": lambda tp: {"coordinates": TransactionCoordinates("x", 1, 0), "commit": True},
    "find_hanging_transactions": lambda tp: {"partitions": [], "older_than_ms": 1.0},
    "abort_hanging_transaction": lambda tp: {"partition": tp, "start_offset": 0},
    "client_instance_id": lambda tp: {"timeout": 0},
    "alter_config": lambda tp: {
        "topic": tp.topic, "broker": None, "all_brokers": False, "client_metrics": None, "set": {},
        "delete": (), "append": {}, "subtract": {}, "validate_only": True,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def administered() -> Iterator[Admin]:
    with Broker() as broker, Admin(broker.bootstrap_servers, topic_metadata_propagation_max_ms=50) as admin:
        admin.create_topic("t")
        yield admin


@for_each(ADMIN)
def test_admins(method: str, administered: Admin) -> None:
    hold(getattr(administered, method), ADMIN[method](TopicPartition("t", 0)))


def test_every_call_is_in_the_tables() -> None:
    rest = {
        Consumer: {
            "assignment", "group_metadata", "member_id", "paused", "positions", "seek_to_beginning",
            "seek_to_committed", "seek_to_end", "stats", "subscribe", "subscription", "unsubscribe",
        },
        Admin: {
            "close", "create_topic", "describe_cluster", "list_quotas", "stats", "write_abort_marker",
        },
    }  # fmt: skip
    for kind, table in ((Consumer, CONSUMER), (Admin, ADMIN)):
        public = {name for name in dir(kind) if not name.startswith("_")}
        assert public - rest[kind] <= table.keys(), "a new call: give it wrong values here"
