"""Byte offsets of Kafka 0.7 that encode which record of a partition is next.

A consumer of 0.7 adds the size of each message that it has read to its byte offset, and sends the sum in its
next fetch, perhaps much later, and perhaps to another gateway. The gateway keeps no table of sums: each sum
that a consumer can reach encodes the offset of the next record.

    bits 60 to 62   the slot size, as a power of two: 0 for 4 KiB, up to 7 for 512 KiB
    bits 0 to 59    (offset + debt) * slot + debt

`offset` is that of the next record in the cluster. Every offset of the cluster has one slot, a fixed number
of bytes, to which a message is padded. A message that needs more bytes than the slots of its records moves
the consumer's byte offset ahead. The debt is the number of slots that it is ahead, from 0 to slot - 1;
messages with several records reduce it. With a debt of 0 and slots of 4 KiB, the record at offset k is at
byte 4096 * k.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import EncodeError

SLOT_BITS_MIN = 12
SLOT_BITS_MAX = 19
"""Exponent of the largest slot size: slots have 2^12 to 2^19 bytes (4 KiB to 512 KiB)."""

SLOT_BYTES_MIN = 1 << SLOT_BITS_MIN
SLOT_BYTES_MAX = 1 << SLOT_BITS_MAX

REFUSAL_FACTOR = 16
"""The factor by which a consumer's slots grow if no byte offset with the present slot size can encode its
position.
"""

PLACE_BITS = 60
"""The number of low bits of a byte offset that encode the offset and the debt; higher bits encode the slot
size."""

_PLACE_MASK = (1 << PLACE_BITS) - 1


class NoCodeError(EncodeError):
    """A Kafka 0.7 consumer cannot be moved to an offset, because no byte offset can encode its `ReaderPlace`.

    `go_on` is a position with larger slots, at the same record or the next one, where the consumer can
    continue.
    """

    def __init__(self, why: str, go_on: ReaderPlace) -> None:
        super().__init__(why)
        self.go_on = go_on


class ReaderPlace(NamedTuple):
    """The position of a Kafka 0.7 consumer in a partition of the cluster, which a byte offset encodes.

    `offset` is the offset of the next record. `debt` is the number of slots by which the byte offset is ahead
    because messages were larger than their slots. `slot_bits` is the exponent of the slot size in bytes, a
    power of two.
    """

    offset: int
    debt: int = 0
    slot_bits: int = SLOT_BITS_MIN

    @property
    def code(self) -> int:
        """The byte offset of Kafka 0.7 that encodes this position.

        Raises:
            NoCodeError: the offset or the debt is too large.
        """
        slot = (self.offset + self.debt) << self.slot_bits
        if self.debt >> self.slot_bits or slot >> PLACE_BITS:
            raise NoCodeError(
                f"offset {self.offset}, with a debt of {self.debt} slots of {1 << self.slot_bits} bytes, has "
                "no byte offset; larger slots are needed",
                ReaderPlace(self.offset, 0, slot_bits_of(REFUSAL_FACTOR << self.slot_bits)),
            )
        return (self.slot_bits - SLOT_BITS_MIN) << PLACE_BITS | slot | self.debt

    def after(self, next_offset: int, size: int) -> ReaderPlace:
        """Return the position after a message of at least `size` bytes, if `next_offset` is the next record.

        Raises:
            NoCodeError: the debt would be too large.
        """
        slot = 1 << self.slot_bits
        ahead = size - (next_offset - self.offset << self.slot_bits)
        debt = max(0, self.debt - (-ahead // (slot + 1)))
        found = ReaderPlace(next_offset, debt, self.slot_bits)
        try:
            found.code  # noqa: B018 - it raises where there is none
        except NoCodeError as error:
            raise NoCodeError(str(error), error.go_on._replace(offset=self.offset)) from None
        return found


def place_at(code: int) -> ReaderPlace | None:
    """Decode a byte offset of Kafka 0.7; return None if no consumer of the gateway can have reached it."""
    family = code >> PLACE_BITS
    slot_bits = SLOT_BITS_MIN + family
    if code < 0 or slot_bits > SLOT_BITS_MAX:
        return None
    slot, debt = divmod(code & _PLACE_MASK, 1 << slot_bits)
    return ReaderPlace(slot - debt, debt, slot_bits) if slot >= debt else None


def slot_bits_of(size: int) -> int:
    """Return the exponent of the smallest slot that holds `size` bytes; at most `SLOT_BITS_MAX`."""
    return min(max((size - 1).bit_length(), SLOT_BITS_MIN), SLOT_BITS_MAX)
