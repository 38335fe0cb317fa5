"""Batches on their way to the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.client.produce.delivery import Outcome
from penstock.client.producer_id import NO_PRODUCER_ID
from penstock.errors import PenstockError
from penstock.headers import Header

if TYPE_CHECKING:
    from typing_extensions import Buffer

Row = tuple["bytes | None", "bytes | None", Sequence[Header], int]
"""Key, value, headers, timestamp in milliseconds."""

SEQUENCE_MASK = 0x7FFFFFFF
"""Sequence numbers wrap from 2^31 - 1 to 0."""


class Batch:
    """Records of one partition that travel together: rows, or bytes that are a batch already."""

    __slots__ = (
        "attempts",
        "base_sequence",
        "count",
        "created",
        "encoded",
        "error",
        "number",
        "outcome",
        "owner",
        "payload",
        "rows",
        "size",
    )

    def __init__(self, outcome: Outcome, created: float) -> None:
        self.outcome = outcome
        self.created = created
        self.rows: list[Row] = []
        self.encoded: memoryview | None = None
        self.count = 0
        self.size = 0
        self.attempts = 0
        self.error: PenstockError | None = None
        """Why the last attempt failed."""
        self.owner = NO_PRODUCER_ID
        self.base_sequence = -1
        self.number = 0
        """Counts the batches of a partition and epoch, as sequences count records."""
        self.payload: Buffer | None = None
        """The bytes as last sent, kept for a retry."""
