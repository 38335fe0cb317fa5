"""What a server of Kafka 0.7 serves: logs of its own, or something else that takes and gives message sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.errors import PenstockError
from penstock.log.contract import FileRegion
from penstock.v07.byte_log import OffsetOutOfRange
from penstock.v07.message_set import Judged
from penstock.v07.topics import InvalidTopic, Topics, WrongPartition
from penstock.v07.wire import Error, FetchPart, OffsetsPart, ProducePart

Found = tuple[Error, FileRegion | bytes | None]
"""The error of a fetched part, and the bytes of its message set."""


class Store(Protocol):
    """Takes message sets and gives them. What raises DecodeError, or any PenstockError, ends a connection."""

    async def choose_partition(self, part: ProducePart) -> ProducePart:
        """Return the part with a partition that it goes to; create the topic where that is missing."""

    async def store(
        self, part: ProducePart, judged: Judged, failed: Callable[[PenstockError], object]
    ) -> None:
        """Store a message set that was judged. `failed` is called where it is lost later on."""

    async def fetch(self, parts: Sequence[FetchPart]) -> list[Found]:
        """Return what each part finds. Errors belong to a part, not to the connection."""

    async def offsets(self, part: OffsetsPart) -> list[int]:
        """Return the answer to OFFSETS, newest first."""

    def flush_due(self) -> None:
        """Do what has to be done again and again."""


class LogStore:
    """The logs of a broker of 0.7, behind the calls of a server."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics

    async def choose_partition(self, part: ProducePart) -> ProducePart:
        return self.topics.choose_partition(part)

    async def store(
        self, part: ProducePart, judged: Judged, failed: Callable[[PenstockError], object]
    ) -> None:
        self.topics.store(part, judged)

    async def fetch(self, parts: Sequence[FetchPart]) -> list[Found]:
        return [self._fetch(part) for part in parts]

    def _fetch(self, part: FetchPart) -> Found:
        try:
            if part.size_max < 0:
                return Error.INVALID_FETCH_SIZE, None
            log = self.topics.log(part.topic, part.partition)
            return Error.NONE, None if log is None else log.read(part.offset, part.size_max)
        except OffsetOutOfRange:
            return Error.OFFSET_OUT_OF_RANGE, None
        except WrongPartition:
            return Error.WRONG_PARTITION, None
        except InvalidTopic:
            return Error.UNKNOWN, None

    async def offsets(self, part: OffsetsPart) -> list[int]:
        return self.topics.offsets(part)

    def flush_due(self) -> None:
        self.topics.flush_due()
