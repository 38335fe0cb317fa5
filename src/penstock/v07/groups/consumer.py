"""The group consumer of Kafka 0.7: members share the partitions of all brokers through ZooKeeper.

No coordinator assigns partitions: every member reads the same nodes and computes the same assignment
(`coordination.assign`). A member gives up all its partitions before it claims any. It claims a partition by
creating an ephemeral node; if another member's node is still there, it releases its own nodes and retries.

One worker thread rebalances and commits; one fetcher thread per broker fills the streams with messages.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.common.logs import logger_named
from penstock.errors import ConfigError, DecodeError, NetworkError, PenstockError
from penstock.v07.driver import MESSAGE_BYTES_MAX, BrokerAddress, Driver07
from penstock.v07.groups import zookeeper
from penstock.v07.groups.cluster import Cluster07
from penstock.v07.groups.coordination import (
    BrokerPartition,
    Snapshot,
    StreamSubscription,
    assign,
    ids_path,
    offset_path,
    owner_path,
    parse_offset,
    parse_pattern,
    parse_subscription,
    threads,
)
from penstock.v07.groups.fetching import Fetcher07, FetchTarget
from penstock.v07.groups.streams import BrokerTopicPartition, ConsumedMessage, Stream

if TYPE_CHECKING:
    from kazoo.client import KazooClient

logger = logger_named("penstock.v07")

RESET_TO = ("smallest", "largest")

ZOOKEEPER_NAMES = {
    "zk_sessiontimeout_ms": "session_timeout_ms",
    "zk_connectiontimeout_ms": "connection_timeout_ms",
}
"""A dict from the name of a setting in Kafka 0.7, with ``_`` instead of dots, to the field of
`GroupSettings`.
"""


class GroupSettings(NamedTuple):
    """The consumer's settings, with 0.7's defaults (Kafka 0.7's names are in parentheses if they differ)."""

    autocommit_enable: bool = True
    autocommit_interval_ms: int = 10_000
    autooffset_reset: str = "smallest"
    """``smallest``, ``largest``, or anything else for an error if no offset is stored."""
    fetch_size: int = 1 << 20
    fetcher_backoff_ms: int = 1_000
    queuedchunks_max: int = 10
    rebalance_retries_max: int = 4
    rebalance_backoff_ms: int = 2_000
    session_timeout_ms: int = 6_000
    """(``zk.sessiontimeout.ms``) The length of the ZooKeeper session."""
    connection_timeout_ms: int = 0
    """(``zk.connectiontimeout.ms``) The timeout for the first connection to ZooKeeper; 0 means
    `session_timeout_ms`."""
    socket_timeout_ms: int = 30_000
    penstock_message_bytes_max: int = MESSAGE_BYTES_MAX
    """(Penstock's own) A larger message is an error, because at a wrong offset any bytes look like a
    length."""


class GroupConsumer07:
    """One member of a consumer group of Kafka 0.7.

        with GroupConsumer07("localhost:2181", "readers", ["events"]) as consumer:
            for message in consumer:
                ...

    `topics` are names, or names with a number of streams each; `pattern` (or `exclude`) subscribes to all
    topics that match (or do not). `streams` lists the streams, for one thread each; iterating over the
    consumer reads all of them. Offsets of messages that were returned are committed every
    ``autocommit_interval_ms``, at each rebalance and at the end; `commit` does it on demand.

    Raises:
        ConfigError: neither or several of topics, pattern and exclude, or an unknown setting.
        NetworkError: no ZooKeeper answers, or the partitions could not be claimed.
    """

    def __init__(
        self,
        zookeeper: str,
        group: str,
        topics: Sequence[str] | Mapping[str, int] = (),
        *,
        pattern: str | None = None,
        exclude: str | None = None,
        stream_count: int = 1,
        consumer_id: str | None = None,
        digest: str | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self._subscription = _subscription(topics, pattern, exclude, stream_count)
        self._settings = _settings(settings or {})
        self.group = group
        self.member = f"{group}_{consumer_id or _generated_id()}"
        streams = max([stream_count, *self._subscription.streams.values()])
        self.streams = [
            Stream(name, self._settings.queuedchunks_max) for name in threads(self.member, streams)
        ]
        self._hosts = zookeeper
        self._digest = digest
        self._by_name = {stream.name: stream for stream in self.streams}
        self._owned: dict[BrokerTopicPartition, str] = {}
        self._committed: dict[BrokerTopicPartition, int] = {}
        self._fetchers: list[Fetcher07] = []
        self._client: KazooClient | None = None
        self._cluster: Cluster07 | None = None
        self._lock = threading.RLock()
        self._wanted = threading.Event()
        self._is_session_new = False
        self._closing = threading.Event()
        self._next = 0
        self._worker: threading.Thread | None = None

    # --- joining and leaving -----------------------------------------------------------------------------

    def start(self) -> GroupConsumer07:
        """Join the group, claim a share of the partitions, and return this consumer.

        Raises:
            NetworkError: no ZooKeeper answers, or other members do not release the partitions. In the latter
                case the consumer stays a member until `close`.
        """
        client = zookeeper.connect(
            self._hosts,
            session_timeout_ms=self._settings.session_timeout_ms,
            connection_timeout_ms=self._settings.connection_timeout_ms,
            digest=self._digest,
            listener=self._state_changed,
        )
        self._client = client
        self._cluster = Cluster07(client, self._wanted.set)
        self._join()
        if not self._rebalance():
            raise NetworkError(
                f"group {self.group}: others still own what {self.member} should, after "
                f"{self._settings.rebalance_retries_max} tries"
            )
        self._worker = threading.Thread(target=self._run, name=f"penstock-0.7-{self.member}", daemon=True)
        self._worker.start()
        return self

    def close(self) -> None:
        """Commit if commits are automatic, leave the group, and close all connections."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._wanted.set()
        if self._worker is not None:
            self._worker.join()
        with self._lock:
            self._stop_fetching(commit=self._settings.autocommit_enable)
        for stream in self.streams:
            stream.close()
        if self._client is not None:
            zookeeper.disconnect(self._client)

    def __enter__(self) -> GroupConsumer07:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- reading -----------------------------------------------------------------------------------------

    def get(self, timeout_s: float | None = None) -> ConsumedMessage | None:
        """Return the next message of any stream, or None after `timeout_s` seconds or `close`.

        Raises:
            KafkaError, DecodeError: an error of one partition, which is read again after a rebalance.
        """
        if len(self.streams) == 1:
            return self.streams[0].get(timeout_s)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._closing.is_set():
            for _ in self.streams:
                self._next = (self._next + 1) % len(self.streams)
                message = self.streams[self._next].get(0)
                if message is not None:
                    return message
            if deadline is not None and time.monotonic() >= deadline:
                return None
            time.sleep(0.005)
        return None

    def __iter__(self) -> Iterator[ConsumedMessage]:
        while (message := self.get()) is not None:
            yield message

    @property
    def owned(self) -> dict[BrokerTopicPartition, str]:
        """The partitions of this member: topic and broker-partition, with the stream that reads each."""
        return dict(self._owned)

    def commit(self) -> None:
        """Store the consumed offsets of all partitions of this member.

        Raises:
            NetworkError: ZooKeeper does not answer now.
        """
        with self._lock:
            for stream in self.streams:
                self._store(stream.positions())

    # --- the worker --------------------------------------------------------------------------------------

    def _state_changed(self, state: str) -> None:
        """Record a change of the session's state. This method runs on kazoo's thread, which must not wait."""
        if state == "LOST":
            self._is_session_new = True
        elif state == "CONNECTED" and self._is_session_new:
            self._wanted.set()

    def _run(self) -> None:
        interval_s = self._settings.autocommit_interval_ms / 1000
        commit_at = time.monotonic() + interval_s
        while not self._closing.is_set():
            is_wanted = self._wanted.wait(max(0.0, commit_at - time.monotonic()))
            if self._closing.is_set():
                return
            try:
                if is_wanted and not self._rebalance():
                    self._wanted.set()
                elif not is_wanted and self._settings.autocommit_enable:
                    self.commit()
            except Exception as error:
                # kazoo raises when the connection goes: what was to be done is done when it is back.
                logger.warning("%s: %s; trying again", self.member, str(error) or type(error).__name__)
                if is_wanted:
                    time.sleep(min(1.0, self._settings.rebalance_backoff_ms / 1000))
                    self._wanted.set()
            if time.monotonic() >= commit_at:
                commit_at = time.monotonic() + interval_s

    def _join(self) -> None:
        assert self._client is not None
        zookeeper.hold_when_free(
            self._client,
            f"{ids_path(self.group)}/{self.member}",
            self._subscription.data(),
            creator=self.member,
            session_timeout_ms=self._settings.session_timeout_ms,
            what=f"consumer id {self.member}",
        )

    def _rebalance(self) -> bool:
        """Release all partitions, and claim the new ones.

        Return False if another member does not release one.
        """
        for tries in range(self._settings.rebalance_retries_max):
            if self._closing.is_set():
                return True
            if tries:
                time.sleep(self._settings.rebalance_backoff_ms / 1000)
            self._wanted.clear()
            with self._lock:
                if self._is_session_new:
                    self._begin_session()
                self._stop_fetching(commit=True)
                self._release()
                snapshot = self._read()
                own = assign(snapshot, self.member)
                if self._claim(own):
                    self._start_fetching(own)
                    logger.info("%s owns %d partitions", self.member, len(own))
                    return True
            logger.info("%s: others still own what is ours; waiting", self.member)
        return False

    def _begin_session(self) -> None:
        """Register in a new session. The nodes of the old one are gone, and others may own its partitions."""
        assert self._cluster is not None
        for fetcher in self._fetchers:
            fetcher.stop()
        self._fetchers = []
        for stream in self.streams:
            stream.clear()
        self._owned = {}
        self._cluster.forget()
        self._join()
        self._is_session_new = False

    def _read(self) -> Snapshot:
        assert self._client is not None
        assert self._cluster is not None
        members: dict[str, StreamSubscription] = {}
        path = ids_path(self.group)
        for name in self._client.get_children(path, watch=lambda _: self._wanted.set()):
            data = zookeeper.read(self._client, f"{path}/{name}")
            try:
                if data is not None:
                    members[name] = parse_subscription(data)
            except DecodeError as error:
                logger.warning("leaving out member %s: %s", name, error)
        names = (
            self._cluster.topics() if self._subscription.pattern is not None else self._subscription.streams
        )
        return Snapshot(members, {topic: self._cluster.counts(topic) for topic in names})

    def _release(self) -> None:
        from kazoo.exceptions import NoNodeError

        assert self._client is not None
        owned, self._owned = self._owned, {}
        for topic, tp in owned:
            with contextlib.suppress(NoNodeError):
                self._client.delete(owner_path(self.group, topic, tp))

    def _claim(self, own: Mapping[BrokerTopicPartition, str]) -> bool:
        assert self._client is not None
        for (topic, tp), stream in own.items():
            path = owner_path(self.group, topic, tp)
            if not zookeeper.hold(self._client, path, stream.encode(), creator=self.member):
                self._release()
                return False
            self._owned[topic, tp] = stream
        return True

    # --- fetching ----------------------------------------------------------------------------------------

    def _start_fetching(self, own: Mapping[BrokerTopicPartition, str]) -> None:
        assert self._cluster is not None
        brokers = self._cluster.brokers()
        starts: dict[BrokerTopicPartition, tuple[int | None, bool]] = {}
        for tp in own:
            address = brokers.get(tp[1].broker_id)
            if address is not None:
                starts[tp] = self._start_of(tp, address)
        targets: dict[BrokerAddress, list[FetchTarget]] = {}
        for name, stream in self._by_name.items():
            tps = {tp: starts[tp] for tp, owner in own.items() if owner == name and tp in starts}
            generation = stream.own({tp: at for tp, (at, _) in tps.items() if at is not None})
            for tp, (start, is_stored) in tps.items():
                target = FetchTarget(tp, start, stream, generation, is_proven=not is_stored)
                targets.setdefault(brokers[tp[1].broker_id], []).append(target)
        self._fetchers = [
            Fetcher07(
                address,
                wanted,
                fetch_bytes=self._settings.fetch_size,
                backoff_s=self._settings.fetcher_backoff_ms / 1000,
                timeout_s=self._settings.socket_timeout_ms / 1000,
                reset=self._reset,
                message_bytes_max=self._settings.penstock_message_bytes_max,
            )
            for address, wanted in targets.items()
        ]
        for fetcher in self._fetchers:
            fetcher.start()

    def _stop_fetching(self, *, commit: bool) -> None:
        """Stop fetching, drop messages that were not returned, and commit consumed offsets if `commit`.

        Must be called while this member still owns its partitions.
        """
        fetchers, self._fetchers = self._fetchers, []
        for fetcher in fetchers:
            fetcher.ask_to_stop()
        positions: dict[BrokerTopicPartition, int] = {}
        for stream in self.streams:
            positions.update(stream.clear())
        for fetcher in fetchers:
            fetcher.stop()
        if commit and positions:
            self._store(positions)

    def _start_of(self, tp: BrokerTopicPartition, address: BrokerAddress) -> tuple[int | None, bool]:
        """Return the offset to begin at, and True if it is committed, False if `autooffset_reset` chose it.

        The offset is None if the broker does not answer now: its fetcher then requests the offset again, and
        the fetchers of other brokers begin.
        """
        assert self._client is not None
        topic, at = tp
        data = zookeeper.read(self._client, offset_path(self.group, topic, at))
        if data is not None:
            try:
                self._committed[tp] = parse_offset(data)
                return self._committed[tp], True
            except DecodeError:
                logger.warning(
                    "%s: the stored offset of %s %s is %r; starting anew", self.member, topic, at, data
                )
        if self._settings.autooffset_reset not in RESET_TO:
            raise ConfigError(
                f"group {self.group} has no offset for {topic} {at}, and autooffset_reset is "
                f"{self._settings.autooffset_reset!r}: say smallest or largest"
            )
        try:
            with Driver07(address.host, address.port) as driver:
                return self._end_of(driver, topic, at), False
        except (NetworkError, DecodeError) as error:
            logger.warning(
                "%s: where to begin with %s %s is not known yet: %s", self.member, topic, at, error
            )
            return None, False

    def _end_of(self, driver: Driver07, topic: str, at: BrokerPartition) -> int:
        is_smallest = self._settings.autooffset_reset == "smallest"
        return (driver.earliest if is_smallest else driver.latest)(topic, at.partition)

    def _reset(self, driver: Driver07, tp: BrokerTopicPartition, error: PenstockError | None) -> int:
        """Return the offset to continue at, as `autooffset_reset` says.

        If the old offset has caused `error`, commit the new offset, or raise `error` if the setting is
        neither smallest nor largest.
        """
        if error is None:
            return self._end_of(driver, *tp)
        if self._settings.autooffset_reset not in RESET_TO:
            raise error
        offset = self._end_of(driver, *tp)
        logger.warning("%s: %s; going on at %d", self.member, error, offset)
        try:
            self._store({tp: offset})
        except PenstockError as failure:
            logger.warning("%s", failure)
        return offset

    def _store(self, positions: Mapping[BrokerTopicPartition, int]) -> None:
        from kazoo.exceptions import KazooException

        assert self._client is not None
        for (topic, at), offset in positions.items():
            if self._committed.get((topic, at)) == offset:
                continue
            path = offset_path(self.group, topic, at)
            try:
                zookeeper.put(self._client, path, str(offset).encode(), creator=self.member)
            except KazooException as error:
                raise NetworkError(
                    f"the offset of {topic} {at} could not be stored: {type(error).__name__}"
                ) from error
            self._committed[topic, at] = offset


def _subscription(
    topics: Sequence[str] | Mapping[str, int], pattern: str | None, exclude: str | None, streams: int
) -> StreamSubscription:
    if isinstance(topics, str):
        topics = [topics]
    if sum((bool(topics), pattern is not None, exclude is not None)) != 1:
        raise ConfigError("a Kafka 0.7 consumer needs topics, or a pattern, or an exclude pattern")
    if streams < 1:
        raise ConfigError(f"{streams} streams: 1 is the least")
    if pattern is not None or exclude is not None:
        return StreamSubscription({}, parse_pattern(pattern or exclude or ""), exclude is not None, streams)
    return StreamSubscription(dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, streams))


def _settings(given: Mapping[str, object]) -> GroupSettings:
    names = {name.replace(".", "_"): value for name, value in given.items()}
    names = {ZOOKEEPER_NAMES.get(name, name): value for name, value in names.items()}
    for name in names:
        if name not in GroupSettings._fields:
            raise ConfigError(
                f"a Kafka 0.7 consumer has no setting {name!r}; it has {', '.join(GroupSettings._fields)}"
            )
    values: dict[str, Any] = dict(names)
    return GroupSettings(**values)


def _generated_id() -> str:
    return f"{socket.gethostname()}-{time.time_ns() // 1_000_000}-{uuid.uuid4().hex[:8]}-{os.getpid()}"
