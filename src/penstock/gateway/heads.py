"""Read the header of a request, and the acks of a Produce, from bytes that the gateway forwards unchanged."""

from __future__ import annotations

import struct
from typing import Any

from penstock.errors import DecodeError
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.runtime import Data, read_uvarint
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.framing import RequestHeader, decode_request_header
from penstock.protocol.since import PRODUCE_FLEXIBLE_SINCE, PRODUCE_TRANSACTIONAL_ID_SINCE

REQUEST_HEAD = struct.Struct(">ihhi")
"""The first fields of a request: size, API key, version, correlation id."""

_SHORT = struct.Struct(">h")

RESPONSE_HEAD = struct.Struct(">ii")
"""The first fields of a response: size, correlation id."""

UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
"""The first bytes of an ApiVersions response of version 0 with error 35 (UNSUPPORTED_VERSION)."""

TLS_RECORD = 0x1603
"""The first two bytes of a connection with TLS."""

REQUEST_BYTES_MIN = 8
"""The size of the shortest request: API key, version and correlation id."""

HEAD_BYTES_MAX = 128 << 10
"""The highest byte position at which the acks of a Produce request can begin. Before them are the client id
and the transactional id, of less than 32 KiB each.
"""


class Incomplete(Exception):
    """Raised if the bytes that have arrived do not contain the requested field; more bytes are needed."""


def client_id_of(head: Data) -> str:
    """Return the client id of a request, as far as it has arrived; an empty string if nothing has arrived.

    `head` begins with the size field. ControlledShutdown 0, which only brokers send, has no client id.
    """
    if len(head) < 14:
        return ""
    length = int.from_bytes(head[12:14], "big", signed=True)
    return str(head[14 : 14 + max(length, 0)], "utf-8", "replace")


def produce_acks(head: Data, start: int, version: int) -> int:
    """Return the acks of a Produce request that begins in `head` with its size field at `start`.

    Raises:
        Incomplete: the acks have not arrived yet.
        DecodeError: the header is malformed.
    """
    position = start + 12
    try:
        length = _SHORT.unpack_from(head, position)[0]
        position += 2 + (length if length > 0 else 0)
        if version >= PRODUCE_FLEXIBLE_SINCE:
            position = _behind_tags(head, position)
            length, position = read_uvarint(head, position)
            length -= 1
        elif version >= PRODUCE_TRANSACTIONAL_ID_SINCE:
            length = _SHORT.unpack_from(head, position)[0]
            position += 2
        else:
            length = 0
        if length > 0:
            position += length
        acks: int = _SHORT.unpack_from(head, position)[0]
    except (IndexError, struct.error):
        if len(head) - start > HEAD_BYTES_MAX:
            raise DecodeError(f"no acks in the first {HEAD_BYTES_MAX} bytes of a Produce") from None
        raise Incomplete from None
    return acks


def _behind_tags(head: Data, position: int) -> int:
    count, position = read_uvarint(head, position)
    for _ in range(count):
        _, position = read_uvarint(head, position)
        size, position = read_uvarint(head, position)
        position += size
    return position


def is_kafka_request(start: Data) -> bool:
    """Return True if `start`, the bytes after a size field, begins with an existing API key and version.

    It distinguishes requests from raw SASL tokens without a header (before Kafka 1.0). SCRAM tokens begin
    with a letter and a comma, Kerberos tokens with 0x60 or 0x05 0x04, PLAIN tokens with a zero and the user's
    name.
    """
    if len(start) < 8:
        return False
    api = API_TABLE.get(int.from_bytes(start[:2], "big", signed=True))
    version = int.from_bytes(start[2:4], "big", signed=True)
    return api is not None and api.versions[0] <= version <= api.versions[1]


KERBEROS_TOKEN = 0x60
"""The first byte of the GSSAPI token that clients of Kafka 0.9 send first, without a SaslHandshake."""

SASL_KEYS = frozenset((int(ApiKey.SASL_HANDSHAKE), int(ApiKey.SASL_AUTHENTICATE)))


def no_request(size: int, most: int) -> DecodeError:
    """Return an error which says that the next four bytes of a connection are no valid request size."""
    if size >> 16 == TLS_RECORD:
        return DecodeError(
            "it begins with TLS, and the gateway takes clients without TLS only (see --tls-cert)"
        )
    return DecodeError(f"a request of {size} bytes, {REQUEST_BYTES_MIN} to {most} are taken")


def check_short(head: Data, least: int, most: int) -> None:
    """Check the size field of a frame from which only the first bytes have arrived.

    Raises:
        DecodeError: the size is below `least` or above `most`.
    """
    if len(head) >= 4:
        size = int.from_bytes(head[:4], "big", signed=True)
        if not least <= size <= most:
            raise no_request(size, most)


def decoded_request(body: memoryview) -> tuple[RequestHeader, Any]:
    """Decode a request without its size field; return (header, message).

    Raises:
        DecodeError, UnsupportedVersionError: the request cannot be decoded.
    """
    header, position = decode_request_header(body)
    codec = codec_for(API_TABLE[header.api_key].request, header.api_version)
    return header, codec.decode(body, position)[0]
