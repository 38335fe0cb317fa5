"""Presents the partitions of a cluster as those of a single Kafka 0.7 broker.

Message sets become records without keys, and values of records become messages. Byte offsets encode positions
in the cluster (see `gateway.v07.offsets`). If a failure may be temporary, such as an unreachable cluster or a
moving leader, the response is an empty message set, so that the consumer tries again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence

from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.retry import RetryVerdict, judge
from penstock.client.fetch.offsets import fetch_known_offsets, fetch_offsets
from penstock.common.failures import LimitedLog
from penstock.errors import DecodeError, PenstockError
from penstock.gateway.v07.counts import Counts07
from penstock.gateway.v07.offsets import SLOT_BITS_MIN, NoCodeError, ReaderPlace, place_at, slot_bits_of
from penstock.gateway.v07.padding import MESSAGE_OVERHEAD_BYTES, WRAPPED, Packed, Value, pack
from penstock.gateway.v07.reading import ClusterReader, FoundRecords, is_out_of_range
from penstock.gateway.v07.topics import ClusterTopics
from penstock.gateway.v07.writing import ClusterWriter
from penstock.model import EARLIEST, LATEST, TopicPartition
from penstock.v07.message_set import Judged
from penstock.v07.store import Found as Answer
from penstock.v07.topics import InvalidTopic, WrongPartition
from penstock.v07.wire import EARLIEST_TIME, LATEST_TIME, Error, FetchPart, OffsetsPart, ProducePart

RESPONSE_BYTES_MAX = 4 << 20
"""The largest size of a response in bytes, unless its only message is larger."""

MESSAGE_BYTES_MAX = 128 << 20
"""The largest message, in bytes including its padding, that is made of a record."""

SAME_PARTITION_MAX = 8
"""The most fetches of one partition in a single request; further ones get no messages."""

OFFSETS_MS = 10_000
"""Timeout in milliseconds of the cluster's look-up of an offset by time (ListOffsets)."""

SAMPLE = 100
"""The number of records at the end of a partition whose sizes determine the size of the partition's slots."""

SAMPLE_BYTES_MAX = 64 << 10
"""The largest slot, in bytes, that a single large record can cause. Above it, the average record size
determines the slot size."""

NOTHING: Answer = (Error.NONE, None)


class ClusterStore:
    """The partitions that the listener for Kafka 0.7 serves to its clients. For one event loop."""

    def __init__(
        self,
        client: AsyncClient,
        topics: ClusterTopics,
        reader: ClusterReader,
        writer: ClusterWriter,
        counts: Counts07,
        log: LimitedLog,
        *,
        message_bytes_max: int,
        slot_bits: int = SLOT_BITS_MIN,
        form: str = WRAPPED,
        dice: random.Random | None = None,
    ) -> None:
        """Serve the cluster of `client` through `reader` and `writer`.

        `message_bytes_max` is 0.7's `max.message.size`; `slot_bits` is the exponent of the least slot size, a
        power of two. `form` is the form of messages: `WRAPPED` or `PLAIN`.
        """
        self._client = client
        self._topics = topics
        self._reader = reader
        self._writer = writer
        self._counts = counts
        self._log = log
        self._message_bytes_max = message_bytes_max
        self._slot_bits = slot_bits
        self._form = form
        self._dice = dice or random.Random()
        self._chosen: dict[TopicPartition, int] = {}
        """A dict from a partition that consumers use to the exponent of its slot size, which stays so that
        byte offsets remain comparable."""

    # --- produce ----------------------------------------------------------------------------------------

    async def choose_partition(self, part: ProducePart) -> ProducePart:
        """Return `part`, with a random partition number if it has none.

        Raises the errors of `ClusterWriter`.
        """
        self._counts.sets += 1
        return await self._writer.choose_partition(part)

    async def store(
        self, part: ProducePart, judged: Judged, failed: Callable[[PenstockError], object]
    ) -> None:
        """Produce the messages of a Kafka 0.7 message set to the cluster.

        A set with a message that is too large is dropped and logged, as 0.7 does.
        """
        if judged.payload_bytes_max > self._message_bytes_max:
            self._writer.drop(
                part.topic,
                judged.message_count,
                f"one has {judged.payload_bytes_max} bytes, max.message.size is {self._message_bytes_max}",
            )
            return
        await self._writer.write(part, judged.size, failed)

    # --- fetch ------------------------------------------------------------------------------------------

    async def fetch(self, parts: Sequence[FetchPart]) -> list[Answer]:
        """Return the result of each fetched partition, without waiting for records: messages or an error."""
        self._counts.fetches += len(parts)
        answers: list[Answer] = [NOTHING] * len(parts)
        order = list(range(len(parts)))
        first = self._dice.randrange(len(parts)) if parts else 0
        order = order[first:] + order[:first]  # so that no part is always the last that gets room
        try:
            await self._topics.discover(part.topic for part in parts)
        except PenstockError as error:
            self._failed("topics", error)
        places: dict[int, ReaderPlace] = {}
        for index in order:
            judged = await self._judged(parts[index])
            if isinstance(judged, ReaderPlace):
                places[index] = judged
            elif judged is not None:
                answers[index] = judged
        left, used = RESPONSE_BYTES_MAX, 0
        share = RESPONSE_BYTES_MAX // max(len(places), 1)
        for _ in range(SAME_PARTITION_MAX):
            round_ = {TopicPartition(*parts[index][:2]): index for index in reversed(places)}
            if not round_:
                break
            found = await self._reader.read({tp: places[index].offset for tp, index in round_.items()})
            for tp, index in reversed(round_.items()):
                part, place = parts[index], places.pop(index)
                room = max(left - used, 0) if used else MESSAGE_BYTES_MAX
                answers[index] = self._answer(tp, part, place, found[tp], share, room)
                used += len(answers[index][1] or b"")
                await asyncio.sleep(0)
        self._counts.refused += sum(error is not Error.NONE for error, _ in answers)
        return answers

    async def _judged(self, part: FetchPart) -> ReaderPlace | Answer | None:
        """Check a fetch of one partition: return the position to read from, or an error response.

        Returns None if the topic does not exist.
        """
        if part.size_max < 0:
            return Error.INVALID_FETCH_SIZE, None
        try:
            if not await self._topics.partition(part.topic, part.partition, is_discovered=True):
                return None
        except WrongPartition:
            return Error.WRONG_PARTITION, None
        except InvalidTopic:
            return Error.UNKNOWN, None
        except PenstockError as error:
            return self._failed(f"{part.topic}-{part.partition}", error)
        place = place_at(part.offset)
        return (Error.OFFSET_OUT_OF_RANGE, None) if place is None else place

    def _answer(
        self,
        tp: TopicPartition,
        part: FetchPart,
        place: ReaderPlace,
        found: FoundRecords,
        share: int,
        room: int,
    ) -> Answer:
        if found.error is not None:
            return self._failed(f"{tp} at byte {part.offset}, offset {place.offset}", found.error)
        if part.offset:  # 0 is where readers begin that have not asked for offsets
            self._chosen.setdefault(tp, place.slot_bits)
        try:
            packed = pack(place, found.values, min(part.size_max, share), self._form)
            if packed.place == place and share < part.size_max:
                # Not even one message fits into its share; it may into what is left for all.
                packed = pack(place, found.values, min(part.size_max, room), self._form)
                if packed.place == place and room < part.size_max:
                    return NOTHING
        except NoCodeError as error:
            self._chosen[tp] = error.go_on.slot_bits
            self._log.write(
                logging.WARNING,
                "refused fetches",
                "cannot bring a reader of %s past offset %d in slots of %d bytes: %s. Set its offset from %d "
                "to %d, which is offset %d in slots of %d bytes",
                tp,
                place.offset,
                1 << place.slot_bits,
                error,
                part.offset,
                error.go_on.code,
                error.go_on.offset,
                1 << error.go_on.slot_bits,
            )
            return Error.UNKNOWN, None
        self._warn_of_debt(tp, part, packed)
        self._counts.fetched += packed.records
        return Error.NONE, packed.data

    def _warn_of_debt(self, tp: TopicPartition, part: FetchPart, packed: Packed) -> None:
        place = packed.place
        if place.debt * 2 >= 1 << place.slot_bits:
            self._chosen.pop(tp, None)
            self._log.write(
                logging.WARNING,
                "readers ahead of their slots",
                "a reader of %s, at byte %d, is %d slots of %d bytes ahead; at %d it is refused. Offsets "
                "that it asks for anew have slots that fit",
                tp,
                part.offset,
                place.debt,
                1 << place.slot_bits,
                1 << place.slot_bits,
            )

    def _failed(self, what: str, error: PenstockError) -> Answer:
        """Return the result of a failed fetch: an error code, or no messages if the error is retriable."""
        if is_out_of_range(error):
            return Error.OFFSET_OUT_OF_RANGE, None
        is_fatal = judge(error) is RetryVerdict.FATAL
        self._log.write(
            logging.WARNING,
            "refused fetches" if is_fatal else "fetches that failed",
            "a fetch of %s is answered with %s: %s",
            what,
            "error -1" if is_fatal else "nothing for the moment",
            error,
        )
        return (Error.UNKNOWN, None) if is_fatal else NOTHING

    # --- offsets ----------------------------------------------------------------------------------------

    async def offsets(self, part: OffsetsPart) -> list[int]:
        """Return byte offsets for a Kafka 0.7 OFFSETS request: the requested one, then the earliest one.

        Raises:
            InvalidTopic, WrongPartition: the topic name is invalid, or the topic has no such partition.
            DecodeError: a negative count.
            PenstockError: the cluster does not answer. 0.7 has no error code for that.
        """
        self._counts.offsets += 1
        if part.count_max < 0:
            raise DecodeError(f"OFFSETS for {part.count_max} offsets")
        tp = TopicPartition(part.topic, part.partition)
        if not await self._topics.partition(*tp):
            return [0] if part.time_ms in (LATEST_TIME, EARLIEST_TIME) else []
        if part.time_ms < EARLIEST_TIME:
            return []
        (start, end) = await asyncio.gather(
            self._known(tp, EARLIEST),
            self._known(tp, LATEST),
        )
        wanted = start if part.time_ms == EARLIEST_TIME else end
        if part.time_ms >= 0:
            at = (
                await fetch_offsets(
                    self._client, {tp: part.time_ms}, isolation="read_committed", timeout_ms=OFFSETS_MS
                )
            )[tp]
            wanted = end if at is None else min(max(at.offset, start), end)
        slot_bits = await self._slots(tp, start, end)
        codes = [ReaderPlace(offset, 0, slot_bits).code for offset in dict.fromkeys((wanted, start))]
        return codes[: part.count_max]

    async def _known(self, tp: TopicPartition, question: int) -> int:
        return (await fetch_known_offsets(self._client, [tp], question, isolation="read_committed"))[tp]

    async def _slots(self, tp: TopicPartition, start: int, end: int) -> int:
        """Return the exponent of a partition's slot size: the one in use, or one for the newest records."""
        chosen = self._chosen.get(tp)
        if chosen is not None:
            return chosen
        found = (
            (await self._reader.read({tp: max(start, end - SAMPLE)}))[tp] if start < end else FoundRecords()
        )
        if not found.values:
            return self._slot_bits
        slot_bits = max(self._slot_bits, slots_for(found.values))
        self._chosen[tp] = slot_bits
        return slot_bits

    def flush_due(self) -> None:
        """Do nothing, since the cluster itself is responsible for storing what it has acknowledged."""

    async def close(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` seconds until produced messages are acknowledged, then close."""
        await self._writer.close(timeout_s)


def slots_for(values: Sequence[Value]) -> int:
    """Return the exponent of a slot size that holds every value, or only most if some are very large."""
    sizes = [len(value.value) + MESSAGE_OVERHEAD_BYTES for value in values]
    largest, average = max(sizes), sum(sizes) // len(sizes)
    return slot_bits_of(largest if largest <= SAMPLE_BYTES_MAX else max(SAMPLE_BYTES_MAX, 2 * average))
