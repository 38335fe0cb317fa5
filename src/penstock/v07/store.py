"""The interface between a server of Kafka 0.7 and its store, and a store of local logs."""

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
"""The result of fetching one partition: error code, and message set or None."""


class Store(Protocol):
    """The interface of an object that stores and returns message sets for a server.

    Any PenstockError that a method raises ends the connection.
    """

    async def choose_partition(self, part: ProducePart) -> ProducePart:
        """Return `part` with a random partition if it has none; create the topic if it is missing."""

    async def store(
        self, part: ProducePart, judged: Judged, failed: Callable[[PenstockError], object]
    ) -> None:
        """Store a checked message set. `failed` is called if the set is lost later."""

    async def fetch(self, parts: Sequence[FetchPart]) -> list[Found]:
        """Return the result for each partition of a fetch.

        An error is the result of its partition, and does not end the connection.
        """

    async def offsets(self, part: OffsetsPart) -> list[int]:
        """Return the offsets that answer a Kafka 0.7 OFFSETS request, newest first."""

    def flush_due(self) -> None:
        """Do regular maintenance, such as flushes that are due."""


class LocalLogStore:
    """A store for a 0.7 server that keeps message sets in local logs."""

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
