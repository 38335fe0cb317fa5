"""Chooses a consumer's group protocol, classic or KIP-848, from its option and its brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client.cluster.client import ANY_NODE, MAIN
from penstock.client.group.old_groups import check_groups, peer_for_groups
from penstock.errors import KafkaError, PenstockError, UnsupportedVersionError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.since import CONSUMER_GROUP_HEARTBEAT_OWN_IDS_SINCE

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.client.cluster.negotiation import NodeVersions

CLASSIC = "classic"
CONSUMER = "consumer"
AUTO = "auto"

GROUP_FEATURE = "group.version"


class ProtocolChoice:
    """The protocol of one consumer. ``auto`` takes KIP-848 if the brokers and the group allow it."""

    def __init__(self, client: AsyncClient, option: str) -> None:
        self._client = client
        self._option = option
        self.speaks_consumer = option == CONSUMER
        """True if the protocol is that of KIP-848. The value is valid after `decide`."""
        self._is_decided = option != AUTO
        self._has_switched = False
        """True if the protocol was switched since the consumer was last a member."""

    async def decide(self) -> None:
        """Ask a broker what it supports, and choose the protocol.

        Raises:
            UnsupportedVersionError: ``group.protocol`` names a protocol that the broker does not have.
            NetworkError: no broker answers.
        """
        versions = (await peer_for_groups(self._client, ANY_NODE, MAIN)).versions
        check_groups(versions)
        if not self._is_decided:
            self._is_decided = True
            self.speaks_consumer = has_consumer_groups(versions)
        elif self._option == CONSUMER and not has_consumer_groups(versions):
            raise UnsupportedVersionError(
                f"broker {versions.address} does not have the consumer group protocol (KIP-848), which needs "
                "Kafka 4.0 and group.version 1: set group.protocol to classic or auto"
            )

    def joined(self) -> None:
        """Record that the consumer has joined, which confirms the protocol."""
        self._has_switched = False

    def switches_after(self, error: PenstockError) -> bool:
        """Switch to the other protocol if `error` rules this one out; return True if it was switched.

        Only ``auto`` switches, and only once: if the group uses the other protocol, or if the coordinator
        does not support the current one.
        """
        if self._option != AUTO or self._has_switched:
            return False
        code = error.code if isinstance(error, KafkaError) else None
        if self.speaks_consumer:
            is_other = code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
            is_other = is_other or isinstance(error, UnsupportedVersionError)
        else:
            is_other = code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if is_other:
            self._has_switched = True
            self.speaks_consumer = not self.speaks_consumer
        return is_other


def has_consumer_groups(versions: NodeVersions) -> bool:
    """Return True if a broker supports KIP-848 consumer groups, and its cluster has enabled them."""
    return (
        versions.highest(ApiKey.CONSUMER_GROUP_HEARTBEAT) >= CONSUMER_GROUP_HEARTBEAT_OWN_IDS_SINCE
        and versions.features.get(GROUP_FEATURE, 0) >= 1
    )
