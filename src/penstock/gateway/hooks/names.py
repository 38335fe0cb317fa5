"""Rename topics and groups between clients and cluster: chosen topics, or all names with a tenant's prefix.

Kafka's protocol definitions mark the fields with names of topics, groups and transactional ids
(`entityType`), so that every API is covered. This module adds fields that the definitions do not mark, such
as the resource names of DescribeConfigs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.broker.requests.patterns import PatternError, compile_pattern
from penstock.errors import ConfigError
from penstock.gateway.hooks.hook import ClientRequest, Hook, Refused
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_response import definition_of, fields_at
from penstock.protocol.field_values import (
    GROUP_KEY,
    GROUP_RESOURCE,
    SHARE_KEY,
    TOPIC_RESOURCE,
    TRANSACTION_KEY,
)
from penstock.protocol.schema.definition import Definition, StructSpec
from penstock.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterator

Change: TypeAlias = Callable[[str, str], "str | None"]
"""A function that renames: it is called with (kind of name, name), such as `TOPIC` and "orders", and returns
the new name, or None to remove that topic or group from a response."""

TOPIC, GROUP, TRANSACTION = "topicName", "groupId", "transactionalId"
KINDS = (TOPIC, GROUP, TRANSACTION)

TOPIC_REGEX, TRANSACTION_REGEX = "topicRegex", "transactionalIdRegex"
REGEX_KINDS = (TOPIC_REGEX, TRANSACTION_REGEX)
REGEX_FIELDS = {
    "subscribed_topic_regex": TOPIC_REGEX,
    "source_topic_regex": TOPIC_REGEX,
    "transactional_id_pattern": TRANSACTION_REGEX,
}

UNTYPED = {"group_id": GROUP}
"""A dict from fields that lack `entityType` in some protocol definitions to the kind of name in them. They
belong to requests about share group state."""

RESOURCE_TYPES = {"resource_name": "resource_type", "resource_name_filter": "resource_type_filter"}
"""A dict from each field that contains a resource name to the field, in the same struct, that says which
type of resource it is.
"""

RESOURCE_KINDS = {TOPIC_RESOURCE: TOPIC, GROUP_RESOURCE: GROUP}
"""A dict from a resource type to the kind of name. Topics have type 2 in DescribeConfigs and in ACLs."""

COORDINATOR_KINDS = {GROUP_KEY: GROUP, TRANSACTION_KEY: TRANSACTION, SHARE_KEY: GROUP}
"""A dict from FindCoordinator's key type to the kind of name in its keys. A key for a share partition (type
2) begins with the name of the group."""

ACL_APIS = (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS)


def topic_ids_in(message: Any, version: int) -> list[bytes]:
    """Return the topic ids in a message, each once, in the order of their first occurrence."""
    definition = definition_of(message.NAME)
    if not _has_ids(message.NAME, version):
        return []
    return list(dict.fromkeys(_ids(message, definition, definition.root, version)))


@cache
def _has_ids(name: str, version: int) -> bool:
    definition = definition_of(name)
    specs = [definition.root, *definition.structs.values()]
    return any(field.attribute == "topic_id" for spec in specs for field in fields_at(spec, version))


def _ids(item: Any, definition: Definition, spec: StructSpec, version: int) -> Iterator[bytes]:
    for field in fields_at(spec, version):
        kind = field.type_at(version)
        value = getattr(item, field.attribute)
        if field.attribute == "topic_id" and not kind.is_array:
            if value != ZERO_UUID:
                yield value
        elif kind.is_struct and value is not None:
            inner = definition.structs[kind.base]
            for each in value if kind.is_array else (value,):
                yield from _ids(each, definition, inner, version)


class Renaming:
    """Renames topics, groups and transactional ids in a message in place, with the function `change`.

    `coordinator_kind` is the kind of name in the keys of a FindCoordinator message, None for other messages.
    """

    def __init__(self, message: Any, version: int, change: Change, coordinator_kind: str | None) -> None:
        self._definition = definition_of(message.NAME)
        self._version = version
        self._change = change
        self._coordinator_kind = coordinator_kind
        self._struct(message, self._definition.root)

    def _struct(self, item: Any, spec: StructSpec) -> bool:
        """Replace the names in a struct; return False if the struct must be removed from the message."""
        is_shown = True
        for field in fields_at(spec, self._version):
            kind = field.type_at(self._version)
            value = getattr(item, field.attribute)
            if not value:
                continue
            if kind.is_struct:
                inner = self._definition.structs[kind.base]
                if kind.is_array:
                    kept = [each for each in value if self._struct(each, inner)]
                    setattr(item, field.attribute, kept)
                else:
                    self._struct(value, inner)
                continue
            if kind.base != "string":
                continue
            named = self._kind_of(field.attribute, field.entity_type, item)
            if named is None:
                continue
            if kind.is_array:
                changed = [self._change(named, each) for each in value]
                setattr(item, field.attribute, [each for each in changed if each is not None])
            else:
                name = self._change(named, value)
                if name is None:
                    is_shown = False
                else:
                    setattr(item, field.attribute, name)
        return is_shown

    def _kind_of(self, attribute: str, entity_type: str | None, item: Any) -> str | None:
        if entity_type in KINDS:
            return entity_type
        if attribute in UNTYPED:
            return UNTYPED[attribute]
        if attribute in RESOURCE_TYPES:
            return RESOURCE_KINDS.get(getattr(item, RESOURCE_TYPES[attribute], 0))
        if attribute in REGEX_FIELDS:
            return REGEX_FIELDS[attribute]
        if self._coordinator_kind is not None and attribute in ("key", "coordinator_keys"):
            return self._coordinator_kind
        return None


def _hook_of(changes_of: Callable[[ClientRequest], tuple[Change, Change]], *, refuses_acls: bool) -> Hook:
    """Return a hook that renames between clients and cluster, in requests and in responses.

    `changes_of` returns two functions: one renames for the request, the other for its response.
    """

    def on_request(request: ClientRequest) -> None:
        if refuses_acls and request.key in ACL_APIS:
            raise Refused("CLUSTER_AUTHORIZATION_FAILED", "tenants of the gateway have no ACLs")
        Renaming(request.message, request.version, changes_of(request)[0], _coordinator_kind(request))

    def on_response(request: ClientRequest, response: Any) -> None:
        Renaming(response, request.version, changes_of(request)[1], _coordinator_kind(request))

    return Hook(apis=_naming_apis(), on_request=on_request, on_response=on_response)


def _coordinator_kind(request: ClientRequest) -> str | None:
    if request.key != ApiKey.FIND_COORDINATOR:
        return None
    return COORDINATOR_KINDS.get(request.message.key_type)


@cache
def _naming_apis() -> tuple[str, ...]:
    """Return the APIs with names of topics, groups or transactional ids in their requests or responses."""
    found = []
    for key, api in API_TABLE.items():
        specs = [
            spec
            for part in ("Request", "Response")
            for definition in [definition_of(api.name + part)]
            for spec in (definition.root, *definition.structs.values())
        ]
        fields = [field for spec in specs for field in spec.fields]
        if key == ApiKey.FIND_COORDINATOR or any(
            field.entity_type in KINDS or field.attribute in (*RESOURCE_TYPES, *UNTYPED, *REGEX_FIELDS)
            for field in fields
        ):
            found.append(api.name)
    return tuple(found)


def renamed_topics(names: Mapping[str, str]) -> Hook:
    """Return a hook that lets clients use other names for topics than the cluster.

    Args:
        names: a dict from the topic name that clients use to the topic name in the cluster. If clients use a
            cluster topic's own name for another topic, the cluster topic is hidden from them.

    Raises:
        ConfigError: two names stand for the same topic, or one is not a valid name.
    """
    back = {there: here for here, there in names.items()}
    if len(back) != len(names):
        raise ConfigError("renamed_topics: two names stand for the same topic of the cluster")
    for name in (*names, *back):
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name):
            raise ConfigError(f"renamed_topics: {name!r} is not the name of a topic")

    def to_cluster(kind: str, name: str) -> str | None:
        if kind == TOPIC_REGEX:
            return _widened(name, names)
        return names.get(name, name) if kind == TOPIC else name

    def to_client(kind: str, name: str) -> str | None:
        if kind == TOPIC_REGEX:
            return _narrowed(name, back)
        if kind != TOPIC:
            return name
        found = back.get(name)
        if found is not None:
            return found
        return None if name in names else name

    return _hook_of(lambda _: (to_cluster, to_client), refuses_acls=False)


def _widened(regex: str, names: Mapping[str, str]) -> str:
    """Return a client's topic `regex` in a form for the cluster, which also matches renamed topics.

    Topics whose client names match `regex` are added by their names in the cluster.
    """
    try:
        matches = compile_pattern(regex)
        found = [there for here, there in names.items() if matches(here)]
    except PatternError:
        return regex  # the cluster says what is wrong with it
    return "|".join([f"(?:{regex})", *map(re.escape, found)]) if found else regex


def _narrowed(regex: str, back: Mapping[str, str]) -> str:
    """Undo `_widened`: return the client's original expression. Other expressions are returned unchanged."""
    kept, *added = regex.rsplit(")|", 1)
    is_ours = added and all(each.replace("\\", "") in back for each in added[0].split("|"))
    return kept.removeprefix("(?:") if is_ours else regex


def tenant(prefix: str | Callable[[ClientRequest], str]) -> Hook:
    """Return a hook that gives clients their own namespace of topics, groups and transactional ids.

    In the cluster all these names begin with the prefix. The gateway adds and removes the prefix, and leaves
    names without it out of responses. ACLs are refused with CLUSTER_AUTHORIZATION_FAILED (31).

    Args:
        prefix: the prefix, or a function that returns the prefix for a request, for example by its `client`.

    Raises:
        ConfigError: the prefix has characters that names of topics cannot have.
    """
    fixed = _checked_prefix(prefix) if isinstance(prefix, str) else None

    def changes_of(request: ClientRequest) -> tuple[Change, Change]:
        begin = fixed if isinstance(prefix, str) else _checked_prefix(prefix(request))
        assert begin is not None

        def to_cluster(kind: str, name: str) -> str | None:
            return f"{re.escape(begin)}(?:{name})" if kind in REGEX_KINDS else begin + name

        def to_client(kind: str, name: str) -> str | None:
            if kind in REGEX_KINDS:
                return name.removeprefix(f"{re.escape(begin)}(?:").removesuffix(")")
            return name[len(begin) :] if name.startswith(begin) else None

        return to_cluster, to_client

    return _hook_of(changes_of, refuses_acls=True)


def _checked_prefix(prefix: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", prefix):
        raise ConfigError(f"tenant: {prefix!r} cannot begin names of topics")
    return prefix
