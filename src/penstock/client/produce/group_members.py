"""Finds the group member whose offsets are added to a transaction: a consumer's id and generation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.common.suggestions import short_repr
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.client.group.offsets import GroupMetadata


class GroupMember(Protocol):
    """A consumer with a ``group.id``, blocking or for asyncio."""

    def group_metadata(self) -> GroupMetadata:
        """Return the member's id and generation."""


def group_metadata_of(group: object) -> GroupMetadata:
    """Return the member id and generation of a consumer.

    Raises:
        ConfigError: `group` is no consumer.
    """
    if not hasattr(group, "group_metadata"):
        raise ConfigError(
            f"group is {short_repr(group)}: a consumer, its group_metadata() or the name of a group is needed"
        )
    metadata: GroupMetadata = group.group_metadata()
    return metadata
