"""BrokerRegistrationChangeRecord (key 17), versions 0 to 3, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class BrokerRegistrationChangeRecord(Message):
    """BrokerRegistrationChangeRecord (key 17), versions 0 to 3, flexible from version 0 on."""

    __slots__ = (
        "broker_id",
        "broker_epoch",
        "fenced",
        "in_controlled_shutdown",
        "log_dirs",
        "cordoned_log_dirs",
    )

    NAME = "BrokerRegistrationChangeRecord"
    API_KEY = 17
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: list[bytes] | None = None,
        cordoned_log_dirs: list[bytes] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is None else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
        self.unknown_tags = unknown_tags
