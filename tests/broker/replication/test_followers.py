"""Tests of what a leader computes from its followers' fetches: the high watermark and the ISR."""

from __future__ import annotations

import pytest

from penstock.broker.replication.followers import Followers


def led(in_sync: tuple[int, ...] = (1, 2, 3), epoch_start: int = 0) -> Followers:
    return Followers(1, (1, 2, 3), in_sync, epoch_start, now_s=0.0)


def mark(
    followers: Followers, end: int, *, minimum: int = 1, now: float = 1.0, eligible: bool = True, at: int = 0
) -> int:
    return followers.high_watermark(at, end, minimum, 10.0, now, lambda _: eligible)


def test_the_high_watermark_is_what_all_in_sync_replicas_have() -> None:
    followers = led()
    assert mark(followers, 5) == 0
    followers.fetched(2, 4, 0, 1, 5, 0.1)
    assert mark(followers, 5) == 0
    followers.fetched(3, 3, 0, 1, 5, 0.1)
    assert mark(followers, 5) == 3
    assert mark(followers, 5, at=4) == 4, "it is only ever raised"


def test_below_the_minimum_it_stands_still() -> None:
    followers = led(in_sync=(1,))
    assert mark(followers, 5, minimum=2, now=100.0) == 0
    assert mark(followers, 5, minimum=1, now=100.0) == 5


def test_it_waits_for_a_replica_whose_joining_is_under_way() -> None:
    followers = led(in_sync=(1, 2))
    followers.fetched(2, 5, 0, 1, 5, 0.1)
    followers.fetched(3, 4, 0, 1, 9, 0.1)
    assert mark(followers, 5, now=100.0) == 5
    followers.joining = 3
    assert mark(followers, 5, now=100.0) == 4


def test_it_waits_for_a_replica_that_has_caught_up_of_late_and_may_join() -> None:
    followers = led(in_sync=(1,))
    followers.fetched(2, 4, 0, 1, 4, 0.5)
    assert mark(followers, 5) == 4
    assert mark(followers, 5, eligible=False) == 5
    assert mark(followers, 5, now=11.0) == 5


@pytest.mark.parametrize(("offset", "lags"), [(5, False), (4, True)])
def test_a_follower_that_has_everything_never_lags(offset: int, lags: bool) -> None:
    followers = led()
    followers.fetched(2, offset, 0, 1, 5, 1.0)
    followers.fetched(3, 5, 0, 1, 5, 1.0)
    assert followers.lagging(5, 10.0, now_s=50.0) == ([2] if lags else [])


def test_a_follower_has_caught_up_with_what_there_was_at_its_last_fetch() -> None:
    followers = led()
    followers.fetched(2, 0, 0, 1, 5, 20.0)
    followers.fetched(2, 5, 0, 1, 9, 21.0)
    follower = followers.get(2)
    assert follower is not None
    assert follower.caught_up_s == 20.0


def test_a_replica_joins_with_all_that_is_committed_in_this_epoch() -> None:
    followers = led(in_sync=(1,), epoch_start=7)
    assert not followers.may_join(2, 3, 0)
    followers.fetched(2, 6, 0, 1, 9, 1.0)
    assert not followers.may_join(2, 3, 0), "it has not reached the epoch"
    followers.fetched(2, 7, 0, 1, 9, 1.0)
    assert followers.may_join(2, 7, 0)
    assert not followers.may_join(2, 8, 0)
    followers.pending = True
    assert not followers.may_join(2, 7, 0), "a proposal is under way"


def test_a_replica_joins_once_it_has_deleted_what_its_leader_has() -> None:
    followers = led(in_sync=(1,))
    followers.fetched(2, 9, 0, 1, 9, 1.0)
    assert not followers.may_join(2, 9, 5)
    followers.fetched(2, 9, 5, 1, 9, 1.0)
    assert followers.may_join(2, 9, 5)


def test_the_low_watermark_is_that_of_all_live_replicas() -> None:
    followers = led()
    assert followers.low_watermark(5, lambda _: True) == -1, "they have not said where they begin"
    followers.fetched(2, 9, 5, 1, 9, 1.0)
    followers.fetched(3, 9, 4, 1, 9, 1.0)
    assert followers.low_watermark(5, lambda _: True) == 4
    assert followers.low_watermark(5, lambda replica: replica == 2) == 5
    assert followers.low_watermark(5, lambda _: False) == 5
