"""ZkMigrationStateRecord (key 21), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ZkMigrationStateRecord(Message):
    """ZkMigrationStateRecord (key 21), version 0, flexible from version 0 on."""

    __slots__ = ("zk_migration_state",)

    NAME = "ZkMigrationStateRecord"
    API_KEY = 21
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        zk_migration_state: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.zk_migration_state = zk_migration_state
        self.unknown_tags = unknown_tags
