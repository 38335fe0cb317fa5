"""Exceptions for error codes of a group's coordinator, whose messages explain the cause and give advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.client.group.requests import MemberSettings


def explain(code: int, settings: MemberSettings) -> KafkaError:
    """Return the exception for an error code of JoinGroup, SyncGroup or Heartbeat that is not retried."""
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


def explain_heartbeat(code: int, settings: MemberSettings, detail: str | None = None) -> KafkaError:
    """Return the exception for an error code of ConsumerGroupHeartbeat (KIP-848) that is not retried.

    `detail` is the broker's error message.
    """
    group = f"group {settings.group_id!r}"
    advice = {
        ErrorCode.GROUP_ID_NOT_FOUND: (
            f"{group} has members of the classic protocol, or is not one of consumers: stop these members, "
            "or set group.protocol to classic or auto"
        ),
        ErrorCode.UNSUPPORTED_VERSION: (
            f"{group}: the cluster does not have the consumer group protocol of KIP-848 (its group.version "
            "is 0): set group.protocol to classic or auto"
        ),
        ErrorCode.UNSUPPORTED_ASSIGNOR: (
            f"{group}: the broker does not have the assignor {settings.remote_assignor!r} of "
            "group.remote.assignor among its group.consumer.assignors"
        ),
        ErrorCode.INVALID_REGULAR_EXPRESSION: (
            f"{group}: the broker cannot read the pattern that is subscribed to: give a compiled pattern, "
            "which this client matches, or write it in the syntax of RE2"
        ),
        ErrorCode.UNRELEASED_INSTANCE_ID: (
            f"{group}: a living member has the group.instance.id {settings.group_instance_id!r}; if it has "
            "died, its session ends soon"
        ),
        ErrorCode.GROUP_MAX_SIZE_REACHED: (
            f"{group} has as many members as the broker's group.consumer.max.size allows: stop another "
            "member first"
        ),
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: (
            f"{group}: this client may not subscribe to all of its topics; an ACL has to allow DESCRIBE and "
            "READ on each"
        ),
    }
    text = advice.get(ErrorCode(code)) if code in ErrorCode._value2member_map_ else None
    plain = explain(code, settings)
    reason = f"; the broker says: {detail}" if detail else ""
    return type(plain)(plain.code, plain.name, f"{text or plain}{reason}", retriable=plain.retriable)


def explain_commit(code: int, group_id: str, broker: object = None) -> KafkaError:
    """Return the exception for an error code of OffsetCommit. `broker` is the address of the broker."""
    group = f"group {group_id!r}"
    gone = (
        f"committing for {group}: the group has gone on without this member, and its partitions may belong "
        "to others by now; what was not committed is handed out again. If this happens often, poll more "
        "often, or raise max.poll.interval.ms"
    )
    advice = {
        ErrorCode.UNKNOWN_MEMBER_ID: gone,
        ErrorCode.ILLEGAL_GENERATION: gone,
        ErrorCode.STALE_MEMBER_EPOCH: gone,
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
