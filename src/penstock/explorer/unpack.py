"""Decodes record batches inside messages to plain objects, including the fields of their headers."""

from __future__ import annotations

import base64
import re
from typing import Any

from penstock.common.suggestions import short_repr
from penstock.errors import CorruptRecordError, EncodeError, PenstockError
from penstock.model import Record
from penstock.protocol.compiler.wire_type import StructLayout
from penstock.protocol.inspect.json_form import camel_case
from penstock.protocol.message import Struct
from penstock.protocol.schema.definition import snake_case
from penstock.records.batch import decode_batch, read_marker
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import read_header, split_batches, verify_crc
from penstock.records.legacy import read_message

DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024
"""The maximum decompressed bytes of one batch: a limit is acceptable, since the explorer only shows
records.
"""

TAG_MAX = 2**31 - 1
"""The highest number of a tagged field that Kafka reads."""

_STEP = re.compile(r"(\w+)|\[(\d+)\]", re.ASCII)

_MARKERS = {0: "abort", 1: "commit", 2: "leader change", 3: "snapshot header", 4: "snapshot footer"}


def unpack_records(
    layout: StructLayout,
    struct: Any,
    records: dict[str, Any],
    unknown_tags: dict[str, dict[int, bytes]],
    path: str = "",
) -> None:
    """Collect the record batches and the unknown tagged fields of a message, in dicts from path.

    An example of a path is ``topicData[0].partitionData[2].records``. `records` gets the batches of every
    records field, `unknown_tags` the tagged fields that the definition does not have; the path of the message
    itself is the empty string.
    """
    if struct.unknown_tags:
        unknown_tags[path] = struct.unknown_tags
    for placed in [*layout.fields, *(each for _, each in layout.tagged)]:
        value = getattr(struct, placed.spec.attribute)
        if value is None:
            continue
        here = f"{path}.{camel_case(placed.spec.name)}".lstrip(".")
        wire = placed.wire
        if wire.struct is None:
            if wire.holds_records:
                records[here] = batches(bytes(value))
        elif wire.is_array:
            for index, each in enumerate(value):
                unpack_records(wire.struct, each, records, unknown_tags, f"{here}[{index}]")
        else:
            unpack_records(wire.struct, value, records, unknown_tags, here)


def tags_from_json(source: object) -> dict[str, dict[int, bytes]]:
    """Return unknown tagged fields by the path of their struct, from JSON with tags as text, bytes as hex.

    Raises:
        EncodeError: the JSON has another form.
    """
    try:
        found = {
            path: {int(tag): bytes.fromhex(data) for tag, data in tags.items()}
            for path, tags in dict(source).items()  # type: ignore[call-overload]
        }
    except (TypeError, ValueError, AttributeError):
        raise EncodeError('unknownTags must have the form {"path": {"tag": "hex"}}') from None
    if any(not 0 <= tag <= TAG_MAX for tags in found.values() for tag in tags):
        raise EncodeError(f"unknownTags: a tag is a number from 0 to {TAG_MAX}")
    return found


def restore_unknown_tags(message: Any, tags: dict[str, dict[int, bytes]]) -> None:
    """Put unknown tagged fields back where `unpack_records` found them.

    A path leads through fields of structs only, and not to other attributes of the objects.

    Raises:
        EncodeError: a path does not lead to a struct.
    """
    for path, each in tags.items():
        struct = message
        try:
            for name, index in _STEP.findall(path):
                struct = _field(struct, snake_case(name)) if name else struct[int(index)]
        except (AttributeError, IndexError, TypeError, ValueError):
            struct = None
        if not isinstance(struct, Struct):
            raise EncodeError(f"unknownTags: there is no struct at {short_repr(path)}")
        struct.unknown_tags = each


def _field(struct: Any, attribute: str) -> Any:
    """Return the value of a struct's field, which may be decoded lazily: its slot then begins with ``_``."""
    if not isinstance(struct, Struct) or not {attribute, f"_{attribute}"}.intersection(struct.__slots__):
        raise AttributeError(attribute)
    return getattr(struct, attribute)


def batches(data: bytes) -> list[dict[str, Any]]:
    """Return the batches, and messages of magic 0 and 1, in a records field.

    Damaged data become an object with the member `error`.
    """
    found: list[dict[str, Any]] = []
    position = 0
    try:
        for start, end, magic in split_batches(data):
            found.append(_batch(data, start, end) if magic == 2 else _message(data, start, end, magic))
            position = end
    except CorruptRecordError as error:
        return [*found, {"error": str(error)}]
    if position < len(data):
        found.append({"partialBytes": len(data) - position})
    return found


def _batch(data: bytes, start: int, end: int) -> dict[str, Any]:
    header = read_header(data, start)
    shown: dict[str, Any] = {
        "magic": 2,
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "sizeInBytes": end - start,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "compression": _codec_name(header.codec),
        "timestampType": _timestamp_type(header.timestamp_type),
        "baseTimestamp": header.base_timestamp,
        "maxTimestamp": header.max_timestamp,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
    }
    try:
        verify_crc(data, start, end)
    except CorruptRecordError as error:
        shown["error"] = str(error)
    try:
        if header.is_control:
            kind, _ = read_marker(data, start, end)
            shown["marker"] = _MARKERS.get(kind, f"type {kind}") if header.record_count else "emptied"
        shown["records"] = _records(data, start, end)
    except PenstockError as error:
        shown.setdefault("error", str(error))
    return shown


def _message(data: bytes, start: int, end: int, magic: int) -> dict[str, Any]:
    shown: dict[str, Any] = {"magic": magic, "sizeInBytes": end - start}
    try:
        message = read_message(data, start, end)
        shown |= {"offset": message.offset, "compression": _codec_name(message.codec)}
        if magic:
            shown["timestampType"] = _timestamp_type(message.timestamp_type)
        shown["records"] = _records(data, start, end, verify=True)
    except PenstockError as error:
        shown["error"] = str(error)
    return shown


def _records(data: bytes, start: int, end: int, verify: bool = False) -> list[dict[str, Any]]:
    records = decode_batch(data, start, end, "", -1, verify=verify, limit_bytes=DECOMPRESSED_BYTES_MAX)
    return [_record(record) for record in records]


def _record(record: Record) -> dict[str, Any]:
    shown: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    shown |= _readable("key", record.key) | _readable("value", record.value)
    if record.headers:
        shown["headers"] = [{"name": name, **_readable("value", value)} for name, value in record.headers]
    return shown


def _readable(name: str, value: bytes | None) -> dict[str, str | None]:
    """Return bytes as text if they are readable text, else in base64 under a name with the suffix Base64."""
    if value is None:
        return {name: None}
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    if all(letter.isprintable() or letter in "\t\n\r" for letter in text):
        return {name: text}
    return {f"{name}Base64": base64.b64encode(value).decode()}


def _codec_name(number: int) -> str:
    return (
        CompressionCodec(number).name.lower()
        if number in CompressionCodec.__members__.values()
        else f"codec {number}"
    )


def _timestamp_type(kind: object) -> str:
    return str(getattr(kind, "name", kind)).lower()
