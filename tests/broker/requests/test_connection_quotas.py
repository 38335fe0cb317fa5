"""Tests of connection limits: their number and rate, per address and listener, and what clients observe."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from broker.wire_client import WireClient, is_well
from free_ports import free_ports
from penstock import Admin, Broker
from penstock.broker.config.values import BrokerConfig
from penstock.broker.quota_entities import Entity
from penstock.broker.requests.connection_quotas import ConnectionQuotas, parse_overrides
from penstock.common.listening.addresses import address_of, is_address
from penstock.errors import ConfigError, KafkaError
from penstock.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest

VERSIONS = ApiVersionsRequest(client_software_name="x", client_software_version="1")


def quotas_of(
    settings: dict[str, str] | None = None, ips: dict[str | None, float] | None = None, *listeners: str
) -> ConnectionQuotas:
    limits: dict[Entity, dict[str, float]] = {
        (("ip", ip),): {"connection_creation_rate": rate} for ip, rate in (ips or {}).items()
    }
    cluster = SimpleNamespace(quotas=limits, metadata_end_offset=1, setting_checks=[])
    return ConnectionQuotas(BrokerConfig(settings), list(listeners or ("PLAINTEXT",)), cluster)


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# --- arithmetic ---------------------------------------------------------------------------------------------


def test_without_limits_nothing_waits() -> None:
    quotas = quotas_of()
    for _ in range(1000):
        assert quotas.arrive("PLAINTEXT", 0.0) == 0
        assert quotas.refuse("PLAINTEXT", "127.0.0.1", 0.0) == 0
        assert quotas.has_room("PLAINTEXT")
        quotas.enter("PLAINTEXT")


@pytest.mark.parametrize("name", ["max.connection.creation.rate", "listener.name.plaintext.{}"])
def test_ten_seconds_of_a_rate_may_come_at_once_and_the_next_waits(name: str) -> None:
    quotas = quotas_of({name.format("max.connection.creation.rate"): "2"})
    assert [quotas.arrive("PLAINTEXT", 0.0) for _ in range(20)] == [0] * 20
    assert quotas.arrive("PLAINTEXT", 0.0) == pytest.approx(0.5)
    assert quotas.arrive("PLAINTEXT", 0.5) == pytest.approx(0.5)
    assert max(quotas.arrive("PLAINTEXT", 0.5) for _ in range(9)) == 1  # never longer than a window
    assert quotas.arrive("PLAINTEXT", 30.0) == 0


def test_windows_are_those_of_the_settings() -> None:
    windows = {"quota.window.num": "2", "quota.window.size.seconds": "3"}
    quotas = quotas_of({"max.connection.creation.rate": "1", **windows})
    assert [quotas.arrive("PLAINTEXT", 0.0) for _ in range(5)] == pytest.approx([0, 0, 0, 1, 2])
    assert quotas.arrive("PLAINTEXT", 7.0) == 0


def test_a_rate_of_nothing_lets_one_in_for_each_window() -> None:
    assert quotas_of({"max.connection.creation.rate": "0"}).arrive("PLAINTEXT", 0.0) == 1


def test_a_refused_connection_is_as_if_it_had_not_come() -> None:
    quotas = quotas_of({"max.connection.creation.rate": "2"}, {"10.0.0.1": 1})
    for _ in range(10):
        assert quotas.arrive("PLAINTEXT", 0.0) == 0
        assert quotas.refuse("PLAINTEXT", "10.0.0.1", 0.0) == 0
    for _ in range(50):
        assert quotas.arrive("PLAINTEXT", 0.0) == 0
        assert quotas.refuse("PLAINTEXT", "10.0.0.1", 0.0) == 1
    assert quotas.refuse("PLAINTEXT", "10.0.0.2", 0.0) == 0
    assert quotas.refuse("PLAINTEXT", "10.0.0.1", 20.0) == 0


def test_addresses_without_a_quota_have_the_default_each() -> None:
    quotas = quotas_of(ips={None: 1, "::1": 2})
    for address, most in (("10.0.0.1", 10), ("10.0.0.2", 10), ("0:0:0:0:0:0:0:1", 20)):
        refused = [bool(quotas.refuse("PLAINTEXT", address, 0.0)) for _ in range(25)]
        assert refused.index(True) == most


def test_room_is_for_all_and_for_each_listener() -> None:
    settings = {"max.connections": "3", "listener.name.a.max.connections": "1"}
    quotas = quotas_of(settings, {}, "A", "B")
    assert quotas.has_room("A")
    quotas.enter("A")
    assert not quotas.has_room("A")
    for _ in range(2):
        assert quotas.has_room("B")
        quotas.enter("B")
    assert not quotas.has_room("B")
    quotas.leave("A")
    assert quotas.has_room("A")
    assert quotas.has_room("B")


def test_the_listener_for_brokers_has_room_and_others_go() -> None:
    settings = {"max.connections": "2", "inter.broker.listener.name": "B"}
    quotas = quotas_of(settings, {}, "A", "B")
    open_ones = [SimpleNamespace(listener=SimpleNamespace(name=name)) for name in "BAA"]
    for each in open_ones:
        quotas.enter(each.listener.name)
    assert not quotas.has_room("A")
    assert quotas.has_room("B")
    assert quotas.excess(open_ones) == open_ones[1:2]


def test_limits_of_addresses() -> None:
    quotas = quotas_of(
        {"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "10.0.0.1:2,::1:0"}
    )
    assert [quotas.admit("10.0.0.1") for _ in range(3)] == [True, True, False]
    assert [quotas.admit("10.0.0.2") for _ in range(2)] == [True, False]
    assert quotas.admit("::ffff:10.0.0.9")
    assert not quotas.admit("0:0:0:0:0:0:0:1")
    for _ in range(2):
        quotas.forget("10.0.0.1")
    assert quotas.admit("10.0.0.1")


def test_addresses_are_one_however_they_are_written() -> None:
    assert address_of("::ffff:127.0.0.1") == address_of("localhost") == "127.0.0.1"
    assert address_of("0:0:0:0:0:0:0:1") == address_of("[::1]") == "::1"
    assert is_address("localhost")
    assert not is_address("a.host")
    assert address_of("a.host") == "a.host"


@pytest.mark.parametrize("text", ["10.0.0.1", "10.0.0.1:x", "no such host:1", ":1", "10.0.0.1:-1"])
def test_overrides_that_will_not_do(text: str) -> None:
    with pytest.raises(ConfigError, match="ADDRESS:NUMBER"):
        parse_overrides(text)
    with pytest.raises(ConfigError, match="ADDRESS:NUMBER"):
        parse_overrides(text, looks_up=True)
    with pytest.raises(ConfigError, match="ADDRESS:NUMBER"), Broker(max_connections_per_ip_overrides=text):
        pass


def test_names_of_hosts_are_looked_up_at_the_start() -> None:
    assert parse_overrides("localhost:3, 10.0.0.1 : 4") == {"127.0.0.1": 3, "10.0.0.1": 4}


# --- what clients see ---------------------------------------------------------------------------------------


def test_a_connection_without_room_waits_for_another_to_end() -> None:
    with Broker(max_connections=1) as broker, WireClient(broker.port) as waiting:
        server = broker.server
        assert server is not None
        assert waiting.ask(VERSIONS, 3).error_code == 0
        with WireClient(broker.port) as late:
            late.send(VERSIONS, 3)
            until(lambda: server.waiting_connections)
            assert waiting.ask(VERSIONS, 3).error_code == 0
            assert len(server.connections) == 1
            waiting.socket.close()
            assert late.receive()[1].error_code == 0
        assert is_well(broker.port)


def test_one_listener_is_full_and_the_other_is_not() -> None:
    first, second = free_ports(2)
    config = {
        "listeners": f"A://127.0.0.1:{first},B://127.0.0.1:{second}",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
        "listener.name.a.max.connections": "1",
    }
    with Broker(config=config) as broker, WireClient(first) as kept, WireClient(first) as late:
        server = broker.server
        assert server is not None
        assert kept.ask(VERSIONS, 3).error_code == 0
        late.send(VERSIONS, 3)
        until(lambda: server.waiting_connections)
        assert is_well(second)
        kept.socket.close()
        assert late.receive()[1].error_code == 0


def test_a_limit_that_is_raised_lets_in_who_waits_and_a_lower_one_ends_the_idle() -> None:
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        server = broker.server
        assert server is not None
        admin.alter_config(broker=1, set={"max.connections": "100"})
        count = len(server.connections)
        admin.alter_config(broker=1, set={"max.connections": str(count + 1)})
        with WireClient(broker.port) as one, WireClient(broker.port) as late:
            assert one.ask(VERSIONS, 3).error_code == 0
            late.send(VERSIONS, 3)
            until(lambda: server.waiting_connections)
            admin.alter_config(broker=1, set={"max.connections": str(count + 2)})
            assert late.receive()[1].error_code == 0
            admin.alter_config(broker=1, set={"max.connections": str(count)})
            until(lambda: len(server.connections) <= count)
            admin.alter_config(broker=1, set={"max.connections": "100"})
            assert is_well(broker.port)


def ip_quota(ip: str | None, rate: float | None, name: str = "connection_creation_rate") -> EntryData:
    op = OpData(key=name, value=rate or 0.0, remove=rate is None)
    return EntryData(entity=[EntityData(entity_type="ip", entity_name=ip)], ops=[op])


def test_an_address_that_comes_too_often_is_closed() -> None:
    with Broker() as broker, WireClient(broker.port) as admin:
        answer = admin.ask(AlterClientQuotasRequest(entries=[ip_quota("127.0.0.1", 1)]), 1)
        assert [entry.error_code for entry in answer.entries] == [0]
        clients = [WireClient(broker.port) for _ in range(11)]
        try:
            for client in clients[:10]:
                assert client.ask(VERSIONS, 3).error_code == 0
            assert clients[10].is_closed_by_peer()
            admin.ask(AlterClientQuotasRequest(entries=[ip_quota("127.0.0.1", None)]), 1)
            assert is_well(broker.port)
        finally:
            for client in clients:
                client.socket.close()


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (ip_quota("10.0.0.1", 5), 0),
        (ip_quota("::1", 5), 0),
        (ip_quota(None, 5), 0),
        (ip_quota("not an address", 5), 42),
        (ip_quota("10.0.0.1", 0.0), 42),
        (ip_quota("10.0.0.1", -1), 42),
        (ip_quota("10.0.0.1", 1.5), 42),
        (ip_quota("10.0.0.1", 2.0**31), 42),
        (ip_quota("10.0.0.1", 5, "producer_byte_rate"), 42),
    ],
    ids=str,
)
def test_what_quotas_an_address_may_have(entry: EntryData, code: int) -> None:
    with Broker() as broker, WireClient(broker.port) as client:
        assert client.ask(AlterClientQuotasRequest(entries=[entry]), 1).entries[0].error_code == code


def test_a_user_has_no_rate_of_connections() -> None:
    entry = ip_quota("x", 5)
    entry.entity = [EntityData(entity_type="user", entity_name="x")]
    with Broker() as broker, WireClient(broker.port) as client:
        assert client.ask(AlterClientQuotasRequest(entries=[entry]), 1).entries[0].error_code == 42


def test_overrides_are_checked_when_they_are_changed() -> None:
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.alter_config(broker=1, set={"max.connections.per.ip.overrides": "127.0.0.1:9"})
        with pytest.raises(KafkaError, match="ADDRESS:NUMBER"):
            admin.alter_config(broker=1, set={"max.connections.per.ip.overrides": "nonsense"})
