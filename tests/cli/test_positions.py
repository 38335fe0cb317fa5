"""Tests of the option -o: how its values are parsed, and the offset that each selects in a partition."""

from __future__ import annotations

import pytest

from for_each import for_each
from penstock.cli.positions import ReadSpan, StartKind, parse_span, resolve
from penstock.errors import ConfigError
from penstock.model import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Log:
    """A stand-in for a consumer with two partitions: offsets 10 to 19, and 0 to 2.

    Consecutive records are a second apart.
    """

    def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {P0: 10, P1: 0}

    def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {P0: 20, P1: 3}

    def offsets_for_times(self, times: dict[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return {P0: times[P0] // 1000, P1: None}


TABLE = [
    ([], ReadSpan(), (10, 0)),
    (["beginning"], ReadSpan(), (10, 0)),
    (["earliest"], ReadSpan(), (10, 0)),
    (["end"], ReadSpan(StartKind.END), (20, 3)),
    (["latest"], ReadSpan(StartKind.END), (20, 3)),
    (["2"], ReadSpan(StartKind.OFFSET, 2), (10, 2)),
    (["15"], ReadSpan(StartKind.OFFSET, 15), (15, 3)),
    (["-5"], ReadSpan(StartKind.BEFORE_END, 5), (15, 0)),
    (["s@12000"], ReadSpan(StartKind.TIME, 12000), (12, 3)),
    (["s@12000", "e@13000"], ReadSpan(StartKind.TIME, 12000, 13000), (12, 3)),
    (["1970-01-01T00:00:12Z"], ReadSpan(StartKind.TIME, 12000), (12, 3)),
    (
        ["s@1970-01-01T00:00:12", "e@1970-01-01T01:00:13+01:00"],
        ReadSpan(StartKind.TIME, 12000, 13000),
        (12, 3),
    ),
    (["e@13000", "-1"], ReadSpan(StartKind.BEFORE_END, 1, 13000), (19, 2)),
]


@for_each(TABLE)
def test_spans(words: list[str], span: ReadSpan, starts: tuple[int, int]) -> None:
    assert parse_span(words) == span
    assert resolve(span, [P0, P1], Log()) == {P0: starts[0], P1: starts[1]}


@for_each(
    [
        ["middle"],
        ["soon"],
        ["s@soon"],
        ["e@never"],
        ["--5"],
        ["s@"],
        ["1", "2"],
        ["end", "s@1"],
        ["+3"],
        ["٣"],
        [""],
    ]
)
def test_anything_else_is_refused(words: list[str]) -> None:
    with pytest.raises(ConfigError, match="-o "):
        parse_span(words)
