"""Records what Penstock's own clients do during a block, without changes to the application.

The methods that the blocking and the asyncio clients share are wrapped in their classes until the block ends.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from penstock.client.fetch.consumer import AsyncConsumer
from penstock.client.fetch.fetched_records import FetchedRecords
from penstock.client.produce.producer import AsyncProducer
from penstock.errors import KafkaError, RequestTimeoutError
from penstock.protocol.error_codes import ErrorCode
from penstock.testing.chaos.events import Outcome, outcome_of

if TYPE_CHECKING:
    from penstock.client.produce.delivery import Delivery
    from penstock.testing.chaos.recorder import Recorder

GONE_ON = frozenset(
    (
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    )
)
"""Error codes of an offset commit that mean that the group has rebalanced without the member."""


@contextmanager
def watching(recorder: Recorder) -> Iterator[None]:
    """Record in `recorder` what every client of Penstock in this process does, until the block ends."""
    watch = _Watch(recorder)
    with ExitStack() as stack:
        for kind, name, wrap in (
            (AsyncProducer, "try_send", watch.try_send),
            (AsyncProducer, "begin_transaction", watch.begin_transaction),
            (AsyncProducer, "commit_transaction", watch.commit_transaction),
            (AsyncProducer, "leave_transaction", watch.leave_transaction),
            (FetchedRecords, "poll_now", watch.poll_now),
            (FetchedRecords, "iterate_now", watch.iterate_now),
            (FetchedRecords, FetchedRecords.forget.__name__, watch.forget),
            (AsyncConsumer, "hold", watch.forget),
            (AsyncConsumer, "commit", watch.commit),
            (AsyncConsumer, "commit_async", watch.commit_async),
        ):
            stack.enter_context(_wrapped(kind, name, wrap))
        yield


@contextmanager
def _wrapped(kind: type, name: str, wrap: Callable[[Any], Any]) -> Iterator[None]:
    """Replace a method of a class by `wrap(method)` until the block ends."""
    is_own = name in vars(kind)
    original = getattr(kind, name)
    setattr(kind, name, wrap(original))
    try:
        yield
    finally:
        if is_own:
            setattr(kind, name, original)
        else:
            delattr(kind, name)


class _Clients:
    """Assigns numbers to clients as long as they exist, and counts each producer's transactions."""

    def __init__(self) -> None:
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._next = itertools.count(1)
        self._lock = threading.Lock()
        self._begun: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def number(self, client: Any) -> int:
        """Return the number of a client. A consumer and its buffer of fetched records share one number."""
        client = getattr(client, "_fetched", client)
        with self._lock:
            found = self._numbers.get(client)
            if found is None:
                found = self._numbers[client] = next(self._next)
            return found

    def begin(self, client: Any) -> None:
        """Count a transaction that a producer has begun."""
        with self._lock:
            self._begun[client] = self._begun.get(client, 0) + 1

    def transaction(self, client: Any) -> int:
        """Return the number of a producer's latest transaction, or 0 before the first one."""
        with self._lock:
            return self._begun.get(client, 0)


class _Watch:
    """Makes wrappers for client methods; the wrappers record each call in a `Recorder`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._clients = _Clients()

    # --- producers ---------------------------------------------------------------------------------------

    def try_send(self, original: Any) -> Any:
        """Return a wrapper of `try_send`, the method that accepts a record; it records each send."""
        recorder, clients, order = self._recorder, self._clients, threading.Lock()

        def try_send(
            producer: Any, topic: Any, value: Any, key: Any, partition: Any, timestamp: Any, headers: Any
        ) -> Any:
            # Threads that send at a time are recorded in the order in which their records are accepted.
            with order:
                accepted = original(producer, topic, value, key, partition, timestamp, headers)
                if accepted is not None:
                    delivery = accepted[0]
                    recorder.sent(
                        topic,
                        delivery.partition,
                        _bytes(value),
                        _bytes(key),
                        headers=tuple(headers or ()),
                        delivery=_delivery(delivery),
                        client=clients.number(producer),
                        transaction=clients.transaction(producer),
                    )
            return accepted

        return try_send

    def begin_transaction(self, original: Any) -> Any:
        """Return a wrapper of `begin_transaction` that counts the transaction."""

        async def begin_transaction(producer: Any) -> None:
            await original(producer)
            self._clients.begin(producer)

        return begin_transaction

    def commit_transaction(self, original: Any) -> Any:
        """Return a wrapper of `commit_transaction` that records the end of the transaction."""

        async def commit_transaction(producer: Any) -> None:
            await original(producer)
            self._ended(producer)

        return commit_transaction

    def leave_transaction(self, original: Any) -> Any:
        """Return a wrapper of `leave_transaction` that records a commit if the block raised no exception."""

        async def leave_transaction(producer: Any, exc: BaseException | None) -> None:
            await original(producer, exc)
            if exc is None:
                self._ended(producer)

        return leave_transaction

    def _ended(self, producer: Any) -> None:
        number = self._clients.number(producer)
        self._recorder.transaction_ended(number, self._clients.transaction(producer), is_committed=True)

    # --- consumers ---------------------------------------------------------------------------------------

    def poll_now(self, original: Any) -> Any:
        """Return a wrapper of `poll_now` that adds the records returned by a poll to the history."""

        def poll_now(consumer: Any, limit: int) -> Any:
            records = original(consumer, limit)
            self._recorder.polled(records, self._clients.number(consumer))
            return records

        return poll_now

    def iterate_now(self, original: Any) -> Any:
        """Return a wrapper of `iterate_now` that adds each returned record to the history."""

        def iterate_now(consumer: Any) -> Iterator[Any]:
            number = self._clients.number(consumer)
            for record in original(consumer):
                self._recorder.polled((record,), number)
                yield record

        return iterate_now

    def forget(self, original: Any) -> Any:
        """Return a wrapper of the methods that change a consumer's positions; it records the change."""

        def forget(consumer: Any, partitions: Any) -> None:
            moved = list(partitions)
            original(consumer, moved)
            self._recorder.moved(moved, self._clients.number(consumer))

        return forget

    def commit(self, original: Any) -> Any:
        """Return a wrapper of the blocking commit that records a refusal by the group."""

        async def commit(consumer: Any, offsets: Any = None) -> None:
            try:
                await original(consumer, offsets)
            except KafkaError as error:
                self._refused(consumer, error)
                raise

        return commit

    def commit_async(self, original: Any) -> Any:
        """Return a wrapper of the commit in the background that records a refusal by the group."""

        def commit_async(consumer: Any, offsets: Any = None, when_done: Any = None) -> None:
            def noted(committed: Any, error: Any) -> None:
                if isinstance(error, KafkaError):
                    self._refused(consumer, error)
                if when_done is not None:
                    when_done(committed, error)

            original(consumer, offsets, noted)

        return commit_async

    def _refused(self, consumer: Any, error: KafkaError) -> None:
        if error.code in GONE_ON:
            self._recorder.commit_refused(error.code, self._clients.number(consumer))


def _delivery(delivery: Delivery) -> Callable[[], tuple[Outcome, int, str]]:
    """Return a function that returns the current outcome, offset and reason of a delivery at each call."""

    def look() -> tuple[Outcome, int, str]:
        with contextlib.suppress(RequestTimeoutError):
            if delivery.done():
                error = delivery.exception(0)
                if error is not None:
                    return outcome_of(error), -1, str(error)
                return "acknowledged", delivery.result(0).offset, ""
        return "unknown", -1, "it was not waited for"

    return look


def _bytes(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value
