"""Responses to Fetch before version 4: batches of a partition converted to messages of magic 0 or 1.

Some batches have no record to convert: transaction markers, and batches that compaction has emptied. If a
request reads only such batches, the broker continues to read after them (`next_offset`). An old client that
gets no message would request the same batches forever, because it continues after the last message that it
has received.
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
from penstock.protocol.since import FETCH_MAGIC_1_SINCE

if TYPE_CHECKING:
    from penstock.broker.partitions.partition import Partition
    from penstock.protocol.messages.fetch_request import FetchPartition
    from penstock.protocol.messages.fetch_response import PartitionData
    from penstock.records.compression.codecs import UnpackBudget


class Conversion:
    """One conversion of a partition's batches, for a consumer that does not support magic 2."""

    __slots__ = ("asked", "data", "error", "magic", "max_bytes", "next_offset", "response")

    def __init__(
        self, partition: Partition, data: bytes, asked: FetchPartition, max_bytes: int | None, version: int
    ) -> None:
        """Prepare to convert the batches in `data`. The result is cut at `max_bytes`; None means uncut.

        Raises:
            KafkaError: UNSUPPORTED_VERSION (35), the topic forbids conversion.
        """
        if not partition.config.down_conversion:
            raise error_for(
                ErrorCode.UNSUPPORTED_VERSION, f"{partition!r} converts nothing for Fetch v{version}"
            )
        self.data = data
        self.asked = asked
        self.magic = 1 if version >= FETCH_MAGIC_1_SINCE else 0
        self.max_bytes = max_bytes
        self.response: PartitionData | None = None
        self.error: KafkaError | None = None
        self.next_offset: int | None = None
        """The offset at which to read on, because the batches have no record to convert; otherwise
        None.
        """

    def convert(self, budget: UnpackBudget) -> bytes:
        """Return the converted records, cut near the byte limit of the request.

        Raises:
            KafkaError: UNSUPPORTED_COMPRESSION_TYPE (76) for zstd, CORRUPT_MESSAGE (2) for records that
                cannot be read.
            UnpackLimitError: unpacking the first batch exceeds `budget`.
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
        """Move the request past batches that have no record to convert; return False if there are none."""
        if self.next_offset is None:
            return False
        self.asked.fetch_offset = self.next_offset
        return True

    def prepare(self, budget: UnpackBudget) -> None:
        """Convert the batches, in any thread; put the records into `response`, or the error into `error`."""
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
