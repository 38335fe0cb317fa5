"""Checks that all handlers of share group requests use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.handlers.api_versions import SHARES_SINCE
from penstock.broker.metadata.image import share_level
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

NOT_OFFERED = "The cluster does not have share groups (KIP-932): its share.version is 0."

PATIENCE_S = 10.0
"""The seconds for which a response waits for the share coordinator, whose own timeout is shorter."""


def has_share_groups(context: Context[ServingNode]) -> bool:
    """Return True if share groups are on: `share.version` is above 0, and the release is 4.2 or later."""
    node = context.node
    if not node.config.behaves_since(*SHARES_SINCE):
        return False
    return share_level(node.cluster.features) > 0


def open_group(group_id: str, context: Context[ServingNode]) -> None:
    """Read the stored state of a group, and remove members whose sessions have expired.

    Raises:
        KafkaError: UNSUPPORTED_VERSION (35), share groups are off; INVALID_GROUP_ID (24), the id is empty;
        NOT_COORDINATOR (16).
    """
    if not has_share_groups(context):
        raise error_for(ErrorCode.UNSUPPORTED_VERSION, NOT_OFFERED)
    if not group_id:
        raise error_for(ErrorCode.INVALID_GROUP_ID, "a group needs an id")
    context.node.groups.open(group_id)
    context.node.groups.settle(context.now)


def late() -> KafkaError:
    """Return the error for a request that the share coordinator has not answered in time."""
    return error_for(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the share coordinator has not answered")
