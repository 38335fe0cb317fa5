"""ShareGroupTargetAssignmentMetadataValue (key 12), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ShareGroupTargetAssignmentMetadataValue(Message):
    """ShareGroupTargetAssignmentMetadataValue (key 12), version 0, flexible from version 0 on."""

    __slots__ = ("assignment_epoch", "assignment_timestamp")

    NAME = "ShareGroupTargetAssignmentMetadataValue"
    API_KEY = 12
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
        self.unknown_tags = unknown_tags
