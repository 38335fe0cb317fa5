"""UpdateRaftVoterResponse (key 82), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import MadeLate, Message, Struct, UnknownTags


class UpdateRaftVoterResponse(Message):
    """UpdateRaftVoterResponse (key 82), version 0, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "_current_leader")

    current_leader = MadeLate(lambda: CurrentLeader())

    NAME = "UpdateRaftVoterResponse"
    API_KEY = 82
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: CurrentLeader | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self._current_leader = current_leader
        self.unknown_tags = unknown_tags


class CurrentLeader(Struct):
    """The value of `current_leader` in UpdateRaftVoterResponse, version 0."""

    __slots__ = ("leader_id", "leader_epoch", "host", "port")

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.host = host
        self.port = port
        self.unknown_tags = unknown_tags
