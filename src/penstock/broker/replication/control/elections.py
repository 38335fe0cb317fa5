"""Elections of leaders: who leads a partition next, and with which in-sync replicas. Without I/O.

The rules are those of Apache Kafka's controller without eligible leader replicas (KIP-966): the present
leader stays if it can; else the first replica that is in sync and acceptable; else, where unclean elections
are allowed, the first that is acceptable at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple

NO_LEADER = -1


class Kind(IntEnum):
    """The kind of an election. The numbers are those of ElectLeaders, but for ONLINE."""

    PREFERRED = 0
    UNCLEAN = 1
    ONLINE = 2
    """Automatic ones: the present leader stays if it can."""


class Elected(NamedTuple):
    """The outcome. `leader` is -1 where no replica can lead; `in_sync` as before unless `is_unclean`."""

    leader: int
    in_sync: tuple[int, ...]
    is_unclean: bool = False


def elect(
    assigned: Sequence[int],
    in_sync: Sequence[int],
    leader: int,
    is_acceptable: Callable[[int], bool],
    kind: Kind = Kind.ONLINE,
    *,
    unclean: bool = False,
) -> Elected:
    """Return who leads a partition from now on; `unclean` allows a replica that is not in sync."""
    isr = tuple(in_sync)

    def is_valid(replica: int) -> bool:
        return replica in isr and replica in assigned and is_acceptable(replica)

    if kind is Kind.PREFERRED and assigned and is_valid(assigned[0]):
        return Elected(assigned[0], isr)
    if is_valid(leader):
        return Elected(leader, isr)
    for replica in assigned:
        if is_valid(replica):
            return Elected(replica, isr)
    if unclean or kind is Kind.UNCLEAN:
        for replica in assigned:
            if is_acceptable(replica):
                return Elected(replica, (replica,), is_unclean=True)
    return Elected(NO_LEADER, isr)
