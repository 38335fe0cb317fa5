"""Tests of the client classes as users meet them: `help`, mocks, subclasses, and `repr` of objects."""

from __future__ import annotations

import inspect
import pydoc
import re
from typing import Any
from unittest.mock import Mock, create_autospec

import pytest

import penstock
import penstock.client
import penstock.testing
from penstock import Admin, Broker, Consumer, Producer, Record
from penstock.client import AsyncAdmin, AsyncConsumer, AsyncProducer

CLASSES = [Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Broker, Consumer, Producer]


def public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_public_method_is_one_with_a_description(kind: type) -> None:
    for name in public(kind):
        found = inspect.getattr_static(kind, name)
        if isinstance(found, property):
            continue
        assert inspect.isfunction(found), f"{kind.__name__}.{name} is a {type(found).__name__}"
    for name in public(kind):
        found = getattr(kind, name)
        if name not in UNDESCRIBED:
            assert (found.__doc__ or "").strip(), f"{kind.__name__}.{name}"


UNDESCRIBED = {
    "data_dir", "is_in_group", "is_running",  # properties whose names say it
}  # fmt: skip


@pytest.mark.parametrize("module", [penstock, penstock.client, penstock.testing])
def test_every_public_class_says_what_an_object_is_and_what_its_methods_do(module: Any) -> None:
    for name in module.__all__:
        kind = getattr(module, name)
        if not inspect.isclass(kind):
            continue
        assert kind.__repr__ is not object.__repr__, name
        assert (kind.__doc__ or "").strip(), name
        for method, call in inspect.getmembers(kind, inspect.isfunction):
            if not method.startswith("_"):
                assert (call.__doc__ or "").strip(), f"{name}.{method}"


@pytest.mark.parametrize(
    ("kind", "twin"), [(Admin, AsyncAdmin), (Consumer, AsyncConsumer), (Producer, AsyncProducer)]
)
def test_help_of_a_blocking_client_is_whole(kind: type, twin: type) -> None:
    """The help does not refer to the asyncio class, and lists every error that the asyncio method lists."""
    for name in public(kind):
        text = inspect.getdoc(getattr(kind, name)) or ""
        assert f"See `{twin.__name__}" not in text, name
        assert twin.__name__ + "." not in text, name
        theirs = inspect.getdoc(getattr(twin, name, None)) or ""
        if "Raises:" in theirs and name not in {"close", "transaction"}:
            named = re.findall(r"^    (\w+Error)\b", theirs.partition("Raises:")[2], re.MULTILINE)
            assert all(error in text for error in named), name


def test_help_has_the_methods_and_their_arguments() -> None:
    text = pydoc.plain(pydoc.render_doc(Consumer))
    for words in ("subscribe(self, topics", "on_revoked", "Join the group", "ConsumerOptions"):
        assert words in text
    text = pydoc.plain(pydoc.render_doc(penstock.client.ConsumerOptions))
    assert "group_instance_id: str | None\n" in text.replace(" |      ", "")
    assert "The name of a static member" in text


@pytest.mark.parametrize("kind", CLASSES)
def test_mocks_have_the_methods_and_nothing_else(kind: type) -> None:
    mock = Mock(spec=kind)
    for name in public(kind):
        assert hasattr(mock, name)
    with pytest.raises(AttributeError):
        mock.subscripe("orders")
    create_autospec(kind)


def test_a_mock_checks_arguments() -> None:
    consumer = create_autospec(Consumer, instance=True)
    consumer.poll.return_value = []
    assert consumer.poll(timeout_ms=5) == []
    consumer.subscribe(["orders"], on_assigned=print)
    with pytest.raises(TypeError):
        consumer.subscribe(["orders"], on_asigned=print)
    producer = create_autospec(Producer, instance=True)
    producer.send("orders", b"x", key=b"k")
    producer.send.assert_called_once_with("orders", b"x", key=b"k")


def test_methods_can_be_overridden(servers: str, new_topic: Any) -> None:
    topic = new_topic()

    class Counting(Consumer):
        polls = 0

        def poll(self, timeout_ms: float = 1_000.0, max_records: int | None = None) -> list[Record]:
            self.polls += 1
            return super().poll(timeout_ms, max_records)

    class Prefixing(Producer):
        def send(self, topic: str, value: bytes | None = None, **more: Any) -> Any:
            return super().send(topic, b"> " + (value or b""), **more)

    with Prefixing(servers) as producer:
        producer.send(topic, b"x")
    with Counting(servers) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        [record] = consumer.poll(10_000)
        assert record.value == b"> x"
        assert consumer.polls == 1
        assert repr(consumer) == f"<Counting of {servers}, 1 partitions>"


SECRETS = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "ada",
    "sasl_password": "tickets-please",
}


@pytest.mark.parametrize("kind", [Admin, Consumer, Producer])
def test_what_is_shown_of_a_client(kind: Any) -> None:
    name = kind.__name__
    more = ", 0 partitions" if kind is Consumer else ""
    client = kind("localhost:1")
    assert repr(client) == f"<{name} of localhost:1{more}>"
    client.close()
    secured = kind(["one:1", "two:2"], **SECRETS)
    assert repr(secured) == f"<{name} of one:1,two:2, SASL_PLAINTEXT{more}>"
    assert "tickets" not in repr(secured) + repr(vars(secured)) + repr(secured._twin().config)
    secured.close()
    assert "localhost:1" in repr(getattr(penstock.client, f"Async{name}")("localhost:1"))


def test_what_is_shown_of_members_and_transactional_producers() -> None:
    with pytest.raises(penstock.errors.ConfigError):
        Consumer("localhost:1", group_instance_id="a")
    consumer = AsyncConsumer("localhost:1", group_id="billing")
    assert repr(consumer) == "<AsyncConsumer of localhost:1, group billing, 0 partitions>"
    producer = AsyncProducer("localhost:1", transactional_id="till")
    assert repr(producer) == "<AsyncProducer of localhost:1, transactional.id till>"
