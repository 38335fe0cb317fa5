"""One thread per broker that fetches what a group member owns there, with MULTIFETCH, into its streams."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from penstock.errors import DecodeError, KafkaError, NetworkError, PenstockError
from penstock.v07.connection import Fetched07
from penstock.v07.driver import BrokerAddress, Driver07
from penstock.v07.message_set import FetchSizeTooSmall, complete_size, iter_messages
from penstock.v07.streams import Place, Stream
from penstock.v07.wire import Error, FetchPart

logger = logging.getLogger("penstock.v07")


class Target:
    """A place to fetch from, where to go on, and the stream that takes what comes."""

    __slots__ = ("generation", "offset", "place", "stream")

    def __init__(self, place: Place, offset: int, stream: Stream, generation: int) -> None:
        self.place = place
        self.offset = offset
        self.stream = stream
        self.generation = generation


class Fetcher07:
    """Fetches from one broker until it is stopped. A broker that is away is tried again.

    `reset` says where to go on when an offset is outside the log, or raises.
    """

    def __init__(
        self,
        address: BrokerAddress,
        targets: Sequence[Target],
        *,
        fetch_bytes: int,
        backoff_s: float,
        timeout_s: float,
        reset: Callable[[Driver07, Place, KafkaError], int],
    ) -> None:
        self._targets = list(targets)
        self._fetch_bytes = fetch_bytes
        self._backoff_s = backoff_s
        self._reset = reset
        self._driver = Driver07(address.host, address.port, timeout_s=timeout_s)
        self._stopping = threading.Event()
        name = f"penstock-0.7-fetcher-{address.broker_id}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Have the thread end soon; a fetch under way is cut off."""
        self._stopping.set()
        self._driver.connection.close()

    def stop(self) -> None:
        """End the thread."""
        self.ask_to_stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._fetch_until_stopped()
        finally:
            # It may have connected while it was asked to stop.
            self._driver.connection.close()

    def _fetch_until_stopped(self) -> None:
        while not self._stopping.is_set() and self._targets:
            try:
                has_come = self._fetch_all()
            except NetworkError as error:
                if not self._stopping.is_set():
                    logger.warning("%s; trying again", error)
                has_come = False
            except PenstockError as error:
                for target in self._targets:
                    target.stream.fail(error)
                return
            except Exception as error:
                # Without a word to the streams, those who read would wait for ever.
                logger.exception("%s ended", self._thread.name)
                for target in self._targets:
                    target.stream.fail(error)
                return
            if not has_come:
                self._stopping.wait(self._backoff_s)

    def _fetch_all(self) -> bool:
        """One turn over everything; whether any bytes came."""
        parts = [
            FetchPart(target.place[0], target.place[1].partition, target.offset, self._fetch_bytes)
            for target in self._targets
        ]
        has_come = False
        fetched = self._driver.connection.multifetch(parts)
        for target, found in zip(list(self._targets), fetched, strict=True):
            if self._stopping.is_set():
                return True
            try:
                has_come |= self._take(target, found)
            except (KafkaError, DecodeError) as error:
                # Nothing sensible can be read here; the application decides, the others go on.
                target.stream.fail(error)
                self._targets.remove(target)
        return has_come

    def _take(self, target: Target, found: Fetched07) -> bool:
        if found.error is Error.OFFSET_OUT_OF_RANGE:
            try:
                found.checked()
            except KafkaError as error:
                target.offset = self._reset(self._driver, target.place, error)
            return True
        data = found.checked()
        if not len(data):
            return False
        size = complete_size(data)
        if not size:
            self._fetch_bytes = self._larger(data, found.part.size_max)
            return True
        messages = list(iter_messages(data[:size], target.offset))
        target.offset += size
        if messages and not target.stream.put(target.generation, target.place, messages):
            self._stopping.set()
        return True

    def _larger(self, data: memoryview, size_max: int) -> int:
        needed = 4 + int.from_bytes(data[:4], "big") if len(data) >= 4 else size_max
        if needed > 1 << 30:
            raise FetchSizeTooSmall(needed, 1 << 30)
        logger.warning("a message has %d bytes, fetch.size is %d; asking for more", needed, size_max)
        return max(needed, 2 * size_max)
