from __future__ import annotations

import json
import random
from collections.abc import Mapping

import pytest

from penstock.errors import ConfigError
from penstock.model import EARLIEST, LATEST, OffsetRange, TopicPartition
from penstock.spark.source.options import Bound, Selection
from penstock.spark.source.planning import (
    DataLossError,
    backlog_rows,
    batch_ranges,
    limit_rows,
    offsets_from_json,
    offsets_to_json,
    pack_ranges,
    resolve,
    select_partitions,
    split_ranges,
    stream_ranges,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def log(first: int, last: int):
    """Return a stand-in for offset lookups in partitions with offsets `first` to `last` - 1.

    The record at offset n has timestamp n ms.
    """

    def lookup(questions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        def answer(question: int) -> int | None:
            if question == EARLIEST:
                return first
            if question == LATEST:
                return last
            return max(first, question) if question < last else None

        return {where: answer(question) for where, question in questions.items()}

    return lookup


def test_offsets_travel_as_sorted_text_and_come_back() -> None:
    offsets = {TopicPartition("b", 10): 5, TopicPartition("b", 9): 4, TopicPartition("a", 0): 23}
    document = offsets_to_json(offsets)
    assert json.dumps(document) == '{"a": {"0": 23}, "b": {"9": 4, "10": 5}}'
    assert offsets_from_json(document) == offsets
    with pytest.raises(ConfigError, match="another source"):
        offsets_from_json({"logOffset": 3})


def test_selecting_partitions() -> None:
    counts = {"a": 2, "b": 1}
    assert select_partitions(Selection(topics=("a",)), counts) == [A0, A1]
    assert select_partitions(Selection(pattern=".*"), counts) == [A0, A1, B0]
    assert select_partitions(Selection(partitions=(A1,)), counts) == [A1]
    with pytest.raises(ConfigError, match="unknown topic 'c'"):
        select_partitions(Selection(topics=("a", "c")), counts)
    with pytest.raises(ConfigError, match="a-2, but topic 'a' has 2"):
        select_partitions(Selection(partitions=(TopicPartition("a", 2),)), counts)
    with pytest.raises(ConfigError, match="unknown topic 'c'"):
        select_partitions(Selection(partitions=(TopicPartition("c", 0),)), counts)


def test_bounds_become_offsets() -> None:
    lookup = log(10, 50)
    partitions = [A0, A1]
    assert resolve(Bound("o", everywhere=EARLIEST), partitions, lookup) == {A0: 10, A1: 10}
    assert resolve(Bound("o", everywhere=LATEST), partitions, lookup) == {A0: 50, A1: 50}
    assert resolve(Bound("o", offsets={A0: 23, A1: LATEST}), partitions, lookup) == {A0: 23, A1: 50}
    assert resolve(Bound("o", timestamps={A0: 23, A1: 5}), partitions, lookup) == {A0: 23, A1: 10}
    assert resolve(Bound("o", everywhere=30), partitions, lookup) == {A0: 30, A1: 30}
    late = Bound("o", everywhere=60, late_means_latest=True)
    assert resolve(late, partitions, lookup) == {A0: 50, A1: 50}
    with pytest.raises(ConfigError, match="no record of a-0, a-1 is that late"):
        resolve(Bound("o", everywhere=60), partitions, lookup)
    with pytest.raises(ConfigError, match="missing: a-1"):
        resolve(Bound("o", offsets={A0: 1}), partitions, lookup)
    with pytest.raises(ConfigError, match="does not exist: b-0"):
        resolve(Bound("o", offsets={A0: 1, A1: 1, B0: 1}), partitions, lookup)


def test_a_batch_reads_what_lies_between_its_bounds() -> None:
    lookup = log(10, 50)
    assert batch_ranges({A0: 20, A1: 50}, {A0: 30, A1: 50}, lookup, fail_on_data_loss=True) == [
        OffsetRange("a", 0, 20, 30)
    ]
    with pytest.raises(DataLossError, match="a-0 starts at offset 10: 5 to 9 are gone; set failOnDataLoss"):
        batch_ranges({A0: 5}, {A0: 50}, lookup, fail_on_data_loss=True)
    with pytest.raises(DataLossError, match="a-0 ends at offset 50, before the 60"):
        batch_ranges({A0: 10}, {A0: 60}, lookup, fail_on_data_loss=True)
    assert batch_ranges({A0: 5}, {A0: 60}, lookup, fail_on_data_loss=False) == [OffsetRange("a", 0, 10, 50)]
    assert batch_ranges({A0: 5}, {A0: 7}, lookup, fail_on_data_loss=False) == []
    with pytest.raises(ConfigError, match="ends before it starts: a-0 from 30 to 20"):
        batch_ranges({A0: 30}, {A0: 20}, lookup, fail_on_data_loss=False)


def test_a_micro_batch_reads_on_and_takes_new_partitions_from_their_start() -> None:
    ranges = stream_ranges({A0: 5}, {A0: 9, A1: 4}, {A0: 0, A1: 0}, fail_on_data_loss=True)
    assert ranges == [OffsetRange("a", 0, 5, 9), OffsetRange("a", 1, 0, 4)]
    assert stream_ranges({A0: 9}, {A0: 9}, {A0: 0}, fail_on_data_loss=True) == []


LOSSES = {
    "partition gone": ({A0: 5, A1: 1}, {A0: 9}, {A0: 0}, "a-1 of the checkpoint are gone", [(5, 9)]),
    "topic gone since": ({A0: 5}, {A0: 9}, {}, "a-0 is gone", []),
    "went back": ({A0: 5}, {A0: 3}, {A0: 0}, "went back from offset 5 to 3", []),
    "log starts later": ({A0: 5}, {A0: 9}, {A0: 7}, "starts at offset 7: 5 to 6 are gone", [(7, 9)]),
    "log starts after it all": ({A0: 5}, {A0: 9}, {A0: 20}, "starts at offset 20: 5 to 8 are gone", []),
    "new and already cut": ({A0: 9}, {A0: 9, A1: 8}, {A0: 0, A1: 2}, "a-1 is new here", [(2, 8)]),
}


@pytest.mark.parametrize("case", LOSSES)
def test_losses_fail_the_query_unless_told_otherwise(case: str) -> None:
    start, end, earliest, message, spans = LOSSES[case]
    with pytest.raises(DataLossError, match=message):
        stream_ranges(start, end, earliest, fail_on_data_loss=True)
    ranges = stream_ranges(start, end, earliest, fail_on_data_loss=False)
    assert [(each.start, each.end) for each in ranges] == spans


def test_limits_share_in_proportion_and_starve_nobody() -> None:
    start = {A0: 0, A1: 100, B0: 7}
    latest = {A0: 900, A1: 200, B0: 7}
    assert limit_rows(start, latest, 100) == {A0: 90, A1: 110, B0: 7}
    assert limit_rows(start, latest, 1_000) == latest
    assert limit_rows({A0: 0, A1: 0}, {A0: 1_000_000, A1: 1}, 10) == {A0: 9, A1: 1}
    # Rounded down, as Spark's Kafka source does: 40 * 64 / 71 and 40 * 7 / 71.
    assert limit_rows({A0: 36, A1: 3}, {A0: 100, A1: 10}, 40) == {A0: 72, A1: 6}
    assert backlog_rows(start, latest) == 1_000


def test_limited_batches_reach_the_end_whatever_the_backlog() -> None:
    chance = random.Random(7)
    for _ in range(50):
        latest = {TopicPartition("t", number): chance.choice([0, 1, 5, 1000]) for number in range(5)}
        position = dict.fromkeys(latest, 0)
        limit = chance.randint(1, 700)
        for _ in range(6_000):
            after = limit_rows(position, latest, limit)
            assert all(position[where] <= after[where] <= latest[where] for where in latest)
            assert backlog_rows(position, after) <= limit + len(latest)
            assert after == limit_rows(position, latest, limit)
            if after == position:
                break
            position = after
        assert position == latest


def test_splitting_covers_every_record_once() -> None:
    chance = random.Random(11)
    for _ in range(200):
        ranges = [
            OffsetRange("t", number, begin, begin + chance.choice([0, 1, 10, 5000]))
            for number, begin in enumerate(chance.sample(range(100), 4))
        ]
        least = chance.choice([None, 1, 3, 17])
        most = chance.choice([None, 1, 7, 10_000])
        pieces = split_ranges(ranges, min_partitions=least, max_records=most)
        covered = [(p.partition, offset) for p in pieces for offset in range(p.start, p.end)]
        assert covered == [(r.partition, offset) for r in ranges for offset in range(r.start, r.end)]
        assert all(piece.size > 0 for piece in pieces)
        if least:
            assert len(pieces) >= min(least, len(covered))
        if most:
            assert all(piece.size <= most for piece in pieces)


def test_splitting_cuts_the_large_ranges() -> None:
    pieces = split_ranges([OffsetRange("t", 0, 0, 900), OffsetRange("t", 1, 0, 10)], min_partitions=4)
    assert [(piece.partition, piece.size) for piece in pieces] == [(0, 300), (0, 300), (0, 300), (1, 10)]


def test_packing_keeps_order_and_fills_tasks() -> None:
    pieces = [OffsetRange("t", number, 0, size) for number, size in enumerate([400, 600, 1, 2000, 5, 5])]
    assert [[piece.size for piece in task] for task in pack_ranges(pieces, 1000)] == [
        *([400, 600], [1], [2000], [5, 5])
    ]
    assert [len(task) for task in pack_ranges(pieces, 0)] == [1] * 6
