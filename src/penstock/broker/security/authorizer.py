"""`Authorizer`: decides which operations a principal may do, like Kafka's StandardAuthorizer.

Super users may do everything. For other principals, one DENY among the ACL entries that cover the resource,
the principal and the host outweighs every ALLOW. If the resource has no entry for any principal,
`allow.everyone.if.no.acl.found` applies.

The permissions for all operations on one resource are computed together, as bits, and cached for the
principal and address until an entry changes. So a check costs one dictionary access per resource, however
many entries there are. This module does no I/O, and reads no clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from penstock.errors import ConfigError
from penstock.security.acls import (
    ALLOWED_BITS,
    CLUSTER_NAME,
    DENIED_BITS,
    EVERY_OPERATION,
    WILDCARD,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

AUTHORIZERS = frozenset(
    (
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "kafka.security.authorizer.AclAuthorizer",
        "kafka.security.auth.SimpleAclAuthorizer",
    )
)
"""The class names in `authorizer.class.name` for which the broker uses this module's authorizer."""

CACHED_RESOURCES_MAX = 4096
"""The most resources whose permissions are cached for one principal at one address."""

CACHED_PEERS_MAX = 4096
"""The most pairs of principal and address for which permissions are cached."""


class Authorizer:
    """Computes the operations that a principal may do from ACL entries, which `add` and `remove` change.

    `super_users` are principals such as ``User:admin``. `allow_if_no_acl` is
    `allow.everyone.if.no.acl.found`.
    """

    def __init__(self, super_users: Collection[str] = (), *, allow_if_no_acl: bool = False) -> None:
        self.super_users = frozenset(super_users)
        self.allow_if_no_acl = allow_if_no_acl
        self._literal: dict[tuple[int, str], dict[Acl, int]] = {}
        self._prefixed: dict[int, dict[str, dict[Acl, int]]] = {}
        self._prefix_counts: dict[int, dict[int, int]] = {}
        self._prefix_lengths: dict[int, list[int]] = {}
        self._rights: dict[tuple[object, str], Rights] = {}

    # --- entries -----------------------------------------------------------------------------------------

    def add(self, acl: Acl) -> None:
        """Add an ACL entry. An entry that is added twice has to be removed twice."""
        acl = acl.by_address()
        entries = self._entries(acl, make=True)
        entries[acl] = entries.get(acl, 0) + 1
        self._changed()

    def remove(self, acl: Acl) -> None:
        """Remove an ACL entry. Do nothing if it was not added."""
        acl = acl.by_address()
        entries = self._entries(acl, make=False)
        count = entries.get(acl, 0)
        if count > 1:
            entries[acl] = count - 1
        elif count:
            del entries[acl]
            if not entries:
                self._drop(acl)
        self._changed()

    def _entries(self, acl: Acl, *, make: bool) -> dict[Acl, int]:
        if acl.pattern_type == PatternType.PREFIXED:
            prefixes = self._prefixed.setdefault(acl.resource_type, {})
            entries = prefixes.get(acl.resource_name)
            if entries is None:
                entries = {}
                if make:
                    prefixes[acl.resource_name] = entries
                    self._count_prefix(acl, 1)
            return entries
        key = acl.resource_type, acl.resource_name
        return self._literal.setdefault(key, {}) if make else self._literal.get(key, {})

    def _drop(self, acl: Acl) -> None:
        if acl.pattern_type == PatternType.PREFIXED:
            del self._prefixed[acl.resource_type][acl.resource_name]
            self._count_prefix(acl, -1)
        else:
            del self._literal[acl.resource_type, acl.resource_name]

    def _changed(self) -> None:
        for rights in self._rights.values():
            rights.forget()

    def _count_prefix(self, acl: Acl, change: int) -> None:
        """Add `change` (1 or -1) to the count of prefixed ACLs of this length, which `covering` uses."""
        counts = self._prefix_counts.setdefault(acl.resource_type, {})
        length = len(acl.resource_name)
        counts[length] = counts.get(length, 0) + change
        if not counts[length]:
            del counts[length]
        self._prefix_lengths[acl.resource_type] = sorted(counts)

    def covering(self, resource_type: int, name: str) -> Iterable[Acl]:
        """Yield the ACL entries of all principals whose resource pattern covers this resource."""
        yield from self._literal.get((resource_type, name), ())
        if name != WILDCARD:
            yield from self._literal.get((resource_type, WILDCARD), ())
        prefixes = self._prefixed.get(resource_type)
        if prefixes:
            for length in self._prefix_lengths[resource_type]:
                if length > len(name):
                    break
                yield from prefixes.get(name[:length], ())

    # --- decisions ---------------------------------------------------------------------------------------

    def rights(self, principal: object, host: str) -> Rights:
        """Return the `Rights` of a principal at an address; all connections of this pair share the object.

        `str(principal)` is the name, such as ``User:alice``.
        """
        found = self._rights.get((principal, host))
        if found is None:
            if len(self._rights) >= CACHED_PEERS_MAX:
                self._rights.clear()
            found = self._rights[principal, host] = Rights(self, str(principal), host)
        return found

    def operations(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """Return the operations allowed on one resource, as bits: bit n is the operation with code n."""
        if principal in self.super_users:
            return EVERY_OPERATION
        allowed = denied = 0
        is_mentioned = False
        for acl in self.covering(resource_type, name):
            is_mentioned = True
            if acl.covers_peer(principal, host):
                if acl.permission == Permission.DENY:
                    denied |= DENIED_BITS[Operation(acl.operation)]
                else:
                    allowed |= ALLOWED_BITS[Operation(acl.operation)]
        if not is_mentioned:
            return EVERY_OPERATION if self.allow_if_no_acl else 0
        return allowed & ~denied

    def allows_anywhere(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Return True if the operation is allowed on at least one resource of a type (KIP-679).

        It is allowed if an ALLOW entry has a pattern that no pattern of a DENY entry covers completely.
        """
        if self.operations(principal, host, resource_type, "hardcode") >> operation & 1:
            return True
        denied_names: set[str] = set()
        denied_prefixes: set[str] = set()
        allowed: list[Acl] = []
        for acl in self._of_type(resource_type):
            if not acl.covers_peer(principal, host) or acl.operation not in (operation, Operation.ALL):
                continue
            if acl.permission == Permission.ALLOW:
                allowed.append(acl)
            elif acl.pattern_type == PatternType.PREFIXED:
                denied_prefixes.add(acl.resource_name)
            elif acl.resource_name == WILDCARD:
                return False
            else:
                denied_names.add(acl.resource_name)
        for acl in allowed:
            name = acl.resource_name
            if acl.pattern_type == PatternType.LITERAL:
                if name == WILDCARD:
                    return True
                if name in denied_names:
                    continue
            if not any(name[:length] in denied_prefixes for length in range(1, len(name) + 1)):
                return True
        return False

    def _of_type(self, resource_type: int) -> Iterable[Acl]:
        for (kind, _), entries in self._literal.items():
            if kind == resource_type:
                yield from entries
        for entries in self._prefixed.get(resource_type, {}).values():
            yield from entries


class Rights:
    """The permissions of one principal at one address. Results are cached until an ACL entry changes."""

    __slots__ = ("_authorizer", "_known", "host", "principal")

    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        self._authorizer = authorizer
        self.principal = principal
        self.host = host
        self._known: dict[tuple[int, str], int] = {}

    def forget(self) -> None:
        """Clear the cached permissions, because an ACL entry has changed."""
        self._known.clear()

    def operations(self, resource_type: int, name: str) -> int:
        """Return the operations allowed on one resource, as bits."""
        found = self._known.get((resource_type, name))
        if found is None:
            found = self._authorizer.operations(self.principal, self.host, resource_type, name)
            if len(self._known) >= CACHED_RESOURCES_MAX:
                self._known.clear()
            self._known[resource_type, name] = found
        return found

    def allows(self, operation: int, resource_type: int, name: str) -> bool:
        """Return True if one operation is allowed on one resource."""
        return bool(self.operations(resource_type, name) >> operation & 1)

    def on_topic(self, operation: int, name: str) -> bool:
        """Return True if an operation is allowed on a topic."""
        return bool(self.operations(ResourceType.TOPIC, name) >> operation & 1)

    def on_group(self, operation: int, group_id: str) -> bool:
        """Return True if an operation is allowed on a group."""
        return bool(self.operations(ResourceType.GROUP, group_id) >> operation & 1)

    def on_cluster(self, operation: int) -> bool:
        """Return True if an operation is allowed on the cluster."""
        return bool(self.operations(ResourceType.CLUSTER, CLUSTER_NAME) >> operation & 1)

    def on_transactional_id(self, operation: int, transactional_id: str) -> bool:
        """Return True if an operation is allowed on a transactional id."""
        return bool(self.operations(ResourceType.TRANSACTIONAL_ID, transactional_id) >> operation & 1)

    def anywhere(self, operation: int, resource_type: int) -> bool:
        """Return True if an operation is allowed on some resource of a type.

        `Authorizer.allows_anywhere` has the rules.
        """
        return self._authorizer.allows_anywhere(self.principal, self.host, operation, resource_type)


def parse_super_users(text: str) -> list[str]:
    """Parse `super.users`: principals separated by semicolons, since names in certificates have commas.

    Raises:
        ConfigError: a part is not a principal.
    """
    users = [part.strip() for part in text.split(";") if part.strip()]
    for user in users:
        kind, colon, name = user.partition(":")
        if not (kind and colon and name):
            raise ConfigError(
                f"super.users: {user!r} is no principal; write User:name, with ; between several"
            )
    return users
