"""Tests of Polars lazy frames: the answers are those of a full copy, and only needed records are fetched."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from for_each import for_each
from penstock import Admin, read_topic, scan_polars, topic_dataset
from penstock.errors import ConfigError
from penstock.queries.polars_frames import wanted_by
from penstock.queries.pushdown.wanted import EVERYTHING, NOTHING, Wanted
from penstock.queries.watching import Watch
from query_topics import T0_MS, make_topic

NewTopic = Callable[..., str]
names = (f"framed-{number}" for number in itertools.count())
C = pl.col
AT = datetime(2026, 1, 1, tzinfo=UTC)
AT_MS = int(AT.timestamp() * 1000)


@for_each(
    [
        (C("offset") >= 5, Wanted(offset_min=5)),
        (pl.lit(5) > C("offset"), Wanted(offset_end=5)),
        (C("offset").is_between(2, 4), Wanted(offset_min=2, offset_end=5)),
        (C("offset").is_between(2, 4, closed="none"), Wanted(offset_min=3, offset_end=4)),
        ((C("partition") == 1) & (C("offset") < 9), Wanted(frozenset([1]), offset_end=9)),
        (C("partition").is_in([1, 2]), Wanted(frozenset([1, 2]))),
        ((C("partition") == 1) | (C("partition") == 2), Wanted(frozenset([1, 2]))),
        (C("timestamp") >= AT, Wanted(time_min_ms=AT_MS)),
        (C("timestamp") < AT, Wanted(time_end_ms=AT_MS)),
        (C("key") == b"a", Wanted(keys=frozenset([b"a"]))),
        (C("offset").is_null(), NOTHING),
        (C("offset") > 1.5, EVERYTHING),
        (~(C("offset") >= 5), EVERYTHING),
        (C("offset") + 1 > 5, EVERYTHING),
        (C("value").bin.size() > 5, EVERYTHING),
        (C("timestamp") >= datetime(2026, 1, 1), EVERYTHING),
        (C("offset").map_elements(bool, return_dtype=pl.Boolean), EVERYTHING),
    ]
)
def test_a_predicate_says_which_records_may_be_wanted(predicate: pl.Expr, wanted: Wanted) -> None:
    assert wanted_by(predicate) == wanted


def predicates(dice: random.Random, depth: int = 0) -> pl.Expr:
    """Return a random predicate, of conditions that can limit what is fetched and of others."""
    if depth < 3 and dice.random() < 0.5:
        one, other = predicates(dice, depth + 1), predicates(dice, depth + 1)
        made = one & other if dice.random() < 0.6 else one | other
        return ~made if dice.random() < 0.15 else made
    moment = datetime.fromtimestamp(T0_MS / 1000, UTC) + timedelta(seconds=dice.randrange(-100, 700))
    column, value = dice.choice(
        [
            ("partition", dice.randrange(5)),
            ("offset", dice.randrange(300)),
            ("timestamp", moment),
            ("key", b"b"),
        ]
    )
    return dice.choice(
        [
            C(column) == value,
            C(column) >= value,
            C(column) < value,
            C(column).is_in([value]),
            C(column).is_null(),
            C("value").is_not_null(),
            C("offset") % 3 == 1,
        ]
    )


@pytest.mark.parametrize("kind", ["plain", "late", "transactional", "recreated", "empty", "trimmed"])
def test_answers_are_those_over_a_full_copy(servers: str, admin: Admin, kind: str) -> None:
    _ask(kind, servers, admin, seed=7, queries=40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_answers_are_those_over_a_full_copy(servers: str, admin: Admin, seed: int) -> None:
    kind = ["plain", "late", "transactional", "recreated", "trimmed"][seed % 5]
    _ask(kind, servers, admin, seed=100 + seed, queries=100)


def _ask(kind: str, servers: str, admin: Admin, *, seed: int, queries: int) -> None:
    name = next(names)
    make_topic(kind, servers, admin, name, seed)
    copy = pl.from_arrow(read_topic(name, servers))
    assert isinstance(copy, pl.DataFrame)
    frame, dice = scan_polars(name, servers), random.Random(seed)
    for number in range(queries):
        predicate = predicates(dice)
        asked: Callable[[pl.LazyFrame], pl.LazyFrame] = dice.choice(
            [
                lambda f: f.select(C("key"), C("offset") * 2).sort("offset"),
                lambda f: f.select(pl.len()),
                lambda f: f.group_by("partition").agg(C("offset").max(), C("key").count()).sort("partition"),
                lambda f: f.select("partition", "offset", "value").sort("partition", "offset").head(7),
            ]
        )
        found = asked(frame.filter(predicate)).collect()
        expected = asked(copy.lazy().filter(predicate)).collect()
        assert found.sort(pl.all()).equals(expected.sort(pl.all())), (seed, number, str(predicate))


def test_filters_and_limits_are_pushed_down(servers: str, admin: Admin) -> None:
    name = next(names)
    make_topic("plain", servers, admin, name, 3)

    def read(ask: Callable[[pl.LazyFrame], Any]) -> Watch:
        watch = Watch()
        ask(scan_polars(topic_dataset(name, servers).watched(watch)))
        return watch

    whole = read(lambda frame: frame.collect())
    assert whole.records == 600
    part = read(lambda frame: frame.filter((C("partition") == 0) & C("offset").is_between(5, 9)).collect())
    assert part.records == 5
    first = read(lambda frame: frame.head(3).collect())
    assert first.records == 3


def test_json_fields_are_columns(servers: str, new_topic: NewTopic) -> None:
    from penstock import write_topic

    topic = new_topic(1)
    write_topic(pl.DataFrame({"value": ['{"a": 1}', '{"a": 2}', "broken"]}), topic, servers)
    frame = scan_polars(topic, servers, value_format="json").filter(C("a") > 1).select("a")
    assert frame.collect().to_dict(as_series=False) == {"a": [2]}


def test_what_is_wrong_is_said(servers: str, new_topic: NewTopic) -> None:
    with pytest.raises(ConfigError, match="bootstrap_servers is missing"):
        scan_polars("orders")
    with pytest.raises(ConfigError, match="has its servers"):
        scan_polars(topic_dataset(new_topic(1), servers), servers)
    with pytest.raises(Exception, match="no-such-topic"):
        scan_polars("no-such-topic", servers).collect()
