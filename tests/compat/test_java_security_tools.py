"""Apache Kafka's and Penstock's tools for ACLs, users and tokens, compared at Penstock's broker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from compat.peers import java, maven_classpath
from compat.places import ONE_AND_LATER_THREE, made_secure
from penstock.broker.security.throwaway import Security
from penstock.cli.commands import penstock
from penstock.testing import KafkaBroker, KafkaCluster

Served = KafkaBroker | KafkaCluster
pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
ACLS = "org.apache.kafka.tools.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"


@pytest.fixture(scope="module", params=ONE_AND_LATER_THREE)
def broker(request: pytest.FixtureRequest) -> Iterator[Served]:
    security = Security("SASL_PLAINTEXT", users={"admin": "a-pw", "ann": "b-pw"}, super_users=["admin"])
    with made_secure(request.param, security, {"delegation.token.secret.key": "for-tokens"}) as made:
        yield made


def properties(broker: Served, tmp_path: Path, user: str = "admin") -> str:
    """Write a properties file with a user's login, for both kinds of tools; return its path."""
    password = broker.client_settings(user)["sasl.password"]
    path = tmp_path / f"{user}.properties"
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={LOGIN} username="{user}" password="{password}";\n'
    )
    return str(path)


def theirs(broker: Served, file: str, main: str, *words: str, check: bool = True) -> str:
    server = "--bootstrap-server", broker.bootstrap_servers, "--command-config", file
    done = java(maven_classpath("kafka-4.3.0"), main, *server, *words, check=check)
    return done.stdout + done.stderr


def ours(broker: Served, file: str, *words: str, status: int = 0) -> str:
    done = CliRunner().invoke(penstock, [*words, "-b", broker.bootstrap_servers, "--config", file])
    assert done.exit_code == status, done.output
    return str(done.exception) if status else done.output


def entries_of_kafka(text: str) -> set[tuple[str, ...]]:
    """Return the ACLs that `kafka-acls --list` printed, one tuple for each."""
    found = set()
    pattern: tuple[str, ...] = ()
    for line in text.splitlines():
        head = re.search(r"resourceType=(\w+), name=(\S+), patternType=(\w+)", line)
        if head is not None:
            pattern = head.groups()
        entry = re.search(r"principal=User:(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)", line)
        if entry is not None:
            found.add((*pattern, *entry.groups()))
    return found


def entries_of_ours(text: str) -> set[tuple[str, ...]]:
    """Return the ACLs that `penstock acl list` printed, as tuples with Kafka's terms."""
    found = set()
    for line in text.splitlines():
        permission, user, operation, resource, *host = line.split()
        kind, _, name = resource.partition(":")
        is_prefix = name.endswith("*") and name != "*"
        found.add(
            (
                kind.upper(), name.removesuffix("*") if is_prefix else name or "kafka-cluster",
                "PREFIXED" if is_prefix else "LITERAL", user, host[1] if host else "*", operation.upper(),
                permission.upper(),
            )
        )  # fmt: skip
    return found


def test_kafka_acls_and_penstock_acl_see_the_same(broker: Served, tmp_path: Path) -> None:
    admin, ann = properties(broker, tmp_path), properties(broker, tmp_path, "ann")
    theirs(broker, admin, ACLS, "--add", "--allow-principal", "User:ann", "--producer", "--topic", "pay")
    theirs(
        broker,
        admin,
        ACLS,
        "--add",
        "--deny-principal",
        "User:bob",
        "--deny-host",
        "10.0.0.1",
        "--operation",
        "Read",
        "--topic",
        "t",
        "--resource-pattern-type",
        "prefixed",
    )
    ours(broker, admin, "acl", "add", "allow", "ann", "read", "group:g")
    ours(broker, admin, "acl", "add", "allow", "*", "describe", "cluster")
    listed = theirs(broker, admin, ACLS, "--list")
    assert entries_of_kafka(listed) == entries_of_ours(ours(broker, admin, "acl", "list"))
    assert len(entries_of_kafka(listed)) == 6
    # What is refused is told by both, in one line here.
    assert "ClusterAuthorizationException" in theirs(
        broker,
        ann,
        ACLS,
        "--add",
        "--allow-principal",
        "User:ann",
        "--operation",
        "All",
        "--topic",
        "x",
        check=False,
    )
    refused = ours(broker, ann, "acl", "add", "allow", "ann", "all", "topic:x", status=1)
    assert "CLUSTER_AUTHORIZATION_FAILED" in refused
    assert len(refused.strip().splitlines()) == 1
    theirs(broker, admin, ACLS, "--remove", "--force", "--topic", "pay")
    ours(broker, admin, "acl", "remove", "deny", "bob", "read", "topic:t*", "from", "10.0.0.1")
    left = entries_of_ours(ours(broker, admin, "acl", "list"))
    assert {each[:2] for each in left} == {("GROUP", "g"), ("CLUSTER", "kafka-cluster")}


@pytest.mark.soak
def test_kafka_configs_for_users(broker: Served, tmp_path: Path) -> None:
    admin = properties(broker, tmp_path)
    user = "--entity-type", "users", "--entity-name", "zed"
    changes = (
        "SCRAM-SHA-256=[iterations=8192,password=zz]",
        "SCRAM-SHA-512=[password=zz]",
        "producer_byte_rate=1024",
    )
    for each in changes:
        theirs(broker, admin, CONFIGS, "--alter", "--add-config", each, *user)
    told = theirs(broker, admin, CONFIGS, "--describe", *user)
    assert "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096" in told
    assert "producer_byte_rate=1024" in told
    assert "zed: SCRAM-SHA-256 (8192), SCRAM-SHA-512 (4096)" in ours(broker, admin, "user", "list")
    for each in ("SCRAM-SHA-256", "producer_byte_rate"):
        theirs(broker, admin, CONFIGS, "--alter", "--delete-config", each, *user)
    told = theirs(broker, admin, CONFIGS, "--describe", *user)
    assert "SCRAM-SHA-512=iterations=4096" in told
    assert "SCRAM-SHA-256" not in told
    assert "producer_byte_rate" not in told


def test_kafka_delegation_tokens(broker: Served, tmp_path: Path) -> None:
    admin, ann = properties(broker, tmp_path), properties(broker, tmp_path, "ann")
    made = theirs(
        broker, admin, TOKENS, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:ann"
    )
    token_id, code = next(line for line in made.splitlines() if "User:admin" in line).split()[:2]
    assert token_id in theirs(broker, ann, TOKENS, "--describe", "--owner-principal", "User:admin")
    renewed = theirs(broker, ann, TOKENS, "--renew", "--renew-time-period", "-1", "--hmac", code)
    assert "expiry date" in renewed
    theirs(broker, admin, TOKENS, "--expire", "--expiry-time-period", "-1", "--hmac", code)
    assert token_id not in theirs(broker, admin, TOKENS, "--describe", "--owner-principal", "User:admin")
