"""Tests of the map from source to target offsets, compared with a dictionary of every record."""

from __future__ import annotations

import random
import zlib

import pytest

from penstock.errors import CorruptRecordError
from penstock.tables.mirroring import offset_map
from penstock.tables.mirroring.offset_map import OffsetMap, OffsetRun, pack_runs, unpack_runs

SEEDS = range(40)


def random_spans(dice: random.Random) -> list[tuple[int, int, int]]:
    """Return random runs of copied records: source offset, target offset, count.

    Source and target have gaps, such as markers.
    """
    source, target = dice.randrange(50), dice.randrange(5)
    found = []
    for _ in range(dice.randrange(1, 120)):
        count = dice.choice((1, 1, 1, 2, 3, dice.randrange(1, 40)))
        found.append((source, target, count))
        source += count + dice.choice((0, 0, 1, 1, 2, dice.randrange(30)))
        target += count + dice.choice((0, 0, 0, 1, 2))
    return found


def by_record(spans: list[tuple[int, int, int]]) -> dict[int, int]:
    return {source + i: target + i for source, target, count in spans for i in range(count)}


def check(made: OffsetMap, records: dict[int, int], first: int = 0) -> None:
    """Check the map's answer for every offset, including gaps and both ends, against single records."""
    end = max(records, default=0) + 3
    expected: int | None = None
    for offset in range(end, first - 1, -1):
        expected = records.get(offset, expected)
        assert made.translate(offset) == expected, offset
        assert made.exactly(offset) == records.get(offset), offset


@pytest.mark.parametrize("seed", SEEDS)
def test_every_offset_translates_to_the_next_record_that_was_copied(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(offset_map, "CHUNK_RUNS", dice.choice((1, 2, 5, 512)))
    spans = random_spans(dice)
    made = OffsetMap()
    for span in spans:
        made.add(*span)
    check(made, by_record(spans))
    assert (made.end, made.target_end) == (sum(spans[-1][::2]), sum(spans[-1][1:]))
    assert sum(run.length for run in made) == len(by_record(spans))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_each_commit_writes_makes_the_map_again_at_any_moment(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk of the map replaces the one with its name, as in a compacted topic.

    A crash may leave chunks that are newer than the committed offset.
    """
    dice = random.Random(seed)
    monkeypatch.setattr(offset_map, "CHUNK_RUNS", dice.choice((1, 2, 3, 7)))
    spans = random_spans(dice)
    made, kept, at = OffsetMap(), dict[int, bytes](), 0
    while at < len(spans):
        step = spans[at : at + dice.randrange(1, 9)]
        for span in step:
            made.add(*span)
        kept |= made.chunks(step[0][0])
        committed = at + len(step) if dice.random() < 0.7 else at
        end = sum(spans[committed - 1][::2]) if committed else 0
        made = OffsetMap.of_chunks(kept.items(), floor=0, end=end)
        assert made.end == end
        check(made, by_record(spans[:committed]))
        for name in kept.keys() - made.chunks().keys():
            del kept[name]
        at = committed


def test_runs_that_touch_become_one_and_what_repeats_itself_is_small() -> None:
    made = OffsetMap()
    for offset in range(0, 1000, 10):
        made.add(offset, offset, 10)
    assert list(made) == [OffsetRun(0, 0, 1000)]
    for number in range(100_000):  # a record and a marker, again and again
        made.add(1000 + number, 1001 + 2 * number, 1)
    assert made.size_bytes < 20_000
    assert made.translate(51_000) == 1001 + 2 * 50_000


def test_records_that_do_not_follow_are_refused() -> None:
    made = OffsetMap()
    made.add(5, 5, 3)
    for wrong in ((7, 9, 1), (9, 7, 1), (9, 9, 0), (9, 9, -1)):
        with pytest.raises(ValueError, match="do not follow a map that ends at 8 and 8"):
            made.add(*wrong)
    with pytest.raises(ValueError, match="offset 4 lies before the map, which begins with 5"):
        OffsetMap(5).translate(4)
    assert OffsetMap(5).translate(5) is None


def test_what_retention_removed_goes_and_still_translates_to_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(offset_map, "CHUNK_RUNS", 2)
    made = OffsetMap()
    for number in range(10):
        made.add(2 * number, 3 * number, 1)
    assert made.forget_before(3 * 5) == [0, 4]
    assert made.forget_before(3 * 5) == []
    assert made.floor == 0
    assert made.translate(1) == 3 * 4  # and the caller knows where the target begins
    check(made, {2 * n: 3 * n for n in range(4, 10)}, first=8)


def test_a_map_that_is_too_large_loses_its_oldest_runs_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_map, "CHUNK_RUNS", 2)
    made = OffsetMap()
    for number in range(10):
        made.add(2 * number, 3 * number, 1)
    left = made.size_bytes - 1
    assert made.forget_down_to(left) == [0]
    assert made.floor == 3
    with pytest.raises(ValueError, match="begins with 3"):
        made.translate(2)
    check(made, {2 * n: 3 * n for n in range(2, 10)}, first=3)


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"nonsense",
        pack_runs([]),
        pack_runs([OffsetRun(1, 1, 0)]),
        pack_runs([OffsetRun(1, 1, 1)])[:-5],
        zlib.compress(b"\x80"),
        zlib.compress(b"\xff" * 11),
        zlib.compress(bytes(1 << 20)),
    ],
)
def test_damaged_chunks_are_refused(packed: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        unpack_runs(packed)
    with pytest.raises(CorruptRecordError):
        OffsetMap.of_chunks([(1, packed)], floor=0, end=9)


def test_chunks_that_do_not_follow_each_other_are_refused() -> None:
    good, other = pack_runs([OffsetRun(1, 1, 5)]), pack_runs([OffsetRun(4, 9, 5)])
    for wrong in ([(2, good)], [(1, good), (4, other)]):
        with pytest.raises(CorruptRecordError, match="is damaged"):
            OffsetMap.of_chunks(wrong, floor=0, end=99)
