"""BrokerRegistrationRequest (key 62), versions 0 to 4, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class BrokerRegistrationRequest(Message):
    """BrokerRegistrationRequest (key 62), versions 0 to 4, flexible from version 0 on."""

    __slots__ = (
        "broker_id",
        "cluster_id",
        "incarnation_id",
        "listeners",
        "features",
        "rack",
        "is_migrating_zk_broker",
        "log_dirs",
        "previous_broker_epoch",
    )

    NAME = "BrokerRegistrationRequest"
    API_KEY = 62
    VERSIONS = (0, 4)

    def __init__(
        self,
        *,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: bytes = bytes(16),
        listeners: list[Listener] | None = None,
        features: list[Feature] | None = None,
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,
        log_dirs: list[bytes] | None = None,
        previous_broker_epoch: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.incarnation_id = incarnation_id
        self.listeners = [] if listeners is None else listeners
        self.features = [] if features is None else features
        self.rack = rack
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.log_dirs = [] if log_dirs is None else log_dirs
        self.previous_broker_epoch = previous_broker_epoch
        self.unknown_tags = unknown_tags


class Listener(Struct):
    """An element of `listeners` in BrokerRegistrationRequest, versions 0 to 4."""

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


class Feature(Struct):
    """An element of `features` in BrokerRegistrationRequest, versions 0 to 4."""

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
