"""Tests of the class that holds a consumer's positions, without a client, event loop or fetcher."""

from __future__ import annotations

from penstock.client.cluster.metadata import ClusterMetadata
from penstock.client.config import ConsumerConfig
from penstock.client.fetch.fetched_records import BY_AGE, COMMITTED, NO_POSITION, FetchedRecords
from penstock.model import EARLIEST, LATEST, TopicPartition

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def fetched(**options: object) -> FetchedRecords[bytes, bytes]:
    config = ConsumerConfig.parse(None, {"bootstrap_servers": "nowhere", **options})
    return FetchedRecords(config, ClusterMetadata())


def test_partitions_that_stay_keep_their_positions() -> None:
    records = fetched()
    records.assign([T0, T1], EARLIEST)
    records.seek(T1, 7)
    records.assign([T1, T2], LATEST)
    assert records.positions == {T1: 7, T2: LATEST}
    assert records.consumed() == {T1: 7}
    records.release([T1])
    assert records.positions == {T2: LATEST}


def test_a_seek_wins_over_a_look_up_that_was_under_way() -> None:
    records = fetched(group_id="g")
    records.assign([T0, T1], COMMITTED)
    assert records.at(COMMITTED) == [T0, T1]
    records.seek(T1, 3)
    records.found(COMMITTED, {T0: 40, T1: 41, T2: 42})
    assert records.positions == {T0: 40, T1: 3}


def test_what_stands_for_the_position_that_is_reset_to() -> None:
    markers = {"earliest": EARLIEST, "latest": LATEST, "none": NO_POSITION, "by_duration:PT1H": BY_AGE}
    assert {each: fetched(auto_offset_reset=each).reset_marker for each in markers} == markers


def test_nothing_is_handed_out_before_fetching_has_begun() -> None:
    records = fetched()
    records.assign([T0], 0)
    before = records.progress()
    assert records.poll_now(10) == []
    assert list(records.iterate_now()) == []
    assert (records.part_now(), records.fetched_bytes, records.has_rows) == (None, 0, False)
    assert records.progress() != before
