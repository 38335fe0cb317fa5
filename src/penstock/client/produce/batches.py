"""A batch of records of one partition, from its first record until it is acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.client.produce.delivery import DeliveryOutcome
from penstock.client.producer_id import NO_PRODUCER_ID
from penstock.errors import PenstockError
from penstock.headers import Header

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from penstock.records.row_format import PlainRowWriter

Row = tuple["bytes | None", "bytes | None", Sequence[Header], int]
"""A record's key, value, headers, and timestamp in milliseconds since 1970."""

SEQUENCE_MASK = 0x7FFFFFFF
"""The mask of sequence numbers, which wrap from 2^31 - 1 to 0."""


class ProducerBatch:
    """Records of one partition that are sent together: rows in a writer, or the bytes of an encoded batch."""

    __slots__ = (
        "_count",
        "_size",
        "attempts",
        "base_sequence",
        "created",
        "encoded",
        "error",
        "number",
        "outcome",
        "owner",
        "payload",
        "writer",
    )

    def __init__(
        self, outcome: DeliveryOutcome, created: float, writer: PlainRowWriter | None = None
    ) -> None:
        self.outcome = outcome
        self.created = created
        self.writer: Any = writer
        """The writer of the records; None once the batch is encoded."""
        self.encoded: bytearray | memoryview | None = None
        self._count = 0
        self._size = 0
        self.attempts = 0
        self.error: PenstockError | None = None
        """The error of the last attempt to send this batch, or None."""
        self.owner = NO_PRODUCER_ID
        self.base_sequence = -1
        self.number = 0
        """The number of this batch within its partition and epoch."""
        self.payload: Buffer | None = None
        """The encoded batch as it was last sent, kept for a retry."""

    @property
    def count(self) -> int:
        """The number of records in this batch."""
        return self._count if self.writer is None else int(self.writer.count)

    @property
    def size(self) -> int:
        """The size in bytes to count towards ``buffer.memory``: exact once encoded, an upper limit before."""
        return self._size if self.writer is None else int(self.writer.size)

    def close(self) -> None:
        """Accept no more records in this batch."""
        if self.writer is not None:
            self.writer.close()

    def drop(self) -> None:
        """Accept no more records, and discard the rows that are not encoded yet."""
        if self.writer is not None:
            self.writer.drop()

    def hold(self, encoded: bytearray | memoryview, count: int, size: int) -> None:
        """Replace the rows by the encoded batch `encoded`, which the caller must not use any more."""
        self._count, self._size = count, size
        self.encoded = encoded
        self.drop()
        self.writer = None
