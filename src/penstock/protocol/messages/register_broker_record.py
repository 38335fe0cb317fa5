"""RegisterBrokerRecord (key 0), versions 0 to 4, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class RegisterBrokerRecord(Message):
    """RegisterBrokerRecord (key 0), versions 0 to 4, flexible from version 0 on."""

    __slots__ = (
        "broker_id",
        "is_migrating_zk_broker",
        "incarnation_id",
        "broker_epoch",
        "end_points",
        "features",
        "rack",
        "fenced",
        "in_controlled_shutdown",
        "log_dirs",
        "cordoned_log_dirs",
    )

    NAME = "RegisterBrokerRecord"
    API_KEY = 0
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        broker_id: int = 0,
        is_migrating_zk_broker: bool = False,
        incarnation_id: bytes = bytes(16),
        broker_epoch: int = 0,
        end_points: list[BrokerEndpoint] | None = None,
        features: list[BrokerFeature] | None = None,
        rack: str | None = "",
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: list[bytes] | None = None,
        cordoned_log_dirs: list[bytes] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.broker_id = broker_id
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.incarnation_id = incarnation_id
        self.broker_epoch = broker_epoch
        self.end_points = [] if end_points is None else end_points
        self.features = [] if features is None else features
        self.rack = rack
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is None else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
        self.unknown_tags = unknown_tags


class BrokerEndpoint(Struct):
    """An element of `end_points` in RegisterBrokerRecord, versions 0 to 4."""

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


class BrokerFeature(Struct):
    """An element of `features` in RegisterBrokerRecord, versions 0 to 4."""

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
