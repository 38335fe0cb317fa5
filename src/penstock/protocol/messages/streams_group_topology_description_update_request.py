"""StreamsGroupTopologyDescriptionUpdateRequest (key 93), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class StreamsGroupTopologyDescriptionUpdateRequest(Message):
    """StreamsGroupTopologyDescriptionUpdateRequest (key 93), version 0, flexible from version 0 on."""

    __slots__ = ("group_id", "member_id", "topology_epoch", "topology_description")

    NAME = "StreamsGroupTopologyDescriptionUpdateRequest"
    API_KEY = 93
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        topology_epoch: int = 0,
        topology_description: TopologyDescription | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.topology_epoch = topology_epoch
        self.topology_description = (
            TopologyDescription() if topology_description is None else topology_description
        )
        self.unknown_tags = unknown_tags


class TopologyDescription(Struct):
    """The value of `topology_description` in StreamsGroupTopologyDescriptionUpdateRequest, version 0."""

    __slots__ = ("subtopologies", "global_stores")

    def __init__(
        self,
        *,
        subtopologies: list[TopologyDescriptionSubtopology] | None = None,
        global_stores: list[TopologyDescriptionGlobalStore] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.subtopologies = [] if subtopologies is None else subtopologies
        self.global_stores = [] if global_stores is None else global_stores
        self.unknown_tags = unknown_tags


class TopologyDescriptionSubtopology(Struct):
    """A struct in StreamsGroupTopologyDescriptionUpdateRequest, version 0."""

    __slots__ = ("subtopology_id", "nodes")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        nodes: list[TopologyDescriptionNode] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.nodes = [] if nodes is None else nodes
        self.unknown_tags = unknown_tags


class TopologyDescriptionGlobalStore(Struct):
    """A struct in StreamsGroupTopologyDescriptionUpdateRequest, version 0."""

    __slots__ = ("source", "processor")

    def __init__(
        self,
        *,
        source: TopologyDescriptionNode | None = None,
        processor: TopologyDescriptionNode | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.source = TopologyDescriptionNode() if source is None else source
        self.processor = TopologyDescriptionNode() if processor is None else processor
        self.unknown_tags = unknown_tags


class TopologyDescriptionNode(Struct):
    """A struct in StreamsGroupTopologyDescriptionUpdateRequest, version 0."""

    __slots__ = ("name", "node_type", "source_topics", "sink_topic", "stores", "successors")

    def __init__(
        self,
        *,
        name: str = "",
        node_type: int = 0,
        source_topics: list[str] | None = None,
        sink_topic: str | None = None,
        stores: list[str] | None = None,
        successors: list[str] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.name = name
        self.node_type = node_type
        self.source_topics = [] if source_topics is None else source_topics
        self.sink_topic = sink_topic
        self.stores = [] if stores is None else stores
        self.successors = [] if successors is None else successors
        self.unknown_tags = unknown_tags
