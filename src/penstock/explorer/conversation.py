"""Decodes frames to messages: a request has its API in the header, a response is matched by correlation id.

Every message becomes a `ConversationEntry`, even a malformed one. An entry as JSON is an object from which
`encoded` makes the same frame again.
"""

from __future__ import annotations

import datetime
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import DecodeError, EncodeError, PenstockError
from penstock.explorer.inside import unpack_bytes, unpack_internal_topics
from penstock.explorer.lines import message_class
from penstock.explorer.pcap import read_segments
from penstock.explorer.tcp import TcpConnection, connections
from penstock.explorer.unpack import restore_unknown_tags, tags_from_json, unpack_records
from penstock.protocol.api import API_TABLE, ApiKey, request_header_version, response_header_version
from penstock.protocol.codec import codec_for
from penstock.protocol.framing import FrameReader, decode_request_header
from penstock.protocol.inspect.json_form import from_json, to_json
from penstock.protocol.inspect.version_prefix import leading_bytes
from penstock.protocol.message import Message

HEADER = "header"
"""The dict key for a header's unknown tagged fields. Unknown fields of the message have the paths of their
structs as keys.
"""


@dataclass
class ConversationEntry:
    """One request or response of a conversation; if it could not be decoded, `error` has the reason."""

    name: str = ""
    version: int = -1
    header: dict[str, Any] | None = None
    body: dict[str, Any] | None = None
    records: dict[str, Any] = field(default_factory=dict)
    inside: dict[str, Any] = field(default_factory=dict)
    unknown_tags: dict[str, dict[int, bytes]] = field(default_factory=dict)
    time: float | None = None
    connection: str | None = None
    is_request: bool = True
    elapsed_ms: float | None = None
    error: str | None = None
    trailing: bytes = b""
    """The bytes after the message in its frame. Brokers ignore them; a few clients send some."""
    frame: bytes = b""
    message: Message | None = None

    def as_json(self) -> dict[str, Any]:
        """Return an object with `name`, `version`, `header` and `json`, and other known properties."""
        shown: dict[str, Any] = {}
        if self.time is not None:
            moment = datetime.datetime.fromtimestamp(self.time, datetime.UTC)
            shown["time"] = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
        if self.connection is not None:
            shown["connection"] = self.connection
        if self.name:
            shown |= {"name": self.name, "version": self.version}
        if self.elapsed_ms is not None:
            shown["elapsedMs"] = round(self.elapsed_ms, 3)
        if self.header is not None:
            shown["header"] = self.header
        if self.body is not None:
            shown["json"] = self.body
        if self.records:
            shown["records"] = self.records
        if self.inside:
            shown["inside"] = self.inside
        if self.unknown_tags:
            shown["unknownTags"] = {
                path: {str(tag): data.hex() for tag, data in tags.items()}
                for path, tags in self.unknown_tags.items()
            }
        if self.trailing:
            shown["trailingBytes"] = self.trailing.hex()
        if self.error is not None:
            shown["error"] = self.error
            if self.frame and self.body is None:
                shown["hex"] = self.frame.hex()
        return shown


def describe(message: Message, version: int, entry: ConversationEntry) -> None:
    """Add a message's JSON form, its records and its unknown tagged fields to an entry."""
    entry.name, entry.version, entry.message = message.NAME, version, message
    entry.body = to_json(message, version)
    codec = codec_for(type(message), version)
    unpack_records(codec.layout, message, entry.records, entry.unknown_tags)
    entry.inside = unpack_bytes(message)
    unpack_internal_topics(message, entry.records)


class Conversation:
    """Decodes the messages of one connection, and matches answers to requests by correlation id."""

    def __init__(self, connection: str | None = None) -> None:
        self._connection = connection
        self._waiting: dict[int, deque[tuple[int, int, float | None]]] = defaultdict(deque)

    def request(self, frame: bytes, time: float | None = None) -> ConversationEntry:
        """Decode a frame from the client, and return its `ConversationEntry`."""
        entry = ConversationEntry(time=time, connection=self._connection, frame=frame)
        try:
            header, position = decode_request_header(frame)
            self._waiting[header.correlation_id].append((header.api_key, header.api_version, time))
            request = API_TABLE[header.api_key].request
            entry.name, entry.version = request.NAME, header.api_version
            version = request_header_version(header.api_key, header.api_version)
            self._header(entry, "RequestHeader", version, frame)
            self._body(entry, request, header.api_version, frame, position)
            if header.api_key == ApiKey.PRODUCE and not entry.message.acks:  # type: ignore[union-attr]
                self._waiting[header.correlation_id].pop()  # it has no answer
        except PenstockError as error:
            entry.error = str(error)
        return entry

    def answer(self, frame: bytes, time: float | None = None) -> ConversationEntry:
        """Decode a frame from the broker, and return its `ConversationEntry`."""
        entry = ConversationEntry(time=time, connection=self._connection, frame=frame, is_request=False)
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        waiting = self._waiting.get(correlation_id)
        if len(frame) < 4 or not waiting:
            entry.error = f"an answer to a request that is not there (correlation id {correlation_id})"
            return entry
        key, version, asked = waiting.popleft()
        if not waiting:
            del self._waiting[correlation_id]
        if time is not None and asked is not None:
            entry.elapsed_ms = (time - asked) * 1000
        response = API_TABLE[key].response
        entry.name, entry.version = response.NAME, version
        try:
            header_version = response_header_version(key, version)
            position = self._header(entry, "ResponseHeader", header_version, frame)
            try:
                self._body(entry, response, version, frame, position)
            except DecodeError:
                # A broker that does not support the version of an ApiVersions request answers in version 0.
                if key != ApiKey.API_VERSIONS or version == 0:
                    raise
                self._body(entry, response, 0, frame, position)
        except PenstockError as error:
            entry.error = str(error)
        return entry

    def is_answer(self, frame: bytes) -> bool:
        """Return True if a frame of unknown direction is exactly the answer to a pending request."""
        waiting = self._waiting.get(int.from_bytes(frame[:4], "big", signed=True))
        if not waiting or len(frame) < 4:
            return False
        key, version, _ = waiting[0]
        try:
            start = 4 + response_header_version(key, version)
            return codec_for(API_TABLE[key].response, version).decode(frame, start)[1] == len(frame)
        except PenstockError:
            return False

    def _header(self, entry: ConversationEntry, name: str, version: int, frame: bytes) -> int:
        found = message_class(name)
        header, position = codec_for(found, version).decode(frame, 0)
        entry.header = to_json(header, version)
        if header.unknown_tags:
            entry.unknown_tags[HEADER] = header.unknown_tags
        return position

    def _body(
        self, entry: ConversationEntry, found: type[Message], version: int, frame: bytes, position: int
    ) -> None:
        message, end = codec_for(found, version).decode(frame, position)
        describe(message, version, entry)
        entry.trailing = frame[end:]


# --- where frames come from ------------------------------------------------------------------------------


def read_frames(data: bytes, answers: bytes | None = None) -> Iterator[ConversationEntry]:
    """Yield the messages of a file of frames, each with its size in front.

    With `answers`, `data` holds requests, and each is followed by its answer. Otherwise frames that answer an
    earlier request are recognised by their correlation id.
    """
    conversation = Conversation()
    if answers is None:
        for _, frame in _cut(data):
            yield (
                _trouble(frame)
                if isinstance(frame, str)
                else (
                    conversation.answer(frame)
                    if conversation.is_answer(frame)
                    else conversation.request(frame)
                )
            )
        return
    replies: dict[int, deque[bytes]] = defaultdict(deque)
    trouble = ""
    for _, frame in _cut(answers):
        if isinstance(frame, str):
            trouble = frame
        else:
            replies[int.from_bytes(frame[:4], "big", signed=True)].append(frame)
    for _, frame in _cut(data):
        if isinstance(frame, str):
            yield _trouble(frame)
            continue
        entry = conversation.request(frame)
        yield entry
        correlation_id = (entry.header or {}).get("correlationId")
        if correlation_id is not None and replies[correlation_id]:
            yield conversation.answer(replies[correlation_id].popleft())
    for frames in replies.values():
        yield from map(conversation.answer, frames)
    if trouble:
        yield _trouble(trouble)


def read_capture(data: bytes, port: int | None = None) -> Iterator[ConversationEntry]:
    """Return the messages of all connections in a capture, merged in the order of time.

    `port` is the broker's port: other connections are left out. Without `port`, connections without Kafka
    messages are left out, unless no connection has any.
    """
    found = [each for each in connections(read_segments(data)) if each.has_data]
    if port is not None:
        found = [each for each in found if any(end.endswith(f":{port}") for end in each.ends)]
    entries = [entry for each in found for entry in _messages(each, port)]
    sensible = [entry for entry in entries if entry.name or entry.header]
    if sensible and port is None:
        spoken = {entry.connection for entry in sensible}
        entries = [entry for entry in entries if entry.connection in spoken]
    return iter(sorted(entries, key=lambda entry: entry.time or 0.0))


def _messages(connection: TcpConnection, port: int | None) -> Iterator[ConversationEntry]:
    client = _client(connection, port)
    broker = (
        next(end for end in connection.ends if end != client) if len(set(connection.ends)) > 1 else client
    )
    title = f"{client} -> {broker}"
    conversation = Conversation(title)
    for end, read in ((client, conversation.request), (broker, conversation.answer)):
        stream = connection.streams[end]
        for position, frame in _cut(stream.data):
            time = stream.time_of(position)
            if isinstance(frame, str):
                yield _trouble(f"from {end}: {frame}", time, title)
            else:
                yield read(frame, time)
        if stream.missing_bytes:
            reason = (
                f"from {end}: {stream.missing_bytes} bytes are missing in the capture; the rest is unread"
            )
            yield _trouble(reason, stream.time_of(len(stream.data)), title)
        if client == broker:
            return


def _client(connection: TcpConnection, port: int | None) -> str:
    """Return the client's address: the end whose port is not `port`, or that connected or sent a request."""
    if port is not None:
        for end in connection.ends:
            if not end.endswith(f":{port}"):
                return end
    if connection.client is not None:
        return connection.client
    for end in connection.ends:
        frame = next((frame for _, frame in _cut(connection.streams[end].data)), "")
        if isinstance(frame, bytes) and Conversation().request(frame).error is None:
            return end
    return connection.ends[0]


def _cut(data: bytes) -> Iterator[tuple[int, bytes | str]]:
    """Yield (end position, frame) for each frame; on an error, yield the error text as the last frame."""
    reader = FrameReader()
    rest = memoryview(data)
    position = 0
    try:
        while rest:
            buffer = reader.get_buffer()
            count = min(len(buffer), len(rest))
            buffer[:count] = rest[:count]
            reader.received(count)
            rest = rest[count:]
            while (frame := reader.next_frame()) is not None:
                position += 4 + len(frame)
                yield position, bytes(frame)
    except DecodeError as error:
        yield len(data), f"no frames of Kafka from byte {position} on: {error}"
        return
    if reader.pending_bytes:
        yield len(data), f"the last frame is cut short: {reader.pending_bytes} bytes of it are there"


def _trouble(reason: str, time: float | None = None, connection: str | None = None) -> ConversationEntry:
    return ConversationEntry(time=time, connection=connection, error=reason)


# --- the reverse ------------------------------------------------------------------------------------------


def encoded(entry: dict[str, Any], named: type[Message] | None = None) -> bytes:
    """Encode an entry's JSON form; return a whole frame if it has a header, else only the message.

    With `"framed": true` the version is put in front. `named` is the class of a message that is not Kafka's.

    Raises:
        PenstockError: a member is missing or invalid; the message names it.
    """
    found = message_class(entry.get("name")) if named is None else named
    version = entry.get("version")
    if type(version) is not int:
        raise EncodeError(f"{found.NAME} needs a version, a whole number")
    if "json" not in entry:
        raise EncodeError(f"{found.NAME} v{version} has no json")
    tags = tags_from_json(entry.get("unknownTags", {}))
    header_tags = tags.pop(HEADER, None)
    message = from_json(found, entry["json"], version)
    restore_unknown_tags(message, tags)
    body = codec_for(found, version).encode(message) + _trailing(entry)
    if entry.get("framed") is True:
        return leading_bytes(found, version) + body
    if "header" not in entry:
        return body
    if found.API_KEY is None or not found.NAME.endswith(("Request", "Response")):
        raise EncodeError(f"{found.NAME} is neither request nor response: it has no header")
    if found.NAME.endswith("Request"):
        name, header_version = "RequestHeader", request_header_version(found.API_KEY, version)
    else:
        name, header_version = "ResponseHeader", response_header_version(found.API_KEY, version)
    header = from_json(message_class(name), entry["header"], header_version)
    header.unknown_tags = header_tags
    head = header.encode(header_version)
    return (len(head) + len(body)).to_bytes(4, "big") + head + body


def _trailing(entry: dict[str, Any]) -> bytes:
    try:
        return bytes.fromhex(entry.get("trailingBytes", ""))
    except (TypeError, ValueError):
        raise EncodeError("trailingBytes must be hexadecimal digits") from None
