"""Tests of a password that the broker stops accepting while clients run.

Clients raise an error at once, and work again when it is accepted.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import Admin, Broker, Consumer, Producer, RecordMetadata
from penstock.client.cluster.connection_pool import ConnectionPool
from penstock.client.security.credentials import Credentials
from penstock.errors import AuthenticationError, NetworkError
from penstock.security.secrets import Secret


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(security="SASL_SSL") as broker:
        with Admin(config=broker.client_settings()) as admin:
            admin.create_topic("t")
        yield broker


def pool_of(client: Any) -> ConnectionPool:
    """Return the connection pool of a blocking client."""
    inner = getattr(client, "_producer", None) or client._consumer
    found = [value for value in vars(inner._client).values() if isinstance(value, ConnectionPool)]
    assert len(found) == 1
    return found[0]


def use_password(client: Any, password: Secret) -> None:
    """Change the password of a running client, and close its connections so that it is used."""
    pool = pool_of(client)
    assert pool._secured is not None
    settings = dataclasses.replace(pool._secured.settings, password=password)
    pool._secured._credentials = Credentials(settings)
    for peer in list(pool._peers.values()):
        connection = peer.connection
        connection._loop.call_soon_threadsafe(connection.close, NetworkError("cut by the test"))
    deadline = time.monotonic() + 10
    while any(peer.connection.cause is None for peer in list(pool._peers.values())):
        assert time.monotonic() < deadline


def test_a_producer_fails_what_waits_and_goes_on_when_it_may_again(broker: Broker) -> None:
    config = broker.client_settings()
    with Producer(config=config) as producer:
        first = producer.send("t", b"0").result(30)
        use_password(producer, Secret("revoked"))
        with pytest.raises(AuthenticationError, match="does user 'admin' exist"):
            producer.send("t", b"lost").result(20)
        use_password(producer, Secret(config["sasl.password"]))
        accepted = sent_once_accepted(producer)
        again = [accepted, *(producer.send("t", b"%d" % number).result(30) for number in range(18))]
    assert [each.offset for each in again] == [first.offset + number for number in range(1, 20)]


def sent_once_accepted(producer: Producer) -> RecordMetadata:
    """Send a record, retrying while the broker refuses the password.

    An attempt to connect with the revoked password may fail after the change.
    """
    deadline = time.monotonic() + 30
    while True:
        try:
            return producer.send("t", b"again").result(30)
        except AuthenticationError:
            assert time.monotonic() < deadline


@pytest.mark.parametrize("group", [None, "g"])
def test_a_consumer_raises_from_poll(broker: Broker, group: str | None) -> None:
    config = {**broker.client_settings(), "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    with Producer(config=broker.client_settings()) as producer:
        producer.send("t", b"x").result(30)
    with Consumer(config=config if group is None else {**config, "group.id": group}) as consumer:
        if group is None:
            consumer.assign([("t", 0)])
        else:
            consumer.subscribe(["t"])
        while not consumer.poll(20_000):
            pass
        use_password(consumer, Secret("revoked"))
        with pytest.raises(AuthenticationError, match="does user 'admin' exist"):
            poll_for_20_s(consumer)


def poll_for_20_s(consumer: Consumer) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        consumer.poll(1_000)
