"""The records of one partition for a consumer of messages of magic 0 or 1.

Some batches result in no message: transaction markers, aborted records, and batches that compaction has
emptied. If only such batches were fetched, the gateway continues after them. An old client cannot do that: it
continues after the last message that it got, and would fetch the same batches for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import CorruptRecordError, DecodeError, UnpackLimitError
from penstock.protocol.error_codes import ErrorCode
from penstock.records.convert import convert_down, offset_after
from penstock.records.format.batch_header import split_batches

if TYPE_CHECKING:
    from penstock.protocol.messages.fetch_request import FetchPartition
    from penstock.protocol.messages.fetch_response import PartitionData
    from penstock.records.compression.codecs import UnpackBudget


class PartitionReading:
    """The records read from one partition for the client, and the offset where reading continues."""

    __slots__ = (
        "error_code",
        "high_watermark",
        "is_starved",
        "max_bytes",
        "offset",
        "partition",
        "records",
        "skips",
        "topic",
    )

    def __init__(self, topic: str, asked: FetchPartition) -> None:
        self.topic = topic
        self.partition = asked.partition
        self.offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.records = b""
        self.error_code = 0
        self.high_watermark = -1
        self.skips = False
        """True if no fetched batch had a record for the client, so that fetching continues at `offset`."""
        self.is_starved = False
        """True if other partitions have filled the response, so that no record of this partition was
        fetched.
        """

    @property
    def is_done(self) -> bool:
        """True if there are records, or an error, to return."""
        return bool(self.records or self.error_code)

    def take(self, data: PartitionData, magic: int, budget: UnpackBudget) -> None:
        """Convert the cluster's response for the partition to records of `magic`, or set its error."""
        self.skips = self.is_starved = False
        self.error_code = data.error_code
        self.high_watermark = data.high_watermark
        end_offset = data.high_watermark
        if 0 <= data.last_stable_offset < end_offset:
            # Only what is committed is read, so that is where reading ends.
            self.high_watermark = end_offset = data.last_stable_offset
        if self.error_code:
            return
        view = memoryview(data.records or b"")
        aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
        is_first = budget.is_untouched
        try:
            if next(split_batches(view), None) is None:
                self.is_starved = self.offset < end_offset
                return
            self.records = convert_down(
                view,
                magic,
                first_offset=self.offset,
                verify=True,
                budget=budget,
                enough_bytes=max(self.max_bytes, 1),
                aborted=aborted,
                unpacks_zstd=True,
                quick_bytes=self.max_bytes // 2,  # a message must not outgrow what such a client can take
            )
            if not self.records:
                next_offset = offset_after(view)
                self.skips = next_offset > self.offset
                self.offset = max(self.offset, next_offset)
        except UnpackLimitError:
            # Others have used the budget up: the client's next request begins here.
            self.error_code = ErrorCode.MESSAGE_TOO_LARGE if is_first else ErrorCode.NONE
        except DecodeError:
            self.error_code = ErrorCode.CORRUPT_MESSAGE

    def cut(self, left_bytes: int | None) -> bytes:
        """Return the records for the response, cut at the size limits, even in the middle of a message.

        `left_bytes` is the number of bytes left for the whole response; the caller ensures that the first
        message of a response is whole. It is None for versions without that limit; then only
        `partition_max_bytes` applies.
        """
        if left_bytes is None:
            return self.records[: max(self.max_bytes, 0)]
        limit = max(min(self.max_bytes, left_bytes), 0)
        return self.records[:limit]

    def first_message(self) -> bytes:
        """Return only the first message of the records.

        Raises:
            CorruptRecordError: there is no whole message.
        """
        for _, end, _ in split_batches(self.records):
            return self.records[:end]
        raise CorruptRecordError("no whole message")
