"""DescribeUserScramCredentialsRequest (key 50), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeUserScramCredentialsRequest(Message):
    """DescribeUserScramCredentialsRequest (key 50), version 0, flexible from version 0 on."""

    __slots__ = ("users",)

    NAME = "DescribeUserScramCredentialsRequest"
    API_KEY = 50
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        users: list[UserName] | tuple[()] | None = (),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.users: list[UserName] | None = [] if isinstance(users, tuple) else users
        self.unknown_tags = unknown_tags


class UserName(Struct):
    """An element of `users` in DescribeUserScramCredentialsRequest, version 0."""

    __slots__ = ("name",)

    def __init__(
        self,
        *,
        name: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.unknown_tags = unknown_tags
