"""Records as lines of JSON in kcat's envelope, which ``consume -J`` prints and ``produce -J`` reads.

A record that is printed and read again is the same, byte for byte: bytes that are not UTF-8 are added in
base64, as ``key_base64``, ``payload_base64`` and ``headers_base64``.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, NamedTuple

from penstock.errors import ConfigError
from penstock.headers import Header
from penstock.model import Record, TimestampType

TIMESTAMP_NAMES = {TimestampType.CREATE_TIME: "create", TimestampType.LOG_APPEND_TIME: "logappend"}

_string, _string_ascii = encode_basestring, encode_basestring_ascii
"""Functions that convert text to a JSON string. The first escapes only what JSON requires, the second all
characters outside of ASCII.
"""


_CONTENTS = frozenset(("key", "payload", "key_base64", "payload_base64"))


class OutgoingRecord(NamedTuple):
    """A record to be sent.

    A key or value that is None is null; the producer chooses other fields that are None.
    """

    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Sequence[Header] = ()
    topic: str | None = None


def json_printer(record: Record, *, for_terminal: bool = False) -> bytes:
    """Return a record as one line of JSON with kcat's field names; bytes that are not UTF-8 are in base64.

    With `for_terminal`, a line with unprintable characters is escaped to pure ASCII.
    """
    if not for_terminal:
        return _line(record, _string).encode("utf-8", "surrogatepass")
    line = _line(record, _string)
    if not line[:-1].isprintable():
        line = _line(record, _string_ascii)
    return line.encode("utf-8", "surrogatepass")


def _line(record: Record, string: Callable[[str], str]) -> str:
    """Return the JSON line of a record; `string` converts text to a JSON string."""
    kind = TIMESTAMP_NAMES.get(record.timestamp_type, "unknown")
    line = (
        f'{{"topic":{string(record.topic)},"partition":{record.partition},"offset":{record.offset},'
        f'"tstype":"{kind}","ts":{record.timestamp},"key":{_field("key", record.key, string)},'
        f'"payload":{_field("payload", record.value, string)}'
    )
    if record.headers:
        texts = [(name, *_text(value)) for name, value in record.headers]
        line += f',"headers":[{",".join(_pairs(((n, text) for n, text, _ in texts), string))}]'
        if not all(is_exact for _, _, is_exact in texts):
            exact = ((name, _base64(value)) for name, value in record.headers)
            line += f',"headers_base64":[{",".join(_pairs(exact, string))}]'
    return line + "}\n"


def _field(name: str, value: bytes | None, string: Callable[[str], str]) -> str:
    if value is None:
        return "null"
    text, is_exact = _text(value)
    written = string(text or "")
    return written if is_exact else f'{written},"{name}_base64":"{_base64(value)}"'


def _pairs(headers: Iterable[tuple[str, str | None]], string: Callable[[str], str]) -> Iterator[str]:
    for name, value in headers:
        yield string(name)
        yield "null" if value is None else string(value)


def parse_envelope(line: bytes, decoded: Container[str] = ()) -> OutgoingRecord:
    """Return the record of a line that ``penstock consume -J`` or ``kcat -J`` has printed.

    If "key" or "payload" is among `decoded`, it may be any JSON value, and its JSON text is used.

    kcat prints bytes that are not UTF-8 unchanged, although this is not valid JSON: they are read as they
    are.

    Raises:
        ConfigError: the line is not such an envelope.
    """
    try:
        envelope = json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"this is no JSON: {error}") from None
    if not isinstance(envelope, dict):
        raise ConfigError("a JSON object is expected, as penstock consume -J and kcat -J print it")
    if _CONTENTS.isdisjoint(envelope):
        raise ConfigError('neither "key" nor "payload" is there, so this is no record of consume -J')
    topic = envelope.get("topic")
    if topic is not None and not isinstance(topic, str):
        raise ConfigError('"topic" is text')
    timestamp_ms = _whole(envelope, "ts", -1)
    return OutgoingRecord(
        _content(envelope, "key", decoded),
        _content(envelope, "payload", decoded),
        _whole(envelope, "partition", 0),
        None if timestamp_ms is None or timestamp_ms < 0 else timestamp_ms,
        _headers(envelope),
        topic,
    )


def _whole(envelope: Mapping[str, Any], name: str, least: int) -> int | None:
    value = envelope.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 63:
        raise ConfigError(f'"{name}" is {json.dumps(value)[:80]}: a whole number from {least} on is expected')
    return value


def _content(envelope: Mapping[str, Any], name: str, decoded: Container[str]) -> bytes | None:
    if name not in decoded:
        return _bytes(envelope, name)
    value = envelope.get(name)
    return None if value is None else json.dumps(value).encode()


def _bytes(envelope: Mapping[str, Any], name: str) -> bytes | None:
    exact = envelope.get(f"{name}_base64")
    if exact is not None:
        return _of_base64(exact, f"{name}_base64")
    return _of_text(envelope.get(name), name)


def _headers(envelope: Mapping[str, Any]) -> list[Header]:
    exact, plain = envelope.get("headers_base64"), envelope.get("headers")
    name = "headers" if exact is None else "headers_base64"
    flat = plain if exact is None else exact
    if flat is None:
        return []
    names = flat[::2] if isinstance(flat, list) else [None]
    if not isinstance(flat, list) or len(flat) % 2 or not all(isinstance(each, str) for each in names):
        raise ConfigError(f'"{name}" is a list of names and values in turn, as in ["lang","en"]')
    read = _of_text if exact is None else _of_base64
    return [(key, read(value, name)) for key, value in zip(names, flat[1::2], strict=True)]


def _of_text(value: object, name: str) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ConfigError(
            f'"{name}" is {json.dumps(value)[:80]}: text or null is expected (jq makes text of it by tojson)'
        )
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ConfigError(f'"{name}" has half of a surrogate pair, which is no text') from None


def _of_base64(value: object, name: str) -> bytes | None:
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else _refuse_base64(name)
    except (binascii.Error, ValueError):
        return _refuse_base64(name)


def _refuse_base64(name: str) -> bytes:
    raise ConfigError(f'"{name}" is no base64') from None


def _text(value: bytes | None) -> tuple[str | None, bool]:
    """Return (a value decoded as UTF-8, True if all its bytes are valid); U+FFFD replaces invalid bytes."""
    if value is None:
        return None, True
    try:
        return value.decode("utf-8"), True
    except UnicodeDecodeError:
        return value.decode("utf-8", "replace"), False


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")
