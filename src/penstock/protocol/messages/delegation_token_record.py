"""DelegationTokenRecord (key 10), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class DelegationTokenRecord(Message):
    """DelegationTokenRecord (key 10), version 0, flexible from version 0 on."""

    __slots__ = (
        "owner",
        "requester",
        "renewers",
        "issue_timestamp",
        "max_timestamp",
        "expiration_timestamp",
        "token_id",
    )

    NAME = "DelegationTokenRecord"
    API_KEY = 10
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        owner: str = "",
        requester: str = "",
        renewers: list[str] | None = None,
        issue_timestamp: int = 0,
        max_timestamp: int = 0,
        expiration_timestamp: int = 0,
        token_id: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.owner = owner
        self.requester = requester
        self.renewers = [] if renewers is None else renewers
        self.issue_timestamp = issue_timestamp
        self.max_timestamp = max_timestamp
        self.expiration_timestamp = expiration_timestamp
        self.token_id = token_id
        self.unknown_tags = unknown_tags
