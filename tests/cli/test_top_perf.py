"""Tests of ``penstock top`` and ``penstock perf``: the rates that they compute, and their output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest

from penstock import Admin, Broker, Consumer, Producer
from penstock.cli import main
from penstock.cli.listing import NOUNS
from penstock.cli.perf import percentile
from penstock.cli.samples import ClusterSample, GroupSample, group_rows, topic_rows
from penstock.cli.top import _amount, picture
from penstock.model import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
BEFORE = ClusterSample(
    10.0, 1_000, {A0: 0, A1: 5, B0: 0}, {A0: 10, A1: 10, B0: 100}, {"a": 1_000}, {
        "g": GroupSample("Stable", {A0: 4})
    }
)  # fmt: skip
NOW = ClusterSample(
    12.0, 3_000, {A0: 2, A1: 5, B0: 0}, {A0: 30, A1: 10, B0: 100}, {"a": 3_000, "b": 7}, {
        "g": GroupSample("Stable", {A0: 10, A1: 10}), "new": GroupSample(None, {B0: 1})
    }
)  # fmt: skip


def test_rates_are_differences_by_time() -> None:
    assert topic_rows(NOW, BEFORE) == [
        {
            "time_ms": 3_000,
            "topic": "a",
            "partitions": 2,
            "records": 33,
            "records_per_s": 10.0,
            "bytes": 3_000,
            "bytes_per_s": 1_000.0,
        },
        {
            "time_ms": 3_000,
            "topic": "b",
            "partitions": 1,
            "records": 100,
            "records_per_s": 0.0,
            "bytes": 7,
            "bytes_per_s": 3.5,
        },
    ]
    assert [(row["group"], row["lag"], row["records_per_s"]) for row in group_rows(NOW, BEFORE)] == [
        ("new", 99, None),
        ("g", 20, 3.0),
    ]
    first = topic_rows(BEFORE, None)
    assert [(row["topic"], row["records_per_s"], row["bytes_per_s"]) for row in first] == [
        ("b", None, None),
        ("a", None, None),
    ]
    unknown = topic_rows(NOW._replace(sizes=None), BEFORE)
    assert {(row["bytes"], row["bytes_per_s"]) for row in unknown} == {(None, None)}


def test_the_picture() -> None:
    assert picture(NOW, BEFORE, "kafka:9092") == [
        "kafka:9092 at 00:00:03 UTC: 2 topics, 2 groups, 10 records/s",
        "",
        "topic  partitions  records  records/s  bytes  bytes/s",
        "a               2       33         10  2.9Ki     1000",
        "b               1      100          0      7        4",
        "",
        "group  state   partitions  lag  records/s",
        "new    -                1   99          -",
        "g      Stable           2   20          3",
    ]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, 1000, "0"),
        (9_999, 1000, "9999"),
        (10_000, 1000, "10.0k"),
        (1.5e9, 1000, "1.5G"),
        (1_023, 1024, "1023"),
        (1_024, 1024, "1.0Ki"),
        (1 << 30, 1024, "1.0Gi"),
    ],
)
def test_amounts(value: float, unit: int, text: str) -> None:
    assert _amount(value, unit) == text


def test_percentiles() -> None:
    assert percentile([], 50) is None
    assert [percentile([1.0, 2.0, 3.0, 4.0], at) for at in (1, 25, 50, 51, 99, 100)] == [1, 1, 2, 3, 4, 4]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker() as broker:
        at = broker.bootstrap_servers
        with Admin(at) as admin, Producer(at) as producer:
            admin.create_topic("t", partitions=2)
            producer.send("t", b"x").result()
            with Consumer(at, group_id="g") as consumer:
                consumer.assign([("t", 0)])
                consumer.commit({("t", 0): 0})
            yield at


Run = Callable[..., str]


@pytest.fixture
def run(address: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(words: str) -> str:
        code = main([*words.split(), "-b", address])
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out

    return call


def rows(noun: str, text: str) -> list[dict[str, object]]:
    """Return the JSON objects in `text` that have the fields of the resource type `noun`."""
    found = [json.loads(line) for line in text.splitlines()]
    return [row for row in found if list(row) == [field.name for field in NOUNS[noun]]]


def test_top_in_a_pipe(run: Run) -> None:
    out = run("top -n 2 -d 100ms")
    assert len(re.findall(r"\d topics?, 1 group", out)) == 2
    assert "\x1b" not in out
    text = run("top -n 2 -d 100ms --json -t t -G g")
    assert [row["topic"] for row in rows("topic rate", text)] == ["t", "t"]
    assert [row["records_per_s"] for row in rows("topic rate", text)] == [None, 0.0]
    assert [row["group"] for row in rows("group rate", text)] == ["g", "g"]


def test_perf_in_and_out(run: Run) -> None:
    (*_, total) = rows("perf", run("perf produce -n 2000 --size 10 --json --keep -q"))
    assert (total["records"], total["bytes"], total["is_total"]) == (2_000, 20_000, True)
    assert 0 < float(str(total["p50_ms"])) <= float(str(total["p99_ms"])) <= float(str(total["max_ms"]))
    (*_, total) = rows("perf", run("perf consume --json"))
    assert (total["records"], total["p50_ms"]) == (2_001, None)
    (*_, total) = rows("perf", run("perf consume --json -n 500"))
    assert total["records"] == 500
    line = run("perf produce --rate 1000 --for 200ms -q").splitlines()[-1]
    assert line.startswith("altogether in 0.")
    assert "acknowledged after p50" in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("top -d 5ms", "--every 5ms: at least 100 ms"),
        ("top -d soon", "--every: 'soon' is no duration"),
        ("top -t none", "'none' does not exist"),
        ("perf consume --new", "--new has no end of its own"),
        ("perf consume -t none", "'none' does not exist"),
        ("perf produce --for ever", "--for: 'ever' is no duration"),
    ],
)
def test_mistakes(words: str, message: str, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split(), "-b", address]) in (1, 2)
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
