"""Inputs of the explorer: hex text, a file of frames, or a capture, recognised by their first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.errors import DecodeError
from penstock.explorer.conversation import (
    Conversation,
    ConversationEntry,
    describe,
    read_capture,
    read_frames,
)
from penstock.explorer.lines import message_class
from penstock.explorer.pcap import is_capture
from penstock.protocol.api import response_header_version
from penstock.protocol.codec import codec_for
from penstock.protocol.framing import decode_response_header
from penstock.protocol.inspect.json_form import to_json
from penstock.protocol.inspect.version_prefix import read_leading
from penstock.protocol.loaded_classes import load_message
from penstock.protocol.message import Message

_HEX = re.compile(rb"(?:0x)?[0-9a-fA-F]{2}(?:[\s:,]*(?:0x)?[0-9a-fA-F]{2})*", re.ASCII)
_BETWEEN = re.compile(rb"0x|[\s:,]+")


def class_named(name: str) -> type[Message]:
    """Return the class of a message of Kafka's, or of the definition in a file ``NAME.json``.

    Raises:
        ConfigError: there is no such message, or the definition breaks a rule of its language.
        OSError: the file cannot be read.
    """
    return load_message(name) if name.endswith(".json") else message_class(name)


def to_bytes(data: bytes) -> bytes:
    """Return the bytes of hex digits; return other input unchanged.

    Digits may be grouped by white space, commas or colons, and begin with ``0x``.
    """
    text = data.strip()
    if not text or not _HEX.fullmatch(text):
        return data
    return bytes.fromhex(_BETWEEN.sub(b"", text).decode())


def read_any(
    data: bytes, answers: bytes | None = None, port: int | None = None
) -> Iterator[ConversationEntry]:
    """Return the messages in a capture, in frames with sizes, or in one request without a size."""
    if is_capture(data):
        return read_capture(data, port)
    if answers is None and not _ends_with_a_frame(data):
        entry = Conversation().request(data)
        if entry.error is None and not entry.trailing:
            return iter([entry])
    return read_frames(data, answers)


def _ends_with_a_frame(data: bytes) -> bool:
    """Return True if the data consist exactly of frames with their sizes in front."""
    position = 0
    while position + 4 <= len(data):
        position += 4 + int.from_bytes(data[position : position + 4], "big")
    return position == len(data)


def read_named(
    found: type[Message], version: int | None, data: bytes, *, framed: bool = False, header: bool = False
) -> ConversationEntry:
    """Decode one message of class `found`, which may follow a response header or its own version.

    Raises:
        PenstockError: the bytes are not such a message, or have bytes left over.
    """
    entry = ConversationEntry(frame=data)
    position = 0
    if framed:
        said, position = read_leading(found, data)
        version = said if version is None else version
    if version is None:
        version = _only_version(found)
    if header:
        position = _skip_header(found, version, data, entry)
    message, end = codec_for(found, version).decode(data, position)
    if end != len(data):
        raise DecodeError(f"{found.NAME} v{version}: {len(data) - end} bytes are left over after byte {end}")
    describe(message, version, entry)
    return entry


def _only_version(found: type[Message]) -> int:
    low, high = found.VERSIONS
    if low != high:
        raise DecodeError(f"{found.NAME} has versions {low} to {high}: name one with -v")
    return low


def _skip_header(found: type[Message], version: int, data: bytes, entry: ConversationEntry) -> int:
    """Read the header of a response, and a size before it if there is one; return the position after."""
    if found.API_KEY is None or not found.NAME.endswith("Response"):
        raise DecodeError(f"{found.NAME} is no response; a request with its header needs no name at all")
    start = 4 if int.from_bytes(data[:4], "big") == len(data) - 4 else 0
    header_version = response_header_version(found.API_KEY, version)
    _, length = decode_response_header(data[start:], header_version)
    response_header = message_class("ResponseHeader").decode(data[start:], header_version)
    entry.header, entry.is_request = to_json(response_header, header_version), False
    return start + length
