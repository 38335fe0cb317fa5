"""BrokerHeartbeatRequest (key 63), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class BrokerHeartbeatRequest(Message):
    """BrokerHeartbeatRequest (key 63), versions 0 to 2, flexible from version 0 on."""

    __slots__ = (
        "broker_id",
        "broker_epoch",
        "current_metadata_offset",
        "want_fence",
        "want_shut_down",
        "offline_log_dirs",
        "cordoned_log_dirs",
    )

    NAME = "BrokerHeartbeatRequest"
    API_KEY = 63
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: list[bytes] | None = None,
        cordoned_log_dirs: list[bytes] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.current_metadata_offset = current_metadata_offset
        self.want_fence = want_fence
        self.want_shut_down = want_shut_down
        self.offline_log_dirs = [] if offline_log_dirs is None else offline_log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
        self.unknown_tags = unknown_tags
