"""The measurements of ``penstock top``: samples of a cluster, and the rates between two samples."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import AuthorizationError, KafkaError, UnsupportedVersionError
from penstock.model import EARLIEST, LATEST, TopicPartition

if TYPE_CHECKING:
    from penstock.client import Admin
    from penstock.client.admin.groups import GroupListing
    from penstock.client.fetch.offsets import Answers

Offsets = Mapping[TopicPartition, int]


class GroupSample(NamedTuple):
    """A group's state and committed offsets; for a share group, its start offsets.

    `lag` is the broker's count of records that a share group has not yet handled; None for other groups.
    """

    state: str | None
    committed: Offsets
    lag: int | None = None


class ClusterSample(NamedTuple):
    """The state of a cluster at one moment: `penstock top` computes rates from two of them.

    `sizes` is a dict from topics to their bytes on all brokers, or None if brokers refuse access.
    """

    monotonic_s: float
    time_ms: int
    first: Offsets
    next: Offsets
    sizes: Mapping[str, int] | None
    groups: Mapping[str, GroupSample]


def take(
    admin: Admin,
    monotonic_s: float,
    time_ms: int,
    *,
    topics: Collection[str],
    groups: Collection[str],
    internal: bool,
) -> ClusterSample:
    """Request a `ClusterSample` of the given topics and groups, or of all if none are given.

    Raises:
        PenstockError: the cluster cannot be reached, or a given topic does not exist.
    """
    names = list(topics) or admin.list_topics(include_internal=internal)
    described = admin.describe_topics(names) if names else []
    tps = [TopicPartition(topic.name, one.partition) for topic in described for one in topic.partitions]
    listed: dict[str, GroupListing] = {}
    with contextlib.suppress(UnsupportedVersionError):  # before 0.9 there are only those that are named
        listed = {group.group_id: group for group in admin.list_groups()}
    samples: dict[str, GroupSample] = {}
    for group in groups or listed:
        try:
            samples[group] = _sample(admin, group, listed.get(group))
        except (KafkaError, UnsupportedVersionError):  # gone since, not for these eyes, or in ZooKeeper
            continue
    beyond = {tp for each in samples.values() for tp in each.committed} - set(tps)
    ends = _known(admin.list_offsets(dict.fromkeys(tps, LATEST)))
    with contextlib.suppress(KafkaError):  # a group may have offsets of topics that are gone
        ends |= _known(admin.list_offsets(dict.fromkeys(beyond, LATEST))) if beyond else {}
    first = _known(admin.list_offsets(dict.fromkeys(tps, EARLIEST)))
    return ClusterSample(
        monotonic_s,
        time_ms,
        first,
        ends,
        _sizes(admin),
        samples,
    )


def _sample(admin: Admin, name: str, listed: GroupListing | None) -> GroupSample:
    """Return a group's state and offsets.

    Raises:
        KafkaError, UnsupportedVersionError: the group no longer exists, or cannot be read.
    """
    state = listed.state or None if listed is not None else None
    if listed is None or listed.group_type != "share":
        found = admin.list_group_offsets(name)
        return GroupSample(state, {tp: at.offset for tp, at in found.items()})
    shared = admin.list_share_group_offsets(name)
    starts = {tp: at.start_offset for tp, at in shared.items() if at.start_offset is not None}
    return GroupSample(state, starts, sum(at.lag or 0 for at in shared.values()))


def _known(answers: Answers) -> dict[TopicPartition, int]:
    return {tp: at.offset for tp, at in answers.items() if at is not None}


def _sizes(admin: Admin) -> dict[str, int] | None:
    try:
        directories = admin.describe_log_dirs()
    except (AuthorizationError, UnsupportedVersionError):
        return None
    sizes: dict[str, int] = {}
    for directory in directories:
        for tp, size in directory.partitions.items():
            sizes[tp.topic] = sizes.get(tp.topic, 0) + size
    return sizes


def topic_rows(now: ClusterSample, before: ClusterSample | None) -> list[dict[str, object]]:
    """Return rows with the fields `NOUNS["topic rate"]`, those with the most records a second first."""
    by_topic: dict[str, list[TopicPartition]] = {}
    for tp in now.first:
        by_topic.setdefault(tp.topic, []).append(tp)
    rows: list[dict[str, object]] = []
    for topic, tps in by_topic.items():
        size = None if now.sizes is None else now.sizes.get(topic, 0)
        size_before = None if before is None or before.sizes is None else before.sizes.get(topic, 0)
        grown = None if size is None or size_before is None else size - size_before
        rows.append(
            {
                "time_ms": now.time_ms,
                "topic": topic,
                "partitions": len(tps),
                "records": sum(now.next.get(tp, 0) - now.first[tp] for tp in tps),
                "records_per_s": _rate(now, before, _growth(now.next, before and before.next, tps)),
                "bytes": size,
                "bytes_per_s": _rate(now, before, grown),
            }
        )
    return sorted(rows, key=_by_rate)


def _by_rate(row: dict[str, object]) -> tuple[float, float, str]:
    return -_number(row["records_per_s"]), -_number(row["records"]), str(row["topic"])


def group_rows(now: ClusterSample, before: ClusterSample | None) -> list[dict[str, object]]:
    """Return rows with the fields `NOUNS["group rate"]`, those with the greatest lag first."""
    rows: list[dict[str, object]] = []
    for name, group in now.groups.items():
        was = None if before is None or name not in before.groups else before.groups[name].committed
        rows.append(
            {
                "time_ms": now.time_ms,
                "group": name,
                "state": group.state,
                "partitions": len(group.committed),
                "lag": _behind(group.committed, now.next) if group.lag is None else group.lag,
                "records_per_s": _rate(now, before, _growth(group.committed, was, group.committed)),
            }
        )
    return sorted(rows, key=lambda row: (-_number(row["lag"]), row["group"]))


def _behind(committed: Offsets, ends: Offsets) -> int:
    """Return a group's lag: the sum over partitions of end offset less committed offset."""
    return sum(max(0, ends.get(tp, at) - at) for tp, at in committed.items())


def _growth(now: Offsets, before: Offsets | None, tps: Iterable[TopicPartition]) -> int | None:
    """Return the sum of the partitions' offset increases between two samples, without new partitions.

    The result is None if `before` is None.
    """
    if before is None:
        return None
    return sum(max(0, now[tp] - before[tp]) for tp in tps if tp in now and tp in before)


def _rate(now: ClusterSample, before: ClusterSample | None, amount: int | None) -> float | None:
    if before is None or amount is None or now.monotonic_s <= before.monotonic_s:
        return None
    return round(amount / (now.monotonic_s - before.monotonic_s), 3)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
