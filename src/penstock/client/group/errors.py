"""The errors for refusals of the coordinator: what they mean for the application, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.client.group.requests import MemberSettings


def explain(code: int, settings: MemberSettings) -> KafkaError:
    """The error for a JoinGroup, SyncGroup or Heartbeat that was refused for good."""
    group = f"group {settings.group_id!r}"
    advice = {
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
            f"{group}: no assignor of partition.assignment.strategy is supported by every other member, or "
            "the group is not one of consumers"
        ),
        ErrorCode.INVALID_GROUP_ID: f"group.id {settings.group_id!r} is not allowed by the broker",
        ErrorCode.INVALID_SESSION_TIMEOUT: (
            f"{group}: session.timeout.ms = {settings.session_timeout_ms:g} is outside what the broker "
            "allows (its group.min.session.timeout.ms to group.max.session.timeout.ms)"
        ),
        ErrorCode.GROUP_AUTHORIZATION_FAILED: (
            f"{group}: this client may not read as a member of it; an ACL has to allow READ on the group"
        ),
        ErrorCode.GROUP_MAX_SIZE_REACHED: (
            f"{group} has as many members as the broker's group.max.size allows: stop another member first"
        ),
        ErrorCode.FENCED_INSTANCE_ID: (
            f"{group}: another consumer has joined with the same group.instance.id "
            f"{settings.group_instance_id!r}: give every consumer one of its own"
        ),
    }
    plain = error_for(code, group)
    text = advice.get(ErrorCode(code)) if code in ErrorCode._value2member_map_ else None
    return type(plain)(plain.code, plain.name, text, retriable=plain.retriable) if text else plain


def explain_commit(code: int, group_id: str, broker: object = None) -> KafkaError:
    """The error for an OffsetCommit that was refused, by `broker`."""
    group = f"group {group_id!r}"
    gone = (
        f"committing for {group}: the group has gone on without this member, and its partitions may belong "
        "to others by now; what was not committed is handed out again. If this happens often, poll more "
        "often, or raise max.poll.interval.ms"
    )
    advice = {
        ErrorCode.UNKNOWN_MEMBER_ID: gone,
        ErrorCode.ILLEGAL_GENERATION: gone,
        ErrorCode.FENCED_INSTANCE_ID: (
            f"committing for {group}: another consumer has joined with the same group.instance.id"
        ),
        ErrorCode.REBALANCE_IN_PROGRESS: (
            f"committing for {group}: the group is rebalancing; poll, then commit again"
        ),
        ErrorCode.OFFSET_METADATA_TOO_LARGE: (
            f"committing for {group}: the metadata is longer than the broker's offset.metadata.max.bytes"
        ),
    }
    plain = error_for(code, f"committing for {group}" + (f", at broker {broker}" if broker else ""))
    text = advice.get(ErrorCode(code)) if code in ErrorCode._value2member_map_ else None
    # Partitions that are kept over a rebalance are still the member's when it has ended.
    is_passing = plain.retriable or code == ErrorCode.REBALANCE_IN_PROGRESS
    return type(plain)(plain.code, plain.name, text or str(plain), retriable=is_passing)
