"""The registration of a 0.7 broker in ZooKeeper: its address and topics, also after a lost session.

/brokers/ids/<id>                 creator:host:port     ephemeral
/brokers/topics/<topic>/<id>      number of partitions  ephemeral
"""

from __future__ import annotations

import asyncio
import queue
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from penstock.common.logs import logger_named
from penstock.errors import PenstockError
from penstock.v07.groups import zookeeper
from penstock.v07.groups.coordination import broker_data, broker_path, topic_path
from penstock.v07.settings import Settings

if TYPE_CHECKING:
    from kazoo.client import KazooClient

    from penstock.v07.topics import Topics

logger = logger_named("penstock.v07")

RETRY_S = 1.0


class Registration:
    """Keeps one broker registered. A worker thread sends the requests to ZooKeeper.

    `topics` returns the current topics, and `count` the number of partitions of each.
    """

    def __init__(
        self,
        settings: Settings,
        host: str,
        port: int,
        topics: Callable[[], Iterable[str]],
        count: Callable[[str], int],
    ) -> None:
        self.broker_id = settings.number("brokerid")
        self._host = settings.text("hostname") or host
        self._port = port
        self._hosts = settings.text("zk.connect")
        self._digest = settings.text("zk.digest") or None
        self._session_timeout_ms = settings.number("zk.sessiontimeout.ms")
        self._connection_timeout_ms = settings.number("zk.connectiontimeout.ms")
        self._topics = topics
        self._count = count
        self._work: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._client: KazooClient | None = None
        self._worker: threading.Thread | None = None
        self._was_lost = False
        self._creator = ""
        """The id in all nodes that this registration creates; a new one after a lost session."""

    def start(self) -> None:
        """Register the broker; wait for a dead session with the same id to expire.

        Raises:
            NetworkError: ZooKeeper cannot be reached, or a live broker has this id.
        """
        self._client = zookeeper.connect(
            self._hosts,
            session_timeout_ms=self._session_timeout_ms,
            connection_timeout_ms=self._connection_timeout_ms,
            digest=self._digest,
            listener=self._state_changed,
        )
        try:
            self._register()
        except BaseException:
            zookeeper.disconnect(self._client)
            raise
        self._worker = threading.Thread(target=self._run, name="penstock-0.7-registration", daemon=True)
        self._worker.start()

    def stop(self) -> None:
        """End the session, which removes all registrations at once."""
        self._work.put(None)
        if self._worker is not None:
            self._worker.join()
        if self._client is not None:
            zookeeper.disconnect(self._client)

    def announce(self, topic: str) -> None:
        """Register a new topic soon, on the worker thread. Returns at once."""
        self._work.put(topic)

    # --- the worker --------------------------------------------------------------------------------------

    def _state_changed(self, state: str) -> None:
        """Record a change of the session's state. This method runs on kazoo's thread, which must not wait."""
        if state == "LOST":
            self._was_lost = True
            logger.warning("broker %d: the ZooKeeper session is lost", self.broker_id)
        elif state == "CONNECTED" and self._was_lost:
            self._was_lost = False
            self._work.put("")

    def _run(self) -> None:
        while (topic := self._work.get()) is not None:
            try:
                if topic:
                    self._register_topic(topic)
                else:
                    self._register()
            except Exception as error:
                # kazoo raises when the connection goes; the work is done again when it is back.
                logger.warning("broker %d: registering failed, trying again: %s", self.broker_id, error)
                time.sleep(RETRY_S)
                self._work.put(topic)

    def _register(self) -> None:
        assert self._client is not None
        self._creator = self._new_creator()
        zookeeper.hold_when_free(
            self._client,
            broker_path(self.broker_id),
            broker_data(self._creator, self._host, self._port).encode(),
            creator=self._creator,
            session_timeout_ms=self._session_timeout_ms,
            what=f"broker id {self.broker_id}",
        )
        for topic in self._topics():
            self._register_topic(topic)
        logger.info("broker %d is registered in ZooKeeper", self.broker_id)

    def _register_topic(self, topic: str) -> None:
        assert self._client is not None
        zookeeper.hold_when_free(
            self._client,
            f"{topic_path(topic)}/{self.broker_id}",
            str(self._count(topic)).encode(),
            creator=self._creator,
            session_timeout_ms=self._session_timeout_ms,
            what=f"topic {topic} of broker id {self.broker_id}",
        )

    def _new_creator(self) -> str:
        """Return an id for the ``creator`` field of the node, without colons, which separate the fields."""
        return f"{socket.gethostname()}-{time.time_ns() // 1_000_000}".replace(":", "_")


@asynccontextmanager
async def registered(
    topics: Topics, settings: Settings, address: tuple[str, int]
) -> AsyncIterator[Registration]:
    """Keep the broker at `address` registered during a ``with`` block.

    Raises: as `Registration.start`.
    """
    registration = Registration(settings, *address, lambda: topics.names, topics.partition_count)
    topics.created = registration.announce
    try:
        await asyncio.to_thread(registration.start)
    except PenstockError:
        topics.created = lambda topic: None
        raise
    try:
        yield registration
    finally:
        await asyncio.to_thread(registration.stop)
