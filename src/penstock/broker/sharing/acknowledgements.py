"""Acknowledgements of records in requests: checks them, and splits them into ranges of one type.

A batch has a first and a last offset, and the type of each record, or one type for all. Source: KIP-932 and
KIP-1222 (renewals).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple, Protocol

from penstock.protocol.error_codes import ErrorCode, error_for


class AckType(IntEnum):
    """A member's acknowledgement of a record. The numbers are those of the protocol."""

    GAP = 0
    """The offset has no record, or none that is passed to applications."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """The member still processes the record: its acquisition lock is renewed."""


class AckBatch(Protocol):
    """An acknowledgement batch in a ShareFetch or ShareAcknowledge request."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Acknowledged(NamedTuple):
    """Consecutive offsets that are acknowledged with the same type."""

    first: int
    last: int
    type: AckType


def ranges_of(batches: Sequence[AckBatch], *, with_renewals: bool) -> list[Acknowledged]:
    """Return the offset ranges, each of one type, that one partition's acknowledgement batches contain.

    `with_renewals` is the request's flag `is_renew_ack`; if it is False, the type RENEW is not allowed.

    Raises:
        KafkaError: INVALID_REQUEST (42), offsets are not in order, a type is not allowed, or the number of
        types is neither 1 nor the number of offsets.
    """
    highest = AckType.RENEW if with_renewals else AckType.REJECT
    found: list[Acknowledged] = []
    last_before = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if last < first:
            raise _refusal(f"its last offset {last} is below its first, {first}")
        if first < last_before or first < 0:
            raise _refusal(f"offset {first} is not above those of the batch before it")
        if not types:
            raise _refusal(f"offsets {first} to {last} have no type")
        if len(types) > 1 and len(types) != last - first + 1:
            raise _refusal(f"offsets {first} to {last} have {len(types)} types")
        for type_ in types:
            if not 0 <= type_ <= highest:
                raise _refusal(f"offsets {first} to {last} have type {type_}; 0 to {int(highest)} may be")
        last_before = last
        if len(types) == 1:
            found.append(Acknowledged(first, last, AckType(types[0])))
            continue
        offset = first
        for type_, group in groupby(types):
            length = sum(1 for _ in group)
            found.append(Acknowledged(offset, offset + length - 1, AckType(type_)))
            offset += length
    return found


def _refusal(reason: str) -> Exception:
    return error_for(ErrorCode.INVALID_REQUEST, f"a batch of acknowledgements is not valid: {reason}")
