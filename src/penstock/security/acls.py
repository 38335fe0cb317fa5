"""Access control entries (ACLs): codes, patterns, the resources that an entry covers, filters (KIP-11, 290).

An entry says that a principal, from a host, is allowed (or denied) an operation on the resources that a
pattern names. Texts and codes are Kafka's. The broker's `authorizer` decides which entries apply to a
request.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from penstock.common.listening.addresses import canonical_address, without_zone
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""

WILDCARD = "*"
"""The literal name that stands for every resource of its type, and the host that stands for every address."""

ANY_USER = "User:*"
"""The principal that stands for every authenticated and anonymous user."""

ACL_RECORDS_MAX = 10_000
"""The maximum number of entries that one request may create or delete, as in Apache Kafka: one batch of the
metadata log.
"""


class ResourceType(IntEnum):
    """The type of a protected resource, such as TOPIC or GROUP."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """The way in which an ACL entry's name matches resource names. ANY and MATCH occur in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """An operation on a resource, as in Kafka's ACLs, such as READ or ALTER."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """The effect of an ACL entry: ALLOW or DENY. ANY occurs in filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


EVERY_OPERATION = sum(1 << operation for operation in Operation if operation > Operation.ALL)
"""The bits of all operations; bit n is the operation with code n, as in KIP-430."""


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


FITTING_OPERATIONS = {
    ResourceType.TOPIC: _bits(
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: _bits(
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: _bits(
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: _bits(Operation.DESCRIBE, Operation.WRITE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: _bits(Operation.DESCRIBE),
    ResourceType.USER: _bits(Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""A dict from resource type to the operations that exist for it, as bits. Responses have these bits in their
authorized-operations fields.
"""

_READS_DESCRIBE = (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)

ALLOWED_BITS = {
    Operation.ALL: EVERY_OPERATION,
    **{
        operation: _bits(operation, Operation.DESCRIBE)
        if operation in _READS_DESCRIBE
        else _bits(operation, Operation.DESCRIBE_CONFIGS)
        if operation == Operation.ALTER_CONFIGS
        else _bits(operation)
        for operation in Operation
        if operation > Operation.ALL
    },
}
"""A dict from an operation to the operations that an ALLOW entry for it covers, as bits. READ, WRITE, DELETE
and ALTER imply DESCRIBE; ALTER_CONFIGS implies DESCRIBE_CONFIGS.
"""

DENIED_BITS = {
    operation: EVERY_OPERATION if operation == Operation.ALL else _bits(operation)
    for operation in Operation
    if operation >= Operation.ALL
}
"""A dict from an operation to a bit mask of the operations that a DENY entry for it covers.

Unlike ALLOW, DENY covers no implied operations.
"""


class Acl(NamedTuple):
    """One access control entry.

    The four codes are `ResourceType`, `PatternType`, `Operation`, `Permission`.
    """

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    def covers_name(self, name: str) -> bool:
        """Return True if the entry's pattern covers a resource of this name."""
        if self.pattern_type == PatternType.PREFIXED:
            return name.startswith(self.resource_name)
        return self.resource_name in (name, WILDCARD)

    def covers_peer(self, principal: str, host: str) -> bool:
        """Return True if the entry applies to this principal at this canonical address.

        A host without a zone stands for the address in any zone. A network in CIDR notation covers its
        addresses.
        """
        if self.principal not in (principal, ANY_USER):
            return False
        if "/" in self.host:
            network, address = network_of(self.host), address_of(without_zone(host))
            return network is not None and address is not None and address in network
        return self.host in (host, WILDCARD) or canonical_address(self.host) in (host, without_zone(host))

    def by_address(self) -> Acl:
        """Return a copy of the entry with its host as a canonical IP address."""
        host = canonical_address(self.host)
        return self if host == self.host else self._replace(host=host)


class AclFilter(NamedTuple):
    """A filter for ACL entries, as in DescribeAcls and DeleteAcls. None and ANY match every value."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def selects(self, acl: Acl) -> bool:
        """Return True if the filter matches an entry."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._selects_pattern(acl)
            and self.principal in (None, acl.principal)
            and (self.host is None or canonical_address(self.host) == canonical_address(acl.host))
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    @property
    def has_zero(self) -> bool:
        """True if one of the four codes is 0 (UNKNOWN), which is no valid filter."""
        return 0 in (self.resource_type, self.pattern_type, self.operation, self.permission)

    @property
    def has_unknown(self) -> bool:
        """True if one of the four codes is 0 (UNKNOWN) or is not defined."""
        codes = self.resource_type, self.pattern_type, self.operation, self.permission
        kinds = ResourceType, PatternType, Operation, Permission
        return any(code == 0 or code not in tuple(kind) for code, kind in zip(codes, kinds, strict=True))

    def _selects_pattern(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type == PatternType.MATCH:
            return acl.covers_name(self.resource_name)
        return self.resource_name == acl.resource_name


EVERY_ACL = AclFilter(ResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY)
"""The filter that selects all ACL entries."""


def parse_rule(text: str) -> list[Acl]:
    """Return the ACL entries of a rule such as ``allow ann read,describe topic:orders``.

    Another example is ``deny * write topic:pay* from 10.0.0.1``. ``User:`` may be left out before a user; a
    name that ends in a star is a prefix; ``cluster`` needs no name.

    Raises:
        ConfigError: the rule is malformed.
    """
    words = text.split()
    host = WILDCARD
    if len(words) == 6 and words[4].lower() == "from":
        host = words[5]
        words = words[:4]
    try:
        permission, user, operations, resource = words
        kind, _, name = resource.partition(":")
        resource_type = ResourceType[kind.upper()]
        allowed = Permission[permission.upper()]
        wanted = [Operation[each.upper()] for each in operations.split(",")]
    except (KeyError, ValueError):
        raise ConfigError(
            f"rule {text!r} is not understood; write: allow USER OPERATION[,OPERATION] TYPE:NAME [from HOST]"
        ) from None
    if resource_type == ResourceType.CLUSTER:
        name = name or CLUSTER_NAME
    is_prefix = name.endswith(WILDCARD) and name != WILDCARD
    found = [
        Acl(
            resource_type,
            name[:-1] if is_prefix else name,
            PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
            user if ":" in user else f"User:{user}",
            host,
            operation,
            allowed,
        )
        for operation in wanted
    ]
    for acl in found:
        reason = why_invalid(acl)
        if reason is not None:
            raise ConfigError(f"rule {text!r}: {reason}")
    return found


def rule_of(acl: Acl) -> str:
    """Return an access control entry as text, in the syntax of `parse_rule`."""
    permission = Permission(acl.permission).name.lower()
    user = acl.principal.removeprefix("User:")
    name = acl.resource_name + (WILDCARD if acl.pattern_type == PatternType.PREFIXED else "")
    kind, operation = ResourceType(acl.resource_type).name.lower(), Operation(acl.operation).name.lower()
    resource = kind if acl.resource_type == ResourceType.CLUSTER else f"{kind}:{name}"
    host = "" if acl.host == WILDCARD else f" from {acl.host}"
    return f"{permission} {user} {operation} {resource}{host}"


def why_invalid(acl: Acl) -> str | None:
    """Return the reason why an ACL entry cannot be created, or None if it can be.

    As in Apache Kafka, operations that do not exist for the type of resource, and hosts that no address
    equals, are accepted; `warning_of` describes them.
    """
    if acl.resource_type not in tuple(ResourceType)[ResourceType.TOPIC :]:
        return f"Invalid resourceType {_name(ResourceType, acl.resource_type)}"
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {_name(PatternType, acl.pattern_type)}"
    if acl.operation not in DENIED_BITS:
        return f"Invalid operation {_name(Operation, acl.operation)}"
    if acl.permission not in (Permission.DENY, Permission.ALLOW):
        return f"Invalid permissionType {_name(Permission, acl.permission)}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if ":" not in acl.principal:
        return f"Could not parse principal from `{acl.principal}` (no colon is present separating the type)"
    return None


def warning_of(acl: Acl) -> str | None:
    """Return the reason why a valid ACL entry never applies to a request, or None if it can apply."""
    fitting = FITTING_OPERATIONS.get(ResourceType(acl.resource_type), 0)
    if acl.operation != Operation.ALL and not fitting >> acl.operation & 1:
        kind = ResourceType(acl.resource_type).name
        return f"operation {Operation(acl.operation).name} does not exist for {kind} resources"
    if acl.host != WILDCARD and network_of(acl.host) is None:
        return f"host {acl.host!r} is no IP address and no network, and matches no client"
    return None


@lru_cache(maxsize=1024)
def network_of(host: str) -> IPv4Network | IPv6Network | None:
    """Return the network that `host` names in CIDR notation, or None for any other text.

    An address stands for the network that contains only this address.
    """
    import ipaddress  # few entries name a host

    try:
        return ipaddress.ip_network(host, strict=False)
    except ValueError:
        return None


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address that `host` is, or None for any other text."""
    import ipaddress

    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _name(kind: type[IntEnum], code: int) -> str:
    try:
        return kind(code).name
    except ValueError:
        return "UNKNOWN"
