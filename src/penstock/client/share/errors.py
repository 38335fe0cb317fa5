"""Exceptions for error codes of share groups, whose messages explain the cause and give advice."""

from __future__ import annotations

from penstock.client.group.coordinator import NEEDS_SHARE_GROUPS
from penstock.errors import AuthorizationError, KafkaError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for


def explain_heartbeat(code: int, group_id: str, detail: str | None = None) -> KafkaError:
    """Return the exception for the error code of a ShareGroupHeartbeat that is not retried.

    `detail` is the broker's error message.
    """
    group = f"group {group_id!r}"
    advice = {
        ErrorCode.GROUP_ID_NOT_FOUND: (
            f"{group} is no share group, but one of another type: give the share consumers a group.id of "
            "their own, or delete the other group"
        ),
        ErrorCode.UNSUPPORTED_VERSION: f"{group}: {NEEDS_SHARE_GROUPS}",
        ErrorCode.INVALID_GROUP_ID: f"group.id {group_id!r} is not allowed by the broker",
        ErrorCode.GROUP_MAX_SIZE_REACHED: (
            f"{group} has as many members as the broker's group.share.max.size allows: stop another member "
            "first, or give this one more workers"
        ),
        ErrorCode.GROUP_AUTHORIZATION_FAILED: (
            f"{group}: this client may not read as a member of it; an ACL has to allow READ on the group"
        ),
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: (
            f"{group}: this client may not subscribe to all of its topics; an ACL has to allow DESCRIBE and "
            "READ on each"
        ),
    }
    plain = error_for(code, group)
    text = advice.get(ErrorCode(code)) if code in ErrorCode._value2member_map_ else None
    reason = f"; the broker says: {detail}" if detail else ""
    return type(plain)(plain.code, plain.name, f"{text or plain}{reason}", retriable=plain.retriable)


SESSION_CODES = frozenset(
    (
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    )
)
"""Error codes after which a new share session must be opened."""

MOVED_CODES = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )
)
"""Error codes of a partition that has moved to another leader: its locks are lost, and retries are
useless."""


def explain_acknowledgement(code: int, tp: TopicPartition, broker: object) -> KafkaError:
    """Return the exception for acknowledgements that a broker has refused, or that cannot be sent to it."""
    again = "the records come again, perhaps to another member"
    advice = {
        ErrorCode.INVALID_RECORD_STATE: (
            f"partition {tp}: the locks had run out or were lost before broker {broker} got the "
            f"acknowledgement, and {again}; acknowledge within the group's share.record.lock.duration.ms, "
            "or renew in time"
        ),
        ErrorCode.NOT_LEADER_OR_FOLLOWER: (
            f"partition {tp} has another leader than {broker}, which gave out the records: {again}"
        ),
        ErrorCode.SHARE_SESSION_NOT_FOUND: f"the share session with broker {broker} has ended: {again}",
        ErrorCode.INVALID_SHARE_SESSION_EPOCH: f"the share session with broker {broker} has ended: {again}",
    }
    plain = error_for(code, f"acknowledging records of {tp} at broker {broker}")
    text = advice.get(ErrorCode(code)) if code in ErrorCode._value2member_map_ else None
    if text is None or isinstance(plain, AuthorizationError):
        return plain
    return KafkaError(plain.code, plain.name, f"{text} ({plain.name})", retriable=plain.retriable)
