"""The content of a request, which a replay compares to find the same request in the recording."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.common.suggestions import short_repr
from penstock.errors import CorruptRecordError
from penstock.protocol.message import Message
from penstock.testing.replay.walking import fields_of, layout_of, rows_of

IGNORED = frozenset(
    (
        # epochs and ids that the cluster has given
        *("current_leader_epoch", "leader_epoch", "last_fetched_epoch", "committed_leader_epoch"),
        *("producer_id", "producer_epoch", "member_id", "member_epoch", "generation_id"),
        *(
            "generation_id_or_member_epoch",
            "session_id",
            "session_epoch",
            "replica_epoch",
            "share_session_epoch",
        ),
        # how long and how much, which settings of the client decide
        *("max_wait_ms", "min_bytes", "max_bytes", "partition_max_bytes", "retention_time_ms", "max_records"),
        # what the client is called, why it does something, and secrets
        *("client_software_name", "client_software_version", "reason", "auth_bytes"),
        # what members of a group say to each other, and how far they have come
        *("metadata", "assignments", "committed_offset", "committed_metadata"),
        "client_instance_id",
    )
)
"""Names of request fields that are not compared. Fields whose names end in ``timeout_ms`` are not compared
either."""


class Content(NamedTuple):
    """The parts of a request that are compared: two requests with equal contents are the same request."""

    api_key: int
    version: int
    parts: tuple[Any, ...]


def content_of(message: Message, version: int) -> Content:
    """Return the content of a request: its fields without those in `IGNORED`, with lists sorted.

    Timestamps count only if they are special values (below 0). Records count with key, value and headers.
    """
    return Content(int(message.API_KEY or 0), version, _struct(layout_of(message, version), message))


def _struct(layout: Any, struct: Any) -> tuple[Any, ...]:
    parts: list[tuple[str, Any]] = []
    for field in fields_of(layout):
        name = field.attribute
        if name in IGNORED or name.endswith("timeout_ms"):
            continue
        value = getattr(struct, name)
        if value is None:
            parts.append((name, None))
        elif field.layout is not None:
            inner = field.layout
            each = [_struct(inner, one) for one in (value if field.is_array else (value,))]
            parts.append((name, tuple(sorted(each, key=repr))))
        elif field.holds_records:
            parts.append((name, _records(value)))
        elif field.is_array:
            parts.append((name, tuple(sorted(value, key=repr))))
        elif name == "timestamp":
            parts.append((name, value if value < 0 else "a time"))
        else:
            parts.append((name, bytes(value) if isinstance(value, memoryview) else value))
    return tuple(parts)


def _records(data: Any) -> Any:
    try:
        return tuple((row.key, row.value, tuple(row.headers)) for row in rows_of(data))
    except CorruptRecordError:
        return bytes(data)


def first_difference(asked: tuple[Any, ...], recorded: tuple[Any, ...], path: str = "") -> str:
    """Describe the first difference between two contents of one API, as ``groupId: 'a', recorded is 'b'``."""
    for (name, one), (_, other) in zip(asked, recorded, strict=False):
        if one == other:
            continue
        here = f"{path}.{name}".lstrip(".")
        if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
            for index, (left, right) in enumerate(zip(one, other, strict=True)):
                if left != right and _is_struct(left) and _is_struct(right):
                    return first_difference(left, right, f"{here}[{index}]")
        return f"{here} is {short_repr(one)}, recorded is {short_repr(other)}"
    return "nothing differs"


def _is_struct(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str) for each in value
    )
