"""The exception for refused requests, and the replacement of error codes that an older client does not have.

An error code that is newer than the client is replaced by the code that brokers of the client's release
returned in the same case. A retriable code is replaced by a retriable one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.protocol.codec import codec_for
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.error_history import highest_error
from penstock.protocol.releases import RELEASES

if TYPE_CHECKING:
    from penstock.protocol.message import Message
    from penstock.protocol.schema.definition import StructSpec

ALWAYS_PASSED = 44
"""The highest error code that is never replaced. Brokers of 0.9 to 0.10.2 sent these codes to older clients,
too."""

OLDER = {
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.LISTENER_NOT_FOUND: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.OFFSET_NOT_AVAILABLE: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.MEMBER_ID_REQUIRED: ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID: ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.INVALID_RECORD: ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNSTABLE_OFFSET_COMMIT: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_ID: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INCONSISTENT_TOPIC_ID: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_MEMBER_EPOCH: ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.STALE_MEMBER_EPOCH: ErrorCode.ILLEGAL_GENERATION,
}
"""A dict from newer error codes to the older codes that replace them. Newer codes not in the dict become 7
(REQUEST_TIMED_OUT) if they are retriable, else -1.
"""


class NotForwarded(PenstockError):
    """The gateway does not forward or translate a request. The message is the reason.

    The gateway then answers UNSUPPORTED_VERSION (35), or closes the connection if the response has no error
    field.
    """


@cache
def highest_code(api_key: int, version: int) -> int:
    """Return the highest error code that a client of this API version supports.

    The client is assumed to have the last Kafka release in which `version` was the API's newest.
    """
    codes = [
        highest_error(release.numbers)
        for release in RELEASES.values()
        if api_key in release.apis and release.apis[api_key].highest == version
    ]
    return max([ALWAYS_PASSED, *codes])


def older_code(code: int, highest: int) -> int:
    """Return `code`, or an older code to replace it if a client supports only codes up to `highest`."""
    if code <= highest:
        return code
    try:
        known = ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    kept = OLDER.get(known, known)
    if kept <= highest:
        return kept
    return ErrorCode.REQUEST_TIMED_OUT if known.retriable else ErrorCode.UNKNOWN_SERVER_ERROR


def replace_codes(response: Message, version: int) -> None:
    """Replace the error codes in a response that clients with this API version do not support."""
    assert response.API_KEY is not None
    highest = highest_code(response.API_KEY, version)
    layout = codec_for(type(response), version).layout
    _replace(response, layout.spec, layout.structs, version, highest)


def _replace(struct: Any, spec: StructSpec, structs: dict[str, StructSpec], version: int, high: int) -> None:
    for field in spec.fields:
        if version not in field.versions:
            continue
        field_type = field.type_at(version)
        if field.attribute.endswith("error_code"):
            setattr(struct, field.attribute, older_code(getattr(struct, field.attribute), high))
        elif field_type.is_struct:
            value = getattr(struct, field.attribute)
            for each in (value or ()) if field_type.is_array else (value,):
                if each is not None:
                    _replace(each, structs[field_type.base], structs, version, high)
