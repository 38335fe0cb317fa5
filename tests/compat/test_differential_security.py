"""Every API, denied and allowed: our broker and Apache Kafka 4.3, secured alike, give the same answers.

What differs nevertheless stands, with a reason, in `docs/reference/differences.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from compat.peers import free_ports, real_kafka
from compat.security_rights import (
    PASSWORD,
    RIGHTS,
    ROOT,
    SecuredTalk,
    prepare,
    table,
)
from compat.security_scripts import SCRIPTS, again, everyone
from compat.test_differential import common, rules
from compat.transcript import Exchange, compare
from penstock import Broker

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

RELEASE = "4.3.0"
USERS = [ROOT, "other", "other2", "mechanic", *RIGHTS]
PACKAGE = "org.apache.kafka.common.security"


def settings(ports: list[int]) -> dict[str, object]:
    """Settings of either broker. The first port is without SASL, for the broker itself and its start."""
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
    """Two brokers: their ports with SASL, those where sessions end, and the versions that both offer."""

    ours: int
    theirs: int
    ours_again: int
    theirs_again: int
    ranges: dict[str, tuple[int, int]]


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
    with (
        Broker(tmp_path_factory.mktemp("data"), config=settings(ours)) as broker,
        real_kafka(RELEASE, kafka, first_port=theirs[0]) as servers,
    ):
        yield Pair(ours[1], theirs[1], ours[2], theirs[2], common(broker.bootstrap_servers, servers))


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
        ) as talk:
            script(talk)
            found.append(talk.exchanges)
    return found[0], found[1]


def check(pair: Pair, script: Script) -> None:
    mine, other = transcripts(pair, script)
    assert mine
    unexplained = [m for m in compare(mine, other) if not any(rule.covers(m, RELEASE) for rule in rules())]
    differences = "\n".join(map(str, unexplained[:60]))
    assert not unexplained, f"{len(unexplained)} fields of {len(mine)} answers differ:\n{differences}"


@pytest.fixture(scope="module")
def entered(pair: Pair) -> Pair:
    """Both, after the comparison without entries; from here on what is not allowed is denied."""
    check(pair, everyone)
    return pair


def test_without_entries_everything_is_open(entered: Pair) -> None:
    """`allow.everyone.if.no.acl.found`; the fixture compares, since it can be done only once."""


@pytest.mark.parametrize("script", SCRIPTS)
def test_same_answers(entered: Pair, script: str) -> None:
    check(entered, SCRIPTS[script])


def test_sessions_that_end(entered: Pair) -> None:
    check(entered._replace(ours=entered.ours_again, theirs=entered.theirs_again), again)


@pytest.fixture(scope="module")
def prepared(entered: Pair) -> Pair:
    """Both, after every user has topics, groups, transactional ids and entries."""
    transcripts(entered, prepare)
    return entered


@pytest.mark.parametrize("user", RIGHTS)
def test_every_api_with_these_rights(prepared: Pair, user: str) -> None:
    check(prepared, lambda talk: table(talk, user, is_short=user not in ("nothing", "everything")))


@pytest.mark.soak
@pytest.mark.parametrize("user", RIGHTS)
def test_every_api_in_a_middle_version_too(prepared: Pair, user: str) -> None:
    check(prepared, lambda talk: table(talk, user))
