"""Reconciliation: a member's next step from its current assignment to its target (KIP-848).

A member first gives up partitions that are not in its target, and confirms this in its list of owned
partitions. Only then does its epoch advance, and it gets the partitions that no other member owns. So no
partition ever has two owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.broker.groups.consumer.state import Current, MemberState, Partition


def reconcile(
    member_id: str,
    current: Current,
    target: Iterable[Partition],
    target_epoch: int,
    subscribed: frozenset[bytes],
    owners: Mapping[Partition, str],
    owned: frozenset[Partition] | None,
    *,
    has_shrunk: bool = False,
) -> Current:
    """Return the epochs and partitions of a member after a heartbeat.

    `subscribed` are the ids of the topics that the member subscribes to. `owners` has the id of the member
    that owns each partition, if any. `owned` are the partitions that the member reports as owned, or None if
    the heartbeat has no list of them. `has_shrunk` is True if the member's subscription has changed with this
    heartbeat.
    """
    if current.state is MemberState.UNREVOKED:
        if owned is None or not owned.isdisjoint(current.revoking):
            return current
    elif current.state is MemberState.STABLE and current.epoch == target_epoch:
        return _without_unsubscribed(current, subscribed, owned) if has_shrunk else current
    return _next(member_id, current, target, target_epoch, subscribed, owners, owned)


def _next(
    member_id: str,
    current: Current,
    target: Iterable[Partition],
    target_epoch: int,
    subscribed: frozenset[bytes],
    owners: Mapping[Partition, str],
    owned: frozenset[Partition] | None,
) -> Current:
    wanted = {partition for partition in target if partition[0] in subscribed}
    keep = {partition: epoch for partition, epoch in current.assigned.items() if partition in wanted}
    revoke = {partition: epoch for partition, epoch in current.assigned.items() if partition not in wanted}
    if revoke and (owned is None or not owned.isdisjoint(revoke)):
        return current._replace(state=MemberState.UNREVOKED, assigned=keep, revoking=revoke)
    missing = wanted - keep.keys()
    free = sorted(partition for partition in missing if owners.get(partition, member_id) == member_id)
    is_blocked = len(free) < len(missing)
    return Current(
        epoch=target_epoch,
        previous_epoch=current.epoch,
        state=MemberState.UNRELEASED if is_blocked else MemberState.STABLE,
        assigned={**keep, **dict.fromkeys(free, target_epoch)},
    )


def _without_unsubscribed(
    current: Current, subscribed: frozenset[bytes], owned: frozenset[Partition] | None
) -> Current:
    keep = {partition: epoch for partition, epoch in current.assigned.items() if partition[0] in subscribed}
    if len(keep) == len(current.assigned):
        return current
    drop = {
        partition: epoch for partition, epoch in current.assigned.items() if partition[0] not in subscribed
    }
    if owned is None or not owned.isdisjoint(drop):
        return current._replace(state=MemberState.UNREVOKED, assigned=keep, revoking=drop)
    return current._replace(assigned=keep)
