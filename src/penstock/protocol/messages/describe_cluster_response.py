"""DescribeClusterResponse (key 60), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeClusterResponse(Message):
    """DescribeClusterResponse (key 60), versions 0 to 2, flexible from version 0 on."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "endpoint_type",
        "cluster_id",
        "controller_id",
        "brokers",
        "cluster_authorized_operations",
    )

    NAME = "DescribeClusterResponse"
    API_KEY = 60
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] | None = None,
        cluster_authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is None else brokers
        self.cluster_authorized_operations = cluster_authorized_operations
        self.unknown_tags = unknown_tags


class DescribeClusterBroker(Struct):
    """An element of `brokers` in DescribeClusterResponse, versions 0 to 2."""

    __slots__ = ("broker_id", "host", "port", "rack", "is_fenced")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced
        self.unknown_tags = unknown_tags
