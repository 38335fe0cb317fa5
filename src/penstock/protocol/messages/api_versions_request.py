"""ApiVersionsRequest (key 18), versions 0 to 5, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ApiVersionsRequest(Message):
    """ApiVersionsRequest (key 18), versions 0 to 5, flexible from version 3 on."""

    __slots__ = ("client_software_name", "client_software_version", "cluster_id", "node_id")

    NAME = "ApiVersionsRequest"
    API_KEY = 18
    VERSIONS = (0, 5)

    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
        cluster_id: str | None = None,
        node_id: int = -1,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version
        self.cluster_id = cluster_id
        self.node_id = node_id
        self.unknown_tags = unknown_tags
