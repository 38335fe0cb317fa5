"""Tests of the hosts that CreateAcls accepts in access control entries, at each metadata version."""

from __future__ import annotations

import pytest

from broker.bench_node import ask, make_node
from penstock.broker.handlers.acls import NO_NETWORKS
from penstock.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def created(host: str, release: str | None = None, **settings: str) -> tuple[int, str | None]:
    """Send CreateAcls for one entry with this host; return the error code and the error message."""
    rights = {"authorizer_class_name": AUTHORIZER, "super_users": "User:ANONYMOUS"}
    node = make_node(as_version=release, **rights, **settings)
    creation = AclCreation(
        resource_type=2, resource_name="t", principal="User:ann", host=host, operation=3, permission_type=3
    )
    [result] = ask(node, CreateAclsRequest(creations=[creation]), 3).results
    return result.error_code, result.error_message


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("*", 0),
        ("10.0.0.1", 0),
        ("10.0.0.0/8", 0),
        ("2001:db8::/32", 0),
        ("10.0.0.0/33", 42),
        ("10.0.0.0/", 42),
        ("", 42),
        ("no-address", 0),
    ],
)
def test_hosts_with_the_metadata_of_4_4(host: str, code: int) -> None:
    found, message = created(host, penstock_metadata_version="4.4")
    assert found == code
    assert bool(message) == bool(code)


def test_networks_need_the_metadata_of_4_4() -> None:
    assert created("10.0.0.0/8") == (35, NO_NETWORKS)


def test_a_broker_as_an_older_release_takes_any_host() -> None:
    assert created("10.0.0.0/8", release="4.3")[0] == 0
