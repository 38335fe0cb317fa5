"""Fetch sessions (KIP-227): a fetcher names its partitions once, and after that only changes.

For every session the broker keeps each partition's request and the offsets of its last response. A response
has only the partitions that have records or have changed. A session has an id and an epoch that counts its
requests, so that an old request is not mistaken for the next. The number of sessions is limited. A new
session replaces an idle or smaller one, or is refused. A fetcher without a session names all its partitions
in every request. A session ends with the connection that has begun it, since clients never continue a session
over another connection.

The module processes decoded requests and responses, and does not read logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from penstock.protocol.messages.fetch_request import FetchPartition, FetchTopic, ForgottenTopic
from penstock.protocol.messages.fetch_response import PartitionData

_new = object.__new__

NO_SESSION = 0
"""The session id, 0, in a Fetch request that belongs to no session."""

FINAL_EPOCH, FIRST_EPOCH = -1, 0
"""FINAL_EPOCH (-1) in a request ends the session that the request names, without a new one. FIRST_EPOCH
(0) begins a new session."""

_EPOCH_MAX = 2**31 - 1

EVICTION_MS = 120_000
"""The time in ms after which a new fetch session may replace an older one (Kafka's value). The older
one must have been idle for this time, or be this old and have fewer partitions than the new one.
"""

SESSION_BYTES, PARTITION_BYTES = 1000, 700
"""The approximate size in memory, in bytes, of a session and of each partition in it."""

SESSIONS_PER_CONNECTION_MAX = 4
"""The maximum number of fetch sessions of a connection. If it is exceeded, the oldest session ends.
Clients have one session for each fetcher thread.
"""

FollowedPartition = tuple[str, bytes, int]
"""The key of a partition in a fetch session: topic name (empty from Fetch v13 on), topic id (only from
v13 on), and partition number.
"""


class KeptBudget(Protocol):
    """The interface of the memory budget for fetch sessions and all other state of a broker's clients."""

    def add(self, name: str, size: Callable[[], int], give_up: Callable[[], bool] | None = None) -> None:
        """Register a kind of state. `size` returns its memory in bytes; `give_up` evicts some of it."""

    def has_room_for(self, size: int) -> bool:
        """Return True if `size` bytes more fit, after eviction of other kinds of state if necessary."""


class Followed:
    """One partition in a fetch session: its newest request entry, and the offsets in its last response."""

    __slots__ = ("asked", "high_watermark", "log_start_offset")

    def __init__(self, asked: FetchPartition) -> None:
        self.asked = asked
        self.high_watermark = self.log_start_offset = -1

    def take_news(self, answer: PartitionData) -> bool:
        """Record the partition's response; return True if it has records, an error, or changed offsets."""
        if answer.error_code:
            # The first answer after the error counts as changed.
            self.high_watermark = -1
            return True
        is_news = (
            bool(answer.records)
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
            or answer.diverging_epoch.end_offset >= 0
        )
        self.high_watermark, self.log_start_offset = answer.high_watermark, answer.log_start_offset
        return is_news


class FetchSession:
    """A fetch session: the partitions that one fetcher reads. `partitions` has them in reading order."""

    __slots__ = ("by_id", "created_ms", "epoch", "id", "partitions", "size_bytes", "used_ms")

    def __init__(self, session_id: int, by_id: bool, now_ms: int) -> None:
        self.id = session_id
        self.by_id = by_id
        self.epoch = FIRST_EPOCH
        self.created_ms = self.used_ms = now_ms
        self.partitions: dict[FollowedPartition, Followed] = {}
        self.size_bytes = SESSION_BYTES

    def update(self, topics: Iterable[FetchTopic], forgotten: Iterable[ForgottenTopic]) -> None:
        """Add the partitions that a request names, and remove those in its `forgotten_topics_data`."""
        for topic in topics:
            for asked in topic.partitions:
                partition = (topic.topic, topic.topic_id, asked.partition)
                followed = self.partitions.get(partition)
                if followed is None:
                    self.partitions[partition] = Followed(asked)
                    self.size_bytes += PARTITION_BYTES + len(topic.topic)
                else:
                    followed.asked = asked
        for gone in forgotten:
            for index in gone.partitions:
                if self.partitions.pop((gone.topic, gone.topic_id, index), None) is not None:
                    self.size_bytes -= PARTITION_BYTES + len(gone.topic)

    def topics(self) -> list[FetchTopic]:
        """Return all partitions of the session, grouped by topic as in a full request."""
        found: list[FetchTopic] = []
        for (name, topic_id, _), followed in self.partitions.items():
            last = found[-1] if found else None
            if last is None or (last.topic, last.topic_id) != (name, topic_id):
                last = _new(FetchTopic)  # filled here, which takes half of the time of a call of the class
                last.topic, last.topic_id, last.partitions, last.unknown_tags = name, topic_id, [], None
                found.append(last)
            last.partitions.append(followed.asked)
        return found

    def take_news(self, partition: FollowedPartition, answer: PartitionData) -> bool:
        """Record the response for a partition; return True if the response has to be sent to the client.

        Partitions that had records are read last the next time, so that no partition is starved.
        """
        followed = self.partitions.get(partition)
        if followed is None:
            return True
        if answer.records:
            self.partitions[partition] = self.partitions.pop(partition)
        return followed.take_news(answer)

    def advance(self, now_ms: int) -> None:
        """Advance the session's epoch to the one that the next request must carry."""
        self.epoch = 1 if self.epoch >= _EPOCH_MAX else self.epoch + 1
        self.used_ms = now_ms


class FetchSessions:
    """The fetch sessions of a broker, at most `slots` (`max.incremental.fetch.session.cache.slots`).

    `kept` is the memory budget that the sessions share with other state. `draw_id` returns random
    numbers of 32 bits, which become ids that cannot be guessed.
    """

    def __init__(self, slots: int, kept: KeptBudget, draw_id: Callable[[], int]) -> None:
        self._draw_id = draw_id
        self._slots = slots
        self._kept = kept
        self._sessions: dict[int, FetchSession] = {}
        self.size_bytes = 0
        """The approximate size of all sessions in memory, in bytes."""
        kept.add("fetch sessions", lambda: self.size_bytes, self._end_idlest)

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def remove(self, session_id: int) -> None:
        """End a session. Does nothing if no session has this id."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.size_bytes -= session.size_bytes

    def begin(
        self, topics: list[FetchTopic], by_id: bool, now_ms: int, owned: OwnedSessions
    ) -> FetchSession | None:
        """Begin and return a session; None if slots or memory are full, or `topics` has no partition.

        `owned` has the sessions that the connection has begun; the new one is added.
        """
        size = sum(len(topic.partitions) for topic in topics)
        if not size:
            return None
        while len(owned.ids) >= SESSIONS_PER_CONNECTION_MAX:
            self.remove(owned.ids.pop(0))
        if not (len(self._sessions) < self._slots or self._make_room(size, now_ms)):
            return None
        session = FetchSession(self._fresh_id(), by_id, now_ms)
        session.update(topics, ())
        if not self._kept.has_room_for(session.size_bytes):
            return None
        session.advance(now_ms)
        self._sessions[session.id] = session
        self.size_bytes += session.size_bytes
        owned.ids.append(session.id)
        return session

    def update(
        self, session: FetchSession, topics: list[FetchTopic], forgotten: list[ForgottenTopic], now_ms: int
    ) -> bool:
        """Apply the next request of a session; return False if the session was ended to save memory."""
        before = session.size_bytes
        session.update(topics, forgotten)
        session.advance(now_ms)
        grown = session.size_bytes - before
        self.size_bytes += grown
        if grown > 0 and not self._kept.has_room_for(0):
            self.remove(session.id)
        return session.id in self._sessions

    def _end_idlest(self) -> bool:
        """End the session that has been idle for longest; return False if there is none."""
        idlest = min(self._sessions.values(), key=lambda session: session.used_ms, default=None)
        if idlest is None:
            return False
        self.remove(idlest.id)
        return True

    def _make_room(self, size: int, now_ms: int) -> bool:
        """End an idle session, or an old one with fewer than `size` partitions; return False without one."""
        if not self._sessions:
            return False
        idle = min(self._sessions.values(), key=lambda session: session.used_ms)
        if now_ms - idle.used_ms > EVICTION_MS:
            self.remove(idle.id)
            return True
        old = [s for s in self._sessions.values() if now_ms - s.created_ms > EVICTION_MS]
        smallest = min(old, key=lambda session: len(session.partitions), default=None)
        if smallest is None or len(smallest.partitions) >= size:
            return False
        self.remove(smallest.id)
        return True

    def _fresh_id(self) -> int:
        while True:
            number = self._draw_id() & _EPOCH_MAX
            if number != NO_SESSION and number not in self._sessions:
                return number


class OwnedSessions:
    """The fetch sessions that one connection has begun, which end with the connection."""

    def __init__(self, sessions: FetchSessions) -> None:
        self.ids: list[int] = []
        """The ids of at most `SESSIONS_PER_CONNECTION_MAX` sessions, the oldest first."""
        self._sessions = sessions

    def close(self) -> None:
        """End all sessions of the connection."""
        for session_id in self.ids:
            self._sessions.remove(session_id)
        self.ids.clear()
