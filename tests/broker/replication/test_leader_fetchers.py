"""Tests of a follower's two fetch requests per leader: for active partitions, and for resting ones.

A partition rests when its log has not changed for a while.
"""

from __future__ import annotations

import random
from typing import cast

from broker.replication.test_fetch_settings import Followed
from penstock.broker.replication.fetcher import (
    REST_AFTER_S,
    RESTART_S,
    LeaderFetchers,
    ReplicaFetcher,
    ReplicaFetchSettings,
)
from penstock.broker.replication.local_replica import LocalReplica
from penstock.protocol.messages.fetch_request import FetchRequest

LEADER = 1


def replicas(count: int) -> list[LocalReplica]:
    return [cast(LocalReplica, Followed(index)) for index in range(count)]


def fetchers_of(followed: list[LocalReplica], now_s: float) -> LeaderFetchers:
    fetchers = LeaderFetchers(2, LEADER, ReplicaFetchSettings())
    for each in followed:
        fetchers.add(each, now_s)
    return fetchers


def indexes(request: FetchRequest | None) -> list[int]:
    topics = [] if request is None else request.topics
    return sorted(each.partition for topic in topics for each in topic.partitions)


def at_rest(followed: list[LocalReplica], now_s: float) -> LeaderFetchers:
    """Return fetchers whose partitions are all at rest: their logs have not changed for a while."""
    fetchers = fetchers_of(followed, now_s - 2 * REST_AFTER_S)
    fetchers.arrange([], now_s)
    return fetchers


def test_new_replicas_are_asked_for_soon_though_a_request_is_in_flight() -> None:
    one, other = replicas(2)
    fetchers = fetchers_of([one], 10.0)
    assert indexes(fetchers.active.request(9, 10.0)) == [0]
    assert fetchers.active.is_busy(10.4)
    fetchers.add(other, 10.4)
    assert not fetchers.active.is_busy(10.4)
    assert indexes(fetchers.active.request(9, 10.4)) == [0, 1]
    assert fetchers.active.is_busy(10.4 + 2 * RESTART_S), "that one has all"


def test_a_request_that_has_just_been_sent_is_waited_for() -> None:
    """A thousand topics created one after another must not cause a thousand full fetch requests."""
    one, other = replicas(2)
    fetchers = fetchers_of([one], 10.0)
    fetchers.active.request(9, 10.0)
    fetchers.add(other, 10.0)
    assert fetchers.active.is_busy(10.0)
    assert fetchers.active.next_turn() == 10.0 + RESTART_S


def test_what_has_not_changed_for_a_while_is_at_rest() -> None:
    followed = replicas(5)
    fetchers = at_rest(followed, 10.0)
    assert indexes(fetchers.active.request(9, 10.0)) == []
    assert indexes(fetchers.resting.request(9, 10.0)) == [0, 1, 2, 3, 4]


def test_a_record_of_one_partition_of_many_asks_for_that_one_alone() -> None:
    followed = replicas(1_000)
    fetchers = at_rest(followed, 10.0)
    fetchers.arrange([followed[7]], 10.0)
    assert indexes(fetchers.active.request(9, 10.0)) == [7]
    assert 7 not in indexes(fetchers.resting.request(9, 10.0))
    for number in range(20):
        now_s = 10.0 + number / 10
        fetchers.arrange([followed[7]], now_s)
        assert indexes(fetchers.active.request(9, now_s)) == [7]


def test_nothing_goes_to_rest_while_its_next_request_is_far() -> None:
    """While the Fetch for resting partitions is in flight, an idle partition stays in the active Fetch.

    Otherwise no request would fetch the partition until the leader answers the Fetch in flight.
    """
    followed = replicas(2)
    fetchers = at_rest(followed, 10.0)
    fetchers.arrange([followed[0]], 10.0)
    fetchers.resting.request(9, 10.0)
    later_s = 10.1 + REST_AFTER_S
    assert fetchers.resting.is_busy(later_s)
    fetchers.arrange([], later_s)
    assert indexes(fetchers.active.request(9, later_s)) == [0]
    fetchers.resting.failed(later_s)
    fetchers.arrange([], later_s)
    assert indexes(fetchers.active.request(9, later_s)) == []


def test_each_replica_is_in_one_of_the_two_whatever_happens() -> None:
    chance = random.Random(5)
    followed = replicas(8)
    fetchers, now_s = fetchers_of([], 0.0), 0.0
    known: set[LocalReplica] = set()
    for _ in range(2_000):
        now_s += chance.choice([0.01, 0.5, REST_AFTER_S])
        replica = chance.choice(followed)
        fetcher: ReplicaFetcher = chance.choice([fetchers.active, fetchers.resting])
        match chance.randrange(5):
            case 0:
                fetchers.add(replica, now_s)
                known.add(replica)
            case 1:
                fetchers.remove(replica)
                known.discard(replica)
            case 2 if not fetcher.is_busy(now_s):
                fetcher.request(9, now_s)
            case 3:
                fetcher.failed(now_s)
            case _ if replica in known:
                fetchers.arrange([replica], now_s)
        assert not fetchers.active.not_before.keys() & fetchers.resting.not_before.keys()
        assert fetchers.active.not_before.keys() | fetchers.resting.not_before.keys() == known
