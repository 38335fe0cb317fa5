from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from penstock import read_topic
from penstock.errors import ConfigError, EncodeError, PenstockError, StorageError
from penstock.spark.sinks.identity import by_event, by_headers, header_values
from penstock.spark.sinks.topics import TopicSink, without

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))


def records(*numbers: int) -> pa.Table:
    """Records without keys: value n, and a header n."""
    return pa.table(
        {
            "value": pa.array([b"%d" % n for n in numbers], pa.binary()),
            "headers": pa.array([[{"key": "n", "value": b"%d" % n}] for n in numbers], HEADERS),
        }
    )


def values_of(topic: str, brokers: str) -> list[int]:
    return sorted(int(value) for value in read_topic(topic, bootstrap_servers=brokers)["value"].to_pylist())


@pytest.fixture
def sink(brokers: str, new_topic: Callable[..., str], tmp_path: Path) -> TopicSink:
    return TopicSink(
        new_topic(), bootstrap_servers=brokers, state=tmp_path / "state", identity=by_headers("n")
    )


def test_a_batch_again_writes_only_what_is_missing(sink: TopicSink, brokers: str) -> None:
    assert sink.commit(0, records(1, 2)) == 2
    assert sink.commit(1, records(3, 4)) == 2
    assert sink.commit(1, records(4, 5, 3)) == 1
    assert values_of(sink.topic, brokers) == [1, 2, 3, 4, 5]


def test_records_of_earlier_batches_are_not_mistaken_for_this_one(sink: TopicSink, brokers: str) -> None:
    sink.commit(0, records(1))
    sink.commit(1, records(1))
    sink.commit(1, records(1))
    assert values_of(sink.topic, brokers) == [1, 1]


def test_killed_anywhere_every_record_is_there_once(
    sink: TopicSink, brokers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(5)
    append = TopicSink._append
    left = [0]

    def append_a_part(self: TopicSink, table: pa.Table) -> None:
        part = chance.randint(0, table.num_rows)
        append(self, table.slice(0, part))
        if left[0] > 0:
            left[0] -= 1
            raise RuntimeError("killed")
        append(self, table.slice(part))

    monkeypatch.setattr(TopicSink, "_append", append_a_part)
    for batch in range(6):
        left[0] = chance.randint(0, 3)
        numbers = [batch * 10 + n for n in range(10)]
        for _ in range(5):
            chance.shuffle(numbers)
            try:
                sink.commit(batch, records(*numbers))
            except RuntimeError:
                continue
            break
    assert values_of(sink.topic, brokers) == [*range(60)]


def test_notes_of_finished_batches_are_removed(sink: TopicSink, tmp_path: Path) -> None:
    for batch in range(3):
        sink.commit(batch, records(batch))
    assert [file.name for file in (tmp_path / "state").iterdir()] == ["batch-000000000002.json"]


def test_an_empty_batch_writes_nothing(sink: TopicSink, brokers: str) -> None:
    assert sink.commit(0, records()) == 0
    assert values_of(sink.topic, brokers) == []


def test_refusals(sink: TopicSink, brokers: str, tmp_path: Path) -> None:
    with pytest.raises(EncodeError, match=r"row 0 cannot be distinguished .*: by_headers\(n\) finds nothing"):
        sink.commit(0, pa.table({"value": [b"x"]}))
    with pytest.raises(EncodeError, match="no column 'value'"):
        sink.commit(0, pa.table({"key": [b"x"]}))
    with pytest.raises(EncodeError, match="column 'value' is int64"):
        sink.commit(0, pa.table({"value": [1]}))
    with pytest.raises(ConfigError, match="counts from 0"):
        sink.commit(-1, records(1))
    sink.commit(0, records(1))
    other = TopicSink("other", bootstrap_servers=brokers, state=tmp_path / "state", identity=by_headers("n"))
    with pytest.raises(ConfigError, match="belongs to the sink of topic"):
        other.commit(0, records(1))
    (tmp_path / "state" / "batch-000000000000.json").write_text("torn")
    with pytest.raises(StorageError, match="does not hold the positions"):
        sink.commit(0, records(1))


def test_an_unknown_topic_is_refused(brokers: str, tmp_path: Path) -> None:
    sink = TopicSink("nowhere", bootstrap_servers=brokers, state=tmp_path, identity=by_headers("n"))
    with pytest.raises(PenstockError, match="nowhere"):
        sink.commit(0, records(1))


def test_header_values_take_the_first_of_a_name() -> None:
    rows = [[("a", b"1"), ("b", b"2"), ("a", b"3")], [], None, [("a", None)], [("b", b"4")]]
    headers = pa.array(
        [None if row is None else [{"key": k, "value": v} for k, v in row] for row in rows], HEADERS
    )
    assert header_values(pa.chunked_array([headers]), "a") == [b"1", None, None, None, None]
    assert header_values(pa.chunked_array([headers.slice(1), headers.slice(0, 2)]), "b") == [
        *(None, None, None, b"4"),
        *(b"2", None),
    ]


def test_events_are_told_apart_by_source_and_id() -> None:
    attributes = [("ce_specversion", b"1.0"), ("ce_source", b"/s"), ("ce_type", b"t")]
    rows = [[*attributes, ("ce_id", b"%d" % n)] for n in (1, 2)]
    table = pa.table(
        {
            "key": pa.array([None, None], pa.binary()),
            "value": pa.array([b"x", None], pa.binary()),
            "headers": pa.array([[{"key": k, "value": v} for k, v in row] for row in rows], HEADERS),
        }
    )
    assert list(by_event(table)) == [("/s", "1"), ("/s", "2")]
    assert list(by_event(table.set_column(2, "headers", pa.array([[], []], HEADERS)))) == [None, None]


def test_of_records_that_share_an_identity_as_many_are_written_as_are_missing() -> None:
    table = pa.table({"n": [1, 2, 1, 1, 3]})
    assert without(table, [1, 2, 1, 1, 3], [1, 1, 3, 9])["n"].to_pylist() == [2, 1]
