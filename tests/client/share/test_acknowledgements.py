"""Tests of acknowledgement batches: encoded as by Java's share consumer, and divided into smaller ones."""

from __future__ import annotations

import random

import pytest

from for_each import for_each
from penstock.client.share.acknowledgements import (
    GAP,
    AcknowledgementGroup,
    AcknowledgementOutcome,
    AcknowledgeType,
    WireBatch,
    joined,
    wire_batches,
)
from penstock.client.share.offset_map import RunMap, ValueRun
from penstock.errors import ConfigError
from penstock.model import TopicPartition

TP = TopicPartition("t", 0)
ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


def group(*runs: ValueRun, number: int = 0) -> AcknowledgementGroup:
    return AcknowledgementGroup(TP, list(runs), 10.0, number)


def test_offsets_without_gaps_are_one_batch() -> None:
    runs = [ValueRun(0, 3, ACCEPT), ValueRun(4, 4, REJECT), ValueRun(5, 6, ACCEPT)]
    assert wire_batches(runs) == [WireBatch(0, 6, [1, 1, 1, 1, 3, 1, 1])]


def test_equal_types_are_said_once() -> None:
    assert wire_batches([ValueRun(0, 3, ACCEPT)]) == [WireBatch(0, 3, [1])]


def test_long_runs_have_batches_of_their_own() -> None:
    runs = [ValueRun(0, 1, RELEASE), ValueRun(2, 11, ACCEPT), ValueRun(12, 12, GAP), ValueRun(13, 13, REJECT)]
    assert wire_batches(runs) == [
        WireBatch(0, 1, [2]),
        WireBatch(2, 11, [1]),
        WireBatch(12, 13, [0, 3]),
    ]


def test_offsets_with_gaps_are_several_batches() -> None:
    assert wire_batches([ValueRun(0, 1, ACCEPT), ValueRun(5, 5, ACCEPT)]) == [
        WireBatch(0, 1, [1]),
        WireBatch(5, 5, [1]),
    ]


@for_each(range(10))
def test_batches_say_what_was_decided(seed: int) -> None:
    dice = random.Random(seed)
    decided = RunMap()
    for _ in range(40):
        first = dice.randrange(200)
        decided.put(first, first + dice.randrange(15), dice.randrange(4))
    said: dict[int, int] = {}
    for batch in wire_batches(decided):
        size = batch.last - batch.first + 1
        types = batch.types * size if len(batch.types) == 1 else batch.types
        assert len(types) == size
        said.update(zip(range(batch.first, batch.last + 1), types, strict=True))
    assert said == {offset: run.value for run in decided for offset in range(run.first, run.last + 1)}


@for_each(range(10))
def test_halves_are_the_whole(seed: int) -> None:
    dice = random.Random(seed)
    decided = RunMap()
    for _ in range(dice.randrange(1, 6)):
        first = dice.randrange(50)
        decided.put(first, first + dice.randrange(9), dice.randrange(4))
    whole = group(*decided)
    halves = whole.halves()
    if whole.size == 1:
        assert halves is None
        return
    assert halves is not None
    assert abs(halves[0].size - halves[1].size) <= 1
    assert list(RunMap([*halves[0].runs, *halves[1].runs])) == list(decided)
    assert not any(half.is_fresh for half in halves)


def test_groups_that_have_not_been_sent_go_together() -> None:
    first = group(ValueRun(0, 1, ACCEPT))
    assert first.absorb(group(ValueRun(5, 5, REJECT)))
    assert first.runs == [ValueRun(0, 1, ACCEPT), ValueRun(5, 5, REJECT)]
    assert not first.absorb(group(ValueRun(1, 1, ACCEPT)))  # given out twice
    assert not first.absorb(group(ValueRun(7, 7, RENEW)))
    assert not first.absorb(group(ValueRun(7, 7, ACCEPT), number=1))
    first.is_fresh = False
    assert not first.absorb(group(ValueRun(7, 7, ACCEPT)))


def test_outcomes_leave_gaps_out() -> None:
    outcome = AcknowledgementOutcome(
        group(ValueRun(0, 1, ACCEPT), ValueRun(2, 2, GAP), ValueRun(3, 3, REJECT), ValueRun(4, 4, ACCEPT)),
        None,
    )
    assert outcome.offsets == [range(2), range(3, 5)]


def test_ranges_are_joined() -> None:
    assert joined([range(5, 7), range(3), range(3, 5), range(9, 10)]) == [range(7), range(9, 10)]


@pytest.mark.parametrize(
    ("value", "kind"),
    [("accept", ACCEPT), (" Release", RELEASE), ("REJECT", REJECT), (4, RENEW), (ACCEPT, ACCEPT)],
)
def test_types_have_names_and_numbers(value: object, kind: AcknowledgeType) -> None:
    assert AcknowledgeType.of(value) is kind


@pytest.mark.parametrize("value", ["gap", 0, 5, None, True, "", 1.5])
def test_what_is_no_type_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="write one of 'accept', 'release', 'reject', 'renew'"):
        AcknowledgeType.of(value)
