"""The messages in the consumer group of all registries on a topic: addresses and the elected registry.

The group has the protocol type ``sr`` and the protocol ``v0`` of Confluent's registry, in the same JSON,
so that registries of both kinds can be members of one group.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import DecodeError

PROTOCOL_TYPE = "sr"
PROTOCOL = "v0"
VERSION = 1
NO_ERROR, DUPLICATE_URLS = 0, 1
DOCUMENT_BYTES_MAX = 64 << 10
"""The greatest size, in bytes, of the JSON in a member's metadata or in an assignment."""


@dataclass(frozen=True)
class RegistryIdentity:
    """A registry as its group describes it: its address, and whether it may be elected."""

    host: str
    port: int
    scheme: str = "http"
    is_eligible: bool = True
    is_leader: bool = field(default=False, compare=False)
    """True if this registry was elected before the rebalance; `elect` then prefers it to others."""

    @property
    def url(self) -> str:
        """Return the URL under which the other registries reach this one."""
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def as_json(self) -> dict[str, Any]:
        """Return the identity in the JSON of Confluent's registry."""
        return {
            "version": VERSION,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.is_eligible,
            "scheme": self.scheme,
            "leader": self.is_leader,
        }

    @classmethod
    def of(cls, found: object) -> RegistryIdentity:
        """Return the identity in a JSON document; raise `DecodeError` if it is malformed."""
        if not isinstance(found, dict):
            raise DecodeError("the identity of a registry is no object of JSON")
        host, port, scheme = found.get("host"), found.get("port"), found.get("scheme") or "http"
        if not isinstance(host, str) or not host or scheme not in ("http", "https"):
            raise DecodeError("the identity of a registry has no host, or an unknown scheme")
        if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 1 << 16:
            raise DecodeError("the identity of a registry has no port")
        is_eligible = found.get("master_eligibility") is True
        return cls(host.strip("[]"), port, scheme, is_eligible, found.get("leader") is True)


@dataclass(frozen=True)
class Assignment:
    """The outcome of an election: the registry that writes, if there is one, or an error."""

    leader_id: str | None
    """The member id of the elected registry."""
    leader: RegistryIdentity | None
    error: int = NO_ERROR


def identity_bytes(identity: RegistryIdentity) -> bytes:
    """Return a registry's identity as metadata for joining the group."""
    return json.dumps(identity.as_json()).encode()


def identity_in(data: bytes) -> RegistryIdentity:
    """Return the identity in a member's metadata. Raises `DecodeError` if it is malformed."""
    return RegistryIdentity.of(_document(data))


def assignment_bytes(assignment: Assignment) -> bytes:
    """Return the outcome of an election as bytes of an assignment."""
    found: dict[str, Any] = {"version": VERSION, "error": assignment.error}
    if assignment.leader is not None:
        found["master"] = assignment.leader_id
        found["master_identity"] = assignment.leader.as_json()
    return json.dumps(found).encode()


def assignment_in(data: bytes) -> Assignment:
    """Return the outcome of an election from an assignment. Raises `DecodeError` if it is malformed."""
    found = _document(data)
    if not isinstance(found, dict) or not isinstance(found.get("error", NO_ERROR), int):
        raise DecodeError("the assignment of a registry is no object of JSON, or has no error code")
    leader = found.get("master_identity")
    leader_id = found.get("master")
    return Assignment(
        None if leader_id is None else str(leader_id),
        None if leader is None else RegistryIdentity.of(leader),
        found.get("error", NO_ERROR),
    )


def elect(members: Mapping[str, RegistryIdentity]) -> Assignment:
    """Return the registry that was elected before, or else the eligible one with the smallest URL."""
    eligible = {name: each for name, each in members.items() if each.is_eligible}
    before = [name for name, each in eligible.items() if each.is_leader]
    chosen = before if len(before) == 1 else sorted(eligible, key=lambda name: (eligible[name].url, name))
    urls = {each.url for each in members.values()}
    error = NO_ERROR if len(urls) == len(members) else DUPLICATE_URLS
    if not chosen:
        return Assignment(None, None, error)
    return Assignment(chosen[0], eligible[chosen[0]], error)


def _document(data: bytes) -> Any:
    if len(data) > DOCUMENT_BYTES_MAX:
        raise DecodeError(f"a member of the registries' group says {len(data)} bytes of itself: too many")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"a member of the registries' group speaks no JSON: {error}") from None
