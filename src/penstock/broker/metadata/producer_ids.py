"""Producer ids: each is assigned once, even if the metadata log that counts them was lost.

Ids are reserved in blocks, by a record of the metadata log before the first id of a block is used. That log
may be missing, cut, or an older copy, while partitions still hold batches of producers with later ids.
Records of a new producer with such an id would be treated as duplicates: acknowledged, but not written. So,
before the first id after a start is assigned, the partitions found at the start are searched: the newest
`.snapshot` of each, and the batch headers after it.

A broker with a server searches in a thread, and requests wait for the result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.common.logs import logger_named
from penstock.errors import StorageError

if TYPE_CHECKING:
    from penstock.broker.metadata.cluster import ClusterState
    from penstock.common.failures import Failures

logger = logger_named("penstock.broker")

ID_LIMIT = 2**62
"""The search ignores producer ids from this one on: brokers assign ids from 0 on, so a client must have
made up such a high id.
"""

NONE_SEEN = -1


class Notified(Protocol):
    """The interface of the purgatory, which runs waiting requests when the search has ended."""

    def notify(self, key: Hashable, amount: int = 1) -> None: ...


class SearchesProducerIds(Protocol):
    """The attributes of the broker that the search for producer ids uses."""

    @property
    def purgatory(self) -> Notified: ...

    failures: Failures
    call_soon: Callable[[Callable[[], None]], object] | None


class ProducerIds:
    """Assigns the producer ids of one broker. Waiting InitProducerId requests have it as purgatory key."""

    def __init__(self, cluster: ClusterState, directories: Sequence[str]) -> None:
        """Prepare to assign ids. `directories` are of the partitions that existed at the start."""
        self._cluster = cluster
        self._directories = directories
        self._is_searching = False
        self.is_known = not directories
        """True after the search for the greatest producer id in the partitions, so that new ids can be
        assigned.
        """

    def new_id(self, now_ms: int) -> int:
        """Return a producer id that was never assigned before; the first call searches the partitions.

        Raises:
            StorageError: the metadata log cannot be written.
        """
        if not self.is_known:
            self._found(greatest_producer_id(self._directories))
        return self._cluster.new_producer_id(now_ms)

    def search(self, node: SearchesProducerIds) -> None:
        """Search the partitions for producer ids in a thread; then notify the requests that wait."""
        call_soon = node.call_soon
        if self._is_searching or call_soon is None:
            return
        self._is_searching = True

        def run() -> None:
            seen: int | None = None
            try:
                seen = greatest_producer_id(self._directories)
            except Exception:
                # A barrier: requests that wait get a retriable error, and then the search begins anew.
                node.failures.caught("producer ids", "looking for the ids that partitions hold")
            try:
                call_soon(lambda: self._searched(seen, node))
            except RuntimeError:
                return  # the broker has stopped

        threading.Thread(target=run, name="penstock-producer-ids", daemon=True).start()

    def _searched(self, seen: int | None, node: SearchesProducerIds) -> None:
        self._is_searching = False
        if seen is not None:
            self._found(seen)
        node.purgatory.notify(self)

    def _found(self, seen: int) -> None:
        self.is_known = True
        self._directories = ()
        self._cluster.skip_producer_ids(seen)


def greatest_producer_id(directories: Sequence[str]) -> int:
    """Return the greatest producer id below `ID_LIMIT` in partitions on disk, or -1 if there is none.

    Any thread may call this function, which writes nothing. Files that cannot be read are logged and skipped.
    """
    greatest = NONE_SEEN
    for directory in directories:
        try:
            greatest = _greatest_in(directory, greatest)
        except StorageError as error:
            logger.warning("producer ids in %s are not known to the end: %s", directory, error)
    return greatest


def _greatest_in(directory: str, greatest: int) -> int:
    from penstock.broker.partitions.producers.producer_snapshots import (
        ProducerSnapshots,  # a broker in memory does not import them
    )
    from penstock.log.segments.headers import headers_behind

    snapshots = ProducerSnapshots(directory)
    known_to = 0
    for offset in reversed(snapshots.offsets()):
        ids = snapshots.producer_ids(offset)
        if ids is not None:
            greatest = _greater(greatest, ids)
            known_to = offset
            break
    return _greater(greatest, (header.producer_id for _, _, header in headers_behind(directory, known_to)))


def _greater(greatest: int, ids: Iterable[int]) -> int:
    for number in ids:
        if greatest < number < ID_LIMIT:
            greatest = number
    return greatest
