"""Tests of ``penstock acl`` and ``penstock user`` against a broker with an authorizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock import Admin, Broker, Producer
from penstock.broker.security.throwaway import Security
from penstock.cli import main
from penstock.errors import PenstockError

Run = Callable[..., str]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(
        security=Security("SASL_PLAINTEXT", users={"admin": "a-secret"}, super_users=["admin"])
    ) as made:
        yield made


@pytest.fixture
def run(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Return a function that runs a command as the administrator, and returns what the command prints."""
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in broker.client_settings("admin").items()))
    monkeypatch.setenv("PENSTOCK_CONFIG", str(path))

    def invoke(*words: str, status: int = 0, password: str | None = None) -> str:
        if password is not None:
            monkeypatch.setenv("PENSTOCK_NEW_PASSWORD", password)
        noun, verb, *rest = words
        code = main([noun, verb, "-b", broker.bootstrap_servers, *rest])
        monkeypatch.delenv("PENSTOCK_NEW_PASSWORD", raising=False)
        out, err = capsys.readouterr()
        assert code == status, err
        return out

    return invoke


def test_entries_are_added_listed_and_removed(run: Run) -> None:
    run("acl", "add", "allow", "ann", "read,describe", "topic:orders*")
    run("acl", "add", "deny", "*", "all", "cluster", "from", "10.0.0.1")
    assert run("acl", "list").splitlines() == [
        "allow ann read topic:orders*",
        "allow ann describe topic:orders*",
        "deny * all cluster from 10.0.0.1",
    ]
    assert run("acl", "list", "--topic", "orders-1", "--principal", "User:ann").count("\n") == 2
    assert run("acl", "list", "--group", "orders") == ""
    assert "read" in run("acl", "remove", "allow", "ann", "read", "topic:orders*")
    assert run("acl", "list").count("\n") == 2


def test_entries_that_decide_nothing_are_told(run: Run) -> None:
    assert "matches no client" in run("acl", "add", "allow", "ann", "read", "topic:t", "from", "localhost")


def test_users_log_in_with_the_password_they_were_given(run: Run, broker: Broker, tmp_path: Path) -> None:
    run("user", "add", "ann", password="first")
    run("acl", "add", "allow", "ann", "describe", "topic:*")

    def log_in(password: str, mechanism: str = "SCRAM-SHA-256") -> None:
        settings = broker.client_settings("admin") | {"sasl.username": "ann", "sasl.password": password}
        with Admin(config={**settings, "sasl.mechanism": mechanism}) as admin:
            admin.list_topics()

    log_in("first")
    (tmp_path / "password").write_text("second\n")
    run("user", "password", "ann", "--password-file", str(tmp_path / "password"))
    log_in("second", "SCRAM-SHA-512")
    with pytest.raises(PenstockError):
        log_in("first")
    listed = run("user", "list")
    assert "ann: SCRAM-SHA-256 (4096), SCRAM-SHA-512 (4096)" in listed
    assert "second" not in listed
    run("user", "remove", "ann")
    with pytest.raises(PenstockError):
        log_in("second")


def test_quotas_of_a_user_throttle_that_user(run: Run, broker: Broker) -> None:
    run("user", "quota", "admin", "producer_byte_rate=1000")
    assert broker.server is not None
    quotas = broker.server.node.cluster.quotas
    assert list(quotas.values()) == [{"producer_byte_rate": 1000.0}]
    throttle = broker.server.node.throttle
    assert throttle is not None
    assert throttle.quotas.limit("producer_byte_rate", "any", "admin") is not None
    assert throttle.quotas.limit("producer_byte_rate", "any") is None
    with Producer(config=dict(broker.client_settings("admin"))) as producer:
        producer.send("t", b"x")
        producer.flush()
    run("user", "quota", "admin", "producer_byte_rate=")
    assert not broker.server.node.cluster.quotas


@pytest.mark.parametrize(
    ("words", "status"),
    [(("acl", "add", "allow", "ann"), 2), (("acl", "add", "allow", "ann", "fly", "topic:t"), 2),
     (("user", "password", "stranger", "--password-file", "x"), 2), (("user", "remove", "stranger"), 1),
     (("user", "add", "admin", "--password-file", "x"), 2), (("user", "quota", "ann", "x=y"), 2),
     (("acl", "list", "--topic", "a", "--group", "b"), 2)],
)  # fmt: skip
def test_wrong_use_is_told(run: Run, words: tuple[str, ...], status: int) -> None:
    run(*words, status=status)
