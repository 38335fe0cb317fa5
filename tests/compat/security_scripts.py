"""Request scripts about authentication, ACLs and tokens, for comparing two secured brokers."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

from compat.security_rights import (
    EVERY_ENTRY,
    PASSWORD,
    SecuredTalk,
    create,
    produce,
    until_done,
)
from penstock.security.acls import Acl, parse_rule
from penstock.security.scram import ScramClient, salted_password
from penstock.security.secrets import Secret

Script = Callable[[SecuredTalk], None]
SCRIPTS: dict[str, Script] = {}


def script(function: Script) -> Script:
    SCRIPTS[function.__name__] = function
    return function


ONE, OTHER = "other", "other2"
"""Users that have no ACLs."""

MECHANIC = "mechanic"
"""A user that has a password for every SASL mechanism, and creates delegation tokens."""


# --- before there are entries -------------------------------------------------------------------------------


def everyone(t: SecuredTalk) -> None:
    """Test `allow.everyone.if.no.acl.found`: only resources without any ACL are open to every user.

    The script must run first, while no ACLs exist.
    """
    on = t.user(ONE)
    names = [t.create_topic(name) for name in ("open", "named", "denied", "in-prefix")]
    asked = {
        "topics": [{"name": name, "topic_id": bytes(16)} for name in names],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
    }

    def ask() -> None:
        for version in t.some_versions("Metadata"):
            t.ask("Metadata", version, asked, on=on)
        t.ask(
            "DescribeCluster", 1, {"include_cluster_authorized_operations": True, "endpoint_type": 1}, on=on
        )
        t.ask("InitProducerId", 4, {"transactional_id": None, "transaction_timeout_ms": 1000}, on=on)
        t.ask("DescribeAcls", 2, {**EVERY_ENTRY, "principal_filter": "User:none"}, on=on)
        t.ask("DescribeUserScramCredentials", 0, {"users": [{"name": "none"}]}, on=on)
        for name in names:
            t.ask("Produce", 8, produce(name, bytes(16)), on=on)
        t.ask("OffsetDelete", 0, {"group_id": t.name("group"), "topics": []}, on=on)

    until_done(t, "FindCoordinator", 4, {"key_type": 0, "coordinator_keys": [t.name("group")]})
    until_done(t, "InitProducerId", 4, {"transactional_id": None, "transaction_timeout_ms": 1000})
    ask()
    rules = [
        f"allow {OTHER} read topic:{names[1]}",
        f"deny {OTHER} read topic:{names[2]}",
        f"allow {OTHER} read topic:{names[3][:-3]}*",
    ]
    create(t, [acl for rule in rules for acl in parse_rule(rule)])
    t.settle()
    ask()
    create(
        t,
        [*parse_rule(f"allow {ONE} write topic:{names[1]}"), *parse_rule(f"allow {OTHER} describe cluster")],
    )
    t.settle()
    ask()
    # From here on everything has an entry, so that what is not allowed is denied.
    every = [Acl(kind, "*", 3, "User:none-such", "*", 2, 3) for kind in (2, 3, 5, 6, 7)]
    create(t, [*every, Acl(4, "kafka-cluster", 3, "User:none-such", "*", 2, 3)])
    t.settle()
    ask()


# --- authentication -----------------------------------------------------------------------------------------


def token(t: SecuredTalk, data: bytes, on: int) -> None:
    """Send a raw SASL token without a header, as after SaslHandshake v0, and record the answer."""
    t._write(struct.pack(">i", len(data)) + data, on)
    read_token(t, on, repr(data))


def read_token(t: SecuredTalk, on: int, label: str) -> None:
    answer = t._frame(on)
    t.note_answer("token", label, answer.hex() if isinstance(answer, bytes) else answer)


def begin(t: SecuredTalk, mechanism: str = "PLAIN", version: int = 1) -> int:
    """Open a connection and send SaslHandshake; return the connection's number."""
    on = t.user(None)
    t.ask("SaslHandshake", version, {"mechanism": mechanism}, on=on)
    return on


def plain(user: str, password: str = PASSWORD, acting_as: str = "") -> bytes:
    return f"{acting_as}\0{user}\0{password}".encode()


Ask = tuple[int, str, int, dict[str, Any]]


def together(t: SecuredTalk, asked: list[Ask]) -> list[Any]:
    """Send requests on several connections at once, since each failed authentication is delayed.

    Returns the answers in the order of the requests.
    """
    for on, api, version, tree in asked:
        t.send(api, version, tree, on=on)
    return [t.receive(on=on) for on, *_ in asked]


@script
def handshakes(t: SecuredTalk) -> None:
    versions = {"client_software_name": "differ", "client_software_version": "1"}
    mechanisms = ("PLAIN", "plain", "NOPE", "", "GSSAPI", "SCRAM-SHA-512")
    asked: list[Ask] = [
        (t.user(None), "SaslHandshake", version, {"mechanism": mechanism})
        for version in t.versions("SaslHandshake")
        for mechanism in mechanisms
    ]
    asked += [(t.user(None), "ApiVersions", version, versions) for version in t.versions("ApiVersions")]
    for api in ("Metadata", "SaslAuthenticate", "DescribeCluster", "Produce"):
        for version in t.some_versions(api):
            tree = {"topics": [], "auth_bytes": plain(ONE), "endpoint_type": 1}
            tree = tree | produce("t", bytes(16)) if api == "Produce" else tree
            asked.append((t.user(None), api, version, tree))
    together(t, asked)
    on = t.user(None)
    t.ask("ApiVersions", 3, {**versions, "client_software_name": "-"}, on=on)
    t.ask("ApiVersions", 0, versions, on=on)
    t.ask("SaslHandshake", 1, {"mechanism": "PLAIN"}, on=on)
    for second in ("ApiVersions", "Metadata", "SaslAuthenticate"):
        on = t.user(None)
        t.ask("ApiVersions", 0, versions, on=on)
        t.ask(second, 0, {"auth_bytes": b"", "topics": []}, on=on)
    for size in (524289, -1, 0x47455420):
        t.raw("a size before authentication", b"", size=size)
    t.raw("SaslHandshake v2", struct.pack(">hhih", 17, 2, 1, 1) + b"c\0\5PLAIN")
    t.raw("Kerberos without a handshake", b"\x60\x82\x02\x68" + bytes(40))


@script
def plain_tokens(t: SecuredTalk) -> None:
    every = [
        plain(ONE),
        b"",
        b"\0",
        b"\0\0",
        b"\0\0\0",
        b"\0a\0b\0",
        b"\0a\0b\0c\0d",
        plain(""),
        plain(ONE, ""),
        plain(ONE, "no"),
        plain("nope"),
        plain(ONE, acting_as=OTHER),
        plain(ONE, acting_as=ONE),
        b"\0\xff\xfe\0x",
        plain(ONE) + b"\0",
    ]
    versions = list(t.versions("SaslAuthenticate"))
    together(t, [(begin(t), "SaslAuthenticate", v, {"auth_bytes": each}) for v in versions for each in every])
    raw = [(begin(t, version=0), each) for each in every]
    for on, each in raw:
        t._write(struct.pack(">i", len(each)) + each, on)
    for on, each in raw:
        read_token(t, on, repr(each))
    t.ask("DescribeCluster", 0, {}, on=raw[0][0])
    # What has no place amid the tokens.
    others: tuple[tuple[str, dict[str, Any]], ...] = (
        ("ApiVersions", {}),
        ("SaslHandshake", {"mechanism": "PLAIN"}),
        ("DescribeCluster", {"endpoint_type": 1}),
        ("ListGroups", {}),
        ("DescribeAcls", EVERY_ENTRY),
    )
    asked = [(begin(t), api, v, tree) for api, tree in others for v in t.some_versions(api)]
    together(t, asked)
    for on, *_ in asked:
        t.ask("SaslAuthenticate", 1, {"auth_bytes": plain(ONE)}, on=on)
    # What comes after success.
    on = begin(t)
    t.ask("SaslAuthenticate", 1, {"auth_bytes": plain(ONE)}, on=on)
    for version in t.versions("SaslHandshake"):
        t.ask("SaslHandshake", version, {"mechanism": "PLAIN"}, on=on)
    for version in versions:
        t.ask("SaslAuthenticate", version, {"auth_bytes": plain(OTHER)}, on=on)


def scram(
    t: SecuredTalk, user: str, password: str, mechanism: str = "SCRAM-SHA-256", *, is_token: bool = False
) -> int:
    """Authenticate with SCRAM and record the outcome. Return the number of the connection."""
    client = ScramClient(
        mechanism, user, Secret(password), extensions={"tokenauth": "true"} if is_token else {}
    )
    on = begin(t, mechanism)
    answer = t.ask_unnoted("SaslAuthenticate", 1, {"auth_bytes": client.first()}, on=on)
    if answer["error_code"] == 0:
        final = client.final(bytes(answer["auth_bytes"]))
        answer = t.ask_unnoted("SaslAuthenticate", 1, {"auth_bytes": final}, on=on)
    t.note_answer("scram", user, {"error_code": answer["error_code"]})
    if answer["error_code"] == 0:
        client.verify(bytes(answer["auth_bytes"]))
    return on


def upsert(user: str, mechanism: int = 1, iterations: int = 4096, **more: Any) -> dict[str, Any]:
    name = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}.get(mechanism, "SCRAM-SHA-256")
    salted = salted_password(name, PASSWORD, b"salt", iterations if iterations > 0 else 1)
    entry = {"name": user, "mechanism": mechanism, "iterations": iterations, "salt": b"salt"}
    return {**entry, "salted_password": salted, **more}


@script
def scram_users(t: SecuredTalk) -> None:
    def alter(*upsertions: dict[str, Any], deletions: tuple[tuple[str, int], ...] = ()) -> None:
        gone = [{"name": name, "mechanism": mechanism} for name, mechanism in deletions]
        tree = {"deletions": gone, "upsertions": list(upsertions)}
        t.ask("AlterUserScramCredentials", 0, tree)
        t.settle()

    def describe(*users: str) -> None:
        tree = {"users": [{"name": user} for user in users]}
        t.ask("DescribeUserScramCredentials", 0, tree)

    names = [t.name(name) for name in ("a", "b,=b", "c")]
    alter(upsert(names[0]), upsert(names[1]), upsert(names[2], 2))
    describe(*names, "none")
    describe(names[0], names[0], "none")
    describe("")
    alter(upsert(names[0]), upsert(names[0], 2))
    alter(upsert(names[0], 2), deletions=((names[0], 1),))
    alter(upsert(names[0], 2, iterations=8192))
    for iterations in (4095, 16384, 16385, 0, -1):
        alter(upsert(names[2], 2, iterations=iterations))
    for mechanism in (0, 7):
        alter(upsert(t.name("d"), mechanism))
        alter(deletions=((names[0], mechanism),))
    alter(upsert(""))
    alter(upsert(names[2], 2, salted_password=b""))
    alter(upsert(t.name("e"), salted_password=b"p", salt=b""))
    alter(upsert(t.name("ö")))
    alter(deletions=((names[2], 1), ("none", 1)))
    alter(upsert(t.name("f")), upsert("", 1), deletions=((names[1], 9),))
    describe(*names, t.name("e"), t.name("ö"))
    for user, password, mechanism in (
        (names[0], PASSWORD, "SCRAM-SHA-256"),
        (names[0], PASSWORD, "SCRAM-SHA-512"),
        (names[0], "wrong", "SCRAM-SHA-256"),
        (names[1], PASSWORD, "SCRAM-SHA-256"),
    ):
        on = scram(t, user, password, mechanism)
        t.ask("DescribeCluster", 0, {}, on=on)
    alter(deletions=((names[0], 2),))
    describe(names[0])
    firsts = (
        b"y,,n=x,r=abc",
        b"p=tls-unique,,n=x,r=abc",
        b"n,a=other,n=x,r=abc",
        b"n,,n=a=2cb,r=abc",
        b"n,,n=a=b,r=abc",
        b"n,,r=abc",
        b"n,,n=x",
        b"",
        b"n,,n=x,r=",
        b"\xff\xfe",
    )
    name = names[0].encode()
    asked: list[Ask] = [
        (
            begin(t, "SCRAM-SHA-256"),
            "SaslAuthenticate",
            1,
            {"auth_bytes": first.replace(b"n=x", b"n=" + name)},
        )
        for first in firsts
    ]
    for final in (b"c=biws,r=wrong,p=AAAA", b"c=biws", b"", b"m=x,c=biws,r=a,p=b"):
        on = begin(t, "SCRAM-SHA-256")
        t.ask_unnoted("SaslAuthenticate", 1, {"auth_bytes": b"n,,n=" + name + b",r=abc"}, on=on)
        asked.append((on, "SaslAuthenticate", 1, {"auth_bytes": final}))
    together(t, asked)


def again(t: SecuredTalk) -> None:
    """Test reauthentication in sessions of 1.5 s: as another user, too soon, and too late."""
    outcomes = []
    for user, password, mechanism, handshake in (
        (ONE, PASSWORD, "PLAIN", 1),
        (ONE, PASSWORD, "PLAIN", 0),
        (OTHER, PASSWORD, "PLAIN", 1),
        (ONE, "wrong", "PLAIN", 1),
        (ONE, PASSWORD, "SCRAM-SHA-256", 1),
        (ONE, PASSWORD, "NOPE", 1),
    ):
        on = begin(t)
        t.ask("SaslAuthenticate", 1, {"auth_bytes": plain(ONE)}, on=on)
        t.ask("DescribeCluster", 0, {}, on=on)
        outcomes.append((on, user, password, mechanism, handshake))
    expiring, old = begin(t), begin(t, version=0)
    t.ask("SaslAuthenticate", 0, {"auth_bytes": plain(ONE)}, on=expiring)
    token(t, plain(ONE), old)
    soon = outcomes[0][0]
    for _ in range(2):
        t.ask("SaslHandshake", 1, {"mechanism": "PLAIN"}, on=soon)
        t.ask("SaslAuthenticate", 1, {"auth_bytes": plain(ONE)}, on=soon)
    time.sleep(1.05)
    for on, user, password, mechanism, handshake in outcomes:
        t.ask("SaslHandshake", handshake, {"mechanism": mechanism}, on=on)
        if handshake:
            t.ask("SaslAuthenticate", 1, {"auth_bytes": plain(user, password)}, on=on)
        else:
            token(t, plain(user, password), on)
        t.ask("DescribeCluster", 0, {}, on=on)
    time.sleep(0.5)
    for on in (expiring, old):
        t.ask("DescribeCluster", 0, {}, on=on)


# --- entries, tokens, quotas --------------------------------------------------------------------------------


@script
def entries(t: SecuredTalk) -> None:
    def one(**more: Any) -> dict[str, Any]:
        return {
            "resource_type": 2,
            "resource_name": t.name("x"),
            "resource_pattern_type": 3,
            "principal": f"User:{t.name('p')}",
            "host": "*",
            "operation": 3,
            "permission_type": 3,
            **more,
        }

    for version in t.versions("CreateAcls"):
        for more in (
            {},
            {},
            {"resource_pattern_type": 4},
            {"resource_name": "*"},
            {"resource_name": ""},
            {"resource_pattern_type": 4, "resource_name": "*"},
            {"resource_type": 4},
            {"resource_type": 4, "resource_name": "kafka-cluster", "operation": 2},
            {"resource_type": 4, "resource_name": "kafka-cluster", "resource_pattern_type": 4},
            {"principal": "none"},
            {"principal": ":"},
            {"principal": "Group:g"},
            {"principal": ""},
            {"host": "10.0.0.0/8"},
            {"host": "::1"},
            {"host": ""},
            {"operation": 9},
            {"operation": 2},
            {"operation": 99},
            {"resource_type": 99},
            {"permission_type": 2},
            {"permission_type": 99},
            {"resource_pattern_type": 99},
            {"resource_type": 7, "resource_name": "User:x", "operation": 13},
            {"resource_type": 6},
            {"resource_type": 5},
            {"resource_type": 3},
        ):
            if version < 3 and more.get("resource_type") == 7:
                continue
            t.ask("CreateAcls", version, {"creations": [one(**more)]})
        t.ask("CreateAcls", version, {"creations": [one(), one(resource_name=""), one(operation=4)]})
        t.settle()
        for field in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
            for code in (0, 1, 2 if field == "resource_pattern_type" else 1):
                t.ask("CreateAcls", version, {"creations": [one(**{field: code})]})
    mine = {**EVERY_ENTRY, "principal_filter": f"User:{t.name('p')}"}
    filters = [
        mine,
        {**mine, "resource_type_filter": 2},
        {**mine, "resource_type_filter": 99},
        {**mine, "resource_type_filter": 2, "resource_name_filter": t.name("x")},
        {**mine, "resource_name_filter": ""},
        {**mine, "operation": 3},
        {**mine, "operation": 2},
        {**mine, "operation": 99},
        {**mine, "permission_type": 2},
        {**mine, "permission_type": 99},
        {**mine, "host_filter": "*"},
        {**mine, "host_filter": "10.0.0.0/8"},
        {**mine, "principal_filter": "User:*"},
        {**mine, "principal_filter": "none"},
        {**mine, "resource_type_filter": 0},
        {**mine, "operation": 0},
        {**mine, "permission_type": 0},
    ]
    filters += [
        {**mine, "pattern_type_filter": kind, "resource_name_filter": name}
        for kind in (0, 1, 2, 3, 4, 99)
        for name in (t.name("x"), t.name("xy"), "*", None)
    ]
    for each in filters:
        t.each("DescribeAcls", each)
    for version in t.versions("DeleteAcls"):
        narrow = {**mine, "operation": 3, "resource_type_filter": 2}
        deleted = [{**narrow, "resource_name_filter": t.name("x"), "pattern_type_filter": 3}, narrow]
        t.ask("DeleteAcls", version, {"filters": deleted})
        t.settle()
        t.ask("DeleteAcls", version, {"filters": []})
        for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
            t.ask("DeleteAcls", version, {"filters": [{**mine, field: 0}]})
            t.ask("DeleteAcls", version, {"filters": [{**mine, field: 99}]})
        t.ask("CreateAcls", version, {"creations": [one()]})
        t.settle()
    t.ask("DeleteAcls", t.latest("DeleteAcls"), {"filters": [mine, mine]})
    t.settle()
    t.ask("DescribeAcls", 2, mine)


@script
def tokens(t: SecuredTalk) -> None:
    maker, renewer, stranger = t.user(MECHANIC), t.user(ONE), t.user(OTHER)
    mine = {"owners": [{"principal_type": "User", "principal_name": MECHANIC}]}
    for version in sorted({next(t.versions("CreateDelegationToken")), t.latest("CreateDelegationToken")}):
        made = []
        for life, renewers in ((-1, [ONE]), (0, []), (1_000_000, [ONE]), (10**15, []), (-5, [])):
            tree = {
                "owner_principal_type": None,
                "owner_principal_name": None,
                "max_lifetime_ms": life,
                "renewers": [{"principal_type": "User", "principal_name": name} for name in renewers],
            }
            made.append(t.ask("CreateDelegationToken", version, tree, on=maker)["hmac"])
        t.settle()
        for on in (maker, renewer, stranger):
            t.ask("DescribeDelegationToken", version, mine, on=on)
        others = min(version, t.latest("RenewDelegationToken"))
        for on in (maker, renewer, stranger):
            for hmac, period in ((made[0], 1_000_000), (made[0], -1), (made[1], 0), (b"none", 5), (b"", 5)):
                answer = t.ask(
                    "RenewDelegationToken", others, {"hmac": hmac, "renew_period_ms": period}, on=on
                )
                t.settle() if answer["error_code"] == 0 else None
        for on in (stranger, renewer, maker):
            for hmac, period in ((made[2], 1_000_000), (made[2], -1), (made[2], 5), (b"none", -1)):
                tree = {"hmac": hmac, "expiry_time_period_ms": period}
                answer = t.ask("ExpireDelegationToken", others, tree, on=on)
                t.settle() if answer["error_code"] == 0 else None
        t.ask("ExpireDelegationToken", others, {"hmac": made[1], "expiry_time_period_ms": 0}, on=maker)
        t.settle()
        time.sleep(0.01)
        for api, period in (("Renew", "renew_period_ms"), ("Expire", "expiry_time_period_ms")):
            for amount in (5, -1):
                t.ask(f"{api}DelegationToken", others, {"hmac": made[1], period: amount}, on=maker)
                t.settle()
        for hmac in made:
            t.ask("ExpireDelegationToken", others, {"hmac": hmac, "expiry_time_period_ms": -1}, on=maker)
        t.settle()
        t.ask("DescribeDelegationToken", version, mine, on=maker)
    made = t.ask_unnoted("CreateDelegationToken", 2, {"renewers": [], "max_lifetime_ms": -1}, on=maker)
    t.settle()
    import base64

    password = base64.b64encode(made["hmac"]).decode()
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        on = scram(t, made["token_id"], password, mechanism, is_token=True)
        t.ask("CreateDelegationToken", 2, {"renewers": [], "max_lifetime_ms": -1}, on=on)
        t.ask("DescribeDelegationToken", 2, {"owners": None}, on=on)
        t.ask("RenewDelegationToken", 2, {"hmac": made["hmac"], "renew_period_ms": 5}, on=on)
        t.ask("ExpireDelegationToken", 2, {"hmac": made["hmac"], "expiry_time_period_ms": 5}, on=on)
        t.ask("DescribeUserScramCredentials", 0, {"users": [{"name": "none"}]}, on=on)
    scram(t, made["token_id"], password)
    scram(t, made["token_id"], "wrong", is_token=True)
    t.ask("ExpireDelegationToken", 2, {"hmac": made["hmac"], "expiry_time_period_ms": -1}, on=maker)


@script
def quotas_of_users(t: SecuredTalk) -> None:
    topic = t.create_topic("bytes")
    create(t, [acl for user in (ONE, OTHER) for acl in parse_rule(f"allow {user} write topic:{topic}")])

    def entry(rate: float | None, *entity: tuple[str, str | None]) -> dict[str, Any]:
        return {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
            "ops": [{"key": "producer_byte_rate", "value": rate or 0.0, "remove": rate is None}],
        }

    def alter(*entries: dict[str, Any]) -> None:
        t.ask("AlterClientQuotas", 1, {"entries": list(entries), "validate_only": False})
        t.settle()

    def throttled() -> None:
        """Record for each user whether a Produce request is throttled."""
        for user in (ONE, OTHER):
            on = t.another(user)  # a connection that has been throttled is not read for a while
            answer = t.ask_unnoted("Produce", 8, produce(topic, bytes(16)), on=on)
            t.note_answer("throttled", user, {"throttled": answer["throttle_time_ms"] > 0})

    throttled()
    alter(entry(1.0, ("user", ONE)))
    throttled()
    alter(entry(1e9, ("user", ONE), ("client-id", "differ")))
    throttled()
    alter(
        entry(None, ("user", ONE), ("client-id", "differ")),
        entry(1e9, ("user", ONE)),
        entry(1.0, ("user", None)),
    )
    throttled()
    alter(entry(None, ("user", ONE)), entry(None, ("user", None)))
    throttled()
