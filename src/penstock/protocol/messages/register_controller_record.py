"""RegisterControllerRecord (key 27), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class RegisterControllerRecord(Message):
    """RegisterControllerRecord (key 27), version 0, flexible from version 0 on."""

    __slots__ = ("controller_id", "incarnation_id", "zk_migration_ready", "end_points", "features")

    NAME = "RegisterControllerRecord"
    API_KEY = 27
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: bytes = bytes(16),
        zk_migration_ready: bool = False,
        end_points: list[ControllerEndpoint] | None = None,
        features: list[ControllerFeature] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.end_points = [] if end_points is None else end_points
        self.features = [] if features is None else features
        self.unknown_tags = unknown_tags


class ControllerEndpoint(Struct):
    """An element of `end_points` in RegisterControllerRecord, version 0."""

    __slots__ = ("name", "host", "port", "security_protocol")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol
        self.unknown_tags = unknown_tags


class ControllerFeature(Struct):
    """An element of `features` in RegisterControllerRecord, version 0."""

    __slots__ = ("name", "min_supported_version", "max_supported_version")

    def __init__(
        self,
        *,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version
        self.unknown_tags = unknown_tags
