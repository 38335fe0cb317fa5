"""DescribeClusterRequest (key 60), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class DescribeClusterRequest(Message):
    """DescribeClusterRequest (key 60), versions 0 to 2, flexible from version 0 on."""

    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers")

    NAME = "DescribeClusterRequest"
    API_KEY = 60
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers
        self.unknown_tags = unknown_tags
