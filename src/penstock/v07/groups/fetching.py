"""Fetcher threads of a Kafka 0.7 group member: one per broker, which fills streams with MULTIFETCH.

An error of one partition ends only the reading of that partition: a stored offset inside a message, a damaged
log, an error code of the broker. The thread continues with the other partitions of the broker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from penstock.common.logs import logger_named
from penstock.errors import (
    CorruptRecordError,
    DecodeError,
    KafkaError,
    NetworkError,
    PenstockError,
    UnpackLimitError,
)
from penstock.v07.connection import Fetched07
from penstock.v07.driver import MESSAGE_BYTES_MAX, BrokerAddress, Driver07
from penstock.v07.groups.streams import BrokerTopicPartition, Stream
from penstock.v07.message_set import (
    LENGTH_BYTES,
    FetchSizeTooSmall,
    PlainMessage,
    complete_size,
    iter_messages,
)
from penstock.v07.wire import COUNT_MAX, Error, FetchPart

logger = logger_named("penstock.v07")

HELD_BYTES_MAX = 64 << 20
"""The maximum size in bytes of one fetch's decompressed messages in memory at a time; one wrapper may exceed
it."""

MESSAGE_OVERHEAD_BYTES = 150
"""The number of bytes that a message takes in memory besides its payload."""

ANSWER_BYTES_MAX = 64 << 20
"""The maximum size in bytes of a MULTIFETCH response, which is held in memory. Only a response with a single
larger message may exceed it.
"""


class FetchTarget:
    """A partition to fetch, the offset to continue at, and the stream that takes the messages.

    `offset` is None if the broker has not returned it yet; the fetcher's `reset` returns it later.
    `is_proven` is False for a committed offset from which no message has been read yet: it may be inside a
    message.
    """

    __slots__ = ("generation", "is_proven", "offset", "size_max", "stream", "tp")

    def __init__(
        self,
        tp: BrokerTopicPartition,
        offset: int | None,
        stream: Stream,
        generation: int,
        *,
        is_proven: bool = True,
    ) -> None:
        self.tp = tp
        self.offset = offset
        self.stream = stream
        self.generation = generation
        self.is_proven = is_proven
        self.size_max = 0
        """The fetch size in bytes for a message that is larger than the fetcher's `fetch_bytes`, else 0."""


Reset = Callable[[Driver07, BrokerTopicPartition, PenstockError | None], int]


class Fetcher07:
    """Fetches from one Kafka 0.7 broker until it is stopped, and retries while the broker does not answer.

    `reset(driver, partition, error)` returns the offset to continue at. `error` is set if the old offset is
    outside the log or inside a message, and None if there is no offset. If `reset` raises, the reading of
    that partition ends.
    """

    def __init__(
        self,
        address: BrokerAddress,
        targets: Sequence[FetchTarget],
        *,
        fetch_bytes: int,
        backoff_s: float,
        timeout_s: float,
        reset: Reset,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
    ) -> None:
        self._targets = list(targets)
        self._fetch_bytes = fetch_bytes
        self._message_bytes_max = message_bytes_max
        self._backoff_s = backoff_s
        self._reset = reset
        self._driver = Driver07(address.host, address.port, timeout_s=timeout_s)
        self._stopping = threading.Event()
        name = f"penstock-0.7-fetcher-{address.broker_id}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Ask the thread to end, and interrupt its fetch."""
        self._stopping.set()
        self._driver.connection.close()

    def stop(self) -> None:
        """End the thread, and wait for it."""
        self.ask_to_stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._fetch_until_stopped()
        except Exception as error:
            # Not one of the errors that are expected: the application gets it.
            logger.exception("fetching from a Kafka 0.7 broker ended")
            self._fail_all(error)
        finally:
            # It may have connected while it was asked to stop.
            self._driver.connection.close()

    def _fetch_until_stopped(self) -> None:
        while not self._stopping.is_set() and self._targets:
            has_come = False
            try:
                has_come = self._fetch_all()
            except NetworkError as error:
                if not self._stopping.is_set():
                    logger.warning("%s; trying again", error)
            except PenstockError as error:
                # An answer that makes no sense as a whole: it does not name a partition.
                self._fail_all(error)
            if not has_come:
                self._stopping.wait(self._backoff_s)

    def _fail_all(self, error: Exception) -> None:
        for stream in {target.stream for target in self._targets}:
            stream.fail(error)

    def _fetch_all(self) -> bool:
        """Fetch from every partition once; return True if any bytes have arrived."""
        has_come = False
        for targets in self._requests():
            parts = [
                FetchPart(target.tp[0], target.tp[1].partition, target.offset or 0, self._size_of(target))
                for target in targets
            ]
            fetched = self._driver.connection.multifetch(parts)
            for target, found in zip(targets, fetched, strict=True):
                if self._stopping.is_set():
                    return True
                with self._only(target):
                    has_come |= self._take(target, found)
        return has_come

    def _requests(self) -> Iterator[list[FetchTarget]]:
        """Yield the targets of each MULTIFETCH: divided so that a response fits into `ANSWER_BYTES_MAX`."""
        wanted: list[FetchTarget] = []
        size = 0
        for target in list(self._targets):
            if not self._has_offset(target):
                continue
            if wanted and (size + self._size_of(target) > ANSWER_BYTES_MAX or len(wanted) == COUNT_MAX):
                yield wanted
                wanted, size = [], 0
            wanted.append(target)
            size += self._size_of(target)
        if wanted:
            yield wanted

    def _has_offset(self, target: FetchTarget) -> bool:
        with self._only(target):
            if target.offset is None:
                target.offset = self._reset(self._driver, target.tp, None)
        return target.offset is not None

    @contextmanager
    def _only(self, target: FetchTarget) -> Iterator[None]:
        """Pass an error of the ``with`` block to the target's stream, and stop fetching only this target."""
        try:
            yield
        except NetworkError:
            raise
        except PenstockError as error:
            target.stream.fail(error)
            self._targets.remove(target)

    def _size_of(self, target: FetchTarget) -> int:
        return max(target.size_max, self._fetch_bytes)

    def _take(self, target: FetchTarget, found: Fetched07) -> bool:
        try:
            data = found.checked()
        except KafkaError as error:
            if found.error is not Error.OFFSET_OUT_OF_RANGE:
                raise
            self._start_anew(target, error)
            return True
        if not len(data):
            return False
        offset = found.part.offset
        try:
            messages, size = _sound_messages(data, offset)
            if not size:
                self._ask_for_more(target, data, found.part)
                return True
        except UnpackLimitError:
            raise  # the offset is right, and the data may be
        except DecodeError as error:
            topic, at = target.tp
            problem = CorruptRecordError(f"no message of {topic} {at} can be read at byte {offset}: {error}")
            if target.is_proven:
                raise problem from error
            self._start_anew(target, problem)
            return True
        target.is_proven = True
        target.offset = offset + size
        if messages and not target.stream.put(target.generation, target.tp, messages):
            self._stopping.set()
        return True

    def _start_anew(self, target: FetchTarget, error: PenstockError) -> None:
        target.offset = self._reset(self._driver, target.tp, error)
        target.is_proven, target.size_max = True, 0

    def _ask_for_more(self, target: FetchTarget, data: memoryview, part: FetchPart) -> None:
        """Increase the target's fetch size to that of its first message, if `data` can be a message.

        Segments end between messages, and a response is smaller than requested only at the end of a segment:
        incomplete data there are not a message.

        Raises:
            CorruptRecordError: the length field cannot be that of a message.
        """
        needed = LENGTH_BYTES
        if len(data) >= LENGTH_BYTES:
            needed += int.from_bytes(data[:LENGTH_BYTES], "big")
        if len(data) < part.size_max:
            raise CorruptRecordError(f"its length says {needed} bytes, and {len(data)} follow")
        if needed > self._message_bytes_max:
            raise CorruptRecordError(
                f"its length says {needed} bytes, the most is penstock.message.bytes.max = "
                f"{self._message_bytes_max}"
            )
        if part.offset + needed > self._driver.latest(part.topic, part.partition):
            raise CorruptRecordError(f"its length says {needed} bytes, which is beyond the end of the log")
        logger.warning("a message has %d bytes, fetch.size is %d; asking for more", needed, part.size_max)
        target.size_max = needed


def _sound_messages(data: memoryview, offset: int) -> tuple[list[PlainMessage], int]:
    """Return (messages before the first damaged one, size in bytes of the data that contain them).

    The function stops after the outermost message with which `HELD_BYTES_MAX` is reached: later messages are
    fetched again.

    Raises:
        DecodeError: the first message is damaged.
        UnpackLimitError: the first message decompresses to more than the limit.
    """
    messages: list[PlainMessage] = []
    count = end = held_bytes = 0
    try:
        for message in iter_messages(data, offset):
            messages.append(message)
            held_bytes += MESSAGE_OVERHEAD_BYTES + len(message.payload)
            if message.next_offset != message.offset:  # the last one in its wrapper
                count, end = len(messages), message.next_offset - offset
                if held_bytes >= HELD_BYTES_MAX:
                    return messages, end
    except FetchSizeTooSmall:
        return [], 0
    except DecodeError:
        if not end:
            raise
        return messages[:count], end
    return messages, complete_size(data)
