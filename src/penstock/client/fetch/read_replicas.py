"""The choice of the replica to read each partition from: the leader, or the nearest replica (KIP-392).

This module does no I/O; times are seconds of the event loop's clock. As in Java's consumer, the replica that
the leader has named is asked until `metadata.max.age.ms` has passed, the replica fails, or the metadata list
it as offline; then the leader is asked again. Unlike in Java's consumer, a partition then stays with its
leader for a while, since the leader names a replica that does not answer for as long as the replica's session
lasts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.client.cluster.metadata import NO_NODE
from penstock.common.logs import logger_named

if TYPE_CHECKING:
    from penstock.client.cluster.metadata import ClusterMetadata
    from penstock.client.fetch.cursors import Cursor

LEADER_S = 10.0
"""The time in seconds for which a partition is read from its leader after another replica has failed. It is
longer than a broker's session (9 s by default), after whose end the leader does not name that replica any
more."""

BEHIND_S = 1.0
"""The time in seconds for which a follower may lack records of a range, before the leader is used: twice the
longest wait of a follower's fetch."""

log = logger_named("penstock.client")


class ReadReplicas:
    """Chooses the node to read from for each cursor of a fetcher.

    Without a `rack` it is always the leader.
    """

    def __init__(self, cluster: ClusterMetadata, rack: str, max_age_s: float) -> None:
        """Begin with the leader of every partition. `max_age_s` is ``metadata.max.age.ms`` in seconds."""
        self._cluster = cluster
        self._rack = rack
        self._max_age_s = max_age_s

    def node_of(self, cursor: Cursor, now: float) -> int | None:
        """Return the id of the node to ask next, or None while the partition has no leader."""
        replica = cursor.replica
        if replica == NO_NODE:
            return self._cluster.leader(cursor.tp)
        if now < cursor.replica_until and self._is_online(cursor, replica):
            return replica
        cursor.replica = NO_NODE
        return self._cluster.leader(cursor.tp)

    def _is_online(self, cursor: Cursor, replica: int) -> bool:
        info = self._cluster.partition(cursor.tp)
        return replica in self._cluster.nodes and info is not None and replica not in info.offline_replicas

    def rack_for(self, cursors: Iterable[Cursor], now: float) -> str:
        """Return the rack for a request; empty if one of the cursors must stay with its leader at present."""
        if self._rack and any(cursor.leader_until > now for cursor in cursors):
            return ""
        return self._rack

    def sent_on(self, cursor: Cursor, node: int, preferred: int, now: float) -> bool:
        """Note the replica that a response names (`preferred`), if any; return True if it will be used.

        If a node names itself, or a node that the metadata do not have, the cursor stays with its leader for
        a while.
        """
        if preferred == NO_NODE or not self._rack:
            return False
        if preferred == node or not self._is_online(cursor, preferred):
            cursor.leader_until = now + LEADER_S
            return False
        log.debug("%s is read from broker %d, as broker %d says", cursor.tp, preferred, node)
        cursor.replica, cursor.replica_until = preferred, now + self._max_age_s
        return True

    def failed(self, cursor: Cursor, node: int, now: float) -> bool:
        """Note that reading from `node` has failed; return True if `node` was a follower of the partition."""
        if cursor.replica != node or node == NO_NODE:
            return False
        log.debug("%s is read from its leader again: broker %d has failed", cursor.tp, node)
        cursor.replica, cursor.leader_until = NO_NODE, now + LEADER_S
        return True

    def is_behind(self, cursor: Cursor, now: float) -> bool:
        """Return True if a follower has lacked records for too long; then the leader is used instead."""
        return now - cursor.failing_since >= BEHIND_S and self.failed(cursor, cursor.replica, now)
