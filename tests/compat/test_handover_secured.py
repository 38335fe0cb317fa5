"""Users, ACLs and delegation tokens of a data directory stay in force whichever broker serves it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.handover import Turns
from compat.peers import LEAKY_CLIENTS, free_ports, until
from compat.test_secured_kafka import CA, STORE_PASSWORD, _store
from penstock import Admin, Broker, Producer
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ClientConfig
from penstock.errors import AuthenticationError, TopicAuthorizationError
from penstock.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from penstock.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from penstock.security.acls import EVERY_ACL, Acl, Operation, Permission, ResourceType
from security_certificates import issue

pytestmark = [
    pytest.mark.compat,
    pytest.mark.soak,
    pytest.mark.timeout(900),
    *LEAKY_CLIENTS,
]

LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
TOPICS = ("t", "u")


class SecuredTurns:
    """Brokers that serve one data directory in turn, with a plaintext and a SASL_SSL (SCRAM) listener."""

    def __init__(self, root: Path) -> None:
        self.turns = Turns(root)
        [port] = free_ports(1)
        self.plain, self.secured = self.turns.servers, f"127.0.0.1:{port}"
        self.ca = root / "ca.pem"
        self.ca.write_text(CA.certificate_pem)
        listeners = f"PLAINTEXT://{self.plain},SASL_SSL://{self.secured}"
        self._common: dict[str, object] = {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": _store(issue(CA, rsa_key=True), root / "server.p12"),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.key.password": STORE_PASSWORD,
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{LOGIN};",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{LOGIN};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "connection.failed.authentication.delay.ms": 20,
            "delegation.token.secret.key": "for-tokens",
        }

    @contextlib.contextmanager
    def ours(self, level: str) -> Iterator[None]:
        own = {**self._common, "node.id": 1, "penstock.metadata.version": level}
        with Broker(self.turns.directory, config=own):
            yield

    @contextlib.contextmanager
    def kafka(self, version: str) -> Iterator[None]:
        # Turns knows the port of the controller.
        with self.turns.kafka(version, _of_kafka(self._common, self.turns)):
            yield

    def login(self, name: str, password: str, mechanism: str, *, is_token: bool = False) -> dict[str, Any]:
        token = ' tokenauth="true"' if is_token else ""
        return {
            "bootstrap.servers": self.secured,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.ca),
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{LOGIN} username="{name}" password="{password}"{token};',
        }


def _of_kafka(common: dict[str, object], turns: Turns) -> dict[str, object]:
    return {
        **common,
        "listeners": f"{common['listeners']},{turns.controller_listener}",
        "listener.security.protocol.map": f"{common['listener.security.protocol.map']},CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }


class Rights:
    """The users, passwords, ACLs and tokens that must be in force.

    `change` changes them, and `check` tries every login.
    """

    def __init__(self, turns: SecuredTurns) -> None:
        self._turns = turns
        self.passwords: dict[str, str] = {}
        self.refused: list[tuple[str, str]] = []
        """Pairs of a user and a password that must be refused: old passwords, or those of deleted users."""
        self.allowed: dict[str, set[str]] = {}
        """A dict from a user to the topics to which the user may write."""
        self.tokens: dict[str, tuple[bytes, bool]] = {}
        """A dict from a delegation token id of user ann to its HMAC, and True if the token is still valid."""

    def change(self, tag: str) -> None:
        with Admin(self._turns.plain) as admin:
            for user in ("ann", f"user-{tag}"):
                if user in self.passwords:
                    self.refused.append((user, self.passwords[user]))
                self.passwords[user] = f"{user}-{tag}"
                admin.set_password(user, self.passwords[user])
            gone = [user for user in self.passwords if user not in ("ann", f"user-{tag}")]
            if len(gone) > 1:
                admin.delete_user(gone[0])
                self.refused.append((gone[0], self.passwords.pop(gone[0])))
            self.allow(admin, f"user-{tag}", "u")
            if "t" in self.allowed.get("ann", ()):
                rule = EVERY_ACL._replace(resource_name="t", principal="User:ann")
                assert len(admin.delete_acls([rule])) == 1
                self.allowed["ann"].remove("t")
                self.allow(admin, "ann", "u")
            else:
                self.allow(admin, "ann", "t")
        valid = [name for name, (_, is_valid) in self.tokens.items() if is_valid]
        asyncio.run(self._change_tokens(valid[1] if len(valid) > 1 else None))

    def allow(self, admin: Admin, user: str, topic: str) -> None:
        admin.create_acls(
            [Acl(ResourceType.TOPIC, topic, 3, f"User:{user}", "*", Operation.WRITE, Permission.ALLOW)]
        )
        self.allowed.setdefault(user, set()).add(topic)

    async def _change_tokens(self, expired: str | None) -> None:
        """Create a delegation token as ann, and expire an old one, which only its owner may do."""
        login = self._turns.login("ann", self.passwords["ann"], "SCRAM-SHA-512")
        for _ in range(100):
            try:
                async with AsyncClient(ClientConfig.parse(login, {})) as client:
                    await client.bootstrap()
                    made = await client.request(
                        CreateDelegationTokenRequest(
                            owner_principal_type=None, owner_principal_name=None, max_lifetime_ms=-1
                        )
                    )
                    assert made.error_code == 0
                    self.tokens[made.token_id] = bytes(made.hmac), True
                    if expired is not None:
                        code, _ = self.tokens[expired]
                        request = ExpireDelegationTokenRequest(hmac=code, expiry_time_period_ms=-1)
                        assert (await client.request(request)).error_code == 0
                        self.tokens[expired] = code, False
                    return
            except AuthenticationError:  # Apache Kafka answers before the new password is in force
                await asyncio.sleep(0.1)
        raise AssertionError("the new password is not in force")

    def logins(self) -> Iterator[tuple[dict[str, Any], set[str]]]:
        """Yield every login that must succeed, with the topics to which it may write."""
        for user, password in self.passwords.items():
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                yield self._turns.login(user, password, mechanism), self.allowed.get(user, set())
        for name, (code, is_valid) in self.tokens.items():
            if is_valid:
                yield self.token(name, code), self.allowed["ann"]

    def token(self, name: str, code: bytes) -> dict[str, Any]:
        from base64 import b64encode

        return self._turns.login(name, b64encode(code).decode(), "SCRAM-SHA-256", is_token=True)

    def refusals(self) -> Iterator[dict[str, Any]]:
        for user, password in self.refused:
            yield self._turns.login(user, password, "SCRAM-SHA-256")
        for name, (code, is_valid) in self.tokens.items():
            if not is_valid:
                yield self.token(name, code)

    def mistakes(self) -> list[str]:
        """Return a text for each login that is wrongly refused or accepted, or has wrong rights."""
        found = []
        for login, topics in self.logins():
            try:
                may = {topic for topic in TOPICS if may_write(login, topic)}
            except AuthenticationError:
                may = set("refused")
            if may != topics & {*TOPICS}:
                found.append(f"{login['sasl.jaas.config']}: {may}, not {topics}")
        for login in self.refusals():
            with contextlib.suppress(AuthenticationError), Admin(config=login) as admin:
                admin.list_topics()
                found.append(f"{login['sasl.jaas.config']} is not refused")
        with Admin(self._turns.plain) as admin:
            users = set(admin.list_users())
        return found if users == set(self.passwords) else [*found, f"the users are {users}"]


def may_write(login: dict[str, Any], topic: str) -> bool:
    with Producer(config=login) as producer:
        try:
            producer.send(topic, b"x").result(30)
        except TopicAuthorizationError:
            return False
        return True


@pytest.mark.parametrize(("version", "level"), [("4.3.0", "4.0"), ("3.9.1", "3.9")])
def test_users_rules_and_tokens_stay_in_force(version: str, level: str, tmp_path: Path) -> None:
    """Penstock and Apache Kafka change them in turn, and a client with a token stays connected."""
    turns = SecuredTurns(tmp_path)
    rights = Rights(turns)
    with contextlib.ExitStack() as stack:
        with turns.ours(level):
            with Admin(turns.plain) as admin:
                for topic in (*TOPICS, "tokens"):
                    admin.create_topic(topic, 1)
                rights.allow(admin, "ann", "tokens")
            rights.change("first")
            [(name, (code, _))] = rights.tokens.items()
            login = {**rights.token(name, code), "enable.idempotence": True}
            connected = stack.enter_context(Producer(config=login))
            assert connected.send("tokens", b"first").result(60).offset == 0
            assert rights.mistakes() == []
        sent = 1
        for number in range(2):
            for broker in ("kafka", "ours"):
                with turns.ours(level) if broker == "ours" else turns.kafka(version):
                    assert rights.mistakes() == []
                    for _ in range(10):
                        assert connected.send("tokens", b"%d" % sent).result(60).offset == sent
                        sent += 1
                    rights.change(f"{broker}-{number}")
                    until(lambda: rights.mistakes() == [], "changes are in force", 30)
        with turns.kafka(version):
            assert rights.mistakes() == []
            assert connected.send("tokens", b"last").result(60).offset == sent
    assert sum(not is_valid for _, is_valid in rights.tokens.values()) >= 2
