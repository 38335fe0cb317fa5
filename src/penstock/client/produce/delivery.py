"""The future that `send` returns: the outcome of one record, for threads and for asyncio.

All records of a batch share one `DeliveryOutcome`, which is settled once. A `Delivery` is an outcome and an
index, so that a producer can make a million of them per second.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING

from penstock.common.hints import with_hints
from penstock.common.logs import logger_named
from penstock.errors import PenstockError, RequestTimeoutError
from penstock.model import RecordMetadata
from penstock.printable import printable
from penstock.records import native

log = logger_named("penstock.client")


class DeliveryOutcome:
    """The outcome of a batch that a producer sends.

    The thread of the client's loop settles it; any thread may wait for it.
    """

    __slots__ = (
        "_listeners",
        "base_offset",
        "count",
        "error",
        "is_settled",
        "is_watched",
        "log_append_time",
        "partition",
        "parts",
        "topic",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.base_offset = -1
        self.count = 0
        """The number of records that were written; 0 before that."""
        self.log_append_time = -1
        self.error: PenstockError | None = None
        self.is_settled = False
        self.is_watched = False
        """True if the application has asked for an outcome in this batch, so that a failure need not be
        logged."""
        self.parts: list[tuple[int, DeliveryOutcome]] | None = None
        """The parts of a split batch, else None: the index of each part's first record, and the part's
        outcome."""
        self._listeners: list[Callable[[], None]] = []

    def succeed(self, base_offset: int, count: int, log_append_time: int = -1) -> None:
        """Settle a batch that is in the log. `base_offset` is -1 if no acknowledgement was requested."""
        self.base_offset = base_offset
        self.count = count
        self.log_append_time = log_append_time
        self.is_settled = True
        self._tell()

    def fail(self, error: PenstockError) -> None:
        """Settle a batch that has failed permanently."""
        self.error = error
        self.is_settled = True
        self._tell()

    def on_settled(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the batch is acknowledged, fails, or is split; at once if it has already.

        `listener` must not raise.
        """
        self._listeners.append(listener)
        if self.is_settled or self.parts is not None:
            self._tell()

    def split(self, parts: list[tuple[int, DeliveryOutcome]]) -> None:
        """Replace this outcome by the outcomes of the batch's parts, and call every listener.

        Each part comes with the index of its first record.
        """
        for _, part in parts:
            part.is_watched = self.is_watched
        self.parts = parts
        self._tell()

    def _tell(self) -> None:
        # A pop hands each listener to exactly one of the two threads.
        while self._listeners:
            try:
                listener = self._listeners.pop(0)
            except IndexError:
                return
            listener()

    def leaves(self) -> list[DeliveryOutcome]:
        """Return the outcomes of the batches that were sent: this one, or those of its parts after splits."""
        if self.parts is None:
            return [self]
        return [leaf for _, part in self.parts for leaf in part.leaves()]

    async def wait(self) -> None:
        """Wait until every record of the batch is acknowledged or has failed.

        Any event loop may await this.
        """
        while (open_one := next((leaf for leaf in self.leaves() if not leaf.is_settled), None)) is not None:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            open_one.on_settled(partial(_wake, loop, future))
            await future

    def wait_blocking(self, timeout: float | None) -> bool:
        """Block this thread until the batch is acknowledged or has failed; return False after the timeout.

        `timeout` is in seconds; None means no limit.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (open_one := next((leaf for leaf in self.leaves() if not leaf.is_settled), None)) is not None:
            woken = threading.Lock()
            woken.acquire()
            open_one.on_settled(woken.release)
            left = -1 if deadline is None else max(deadline - time.monotonic(), 0)
            if not woken.acquire(timeout=left):
                return False
        return True

    def part_of(self, index: int) -> tuple[DeliveryOutcome, int]:
        """Return the outcome of record `index` after any splits, and the record's index in that part."""
        outcome = self
        while outcome.parts is not None:
            first, part = outcome.parts[0]
            for start, candidate in outcome.parts:
                if start <= index:
                    first, part = start, candidate
            outcome, index = part, index - first
        return outcome, index


class PlainPlace:
    """The base of `Delivery` without compiled code: a batch's outcome, and a record's index in the batch."""

    __slots__ = ("_index", "_outcome", "_timestamp")

    _outcome: DeliveryOutcome
    _index: int
    _timestamp: int


if TYPE_CHECKING:
    Place = PlainPlace
else:
    Place = getattr(native.LIBRARY, "Place", PlainPlace)


@with_hints("Delivery", leave=("__init__", "done"))
class Delivery(Place):
    """The delivery of one record. Await it in asyncio; in other threads, `result()` waits for it."""

    __slots__ = ()

    def __init__(self, outcome: DeliveryOutcome, index: int, timestamp: int) -> None:
        self._outcome = outcome
        self._index = index
        self._timestamp = timestamp

    def __repr__(self) -> str:
        outcome, _ = self._outcome.part_of(self._index)
        if not outcome.is_settled:
            return printable(f"<Delivery to {outcome.topic}-{outcome.partition}, under way>")
        outcome_text = outcome.error or self._metadata()
        return printable(f"<Delivery to {outcome.topic}-{outcome.partition}: {outcome_text}>")

    @property
    def partition(self) -> int:
        """The partition that the record goes to, which is known before the record is acknowledged."""
        return self._outcome.partition

    def done(self) -> bool:
        """Return True if the record has been acknowledged, or has failed permanently."""
        return self._outcome.part_of(self._index)[0].is_settled

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait up to `timeout` seconds, and return the record's partition, offset and timestamp.

        Inside the event loop that sends the record, await the delivery instead.

        Raises:
            RequestTimeoutError: the outcome is not known yet; the delivery continues.
            PenstockError: the record could not be delivered.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._metadata()

    def exception(self, timeout: float | None = None) -> PenstockError | None:
        """Wait as `result` does; return the error of a failed delivery, or None after a success."""
        self._outcome.is_watched = True
        if not self.done() and not self._outcome.wait_blocking(timeout):
            raise RequestTimeoutError(
                f"the record for {self._outcome.topic}-{self.partition} was not acknowledged within "
                f"{timeout:g} s (its delivery goes on)"
            )
        return self._outcome.part_of(self._index)[0].error

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Call `callback(self)` when the delivery is done, at once if it is done already.

        The thread that settles the delivery makes the call. An exception in the callback is logged and not
        raised, so that the other callbacks are called as well.
        """

        def call() -> None:
            try:
                callback(self)
            except (Exception, SystemExit):
                log.exception("a callback for a record of %s has raised", self._outcome.topic)

        self._outcome.is_watched = True
        self._on_done(call)

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        self._outcome.is_watched = True
        if not self.done():
            yield from self._outcome.wait().__await__()
        return self.result()

    def _on_done(self, listener: Callable[[], None]) -> None:
        """Call `listener` once this record is acknowledged or has failed, also after splits of its batch."""
        outcome, _ = self._outcome.part_of(self._index)

        def listen_again() -> None:
            if self.done():
                listener()
            else:
                self._on_done(listener)

        outcome.on_settled(listen_again)

    def _metadata(self) -> RecordMetadata:
        outcome, index = self._outcome.part_of(self._index)
        offset = outcome.base_offset + index if outcome.base_offset >= 0 else -1
        timestamp = outcome.log_append_time if outcome.log_append_time >= 0 else self._timestamp
        return RecordMetadata(outcome.topic, outcome.partition, offset, timestamp)


class FirstFailure:
    """The first error among many deliveries. It watches each batch once, not each record."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: PenstockError | None = None
        """The first error, or None if no delivery has failed."""

    def watch(self, delivery: Delivery) -> None:
        """Watch the batch of this delivery, and set `error` if the batch is the first to fail."""
        outcome = delivery._outcome
        if not outcome.is_watched:
            outcome.is_watched = True
            self._listen(outcome)

    def _listen(self, outcome: DeliveryOutcome) -> None:
        def settled() -> None:
            if outcome.parts is not None:
                for _, part in outcome.parts:
                    self._listen(part)
            elif self.error is None:
                self.error = outcome.error

        outcome.on_settled(settled)


def _wake(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    try:
        is_here = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_here = False
    if is_here:
        _finish(future)
    elif not loop.is_closed():
        loop.call_soon_threadsafe(_finish, future)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def settled_within(outcomes: Iterable[DeliveryOutcome], timeout: float | None) -> bool:
    """Wait until all batches are acknowledged or have failed; return False if not within `timeout`.

    `timeout` is in seconds; None means no limit.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    return all(
        outcome.wait_blocking(None if deadline is None else deadline - time.monotonic())
        for outcome in outcomes
    )
