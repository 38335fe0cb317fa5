"""Entities of client quotas: the users, client ids and addresses that a quota applies to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from penstock.common.listening.addresses import canonical_address

IP = "ip"

Entity = tuple[tuple[str, str | None], ...]
"""The (type, name) pairs of a quota entity, sorted by type. The name None means the default entity: all
users, client ids or addresses without a quota of their own."""


class PartitionsCharge(Protocol):
    """The interface that counts the partitions that one request creates or deletes against a quota."""

    delay_s: float
    """The seconds for which the client must be throttled, because its quota is exceeded."""

    def take(self, partitions: int) -> None:
        """Count the partitions of one topic that the request creates or deletes.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED (89).
        """


def entity_of(parts: Mapping[str, str | None]) -> Entity:
    """Return the quota entity for names by entity type; IP addresses get their canonical form."""
    return tuple(
        sorted(
            (kind, canonical_address(name) if kind == IP and name else name) for kind, name in parts.items()
        )
    )
