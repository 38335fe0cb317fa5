"""Tests that the authorizer decides as Apache Kafka's StandardAuthorizer does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.broker.security.authorizer import CACHED_PEERS_MAX, Authorizer, parse_super_users
from penstock.errors import ConfigError
from penstock.security.acls import (
    CLUSTER_NAME,
    EVERY_ACL,
    EVERY_OPERATION,
    FITTING_OPERATIONS,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    warning_of,
    why_invalid,
)

ANN, HOST = "User:ann", "10.0.0.1"
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL


def acl(
    operation: int,
    name: str = "orders",
    *,
    deny: bool = False,
    principal: str = ANN,
    host: str = "*",
    prefixed: bool = False,
    kind: ResourceType = TOPIC,
) -> Acl:
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    permission = Permission.DENY if deny else Permission.ALLOW
    return Acl(kind, name, pattern, principal, host, operation, permission)


def judge(*acls: Acl, super_users: tuple[str, ...] = (), allow_if_no_acl: bool = False) -> Authorizer:
    authorizer = Authorizer(super_users, allow_if_no_acl=allow_if_no_acl)
    for each in acls:
        authorizer.add(each)
    return authorizer


def operations(
    authorizer: Authorizer, name: str = "orders", principal: str = ANN, host: str = HOST
) -> set[int]:
    bits = authorizer.operations(principal, host, TOPIC, name) & FITTING_OPERATIONS[TOPIC]
    return {operation for operation in Operation if bits >> operation & 1}


@pytest.mark.parametrize(
    ("given", "bits"),
    [((acl(ALL),), 3576), ((acl(READ),), 264), ((acl(WRITE),), 272), ((acl(DESCRIBE),), 256),
     ((acl(Operation.ALTER_CONFIGS),), 3072), ((acl(ALL), acl(READ, deny=True)), 3568), ((), 0)],
)  # fmt: skip
def test_fields_of_authorized_operations_have_kafkas_bits(given: tuple[Acl, ...], bits: int) -> None:
    found = judge(*given).operations(ANN, HOST, TOPIC, "orders")
    assert found & FITTING_OPERATIONS[TOPIC] == bits


def test_full_rights_on_the_cluster_are_8096() -> None:
    authorizer = judge(super_users=("User:admin",))
    found = authorizer.operations("User:admin", HOST, CLUSTER, CLUSTER_NAME)
    assert found & FITTING_OPERATIONS[CLUSTER] == 8096


def test_deny_outweighs_allow_and_implies_nothing() -> None:
    assert operations(judge(acl(READ), acl(READ, deny=True))) == {DESCRIBE}
    assert operations(judge(acl(READ), acl(DESCRIBE, deny=True))) == {READ}
    assert operations(judge(acl(ALL), acl(ALL, deny=True, principal="User:*"))) == set()


@pytest.mark.parametrize(
    ("entry", "name", "fits"),
    [(acl(READ, "orders"), "orders", True), (acl(READ, "orders"), "orders2", False),
     (acl(READ, "or", prefixed=True), "orders", True), (acl(READ, "or", prefixed=True), "or", True),
     (acl(READ, "or", prefixed=True), "o", False), (acl(READ, "*"), "anything", True),
     (acl(READ, "*", prefixed=True), "orders", False), (acl(READ, "*", prefixed=True), "*x", True),
     (acl(READ, kind=GROUP), "orders", False), (acl(READ, "Orders"), "orders", False)],
)  # fmt: skip
def test_patterns(entry: Acl, name: str, fits: bool) -> None:
    assert (READ in operations(judge(entry), name)) == fits


@pytest.mark.parametrize(
    ("entry", "fits"),
    [(acl(READ, principal="User:*"), True), (acl(READ, principal="User:bob"), False),
     (acl(READ, principal="user:ann"), False), (acl(READ, principal="Group:ann"), False),
     (acl(READ, host=HOST), True), (acl(READ, host="10.0.0.2"), False),
     (acl(READ, host="10.0.0.0/8"), True), (acl(READ, host="10.1.0.0/16"), False),
     (acl(READ, host="10.0.0.0/33"), False), (acl(READ, host="::/0"), False),
     (acl(READ, host="localhost"), False)],
)  # fmt: skip
def test_principals_and_hosts(entry: Acl, fits: bool) -> None:
    assert (READ in operations(judge(entry))) == fits


def test_without_an_entry_for_the_resource_a_setting_decides() -> None:
    assert READ in operations(judge(allow_if_no_acl=True))
    assert operations(judge()) == set()
    # An entry for somebody else, on the name, a prefix or all, ends the general permission.
    for entry in (
        acl(READ, principal="User:bob"),
        acl(READ, "or", prefixed=True, principal="User:bob"),
        acl(READ, "*", principal="User:bob"),
    ):
        assert operations(judge(entry, allow_if_no_acl=True)) == set()
    assert READ in operations(judge(acl(READ, "payments", principal="User:bob"), allow_if_no_acl=True))


def test_super_users_may_do_everything_even_what_is_denied() -> None:
    authorizer = judge(acl(ALL, deny=True, principal="User:*"), super_users=("User:CN=root,O=Acme",))
    assert authorizer.operations("User:CN=root,O=Acme", HOST, TOPIC, "orders") == EVERY_OPERATION


def test_super_users_are_separated_by_semicolons() -> None:
    assert parse_super_users("User:a; User:CN=b,O=c ;") == ["User:a", "User:CN=b,O=c"]
    with pytest.raises(ConfigError, match="User:name"):
        parse_super_users("admin")


@for_each(
    [
        ((acl(WRITE),), True),
        ((acl(ALL),), True),
        ((acl(READ),), False),
        ((), False),
        ((acl(WRITE), acl(WRITE, "*", deny=True)), False),
        ((acl(WRITE, "abc", prefixed=True), acl(WRITE, "a", prefixed=True, deny=True)), False),
        ((acl(WRITE, "a", prefixed=True), acl(WRITE, "abc", prefixed=True, deny=True)), True),
        ((acl(WRITE, "abc", prefixed=True), acl(WRITE, "abc", deny=True)), True),
        ((acl(WRITE, "abc"), acl(WRITE, "abc", deny=True)), False),
        ((acl(WRITE, "*"), acl(WRITE, "abc", deny=True)), True),
        ((acl(WRITE, principal="User:bob"),), False),
        ((acl(WRITE, kind=GROUP),), False),
    ]
)
def test_write_on_any_topic_at_all(given: tuple[Acl, ...], expected: bool) -> None:
    assert judge(*given).allows_anywhere(ANN, HOST, WRITE, TOPIC) == expected


def test_answers_that_are_kept_follow_changes() -> None:
    authorizer = judge()
    rights = authorizer.rights(ANN, HOST)
    assert not rights.on_topic(READ, "orders")
    authorizer.add(acl(READ, "or", prefixed=True))
    assert rights.on_topic(READ, "orders")
    authorizer.add(acl(READ, "or", prefixed=True))
    authorizer.remove(acl(READ, "or", prefixed=True))
    assert rights.on_topic(READ, "orders")
    authorizer.remove(acl(READ, "or", prefixed=True))
    assert not rights.on_topic(READ, "orders")
    authorizer.remove(acl(READ, "or", prefixed=True))
    assert not list(authorizer.covering(TOPIC, "orders"))


def test_what_is_kept_for_peers_has_a_limit() -> None:
    authorizer = judge(acl(READ))
    for number in range(CACHED_PEERS_MAX + 10):
        authorizer.rights(f"User:{number}", HOST)
    assert len(authorizer._rights) <= CACHED_PEERS_MAX
    rights = authorizer.rights(ANN, HOST)
    for number in range(10_000):
        rights.on_topic(READ, f"t{number}")
    assert len(rights._known) <= 4096


_NAMES = st.sampled_from(["", "a", "ab", "abc", "b", "*"])
_ACLS = st.builds(
    Acl,
    st.sampled_from([TOPIC, GROUP]),
    _NAMES.filter(bool),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from([ANN, "User:bob", "User:*"]),
    st.sampled_from([HOST, "*", "10.0.0.2"]),
    st.sampled_from([READ, WRITE, DESCRIBE, ALL, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)


def _plain(acls: list[Acl], default: bool, operation: int, name: str) -> bool:
    """Decide by the ACL rules in the order of Apache Kafka's documentation, as a model for comparison."""
    covering = [
        each
        for each in acls
        if each.resource_type == TOPIC
        and (
            name.startswith(each.resource_name)
            if each.pattern_type == PatternType.PREFIXED
            else each.resource_name in ("*", name)
        )
    ]
    mine = [each for each in covering if each.principal in (ANN, "User:*") and each.host in (HOST, "*")]
    implied = {
        DESCRIBE: (DESCRIBE, READ, WRITE, Operation.DELETE, Operation.ALTER),
        Operation.DESCRIBE_CONFIGS: (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
    }.get(operation, (operation,))
    if any(each.permission == Permission.DENY and each.operation in (operation, ALL) for each in mine):
        return False
    if any(each.permission == Permission.ALLOW and each.operation in (*implied, ALL) for each in mine):
        return True
    return default and not covering


@given(st.lists(_ACLS, max_size=8), st.booleans(), st.sampled_from(list(Operation)[3:]), _NAMES)
def test_decisions_are_those_of_the_rules_read_one_by_one(
    acls: list[Acl], default: bool, operation: int, name: str
) -> None:
    authorizer = judge(*acls, allow_if_no_acl=default)
    expected = _plain(acls, default, operation, name)
    assert authorizer.rights(ANN, HOST).allows(operation, TOPIC, name) == expected
    assert authorizer.rights(ANN, HOST).allows(operation, TOPIC, name) == expected


@given(st.lists(_ACLS, max_size=6), st.lists(_ACLS, max_size=6))
def test_what_is_removed_leaves_nothing_behind(kept: list[Acl], removed: list[Acl]) -> None:
    authorizer = judge(*removed, *kept)
    for each in removed:
        authorizer.remove(each)
    for name in ("a", "ab", "abc", "b"):
        assert authorizer.operations(ANN, HOST, TOPIC, name) == judge(*kept).operations(
            ANN, HOST, TOPIC, name
        )


@given(_ACLS, _ACLS)
def test_a_filter_of_exact_fields_selects_its_entry_only(one: Acl, other: Acl) -> None:
    assert AclFilter(*one).selects(one)
    assert AclFilter(*one).selects(other) == (one == other)


def test_match_selects_what_would_apply_to_a_name() -> None:
    wanted = AclFilter(TOPIC, "orders", PatternType.MATCH, None, None, Operation.ANY, Permission.ANY)
    assert wanted.selects(acl(READ))
    assert wanted.selects(acl(READ, "or", prefixed=True))
    assert wanted.selects(acl(READ, "*"))
    assert not wanted.selects(acl(READ, "o"))
    assert not wanted.selects(acl(READ, kind=GROUP))
    exact = wanted._replace(pattern_type=PatternType.ANY)
    assert exact.selects(acl(READ, prefixed=True))
    assert not exact.selects(acl(READ, "*"))


@for_each(
    [
        (acl(READ), None),
        (acl(99), "Invalid operation UNKNOWN"),
        (acl(1), "Invalid operation ANY"),
        (acl(READ, kind=CLUSTER), "kafka-cluster"),
        (acl(READ, ""), "empty resource name"),
        (acl(READ, principal="ann"), "principal"),
        (acl(READ)._replace(resource_type=99), "resourceType UNKNOWN"),
        (acl(READ)._replace(pattern_type=2), "patternType MATCH"),
        (acl(READ)._replace(permission=1), "permissionType ANY"),
        (acl(READ)._replace(resource_type=0), "UNKNOWN"),
        (acl(Operation.CLUSTER_ACTION), None),
        (acl(READ, host="10.0.0.0/8"), None),
    ]
)
def test_entries_that_may_be_created(entry: Acl, reason: str | None) -> None:
    found = why_invalid(entry)
    assert found is None if reason is None else found is not None and reason in found


def test_entries_that_decide_nothing_are_named() -> None:
    assert warning_of(acl(READ)) is None
    assert warning_of(acl(READ, host="::1")) is None
    assert warning_of(acl(READ, host="10.0.0.0/8")) is None
    assert "matches no client" in str(warning_of(acl(READ, host="10.0.0.0/33")))
    assert "CLUSTER_ACTION" in str(warning_of(acl(Operation.CLUSTER_ACTION)))


def test_a_thousand_entries_cost_as_much_as_one() -> None:
    """A decision looks only at ACL entries for its resource, however many others there are."""
    authorizer = judge(*(acl(READ, f"t{number}", principal=f"User:{number}") for number in range(1000)))
    assert len(list(authorizer.covering(TOPIC, "t500"))) == 1
    rights = authorizer.rights("User:500", HOST)
    assert rights.on_topic(READ, "t500")
    assert not rights.on_topic(READ, "t501")


@pytest.mark.parametrize(
    ("host", "peer"),
    [
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::1", "::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:DB8::0:1", "2001:db8::1"),
        ("fe80::1", "fe80::1%eth0"),
        ("FE80:0::1%eth0", "fe80::1%eth0"),
    ],
)
def test_hosts_are_compared_as_addresses(host: str, peer: str) -> None:
    denied = acl(READ, deny=True, host=host)
    authorizer = Authorizer()
    authorizer.add(acl(READ))
    assert authorizer.rights(ANN, peer).allows(READ, TOPIC, "orders")
    authorizer.add(denied)
    assert not authorizer.rights(ANN, peer).allows(READ, TOPIC, "orders")
    assert denied.covers_peer(ANN, peer)
    authorizer.remove(denied)
    assert authorizer.rights(ANN, peer).allows(READ, TOPIC, "orders")


def test_a_zone_in_an_entry_is_compared() -> None:
    assert not acl(READ, host="fe80::1%eth1").covers_peer(ANN, "fe80::1%eth0")


def test_filters_compare_hosts_as_addresses() -> None:
    wanted = EVERY_ACL._replace(host="::1")
    assert wanted.selects(acl(READ, host="0:0:0:0:0:0:0:1"))
    assert not wanted.selects(acl(READ, host="::2"))
