"""AlterReplicaLogDirsRequest (key 34), versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class AlterReplicaLogDirsRequest(Message):
    """AlterReplicaLogDirsRequest (key 34), versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("dirs",)

    NAME = "AlterReplicaLogDirsRequest"
    API_KEY = 34
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDir] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.dirs = [] if dirs is None else dirs
        self.unknown_tags = unknown_tags


class AlterReplicaLogDir(Struct):
    """An element of `dirs` in AlterReplicaLogDirsRequest, versions 0 to 2."""

    __slots__ = ("path", "topics")

    def __init__(
        self,
        *,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.path = path
        self.topics = [] if topics is None else topics
        self.unknown_tags = unknown_tags


class AlterReplicaLogDirTopic(Struct):
    """An element of `topics` in AlterReplicaLogDir (AlterReplicaLogDirsRequest), versions 0 to 2."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions
        self.unknown_tags = unknown_tags
