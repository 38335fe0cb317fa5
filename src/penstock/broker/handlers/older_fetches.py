"""What Fetch answers before version 4: the batches of one partition as messages of magic 0 or 1.

Some batches become nothing: the markers of transactions, and what compaction has emptied. Where that is all
that was read, the fetch goes on behind it (`next_offset`): a client that old only has the offset of the
last message it was given, and would ask for the same batches for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.requests.side_thread import to_be_raised_later
from penstock.errors import (
    DecodeError,
    KafkaError,
    UnpackLimitError,
    UnsupportedVersionError,
)
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.partitions.partition import Partition
    from penstock.protocol.messages.fetch_request import FetchPartition
    from penstock.protocol.messages.fetch_response import PartitionData
    from penstock.records.compression.budget import UnpackBudget

MAGIC_1_SINCE = 2


class Conversion:
    """Batches of one partition for a consumer without magic 2."""

    __slots__ = ("asked", "data", "error", "magic", "max_bytes", "next_offset", "response")

    def __init__(
        self, partition: Partition, data: bytes, asked: FetchPartition, max_bytes: int | None, version: int
    ) -> None:
        """Take what was read; `max_bytes` is where the answer is cut, None for whole messages.

        Raises:
            KafkaError: UNSUPPORTED_VERSION (35), the topic forbids conversion.
        """
        if not partition.config.down_conversion:
            raise error_for(
                ErrorCode.UNSUPPORTED_VERSION, f"{partition!r} converts nothing for Fetch v{version}"
            )
        self.data = data
        self.asked = asked
        self.magic = 1 if version >= MAGIC_1_SINCE else 0
        self.max_bytes = max_bytes
        self.response: PartitionData | None = None
        self.error: KafkaError | None = None
        self.next_offset: int | None = None
        """Where to go on, once it is known that nothing came of the batches."""

    def convert(self, budget: UnpackBudget) -> bytes:
        """Return the records as the fetcher understands them, not many more than it can be given.

        Raises:
            KafkaError: UNSUPPORTED_COMPRESSION_TYPE (76) for zstd, CORRUPT_MESSAGE (2) for records that
                cannot be read.
            UnpackLimitError: the first batch is too much for `budget`.
        """
        from penstock.records.convert import convert_down, offset_after  # such clients are rare

        enough = len(self.data) if self.max_bytes is None else max(self.max_bytes, 1)
        try:
            records = convert_down(
                self.data,
                self.magic,
                first_offset=self.asked.fetch_offset,
                budget=budget,
                enough_bytes=enough,
            )
            if not records:
                self.next_offset = offset_after(self.data)
        except UnsupportedVersionError as error:
            raise error_for(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from None
        except UnpackLimitError:
            raise
        except DecodeError as error:
            raise error_for(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
        return records if self.max_bytes is None else records[: self.max_bytes]

    def go_on(self) -> bool:
        """Let the request read behind batches without a record for it; return whether there were such
        batches.
        """
        if self.next_offset is None:
            return False
        self.asked.fetch_offset = self.next_offset
        return True

    def prepare(self, budget: UnpackBudget) -> None:
        """Convert in any thread; what comes of it, or what is wrong, goes into the response."""
        assert self.response is not None
        is_first = budget.is_untouched
        try:
            self.response.records = self.convert(budget)
        except KafkaError as error:
            self.error = to_be_raised_later(error)
        except UnpackLimitError as error:
            if is_first:
                self.error = error_for(ErrorCode.MESSAGE_TOO_LARGE, str(error))
            else:  # others have used it up: the next fetch begins here
                self.response.records = b""
        finally:
            self.data = b""
