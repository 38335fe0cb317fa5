"""Every API gives the same answers, allowed or denied, at Penstock and Apache Kafka 4.3 secured alike.

Every difference that is allowed has a row, with a reason, in `docs/reference/differences.md`.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compat.peers import free_ports, real_kafka
from compat.security_rights import (
    EVERY_ENTRY,
    PASSWORD,
    RIGHTS,
    ROOT,
    SecuredTalk,
    create,
    prepare,
    table,
    until_done,
)
from compat.security_scripts import MECHANIC, SCRIPTS, again, everyone, scram, upsert
from compat.test_differential import common, shown, unexplained
from compat.transcript import Exchange, compare
from penstock import Broker
from penstock.errors import StorageError
from penstock.security.acls import parse_rule

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

RELEASE = "4.3.0"
USERS = [ROOT, "other", "other2", "mechanic", *RIGHTS]
PACKAGE = "org.apache.kafka.common.security"


def settings(ports: list[int]) -> dict[str, object]:
    """Return settings that both brokers use.

    The first port has no SASL: the broker itself and its startup use it.
    """
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in USERS)
    listeners = f"PLAINTEXT://127.0.0.1:{ports[0]},SASL_PLAINTEXT://127.0.0.1:{ports[1]}"
    listeners += f",AGAIN://127.0.0.1:{ports[2]}"
    logins = {}
    for listener in ("sasl_plaintext", "again"):
        prefix = f"listener.name.{listener}"
        logins |= {
            f"{prefix}.plain.sasl.jaas.config": f"{PACKAGE}.plain.PlainLoginModule required {users};",
            f"{prefix}.scram-sha-256.sasl.jaas.config": f"{PACKAGE}.scram.ScramLoginModule required;",
            f"{prefix}.scram-sha-512.sasl.jaas.config": f"{PACKAGE}.scram.ScramLoginModule required;",
        }
    return {
        **logins,
        "listener.name.again.connections.max.reauth.ms": 1500,
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": ",".join(
            ("PLAINTEXT:PLAINTEXT", "SASL_PLAINTEXT:SASL_PLAINTEXT", "AGAIN:SASL_PLAINTEXT")
        ),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ROOT};User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
        "connection.failed.authentication.delay.ms": 20,
        "delegation.token.secret.key": "for-tokens",
        "delegation.token.max.lifetime.ms": 3_000_000,
        "delegation.token.expiry.time.ms": 2_000_000,
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
    }


class Pair(NamedTuple):
    """A Penstock and an Apache Kafka broker: ports with SASL, ports with short sessions, and versions."""

    ours: int
    theirs: int
    ours_again: int
    theirs_again: int
    ranges: dict[str, tuple[int, int]]
    directory: Path
    """The data directory of Apache Kafka."""
    stop_theirs: Callable[[], None]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    ours, theirs = free_ports(3), free_ports(4)
    kafka = settings(theirs)
    kafka |= {
        "listeners": f"{kafka['listeners']},CONTROLLER://127.0.0.1:{theirs[3]}",
        "controller.quorum.voters": f"1@127.0.0.1:{theirs[3]}",
        "listener.security.protocol.map": f"{kafka['listener.security.protocol.map']},CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    directory = tmp_path_factory.mktemp("kafka")
    with (
        Broker(tmp_path_factory.mktemp("data"), config=settings(ours), as_version="4.3") as broker,
        contextlib.ExitStack() as stack,
    ):
        running = real_kafka(RELEASE, kafka, first_port=theirs[0], directory=directory, in_order=True)
        servers = stack.enter_context(running)
        ranges = common(broker.bootstrap_servers, servers)
        yield Pair(ours[1], theirs[1], ours[2], theirs[2], ranges, directory / "data", stack.close)


Script = Callable[[SecuredTalk], None]


def transcripts(pair: Pair, script: Script) -> tuple[list[Exchange], list[Exchange]]:
    found = []
    for port, settle_s in ((pair.ours, 0.0), (pair.theirs, 0.06)):
        with SecuredTalk(
            f"127.0.0.1:{port}",
            pair.ranges,
            seed=1,
            settle_s=settle_s,
            prefix=script.__name__.replace("_", "-"),
            patience_s=20,
        ) as talk:
            script(talk)
            found.append(talk.exchanges)
    return found[0], found[1]


def check(pair: Pair, script: Script, attempts: int = 1) -> None:
    """Compare both brokers' answers to a script.

    With several attempts, the test fails only if the answers differ in every attempt.
    """
    report = ""
    for _ in range(attempts):
        mine, other = transcripts(pair, script)
        assert mine
        differences = unexplained(compare(mine, other), RELEASE)
        if not differences:
            return
        report += shown(differences, len(mine))
    pytest.fail(report)


@pytest.fixture(scope="module")
def entered(pair: Pair) -> Pair:
    """Provide both brokers after the comparison without ACLs.

    Afterwards every resource type has an ACL, so that users need one.
    """
    check(pair, everyone)
    return pair


def test_without_entries_everything_is_open(entered: Pair) -> None:
    """The fixture `entered` compares the brokers before any ACL exists.

    The brokers have `allow.everyone.if.no.acl.found`. The comparison is in the fixture since it can run
    only once.
    """


@pytest.mark.parametrize("script", SCRIPTS)
def test_same_answers(entered: Pair, script: str) -> None:
    check(entered, SCRIPTS[script])


def test_sessions_that_end(entered: Pair) -> None:
    """Sessions of 1.5 s expire by the machine's clock, so a pause may end those of one broker only.

    The test therefore has three attempts.
    """
    again_at = entered._replace(ours=entered.ours_again, theirs=entered.theirs_again)
    check(again_at, again, attempts=3)


@pytest.fixture(scope="module")
def prepared(entered: Pair) -> Pair:
    """Provide both brokers after creating topics, groups, transactional ids and ACLs for every user."""
    transcripts(entered, prepare)
    return entered


@pytest.mark.parametrize("user", RIGHTS)
def test_every_api_with_these_rights(prepared: Pair, user: str) -> None:
    check(prepared, lambda talk: table(talk, user, is_short=user not in ("nothing", "everything")))


@pytest.mark.soak
@pytest.mark.parametrize("user", RIGHTS)
def test_every_api_in_a_middle_version_too(prepared: Pair, user: str) -> None:
    check(prepared, lambda talk: table(talk, user))


def test_at_last_its_directory_is_taken_over(entered: Pair) -> None:
    """Penstock, started on Apache Kafka's data directory, has its ACLs, users and delegation tokens."""
    made: dict[str, Any] = {}

    def remember(t: SecuredTalk) -> None:
        until_done(t, "AlterUserScramCredentials", 0, {"deletions": [], "upsertions": [upsert("scram-user")]})
        create(t, parse_rule("allow scram-user describe topic:taken"))
        answer = t.ask_unnoted(
            "CreateDelegationToken", 2, {"renewers": [], "max_lifetime_ms": -1}, on=t.user(MECHANIC)
        )
        made.update(token_id=answer["token_id"], hmac=answer["hmac"])
        t.settle()

    def look(t: SecuredTalk) -> None:
        t.ask("DescribeAcls", 3, EVERY_ENTRY)
        t.ask("DescribeUserScramCredentials", 0, {"users": []})
        t.ask("DescribeDelegationToken", 2, {"owners": None})
        for user, password, is_token in (
            ("scram-user", PASSWORD, False),
            (str(made["token_id"]), base64.b64encode(bytes(made["hmac"])).decode(), True),
        ):
            on = scram(t, user, password, is_token=is_token)
            t.ask("Metadata", 4, {"topics": None, "allow_auto_topic_creation": False}, on=on)

    def talk(port: int, script: Script) -> list[Exchange]:
        with SecuredTalk(f"127.0.0.1:{port}", entered.ranges, seed=1, settle_s=0.06, prefix="s") as t:
            script(t)
            return t.exchanges

    talk(entered.theirs, remember)
    before = talk(entered.theirs, look)
    entered.stop_theirs()
    with pytest.raises(StorageError, match=r"set authorizer\.class\.name"), Broker(entered.directory):
        pass
    ports = free_ports(3)
    with Broker(entered.directory, config=settings(ports)):
        after = talk(ports[1], look)
    assert not list(compare(after, before))
