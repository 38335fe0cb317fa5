"""Elections: choose the next leader of a partition and its in-sync replicas. Without I/O.

The rules are those of Apache Kafka's controller: the present leader stays if it can. Otherwise the first
in-sync replica leads that is acceptable (neither fenced nor stopping). Otherwise, if unclean elections are
allowed, the first acceptable replica leads. With KIP-966 the ISR may be empty: then an eligible leader
replica may lead, and without any, the last known leader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple

NO_LEADER = -1


class ElectionKind(IntEnum):
    """The kind of an election. The numbers are those of ElectLeaders, except for ONLINE."""

    PREFERRED = 0
    UNCLEAN = 1
    ONLINE = 2
    """An automatic election: the present leader stays if it can."""


class Elected(NamedTuple):
    """The outcome of an election. `leader` is -1 if no replica can lead.

    After an unclean election, `in_sync` has only the leader.
    """

    leader: int
    in_sync: tuple[int, ...]
    is_unclean: bool = False


def elect(
    assigned: Sequence[int],
    in_sync: Sequence[int],
    leader: int,
    is_acceptable: Callable[[int], bool],
    kind: ElectionKind = ElectionKind.ONLINE,
    *,
    unclean: bool = False,
    eligible: Sequence[int] = (),
    last_known: Sequence[int] = (),
) -> Elected:
    """Elect the next leader of a partition; `unclean` allows a replica that is not in sync.

    If no replica is in sync, one of `eligible` may lead; if `eligible` is empty, the one in `last_known`.
    """
    isr = tuple(in_sync)
    candidates = isr or eligible

    def is_valid(replica: int) -> bool:
        return replica in candidates and replica in assigned and is_acceptable(replica)

    preferred = assigned[:1] if kind is ElectionKind.PREFERRED else ()
    for replica in (*preferred, leader, *assigned):
        if is_valid(replica):
            return Elected(replica, isr or (replica,))
    if not candidates and len(last_known) == 1 and is_acceptable(last_known[0]):
        return Elected(last_known[0], (last_known[0],), is_unclean=True)
    if unclean or kind is ElectionKind.UNCLEAN:
        for replica in assigned:
            if is_acceptable(replica):
                return Elected(replica, (replica,), is_unclean=True)
    return Elected(NO_LEADER, isr)
