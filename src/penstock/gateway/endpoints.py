"""Find or hide the endpoints of new leaders (KIP-951) in responses of Produce and Fetch.

In a Fetch response they follow the records, in a tagged field that clients may ignore. Replacing them would
change the size at the beginning of the frame, which may have been sent already. So `EndpointsHider` walks
over the bytes as they pass, and replaces the tag of the field by an unused one, which clients ignore. Clients
then take the new leader's address from Metadata.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Sequence

from penstock.errors import DecodeError
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.runtime import Data, read_uvarint
from penstock.protocol.compiler.wire_type import Step, StepKind
from penstock.protocol.messages.fetch_response import FetchResponse
from penstock.protocol.since import PRODUCE_TOPIC_IDS_SINCE

ENDPOINTS_TAG = 0
"""The tag of NodeEndpoints at the end of a Fetch response."""

HIDDEN_TAG = 127
"""The tag that replaces `ENDPOINTS_TAG`: the highest that takes one byte, so that the size stays the same."""

SHORT_COUNT_MAX = 126
"""The highest count or length whose varint takes one byte (varints have the count plus 1)."""


Walk = Generator[None, None, None]


class EndpointsHider:
    """Hides the leader endpoints (KIP-951) of one Fetch response while its bytes are forwarded.

    `frame_bytes` is the size of the response in bytes, including its size field.
    """

    def __init__(self, version: int, frame_bytes: int) -> None:
        self._data: memoryview = memoryview(b"")
        self._position = 8
        """The index in `_data` of the next byte to read; beyond its end if that byte has not arrived."""
        self._left = frame_bytes
        steps = codec_for(FetchResponse, version).layout.steps()
        self._walk: Walk | None = self._response(steps)

    def pass_bytes(self, data: memoryview) -> None:
        """Process the next bytes of the response, which must be writable.

        Raises:
            DecodeError: the bytes are not a Fetch response.
        """
        if self._walk is None:
            return
        self._data = data
        self._left -= len(data)
        try:
            next(self._walk)
        except StopIteration:
            self._walk = None
        self._data = memoryview(b"")

    def _response(self, steps: Sequence[Step]) -> Walk:
        if steps[-1].kind is not StepKind.TAGS:
            raise DecodeError("a Fetch response without tagged fields")
        yield from self._steps([Step(StepKind.TAGS), *steps[:-1]])  # the tags of the header come first
        count = yield from self._varint()
        if count:
            yield from self._need()
            if self._data[self._position] == ENDPOINTS_TAG:
                self._data[self._position] = HIDDEN_TAG

    def _steps(self, steps: Sequence[Step]) -> Walk:
        for kind, size, length, inner, _ in steps:
            if kind is StepKind.BYTES:
                self._position += size
            elif kind is StepKind.VARINT:
                yield from self._varint()
            elif kind is StepKind.TAGS:
                yield from self._tags()
            elif kind is StepKind.TEXT or kind is StepKind.FIXED_ARRAY:
                assert length is not None
                count = yield from self._varint()
                self._position += max(0, count - 1) * (1 if kind is StepKind.TEXT else size)
            elif kind is StepKind.ARRAY:
                count = yield from self._varint()
                if count - 1 > self._left + len(self._data) - self._position:
                    raise DecodeError(f"a Fetch response with an array of {count - 1} elements")
                for _ in range(count - 1):
                    yield from self._steps(inner)
            else:
                raise DecodeError(f"a Fetch response with {kind.name}")

    def _tags(self) -> Walk:
        count = yield from self._varint()
        for _ in range(count):
            yield from self._varint()
            size = yield from self._varint()
            self._position += size

    def _varint(self) -> Generator[None, None, int]:
        """Read an unsigned varint of up to five bytes; yield while bytes of it have not arrived."""
        value = 0
        for shift in range(0, 35, 7):
            if self._position >= len(self._data):
                yield from self._need()
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise DecodeError("a Fetch response with a length of more than five bytes")

    def _need(self) -> Walk:
        """Yield until the byte at the current position has arrived."""
        while self._position >= len(self._data):
            self._position -= len(self._data)
            if self._left < self._position + 1:
                raise DecodeError("a Fetch response ends before its last field")
            yield


def is_plain(whole: bytearray, key: int, version: int) -> bool:
    """Return True if a Produce or Fetch response has no errors, no endpoints and no other tagged fields.

    `whole` is the encoded response with its size field. Most responses are plain; the gateway then need not
    decode them to replace addresses. Returns False for anything unexpected, including malformed bytes.
    """
    frame = memoryview(whole)
    walk = _behind_produced if key == ApiKey.PRODUCE else _behind_fetched
    try:
        return frame[8] == 0 and walk(frame, 9, version) == len(frame) - 1 and frame[-1] == 0
    except (IndexError, struct.error, DecodeError):
        return False


_PRODUCED = struct.Struct(">4xH24xBBB")
"""The struct format of the fixed fields of a partition in a Produce response without errors.

The fields to check are the error code, the length of the list of record errors plus one, the error message
(0: null), and the number of tagged fields.
"""

_FETCHED = struct.Struct(">4xH24xB4x")
"""The fixed fields of a partition in a Fetch response without aborted transactions.

The fields to check are the error code, and the count of aborted transactions (0: null, 1: empty).
"""


def _behind_produced(frame: Data, position: int, version: int) -> int:
    """Return the position after the topics and throttle time in a Produce response.

    Returns -1 if the response has errors or optional fields, so that it must be decoded.
    """
    topics = frame[position] - 1
    position += 1
    if topics > SHORT_COUNT_MAX:
        return -1
    for _ in range(topics):
        name_bytes = 16 if version >= PRODUCE_TOPIC_IDS_SINCE else frame[position]
        if name_bytes > SHORT_COUNT_MAX:
            return -1
        position += name_bytes
        partitions = frame[position] - 1
        position += 1
        if partitions > SHORT_COUNT_MAX:
            return -1
        for _ in range(partitions):
            if _PRODUCED.unpack_from(frame, position) != (0, 1, 0, 0):
                return -1
            position += _PRODUCED.size
        if frame[position]:
            return -1
        position += 1
    return position + 4


def _behind_fetched(frame: Data, position: int, version: int) -> int:
    """Return the position after the topics in a Fetch response.

    Returns -1 if the response has errors or optional fields, so that it must be decoded.
    """
    topics = frame[position + 10] - 1
    position += 11
    if topics > SHORT_COUNT_MAX:
        return -1
    for _ in range(topics):
        partitions = frame[position + 16] - 1
        position += 17
        if partitions > SHORT_COUNT_MAX:
            return -1
        for _ in range(partitions):
            error, aborted = _FETCHED.unpack_from(frame, position)
            if error or aborted > 1:
                return -1
            length, position = read_uvarint(frame, position + _FETCHED.size)
            position += max(0, length - 1)
            if frame[position]:
                return -1
            position += 1
        if frame[position]:
            return -1
        position += 1
    return position
