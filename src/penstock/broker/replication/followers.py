"""A leader's record of its followers' progress, from which it computes high watermark and ISR.

Without I/O and clocks: times are seconds of a monotonic clock, given by the caller. The rules are those of
Apache Kafka 3.7 and later (KIP-101, KIP-497, KIP-841, KIP-903).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

UNKNOWN = -1
NEVER = float("-inf")


class FollowerProgress:
    """One follower's progress: the offsets and times of its fetches, as the leader has recorded them."""

    __slots__ = (
        "broker_epoch",
        "caught_up_s",
        "end_offset",
        "fetched_s",
        "leader_end_offset",
        "start_offset",
        "told_start_offset",
    )

    def __init__(self, caught_up_s: float) -> None:
        self.end_offset = UNKNOWN
        """The follower's log end offset at its last fetch; -1 before its first fetch."""
        self.start_offset = UNKNOWN
        """The follower's log start offset at its last fetch; -1 before its first fetch."""
        self.told_start_offset = UNKNOWN
        """The leader's log start offset in the last response to the follower. A higher one is sent at
        once, without waiting for records."""
        self.caught_up_s = caught_up_s
        """The last time at which the follower had all records (Kafka's `lastCaughtUpTimeMs`)."""
        self.fetched_s = NEVER
        self.leader_end_offset = UNKNOWN
        """The leader's log end offset at the time of the follower's last fetch."""
        self.broker_epoch = UNKNOWN


class Followers:
    """The followers of one partition during one leader epoch."""

    __slots__ = ("_by_id", "epoch_start", "in_sync", "joining", "leader", "pending")

    def __init__(
        self, leader: int, replicas: Iterable[int], in_sync: Sequence[int], epoch_start: int, now_s: float
    ) -> None:
        """Begin a leader epoch. `epoch_start` is the leader's log end at its election."""
        self.leader = leader
        self.epoch_start = epoch_start
        self.in_sync = tuple(in_sync)
        """The ISR in the controller's metadata."""
        self.pending = False
        """True while a proposed ISR awaits the controller's decision; there is at most one."""
        self.joining: int | None = None
        """The replica that is proposed for the ISR, or None. The high watermark already waits for it."""
        self._by_id: dict[int, FollowerProgress] = {}
        self.assign(replicas, now_s)

    def assign(self, replicas: Iterable[int], now_s: float) -> None:
        """Set the assigned replicas from the metadata; followers that stay assigned keep their progress."""
        known = self._by_id
        self._by_id = {
            each: known.get(each) or FollowerProgress(now_s if each in self.in_sync else NEVER)
            for each in replicas
            if each != self.leader
        }

    def changed(self, in_sync: Sequence[int]) -> None:
        """Set the ISR from the controller's metadata; this ends the pending proposal."""
        self.in_sync = tuple(in_sync)
        self.pending = False
        self.joining = None

    def get(self, replica: int) -> FollowerProgress | None:
        """Return the progress of the follower with this broker id, or None if it is not a follower."""
        return self._by_id.get(replica)

    def items(self) -> Iterable[tuple[int, FollowerProgress]]:
        """Return an iterable of all followers with their broker ids."""
        return self._by_id.items()

    def fetched(
        self, replica: int, offset: int, start_offset: int, broker_epoch: int, end_offset: int, now_s: float
    ) -> bool:
        """Record a follower's fetch from `offset`, below which the follower has all records.

        Returns True if the follower's log start or end offset has changed. `end_offset` is the leader's
        present log end offset.
        """
        follower = self._by_id[replica]
        if offset >= end_offset:
            follower.caught_up_s = max(follower.caught_up_s, now_s)
        elif 0 <= follower.leader_end_offset <= offset:
            follower.caught_up_s = max(follower.caught_up_s, follower.fetched_s)
        follower.fetched_s = now_s
        follower.leader_end_offset = end_offset
        is_news = offset != follower.end_offset or start_offset != follower.start_offset
        follower.end_offset = offset
        follower.start_offset = start_offset
        follower.broker_epoch = broker_epoch
        return is_news

    def is_to_begin_later(self, replica: int, start_offset: int) -> bool:
        """Return True, once per offset, if a follower must be sent the leader's raised log start offset."""
        follower = self._by_id[replica]
        is_news = follower.start_offset < start_offset != follower.told_start_offset
        follower.told_start_offset = start_offset
        return is_news

    def low_watermark(self, start_offset: int, is_eligible: Callable[[int], bool]) -> int:
        """Return the smallest log start offset of the leader (`start_offset`) and its live followers."""
        starts = (each.start_offset for replica, each in self._by_id.items() if is_eligible(replica))
        return min([start_offset, *starts])

    def high_watermark(
        self,
        present: int,
        end_offset: int,
        minimum: int,
        lag_s: float,
        now_s: float,
        is_eligible: Callable[[int], bool],
    ) -> int:
        """Return the high watermark, which is at least `present`.

        It is the smallest log end offset of the leader, of the replicas in the ISR or joining it, and of all
        further replicas that have caught up within `lag_s` seconds. With fewer than `minimum` in-sync
        replicas it stays at `present`.
        """
        if len(self.in_sync) < minimum:
            return present
        reached = end_offset
        for replica, follower in self._by_id.items():
            if (
                replica in self.in_sync
                or replica == self.joining
                or (now_s - follower.caught_up_s <= lag_s and is_eligible(replica))
            ):
                reached = min(reached, follower.end_offset)
        return max(present, reached)

    def lagging(self, end_offset: int, lag_s: float, now_s: float) -> list[int]:
        """Return the members of the ISR that were last caught up with the leader over `lag_s` seconds ago."""
        found = []
        for replica in self.in_sync:
            follower = self._by_id.get(replica)
            if (
                follower is not None
                and follower.end_offset != end_offset
                and now_s - follower.caught_up_s > lag_s
            ):
                found.append(replica)
        return found

    def may_join(self, replica: int, high_watermark: int, start_offset: int) -> bool:
        """Return True if a replica may join the ISR: it has all records committed or of earlier epochs.

        Its log has to begin at the leader's `start_offset` or later. Otherwise, as a leader, the replica
        would bring back records that were deleted while it was away.
        """
        follower = self._by_id.get(replica)
        return (
            follower is not None
            and replica not in self.in_sync
            and not self.pending
            and follower.end_offset >= high_watermark
            and follower.end_offset >= self.epoch_start
            and follower.start_offset >= start_offset
        )
