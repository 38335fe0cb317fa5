"""Messages inside messages: metadata of group members, and records of Kafka's internal topics.

The protocol does not define these bytes, so their kind is inferred; bytes that cannot be decoded as such a
message are left unchanged.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import cache
from typing import Any

from penstock.errors import PenstockError
from penstock.explorer.lines import message_class
from penstock.protocol.codec import codec_for
from penstock.protocol.inspect.json_form import to_json
from penstock.protocol.inspect.version_prefix import read_leading
from penstock.protocol.message import Message
from penstock.protocol.message_index import HOMES

_SUBSCRIPTION, _ASSIGNMENT = "ConsumerProtocolSubscription", "ConsumerProtocolAssignment"

_CARRIERS: dict[str, list[tuple[tuple[str, ...], str]]] = {
    "JoinGroupRequest": [(("protocols", "metadata"), _SUBSCRIPTION)],
    "JoinGroupResponse": [(("members", "metadata"), _SUBSCRIPTION)],
    "SyncGroupRequest": [(("assignments", "assignment"), _ASSIGNMENT)],
    "SyncGroupResponse": [(("assignment",), _ASSIGNMENT)],
    "DescribeGroupsResponse": [
        (("groups", "members", "member_metadata"), _SUBSCRIPTION),
        (("groups", "members", "member_assignment"), _ASSIGNMENT),
    ],
}
"""A dict from a message's name to the paths of its bytes fields that contain a message of a group member,
each with that message's name.

A path is a sequence of attributes, beginning at the top of the message.
"""

_TOPICS = {
    "ProduceRequest": ("topic_data", "name", "topicData"),
    "FetchResponse": ("responses", "topic", "responses"),
}
"""A dict from each message with records to (its attribute with the topics, a topic's attribute with the name
or id, the name of the topics in JSON).
"""

_GROUPS, _TRANSACTIONS, _SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"


def unpack_bytes(message: Message) -> dict[str, dict[str, Any]]:
    """Return a dict from paths of bytes fields to the messages in them: name, version and JSON form."""
    found = {}
    for steps, name in _CARRIERS.get(message.NAME, ()):
        for path, data in _fields(message, steps, ""):
            inner = _read(name, data) if data else None
            if inner is not None:
                found[path] = inner
    return found


def unpack_internal_topics(message: Message, records: dict[str, Any]) -> None:
    """Replace keys and values in `records` by decoded messages, for records of Kafka's internal topics."""
    if message.NAME not in _TOPICS:
        return
    topics, name, shown = _TOPICS[message.NAME]
    for index, topic in enumerate(getattr(message, topics)):
        kinds = _kinds(getattr(topic, name))
        if not kinds:
            continue
        for path, batches in records.items():
            if path.startswith(f"{shown}[{index}]."):
                for batch in batches:
                    if not batch.get("isControl"):
                        for record in batch.get("records", ()):
                            _unpack_record(record, kinds)


def _unpack_record(record: dict[str, Any], kinds: dict[int, str]) -> None:
    key = _bytes(record, "key")
    stem = kinds.get(int.from_bytes(key[:2], "big")) if key and len(key) >= 2 else None
    if key is None or stem is None:
        return
    inner = _read(stem + "Key", key)
    if inner is None:
        return
    _replace(record, "key", inner)
    value = _bytes(record, "value")
    inner = _read(stem + "Value", value) if value else None
    if inner is not None:
        _replace(record, "value", inner)


def _read(name: str, data: bytes) -> dict[str, Any] | None:
    """Decode a message from bytes that begin with its version; a newer version is read as the newest."""
    found = message_class(name)
    try:
        said, position = read_leading(found, data)
        version = found.VERSIONS[0] if said is None else min(said, found.VERSIONS[1])
        message, end = codec_for(found, version).decode(data, position)
        if end != len(data) and said in (None, version):
            return None
        return {"name": name, "version": version if said is None else said, "json": to_json(message, version)}
    except PenstockError:
        return None


def _fields(struct: Any, steps: tuple[str, ...], path: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield (path, bytes) of every bytes field that is reached through the attributes `steps`."""
    first, *rest = steps
    words = first.split("_")
    here = f"{path}.{words[0]}{''.join(map(str.capitalize, words[1:]))}".lstrip(".")
    value = getattr(struct, first)
    if not rest:
        yield here, value
        return
    for index, each in enumerate(value):
        yield from _fields(each, tuple(rest), f"{here}[{index}]")


@cache
def _kinds(topic: str | None) -> dict[int, str]:
    """Return the record types of an internal topic, by the number at the beginning of the key.

    The names of types are those of Kafka's definitions, without "Key".
    """
    if topic not in (_GROUPS, _TRANSACTIONS, _SHARES):
        return {}
    found = {}
    for name in HOMES:
        stem = name.removesuffix("Key")
        if stem != name and _home(stem) == topic:
            found[message_class(name).API_KEY or 0] = stem
    return found


def _home(stem: str) -> str:
    """Return the name of the internal topic whose records have the type `stem`."""
    if stem == "TransactionLog":
        return _TRANSACTIONS
    return _SHARES if stem in ("ShareSnapshot", "ShareUpdate") else _GROUPS


def _bytes(record: dict[str, Any], name: str) -> bytes | None:
    if f"{name}Base64" in record:
        return base64.b64decode(record[f"{name}Base64"])
    text = record.get(name)
    return None if text is None else str(text).encode()


def _replace(record: dict[str, Any], name: str, inner: dict[str, Any]) -> None:
    """Replace bytes in a record's JSON form by a decoded message; members keep their order."""
    items = [(name if key in (name, f"{name}Base64") else key, value) for key, value in record.items()]
    record.clear()
    record.update((key, inner if key == name else value) for key, value in items)
