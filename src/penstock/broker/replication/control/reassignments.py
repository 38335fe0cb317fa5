"""Reassignments of partitions (KIP-455): from the present replicas to the target. Without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from penstock.broker.metadata.image import Replicas


class MovedReplicas(NamedTuple):
    """A partition's replicas during a reassignment: first the target replicas, then those to be removed."""

    assigned: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


def begin(replicas: Replicas, target: Sequence[int]) -> MovedReplicas:
    """Return the replicas at the start of a reassignment to `target`, which replaces any earlier one."""
    settled = [each for each in replicas.assigned if each not in replicas.adding]
    removing = tuple(sorted(each for each in settled if each not in target))
    adding = tuple(sorted(each for each in target if each not in settled))
    return MovedReplicas((*target, *removing), adding, removing)


def cancel(replicas: Replicas) -> MovedReplicas:
    """Return the replicas after a reassignment was cancelled: the original ones, in their present order."""
    return MovedReplicas(tuple(each for each in replicas.assigned if each not in replicas.adding))


def complete(replicas: Replicas, in_sync: Sequence[int]) -> MovedReplicas | None:
    """Return the replicas after a reassignment, or None if there is none or it cannot be completed yet."""
    if not (replicas.adding or replicas.removing):
        return None
    target = tuple(each for each in replicas.assigned if each not in replicas.removing)
    needed = replicas.adding or target
    if not target or not set(needed) <= set(in_sync):
        return None
    if len(replicas.removing) > len(replicas.adding) and not set(target) <= set(in_sync):
        return None
    return MovedReplicas(target) if set(target) & set(in_sync) else None
