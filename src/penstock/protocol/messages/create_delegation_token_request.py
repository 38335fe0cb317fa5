"""CreateDelegationTokenRequest (key 38), versions 0 to 3, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class CreateDelegationTokenRequest(Message):
    """CreateDelegationTokenRequest (key 38), versions 0 to 3, flexible from version 2 on."""

    __slots__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms")

    NAME = "CreateDelegationTokenRequest"
    API_KEY = 38
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreatableRenewers] | None = None,
        max_lifetime_ms: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = [] if renewers is None else renewers
        self.max_lifetime_ms = max_lifetime_ms
        self.unknown_tags = unknown_tags


class CreatableRenewers(Struct):
    """An element of `renewers` in CreateDelegationTokenRequest, versions 0 to 3."""

    __slots__ = ("principal_type", "principal_name")

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.unknown_tags = unknown_tags
