"""Damages responses for faults: flips a bit, changes the size field, or truncates the response."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from penstock.protocol.api import API_TABLE
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.framing import decode_response

if TYPE_CHECKING:
    from penstock.broker.faults.faults import Change, Damage
    from penstock.broker.faults.requests import Request

_BODY_AT = 8
"""The byte position of a response's body: after the size field and the correlation id."""


def damaged(answer: bytes, damage: Damage | Change, request: Request) -> bytes:
    """Return the bytes of a response, size field included, after the given kind of damage."""
    if callable(damage):
        return damage(answer)
    if damage == "cut":
        return answer[: len(answer) // 2]
    whole = bytearray(answer)
    if damage == "size":
        whole[:4] = struct.pack(">i", len(whole) - 4 + 1000)
    elif damage == "correlation":
        whole[7] ^= 1
    elif damage == "records":
        _damage_records(whole, request)
    else:
        whole[max(_BODY_AT, len(whole) // 2)] ^= 1
    return bytes(whole)


def _damage_records(whole: bytearray, request: Request) -> None:
    """Flip a bit in the last byte of every partition's records. Do not change other APIs' responses."""
    response = API_TABLE[request.key].response
    message = decode_response(memoryview(whole)[4:], response, request.version)[1]
    for topic in getattr(message, "responses", ()):
        for partition in getattr(topic, "partitions", ()):
            records = partition.records
            if records is not None and len(records) and partition.error_code == ErrorCode.NONE:
                records[-1] ^= 1
