"""Bounded queues of messages between fetchers and the application, and the consumed offset of each log."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from penstock.v07.groups.coordination import BrokerPartition
from penstock.v07.message_set import PlainMessage

BrokerTopicPartition = tuple[str, BrokerPartition]
"""A topic and a partition of it on one broker."""


ERRORS_KEPT = 100
"""The maximum number of errors that wait for a `get`; beyond that, the oldest are dropped."""


class ConsumedMessage(NamedTuple):
    """A message that a consumer returns. `next_offset` is the offset at which reading continues after it."""

    topic: str
    broker_id: int
    partition: int
    offset: int
    next_offset: int
    payload: bytes


class Stream:
    """The queue of messages for one thread of an application, from the partitions assigned to the stream.

    `get` advances the consumed offset of a partition. `clear` and `get` exclude each other, so that a commit
    after `clear` covers exactly the messages that `get` has returned.
    """

    def __init__(self, name: str, chunks_max: int) -> None:
        self.name = name
        self._chunks_max = chunks_max
        self._chunks: deque[tuple[BrokerTopicPartition, deque[PlainMessage]]] = deque()
        self._positions: dict[BrokerTopicPartition, int] = {}
        self._generation = 0
        self._errors: deque[BaseException] = deque(maxlen=ERRORS_KEPT)
        self._is_closed = False
        self._changed = threading.Condition()

    def own(self, positions: Mapping[BrokerTopicPartition, int]) -> int:
        """Replace the partitions by new ones; return the generation that fetchers must pass to `put`."""
        with self._changed:
            self._chunks.clear()
            self._positions = dict(positions)
            self._generation += 1
            self._changed.notify_all()
            return self._generation

    def clear(self) -> dict[BrokerTopicPartition, int]:
        """Drop all partitions and messages; return the consumed offsets."""
        with self._changed:
            positions, self._positions = self._positions, {}
            self._chunks.clear()
            self._generation += 1
            self._changed.notify_all()
            return positions

    def positions(self) -> dict[BrokerTopicPartition, int]:
        """Return the consumed offset of each partition: the next byte to read."""
        with self._changed:
            return dict(self._positions)

    def put(self, generation: int, tp: BrokerTopicPartition, messages: list[PlainMessage]) -> bool:
        """Wait for room, and add messages; return False (dropped) if `generation` is not the current one."""
        with self._changed:
            while len(self._chunks) >= self._chunks_max and generation == self._generation:
                self._changed.wait()
            if generation != self._generation or self._is_closed:
                return False
            self._chunks.append((tp, deque(messages)))
            self._changed.notify_all()
            return True

    def fail(self, error: BaseException) -> None:
        """Make a later `get` raise `error`, after all earlier messages have been returned."""
        with self._changed:
            self._errors.append(error)
            self._changed.notify_all()

    def close(self) -> None:
        """Close the stream: `get` returns None from now on."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def get(self, timeout_s: float | None = None) -> ConsumedMessage | None:
        """Return the next message, or None after `timeout_s` seconds, or when the consumer is closed.

        Raises:
            PenstockError: an error after which a fetcher could not continue.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while not self._chunks:
                if self._errors:
                    raise self._errors.popleft()
                left = None if deadline is None else deadline - time.monotonic()
                if self._is_closed or (left is not None and left <= 0):
                    return None
                self._changed.wait(left)
            tp, messages = self._chunks[0]
            message = messages.popleft()
            if not messages:
                self._chunks.popleft()
                self._changed.notify_all()
            topic, at = tp
            self._positions[tp] = message.next_offset
            return ConsumedMessage(
                topic, at.broker_id, at.partition, message.offset, message.next_offset, message.payload
            )
