"""Tests that compare the map from offset ranges to values with a plain dict."""

from __future__ import annotations

import random
from itertools import pairwise

from for_each import for_each
from penstock.client.share.offset_map import RunMap, ValueRun


def as_dict(found: RunMap) -> dict[int, int]:
    return {offset: run.value for run in found for offset in range(run.first, run.last + 1)}


@for_each(range(20))
def test_it_is_a_dictionary_kept_as_few_runs(seed: int) -> None:
    dice = random.Random(seed)
    found, model = RunMap(), dict[int, int]()
    for _ in range(300):
        first = dice.randrange(60)
        last = first + dice.randrange(12)
        between = range(first, last + 1)
        if dice.random() < 0.6:
            value = dice.randrange(3)
            found.put(first, last, value)
            model.update(dict.fromkeys(between, value))
        else:
            gone = found.remove(first, last)
            expected = {offset: model.pop(offset) for offset in between if offset in model}
            assert as_dict(RunMap(gone)) == expected
        assert as_dict(found) == model
        assert found.size == len(model) == sum(run.size for run in found)
        runs = list(found)
        for former, latter in pairwise(runs):
            assert former.last < latter.first
            assert former.last + 1 < latter.first or former.value != latter.value
        low = dice.randrange(60)
        high = low + dice.randrange(12)
        assert found.covers(low, high) == all(offset in model for offset in range(low, high + 1))
        inside = {offset: model[offset] for offset in range(low, high + 1) if offset in model}
        assert as_dict(RunMap(found.within(low, high))) == inside


def test_taking_leaves_nothing() -> None:
    found = RunMap([ValueRun(1, 4, 1)])
    assert found.take() == [ValueRun(1, 4, 1)]
    assert not found
    assert not list(found)


def test_ranges_that_end_before_they_begin_are_none() -> None:
    found = RunMap([ValueRun(3, 2, 1)])
    assert not found
    assert found.remove(0, 9) == []
