"""Tests of SCRAM credentials and delegation tokens: error codes and messages, restarts, expiry."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import NOW_MS, context_of, make_node
from for_each import for_each
from penstock import Cluster
from penstock.broker.config.values import BrokerConfig
from penstock.broker.handlers import ROUTES, delegation_tokens
from penstock.broker.node import Node
from penstock.broker.partitions.disk_log_store import DiskStore
from penstock.broker.partitions.log_store import MemoryStore
from penstock.broker.security.tokens import records_of_expired
from penstock.broker.security.users import ListenerUsers
from penstock.broker.session import Principal
from penstock.clock import ManualClock
from penstock.protocol.message import Message
from penstock.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from penstock.protocol.messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from penstock.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from penstock.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from penstock.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from penstock.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from penstock.security import token_codes
from penstock.security.sasl_mechanisms import AuthenticationFailed, ScramExchange
from penstock.security.scram import ScramClient, ScramCredential, salted_password
from penstock.security.secrets import Secret
from penstock.security.token_codes import TokenCodes, token_hmac

DAY_MS = 86_400_000


def ask(node: Node, request: Message, version: int, user: str = "ann", *, is_token: bool = False) -> Any:
    context = context_of(node, version)
    context.session.principal = Principal("User", user)
    context.session.security_protocol = "SASL_SSL"
    context.session.mechanism = "PLAIN"
    context.session.is_token = is_token
    assert request.API_KEY is not None
    return ROUTES[request.API_KEY].handle(request, context)


def upsert(name: str = "zed", **fields: Any) -> ScramCredentialUpsertion:
    given: dict[str, Any] = {"mechanism": 1, "iterations": 4096, "salt": b"salt"}
    given["salted_password"] = salted_password("SCRAM-SHA-256", "pw", b"salt", 4096)
    return ScramCredentialUpsertion(name=name, **{**given, **fields})


def alter(
    node: Node, *changes: ScramCredentialUpsertion | ScramCredentialDeletion
) -> dict[str, tuple[int, Any]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    results = ask(node, request, 0).results
    assert len({each.user for each in results}) == len(results)
    return {each.user: (each.error_code, each.error_message) for each in results}


def test_a_credential_is_derived_kept_and_told_without_its_keys() -> None:
    store = MemoryStore(1, ManualClock(NOW_MS))
    node = make_node(store)
    assert alter(node, upsert("zed"), upsert("ä,=")) == {"zed": (0, None), "ä,=": (0, None)}
    again = make_node(store)
    kept = again.cluster.security.credentials["zed", 1]
    assert kept == ScramCredential.of_password("SCRAM-SHA-256", "pw", b"salt", 4096)
    response = ask(again, DescribeUserScramCredentialsRequest(users=None), 0)
    assert [(each.user, each.credential_infos[0].iterations) for each in response.results] == [
        ("zed", 4096),
        ("ä,=", 4096),
    ]
    assert alter(again, ScramCredentialDeletion(name="zed", mechanism=1)) == {"zed": (0, None)}
    assert ("zed", 1) not in make_node(store).cluster.security.credentials


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [(upsert(""), 93, "Username must not be empty"), (upsert(iterations=4095), 93, "Too few iterations"),
     (upsert(iterations=16385), 93, "Too many iterations"),
     (upsert(mechanism=0), 33, "Unknown SCRAM mechanism"),
     (upsert(mechanism=7), 33, "Unknown SCRAM mechanism"), (upsert(salt=b""), 93, "Salt"),
     (ScramCredentialDeletion(name="zed", mechanism=1), 91, "does not exist"),
     (ScramCredentialDeletion(name="zed", mechanism=9), 33, "Unknown SCRAM mechanism")],
)  # fmt: skip
def test_what_is_refused_changes_nothing_else(change: Any, code: int, text: str) -> None:
    node = make_node()
    results = alter(node, change, upsert("other"))
    assert results["other"] == (0, None)
    found, message = results[change.name]
    assert found == code
    assert text in message
    assert [name for name, _ in node.cluster.security.credentials] == ["other"]


def test_a_user_is_altered_and_described_once_in_a_request() -> None:
    node = make_node()
    assert alter(node, upsert(), upsert(mechanism=2), upsert("other"))["zed"][0] == 92
    request = DescribeUserScramCredentialsRequest(
        users=[UserName(name=name) for name in ("other", "x", "other")]
    )
    assert [each.error_code for each in ask(node, request, 0).results] == [92, 91]


@for_each(
    [("3.4", 35, 35), ("3.5", 0, 35), ("3.6", 0, 0), ("4.3", 0, 0)],
)
def test_users_and_tokens_exist_from_the_level_of_metadata_on_that_has_them(
    release: str, of_users: int, of_tokens: int
) -> None:
    """Below the metadata version that introduced their records, the broker refuses SCRAM users or tokens.

    Older Apache Kafka releases cannot read such records.
    """
    text = "The current metadata.version does not support SCRAM" if of_users else None
    node = make_node(penstock_metadata_version=release, delegation_token_secret_key="secret")
    before = node.cluster.metadata_end_offset
    assert alter(node, upsert("new")) == {"new": (of_users, text)}
    changes = upsert(""), upsert("x", mechanism=9), ScramCredentialDeletion(name="gone", mechanism=1)
    for name, (code, _) in alter(node, *changes).items():
        assert code == (of_users or {"": 93, "x": 33, "gone": 91}[name])
    made = ask(node, CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3)
    assert made.error_code == of_tokens
    hmac = made.hmac if not of_tokens else b"none"
    assert ask(node, RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=-1), 2).error_code == of_tokens
    expired = ask(node, ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=-1), 2)
    assert expired.error_code == of_tokens
    described = ask(node, DescribeDelegationTokenRequest(owners=None), 3)
    assert (described.error_code, described.tokens) == (0, [])
    if of_users and of_tokens:
        assert node.cluster.metadata_end_offset == before
    without = make_node(penstock_metadata_version=release)
    asked = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
    assert ask(without, asked, 3).error_code == 61


# --- names that are none ------------------------------------------------------------------------------------


def users_of(node: Node) -> ListenerUsers:
    return ListenerUsers({}, node.cluster.security, lambda: Secret("secret"), node.cluster.login_secret())


def told(node: Node, name: str, mechanism: str = "SCRAM-SHA-256", extension: str = "") -> tuple[bytes, int]:
    """Return the salt and the iterations in the broker's answer to the first SCRAM message."""
    exchange = ScramExchange(mechanism, users_of(node), lambda: NOW_MS)
    answer = exchange.step(f"n,,n={name},r=abc{extension}".encode()).decode()
    fields = dict(part.split("=", 1) for part in answer.split(","))
    return b64decode(fields["s"]), int(fields["i"])


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_name_that_is_none_has_the_same_salt_after_a_restart(on_disk: bool, tmp_path: Path) -> None:
    def start() -> Node:
        clock = ManualClock(NOW_MS)
        if on_disk:
            return make_node(DiskStore(str(tmp_path), BrokerConfig(), clock), clock)
        return make_node(memory)

    memory = MemoryStore(1, ManualClock(NOW_MS))
    node = start()
    before = told(node, "zed")
    node.store.close()
    again = start()
    assert told(again, "zed") == before != told(again, "yak")
    again.store.close()
    if on_disk:
        assert (tmp_path / "penstock.login.secret").stat().st_mode & 0o077 == 0
        (tmp_path / "penstock.login.secret").write_text("half")  # what a crash cannot leave, and a hand can
        assert told(start(), "zed") != before


def test_the_salt_of_a_token_stays() -> None:
    store = MemoryStore(1, ManualClock(NOW_MS))
    node = with_tokens(store)
    made = create(node)
    before = told(node, made.token_id, extension=",tokenauth=true")
    assert told(with_tokens(store), made.token_id, extension=",tokenauth=true") == before
    assert len(before[0]) == len(told(node, "A" * 22, extension=",tokenauth=true")[0])


def test_names_that_are_none_have_the_shapes_of_users_that_exist() -> None:
    node = make_node()
    shapes = {(8, 4096): 60, (16, 8192): 20}
    number = 0
    for (length, iterations), count in shapes.items():
        for _ in range(count):
            number += 1
            salt = bytes([number]) * length
            salted = salted_password("SCRAM-SHA-256", "pw", salt, 4096)
            alter(node, upsert(f"u{number}", salt=salt, iterations=iterations, salted_password=salted))
    seen = Counter()
    answers = {}
    for each in range(400):
        salt, iterations = answers[each] = told(node, f"none{each}")
        seen[len(salt), iterations] += 1
        assert salt not in (b"", salt[:1] * len(salt))
    assert set(seen) == set(shapes)
    assert 40 < seen[16, 8192] < 160
    # One more user changes what few names are answered, and one who goes restores it.
    alter(node, upsert("late", salt=b"s" * 16, iterations=8192))
    changed = [each for each in answers if told(node, f"none{each}") != answers[each]]
    assert len(changed) < 20
    alter(node, ScramCredentialDeletion(name="late", mechanism=1))
    assert all(told(node, f"none{each}") == answers[each] for each in answers)


def test_a_name_that_is_none_fails_as_a_wrong_password_does() -> None:
    node = make_node()
    alter(node, upsert("zed"))
    for name in ("zed", "none"):
        exchange = ScramExchange("SCRAM-SHA-256", users_of(node), lambda: NOW_MS)
        client = ScramClient("SCRAM-SHA-256", name, "wrong")
        with pytest.raises(AuthenticationFailed):
            exchange.step(client.final(exchange.step(client.first())))


# --- delegation tokens -------------------------------------------------------------------------------------


def with_tokens(store: MemoryStore | None = None) -> Node:
    return make_node(store, **{"delegation.token.secret.key": "secret"})


def create(node: Node, **fields: Any) -> Any:
    return ask(node, CreateDelegationTokenRequest(max_lifetime_ms=-1, **fields), 3)


def test_the_code_of_a_token_is_that_of_kafka() -> None:
    from base64 import b64encode

    expected = "SZCLlhU5wnQFKbKO9X4zYY70xDyZ50wlHVIW65PEYJom/pXVJBN5RsMAIXO1Mad0f3LcH+vqHFy93svY0VK91A=="
    assert b64encode(token_hmac(Secret("secret"), "A" * 22)).decode() == expected


def test_a_token_is_created_described_renewed_and_expired() -> None:
    store = MemoryStore(1, ManualClock(NOW_MS))
    node = with_tokens(store)
    made = create(node, renewers=[CreatableRenewers(principal_type="User", principal_name="bob")])
    assert (made.error_code, made.principal_name, len(made.token_id), len(made.hmac)) == (0, "ann", 22, 64)
    assert (made.expiry_timestamp_ms, made.max_timestamp_ms) == (NOW_MS + DAY_MS, NOW_MS + 7 * DAY_MS)
    node = with_tokens(store)
    for user, count in (("ann", 1), ("bob", 1)):
        found = ask(node, DescribeDelegationTokenRequest(owners=None), 3, user).tokens
        assert [token.token_id for token in found] == [made.token_id] * count
    renew = RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=1000)
    assert ask(node, renew, 2, "carl").error_code == 63
    assert ask(node, renew, 2, "bob").expiry_timestamp_ms == NOW_MS + 1000
    expire = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1)
    assert ask(node, expire, 2, "carl").error_code == 63
    assert ask(node, expire, 2).error_code == 0
    assert ask(node, expire, 2).error_code == 62
    assert not with_tokens(store).cluster.security.tokens


def test_a_token_whose_end_is_beyond_all_times_ends_with_them() -> None:
    longest = 2**63 - 1
    lives = {"delegation.token.max.lifetime.ms": longest, "delegation.token.expiry.time.ms": longest}
    node = make_node(**{"delegation.token.secret.key": "secret"}, **lives)
    made = ask(node, CreateDelegationTokenRequest(max_lifetime_ms=longest), 3)
    assert (made.error_code, made.expiry_timestamp_ms, made.max_timestamp_ms) == (0, longest, longest)
    renew = RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=longest)
    expire = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=longest)
    assert [ask(node, each, 2).expiry_timestamp_ms for each in (renew, expire)] == [longest, longest]


def test_refusals() -> None:
    assert create(make_node()).error_code == 61
    node = with_tokens()
    assert ask(node, CreateDelegationTokenRequest(), 3, is_token=True).error_code == 64
    group = [CreatableRenewers(principal_type="Group", principal_name="x")]
    assert create(node, renewers=group).error_code == 67
    made = create(with_tokens(), owner_principal_type="User", owner_principal_name="bob")
    assert (made.principal_name, made.token_requester_principal_name) == ("bob", "ann")
    closed = make_node(
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        **{"delegation.token.secret.key": "secret"},
    )
    assert create(closed, owner_principal_type="User", owner_principal_name="bob").error_code == 65


def test_tokens_that_have_expired_are_removed() -> None:
    node = with_tokens()
    create(node)
    assert records_of_expired(node.cluster.security, NOW_MS) == []
    node.cluster.alter(records_of_expired(node.cluster.security, NOW_MS + 2 * DAY_MS), NOW_MS)
    assert not node.cluster.security.tokens


def test_one_user_makes_a_tenth_of_the_tokens_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation_tokens, "TOKENS_OF_ONE_MAX", 3)
    node = with_tokens()
    for _ in range(3):
        assert create(node).error_code == 0
    mine = create(node)
    assert mine.error_code == 44
    assert create(node, owner_principal_type="User", owner_principal_name="bob").error_code == 44
    other = ask(node, CreateDelegationTokenRequest(max_lifetime_ms=-1), 3, "bob")
    assert other.error_code == 0
    found = ask(node, DescribeDelegationTokenRequest(owners=None), 3).tokens
    expire = ExpireDelegationTokenRequest(hmac=found[0].hmac, expiry_time_period_ms=-1)
    assert ask(node, expire, 2).error_code == 0
    assert create(node).error_code == 0


def test_a_token_is_looked_up_by_its_code_without_trying_all(monkeypatch: pytest.MonkeyPatch) -> None:
    node = with_tokens()
    made = [create(node) for _ in range(20)]
    wrong = RenewDelegationTokenRequest(hmac=b"x" * 64, renew_period_ms=-1)
    assert ask(node, wrong, 2).error_code == 62
    worked_out: list[str] = []

    def noted(secret: Secret, token_id: str) -> bytes:
        worked_out.append(token_id)
        return token_hmac(secret, token_id)

    monkeypatch.setattr(token_codes, "token_hmac", noted)
    for _ in range(10):
        assert ask(node, wrong, 2).error_code == 62
        assert len(ask(node, DescribeDelegationTokenRequest(owners=None), 3).tokens) == 20
    assert worked_out == []
    right = RenewDelegationTokenRequest(hmac=made[7].hmac, renew_period_ms=1000)
    assert ask(node, right, 2).expiry_timestamp_ms == NOW_MS + 1000
    late = create(node)
    assert ask(node, RenewDelegationTokenRequest(hmac=late.hmac, renew_period_ms=-1), 2).error_code == 0
    assert len(worked_out) == 1


def test_no_request_waits_for_codes_to_be_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The HMACs of delegation tokens are computed before a broker serves requests.

    For 10,000 tokens the first request would otherwise wait 35 ms.
    """
    store = MemoryStore(1, ManualClock(NOW_MS))
    code = create(with_tokens(store)).hmac
    again = with_tokens(store)

    def refused(secret: Secret, token_id: str) -> bytes:
        raise AssertionError("a code is worked out while a request waits")

    monkeypatch.setattr(token_codes, "token_hmac", refused)
    assert ask(again, RenewDelegationTokenRequest(hmac=code, renew_period_ms=-1), 2).error_code == 0
    assert ask(again, RenewDelegationTokenRequest(hmac=b"x" * 64, renew_period_ms=-1), 2).error_code == 62


def test_codes_of_another_secret_are_none() -> None:
    codes = TokenCodes(Secret("secret"), ["a"])
    other = TokenCodes(Secret("other"), ["a"])
    assert other.token_id(codes.code("a")) is None
    codes.remove("a")
    codes.remove("a")
    assert codes.token_id(other.code("a")) is None


def test_all_brokers_of_a_cluster_make_the_same_salts() -> None:
    with Cluster(3) as cluster:
        servers = [node.server for node in cluster._nodes.values()]
        secrets = {server.node.cluster.login_secret() for server in servers if server is not None}
    assert len(servers) == 3
    assert len(secrets) == 1
