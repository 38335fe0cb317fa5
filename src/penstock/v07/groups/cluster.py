"""The brokers and topics in ZooKeeper, read again after every change.

A watch of ZooKeeper fires once. Each watch of this module only marks the data as out of date. The next call
reads the data again and sets a new watch, so that no change between two reads is missed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.common.logs import logger_named
from penstock.errors import DecodeError
from penstock.v07.driver import BrokerAddress
from penstock.v07.groups.coordination import BROKERS, TOPICS, parse_broker, parse_count, topic_path
from penstock.v07.groups.zookeeper import read

if TYPE_CHECKING:
    from kazoo.client import KazooClient

logger = logger_named("penstock.v07")


class Cluster07:
    """The brokers, topics and partition counts in ZooKeeper.

    `changed` is called, on kazoo's thread, when a node that has been read changes.
    """

    def __init__(self, client: KazooClient, changed: Callable[[], object] = lambda: None) -> None:
        self._client = client
        self._changed = changed
        self._lock = threading.Lock()
        self._brokers: dict[int, BrokerAddress] | None = None
        self._topics: list[str] | None = None
        self._counts: dict[str, dict[int, int]] = {}

    def forget(self) -> None:
        """Drop all cached data. Needed after a lost session, because ZooKeeper has dropped its watches."""
        with self._lock:
            self._brokers = self._topics = None
            self._counts.clear()

    def brokers(self) -> dict[int, BrokerAddress]:
        """Return the live brokers by id.

        A broker with a malformed registration is left out, with a warning.
        """
        with self._lock:
            if self._brokers is None:
                found: dict[int, BrokerAddress] = {}
                for name in self._children(BROKERS, self._brokers_changed):
                    data = read(self._client, f"{BROKERS}/{name}")
                    try:
                        if data is not None:
                            found[int(name)] = parse_broker(int(name), data)
                    except (DecodeError, ValueError) as error:
                        logger.warning("leaving out broker %s: %s", name, error)
                self._brokers = found
            return dict(self._brokers)

    def topics(self) -> list[str]:
        """Return every topic that any broker has ever had."""
        with self._lock:
            if self._topics is None:
                self._topics = self._children(TOPICS, self._topics_changed)
            return list(self._topics)

    def counts(self, topic: str) -> dict[int, int]:
        """Return the number of a topic's partitions on each live broker."""
        with self._lock:
            if topic not in self._counts:
                found: dict[int, int] = {}
                for name in self._children(topic_path(topic), lambda: self._counts_changed(topic)):
                    data = read(self._client, f"{topic_path(topic)}/{name}")
                    try:
                        if data is not None:
                            found[int(name)] = parse_count(data)
                    except (DecodeError, ValueError) as error:
                        logger.warning("leaving out broker %s of topic %s: %s", name, topic, error)
                self._counts[topic] = found
            return dict(self._counts[topic])

    def _children(self, path: str, changed: Callable[[], None]) -> list[str]:
        """Return the names of a node's children; watch them, or the creation of the node if it is missing."""
        from kazoo.exceptions import NoNodeError

        def notice(event: object) -> None:
            changed()
            self._changed()

        while True:
            try:
                return sorted(self._client.get_children(path, watch=notice))
            except NoNodeError:
                if self._client.exists(path, watch=notice) is None:
                    return []

    def _brokers_changed(self) -> None:
        with self._lock:
            self._brokers = None

    def _topics_changed(self) -> None:
        with self._lock:
            self._topics = None

    def _counts_changed(self, topic: str) -> None:
        # A broker that is back under its old number may be elsewhere now.
        with self._lock:
            self._brokers = None
            self._counts.pop(topic, None)
