"""Tests of arguments of wrong types: each public call's error names the given value and the needed type."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from for_each import for_each
from penstock import Admin, Consumer, Producer, read_topic, scan_topic, write_topic
from penstock.client.admin.admin import AsyncAdmin
from penstock.client.arguments import topic_name
from penstock.client.fetch.consumer import AsyncConsumer
from penstock.client.produce.producer import AsyncProducer
from penstock.errors import ConfigError, EncodeError, PenstockError

T0 = ("t", 0)
WRONG = [
    (
        lambda c: c.assign("orders"),
        "assign() takes a list of partitions, such as [('orders', 0)], not 'orders'",
    ),
    (lambda c: c.assign(T0), "assign() takes a list of partitions"),
    (lambda c: c.assign(["orders"]), "'orders' is no partition: write TopicPartition('orders', 0)"),
    (lambda c: c.assign([("t", "0")]), "the partition of topic 't' is '0': a whole number is needed"),
    (lambda c: c.assign([("t", True)]), "the partition of topic 't' is True"),
    (lambda c: c.assign(7), "assign() takes a list of partitions"),
    (lambda c: c.seek("t", 3), "'t' is no partition"),
    (lambda c: c.seek(T0, "3"), "the offset is '3': a whole number is needed"),
    (lambda c: c.seek(T0, None), "the offset is None"),
    (lambda c: c.seek_to_beginning("t"), "'t' is no partition"),
    (lambda c: c.pause(T0), "pause() takes a list of partitions"),
    (lambda c: c.resume("t"), "resume() takes a list of partitions"),
    (lambda c: c.poll("1000"), "timeout_ms is '1000': a number of milliseconds is needed"),
    (lambda c: c.poll(None), "timeout_ms is None"),
    (lambda c: c.poll(1, "5"), "max_records is '5': a whole number is needed"),
    (lambda c: c.poll_arrow("1"), "timeout_ms is '1'"),
    (lambda c: c.poll_arrow(1, columns=["wert"]), "a topic has no column 'wert'; it has key, value"),
    (lambda c: c.poll_arrow(1, columns=7), "columns is 7: a list of names is needed"),
    (lambda c: c.subscribe(7), "subscribe() takes the names of topics"),
    (lambda c: c.subscribe([7]), "subscribe() takes the names of topics"),
    (lambda c: c.commit([T0]), "commit() takes a mapping"),
    (lambda c: c.commit({T0: "3"}), "an offset is '3': a whole number is needed"),
    (lambda c: c.commit({"t": 3}), "'t' is no partition"),
    (lambda c: c.commit_async([T0]), "commit_async() takes a mapping"),
    (lambda c: c.committed(T0), "committed() takes a list of partitions"),
    (lambda c: c.position("t"), "'t' is no partition"),
    (lambda c: c.lag("t"), "lag() takes a list of partitions"),
    (lambda c: c.beginning_offsets("t"), "beginning_offsets() takes a list of partitions"),
    (lambda c: c.end_offsets(T0), "end_offsets() takes a list of partitions"),
    (lambda c: c.offsets_for_times([T0]), "offsets_for_times() takes a mapping"),
    (
        lambda c: c.offsets_for_times({T0: "now"}),
        "the time for t-0 is 'now': milliseconds since 1970 are needed",
    ),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_consumers(servers: str, call: Callable[[Any], object], message: str) -> None:
    with Consumer(servers, group_id="g") as consumer:
        if "subscribe" not in message:
            consumer.assign([T0])
        with pytest.raises(ConfigError) as caught:
            call(consumer)
        assert message in str(caught.value)


PRODUCER_WRONG = [
    (lambda p: p.send(["t"], b"v"), "['t'] is no name of a topic"),
    (lambda p: p.send("", b"v"), "'' is no name of a topic"),
    (lambda p: p.send(b"t", b"v"), "b't' is no name of a topic"),
    (lambda p: p.send("t", b"v", partition="0"), "the partition is '0': a whole number is needed"),
    (lambda p: p.send("t", b"v", partition=0.0), "the partition is 0.0"),
    (lambda p: p.send("t", "v"), "a record's value is bytes or None, not str"),
    (lambda p: p.send("t", 7), "a record's value is bytes or None, not int"),
]


@for_each([(call, message, is_known) for call, message in PRODUCER_WRONG for is_known in [False, True]])
def test_producers(
    call: Callable[[Any], object], message: str, is_known: bool, servers: str, new_topic: Callable[..., str]
) -> None:
    with Producer(servers, allow_auto_create_topics=True) as producer:
        if is_known:
            producer.send("t", b"v").result(30)
        with pytest.raises((ConfigError, EncodeError)) as caught:
            call(producer)
        assert message in str(caught.value)


ADMIN_WRONG = [
    (
        lambda a: a.create_topics("book"),
        "create_topics() takes a list of topics, not 'book': use create_topic()",
    ),
    (lambda a: a.create_topics([7]), "7 is no name of a topic"),
    (lambda a: a.create_topic(["t"]), "['t'] is no name of a topic"),
    (lambda a: a.create_topic("t", "3"), "the number of partitions of topic 't' is '3'"),
    (
        lambda a: a.create_topic("t", config=["a=b"]),
        "the settings of topic 't' are ['a=b']: a mapping is needed",
    ),
    (lambda a: a.delete_topics("orders"), "delete_topics() takes a list of topic names, not 'orders'"),
    (lambda a: a.delete_topics([None]), "None is no name of a topic"),
    (lambda a: a.describe_topics("orders"), "describe_topics() takes a list of topic names, not 'orders'"),
    (lambda a: a.describe_config(["t"]), "['t'] is no name of a topic"),
    (lambda a: a.describe_config(), "describe_config() takes the name of a topic, or broker="),
    (lambda a: a.describe_config(broker="0"), "broker is '0': a whole number is needed"),
    (lambda a: a.alter_config("t", set=[("a", 1)]), "set is [('a', 1)]: a mapping of settings is needed"),
    (lambda a: a.alter_config("t", delete="a"), "takes a list of setting names, not 'a'"),
    (lambda a: a.alter_config(), "alter_config() takes the name of a topic"),
    (lambda a: a.create_partitions(["t"], 3), "['t'] is no name of a topic"),
    (lambda a: a.create_partitions("t", "3"), "the number of partitions is '3'"),
    (lambda a: a.delete_records({"t": 3}), "'t' is no partition"),
    (lambda a: a.delete_records({T0: "3"}), "the offset for t-0 is '3'"),
    (lambda a: a.list_offsets([T0]), "list_offsets() takes a mapping"),
    (lambda a: a.list_offsets({T0: "latest"}), "the question about t-0 is 'latest'"),
    (lambda a: a.describe_groups("g"), "describe_groups() takes a list of group names, not 'g'"),
    (lambda a: a.delete_groups("g"), "delete_groups() takes a list of group names, not 'g'"),
    (lambda a: a.list_group_offsets("g", T0), "list_group_offsets() takes a list of partitions"),
    (lambda a: a.alter_group_offsets("g", [T0]), "takes a mapping"),
    (lambda a: a.delete_group_offsets("g", T0), "delete_group_offsets() takes a list of partitions"),
]


@for_each(ADMIN_WRONG)
def test_admin(call: Callable[[Any], object], message: str, admin: Admin) -> None:
    with pytest.raises(ConfigError) as caught:
        call(admin)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: read_topic([7], s), "7 is no name of a topic"),
        (lambda s: scan_topic(None, s), "None is no name of a topic"),  # type: ignore[arg-type]
        (lambda s: write_topic([], b"t", s), "b't' is no name of a topic"),  # type: ignore[arg-type]
        (lambda s: read_topic("t", s, columns=["wert"]), "a topic has no column 'wert'"),
        (lambda s: read_topic("t", s, partitions="0"), "partitions is '0': numbers are needed"),
        (lambda s: read_topic("t", s, partitions=["0"]), "a partition is '0': a whole number is needed"),
        (lambda s: read_topic("t", s, config=["a=b"]), "config is list: a mapping of options is needed"),
        (lambda s: read_topic("t", s, config={7: 1}), "7 is no name of an option"),
    ],
)
def test_tables(servers: str, admin: Admin, call: Callable[[str], object], message: str) -> None:
    if "t" not in admin.list_topics():
        admin.create_topic("t")
    with pytest.raises(ConfigError) as caught:
        call(servers)
    assert message in str(caught.value)


def test_one_partition_number_and_one_column_are_lists_of_one(servers: str, admin: Admin) -> None:
    if "t" not in admin.list_topics():
        admin.create_topic("t")
    assert read_topic("t", servers, partitions=0, columns="value").column_names == ["value"]


FACES = [(Producer, AsyncProducer), (Consumer, AsyncConsumer), (Admin, AsyncAdmin)]
INNER = set(
    """
    append_encoded begin_leaving check_transactional_id consumed encode_columns end_leaving fetched_bytes
    get_ready hold is_in_group iterate_now let_go needs_attention notice part_now poll_arrow_now
    poll_limit poll_now progress release send_when_possible start try_send wait wake_up
    """.split()  # noqa: SIM905
)
"""Public methods of the asyncio classes that are not for users: internal calls, and `start`.

A ``with`` statement calls `start`.
"""

ASYNC_ONLY = {"send_and_wait"}


@pytest.mark.parametrize(("face", "asynchronous"), FACES)
def test_every_public_method_is_a_real_one_with_its_signature_and_a_docstring(
    face: type, asynchronous: type
) -> None:
    wanted = {
        name for name, _ in inspect.getmembers(asynchronous) if not name.startswith("_")
    } - INNER - ASYNC_ONLY  # fmt: skip
    for name in sorted(wanted):
        member = inspect.getattr_static(face, name)
        assert member.__doc__, f"{face.__name__}.{name} has no docstring"
        if isinstance(member, property):
            continue
        assert inspect.isfunction(member), f"{face.__name__}.{name} is no method"
        theirs = inspect.signature(inspect.getattr_static(asynchronous, name))
        ours = inspect.signature(member)
        shared = {key: value for key, value in ours.parameters.items() if key in theirs.parameters}
        assert [str(p) for p in shared.values()] == [str(p) for p in theirs.parameters.values()], name


def test_instances_have_no_methods_of_their_own(servers: str) -> None:
    with Consumer(servers) as consumer:
        assert not any(callable(value) for value in vars(consumer).values())
        assert "subscribe" in Consumer.__dict__


def test_errors_are_of_the_one_tree() -> None:
    assert issubclass(ConfigError, PenstockError)
    assert issubclass(ConfigError, ValueError)


@pytest.mark.parametrize(
    "argument", [b"x" * 100_000, ["row"] * 100_000, {number: number for number in range(10_000)}]
)
def test_an_error_does_not_repeat_a_whole_table(argument: object) -> None:
    """In `write_topic("orders", table)` the arguments are in the wrong order.

    The error must not contain the table's rows.
    """
    with pytest.raises(ConfigError, match="is no name of a topic") as caught:
        topic_name(argument)
    assert len(str(caught.value)) < 300
