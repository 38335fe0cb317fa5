"""Share groups on a broker that leads partitions: sessions, share partitions, and lock timers.

`ShareService` corresponds to Kafka's SharePartitionManager: it does what concerns several partitions. Its
callers are the handlers of ShareFetch and ShareAcknowledge, timers, and connections that end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.broker.coordination.alarm import Alarm
from penstock.broker.coordination.timers import NEVER, Timer, Timers
from penstock.broker.metadata.image import DEAD_LETTERS_LEVEL, share_level
from penstock.broker.sharing.dead_letters import DeadLetterMetadata, DeadLetterSettings
from penstock.broker.sharing.led_partition import (
    LED_BYTES,
    LedPartition,
    LedPartitionHost,
    SharePartitionKey,
)
from penstock.broker.sharing.sessions import (
    MemberKey,
    OwnedShareSessions,
    ShareSession,
    ShareSessions,
    TopicIdPartition,
)
from penstock.broker.sharing.settings import SharingSettings, settings_of
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import GROUP_RESOURCE

if TYPE_CHECKING:
    from penstock.broker.metadata.replica_manager import Topic
    from penstock.broker.session import Session

IDLE_S = 300.0
"""The seconds after the last fetch for which a share partition stays in memory."""


class ShareHostSettings(DeadLetterSettings, Protocol):
    """The interface through which `ShareService` reads the broker's settings."""

    def behaves_since(self, *numbers: int) -> bool:
        """Return True if the broker behaves as this release of Kafka or a newer one."""


class ShareHostMetadata(DeadLetterMetadata, Protocol):
    """The interface of the broker's metadata that `ShareService` uses."""

    @property
    def features(self) -> Mapping[str, int]: ...
    @property
    def resource_configs(self) -> Mapping[tuple[int, str], Mapping[str, str]]: ...

    def topic_by_id(self, topic_id: bytes) -> Topic:
        """Return a topic by its id.

        Raises:
            KafkaError: UNKNOWN_TOPIC_ID (100).
        """


class ShareHost(LedPartitionHost, Protocol):
    """The interface of the broker that `ShareService` uses."""

    @property
    def config(self) -> ShareHostSettings: ...
    @property
    def cluster(self) -> ShareHostMetadata: ...


class ShareService:
    """Manages the share partitions that one broker leads, and the share sessions on this broker."""

    def __init__(self, host: ShareHost) -> None:
        self._host = host
        self.sessions = ShareSessions(
            lambda: host.config.integer("group.share.max.share.sessions"), host.kept
        )
        self.partitions: dict[SharePartitionKey, LedPartition] = {}
        """The share partitions whose state has been read, or is being read."""
        self._timers = Timers()
        self._alarm = Alarm(host.purgatory, self._wake)
        host.kept.add("share sessions", lambda: self.sessions.size_bytes)
        host.kept.add("share partitions", self._size_bytes, self._drop_idlest, loss=1)

    def settings_of(self, group_id: str) -> SharingSettings:
        """Return the settings of a share group: its own settings, or else the broker's."""
        own = self._host.cluster.resource_configs.get((GROUP_RESOURCE, group_id), {})
        host = self._host
        has_dead_letters = share_level(host.cluster.features) >= DEAD_LETTERS_LEVEL
        return settings_of(
            own, host.config, has_dead_letters=has_dead_letters and host.config.behaves_since(4, 4)
        )

    # --- partitions --------------------------------------------------------------------------------------

    def topic_of(self, topic_id: bytes) -> Topic:
        """Return a topic by its id.

        Raises:
            KafkaError: UNKNOWN_TOPIC_ID (100).
        """
        return self._host.cluster.topic_by_id(topic_id)

    def find(self, key: SharePartitionKey) -> LedPartition | None:
        """Return a share partition whose state was read or is being read, or None if it is not open.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER (6), UNKNOWN_TOPIC_ID (100), UNKNOWN_TOPIC_OR_PARTITION (3).
        """
        partition = self.topic_of(key.topic_id).partition(key.partition)
        led = self.partitions.get(key)
        if led is not None and not (led.is_current and led.partition is partition):
            led.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            led = None
        partition.check_leads()
        return led

    def open(self, key: SharePartitionKey, member_id: str) -> LedPartition:
        """Return a share partition for a member's session; begin to read its state if it is not in memory.

        For the first member the state is read again, because clients may have set the offsets of the group
        while it had no members.

        Raises:
            KafkaError: the errors of `find`, or there is no memory (COORDINATOR_NOT_AVAILABLE, 15).
        """
        led = self.find(key)
        if led is None:
            if not self._host.kept.has_room_for(LED_BYTES):
                raise error_for(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE, "the broker has no memory for more share partitions"
                )
            led = self.partitions[key] = LedPartition(
                key,
                self.topic_of(key.topic_id).partition(key.partition),
                self._host,
                lambda: self.settings_of(key.group_id),
                self._set_timer,
                self._forget,
            )
            led.load()
        elif not led.members and led.share is not None:
            led.load()
        led.members.add(member_id)
        led.used_s = self._host.clock.monotonic()
        return led

    def _forget(self, led: LedPartition) -> None:
        if self.partitions.get(led.key) is led:
            del self.partitions[led.key]

    def _size_bytes(self) -> int:
        return sum(led.size_bytes for led in self.partitions.values())

    def _drop_idlest(self) -> bool:
        """Drop the least recently used share partition that can be dropped; return False if there is none."""
        idle = [led for led in self.partitions.values() if led.may_be_dropped]
        if not idle:
            return False
        min(idle, key=lambda led: led.used_s).end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return True

    # --- sessions ----------------------------------------------------------------------------------------

    def owned_by(self, connection: Session) -> OwnedShareSessions:
        """Return the object that holds all share sessions begun on a connection."""
        owned = connection.resource(OwnedShareSessions)
        if owned is None:
            owned = OwnedShareSessions(self.close)
            connection.keep(owned)
        return owned

    def begin(self, key: MemberKey, connection: Session) -> ShareSession:
        """Begin a session. The member's earlier session ends, but its acquired records stay acquired.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED (133).
        """
        before = self.sessions.get(key)
        if before is not None:
            self._leave(before, before.partitions)
        return self.sessions.begin(key, self.owned_by(connection))

    def close(self, session: ShareSession) -> None:
        """End a session, and release the records that its member has acquired."""
        self.sessions.remove(session)
        for led in self._leave(session, session.partitions):
            led.release(session.key.member_id)

    def forget(self, session: ShareSession, partitions: Sequence[TopicIdPartition]) -> None:
        """Remove partitions from a session, so that it no longer fetches from them."""
        self.sessions.forget(session, partitions)
        self._leave(session, partitions)

    def _leave(self, session: ShareSession, partitions: Iterable[TopicIdPartition]) -> list[LedPartition]:
        """Remove a member from share partitions; return those of them whose state is in memory."""
        found = []
        for topic_id, index in partitions:
            led = self.partitions.get(SharePartitionKey(session.key.group_id, topic_id, index))
            if led is not None:
                led.members.discard(session.key.member_id)
                found.append(led)
        return found

    # --- on demand ---------------------------------------------------------------------------------------

    def end_locks(self, group_id: str, topic: str | None = None, partition: int | None = None) -> int:
        """End a group's acquisition locks on all records, or only in one topic or partition.

        Returns the number of released records.
        """
        return sum(
            led.end_locks()
            for key, led in list(self.partitions.items())
            if key.group_id == group_id
            and topic in (None, led.partition.topic)
            and partition in (None, key.partition)
        )

    def end_sessions(self, group_id: str, member_id: str | None = None) -> int:
        """End the sessions of a group or a member, as if memory had run out; return the number ended."""
        found = self.sessions.of_group(group_id, member_id)
        for session in found:
            self.close(session)
        return len(found)

    # --- time --------------------------------------------------------------------------------------------

    def _set_timer(self, timer: Timer, when: float) -> None:
        if when < NEVER:
            self._timers.set(timer, when)
        else:
            timer.stop()
        self._alarm.set(self._timers.next_deadline())

    def _wake(self) -> None:
        try:
            self._timers.run(self._host.clock.monotonic())
        finally:
            self._alarm.set(self._timers.next_deadline())

    def maintain(self) -> None:
        """Drop share partitions that this node no longer leads, and idle ones."""
        self._alarm.set(self._timers.next_deadline())  # in case that an exception has lost it
        now = self._host.clock.monotonic()
        for key, led in list(self.partitions.items()):
            try:
                self.find(key)
            except KafkaError:
                led.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            else:
                if led.may_be_dropped and led.used_s + IDLE_S < now:
                    led.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
