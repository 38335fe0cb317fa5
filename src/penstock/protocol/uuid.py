"""Topic and directory ids: 16 bytes, and their text as Kafka prints it (22 characters of base64)."""

from __future__ import annotations

import binascii
import os

from penstock.common.suggestions import short_repr

ZERO_UUID = bytes(16)
"""The id of 16 zero bytes, which stands for no id."""

_RESERVED = (ZERO_UUID, bytes(15) + b"\x01")
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")


def uuid_to_text(uuid: bytes) -> str:
    """Return the text of a 16-byte id: URL-safe base64 without padding.

    Raises:
        ValueError: the id does not have 16 bytes.
    """
    if len(uuid) != 16:
        raise ValueError(f"an id has 16 bytes, not {len(uuid)}")
    return binascii.b2a_base64(uuid, newline=False)[:22].translate(_TO_URL).decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """Return the 16 bytes of an id from its text.

    Raises:
        ValueError: the text is not 22 characters of URL-safe base64.
    """
    try:
        uuid = binascii.a2b_base64(text.encode("ascii").translate(_FROM_URL) + b"==", strict_mode=True)
    except ValueError:
        uuid = b""
    if len(text) != 22 or len(uuid) != 16 or "+" in text or "/" in text:
        raise ValueError(f"{short_repr(text)} is no id: 22 characters of letters, digits, - and _")
    return uuid


def random_uuid() -> bytes:
    """Return a new id as Kafka makes them: version 4, and never one whose text begins with a dash."""
    while True:
        uuid = bytearray(os.urandom(16))
        uuid[6] = uuid[6] & 0x0F | 0x40
        uuid[8] = uuid[8] & 0x3F | 0x80
        if bytes(uuid) not in _RESERVED and uuid[0] >> 2 != 62:
            return bytes(uuid)
