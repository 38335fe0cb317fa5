"""Tests of data sets of topics, log directories and landed tables, and of decoding values to columns."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import Admin, Broker, log_dataset, read_log, sql, topic_dataset, write_topic
from penstock.cloudevents import Event, to_record
from penstock.errors import ConfigError, KafkaError, NetworkError
from penstock.queries.columns.json_values import JsonColumns, inferred
from penstock.queries.columns.values import column_names_of, looks_like_json, text_of
from penstock.queries.dataset import RecordDataset, RecordScanner

NewTopic = Callable[..., str]
C = pc.field


@pytest.fixture(scope="module")
def numbers(servers: str, new_topic: NewTopic) -> str:
    """Write the numbers 0 to 99 to a new topic of two partitions, and return its name."""
    topic = new_topic(2)
    table = pa.table(
        {
            "key": [b"%d" % (n % 3) for n in range(100)],
            "value": [b"%d" % n for n in range(100)],
            "partition": pa.array([n % 2 for n in range(100)], pa.int32()),
        }
    )
    write_topic(table, topic, servers)
    return topic


def test_no_method_of_an_arrow_dataset_is_left_to_what_was_never_made(servers: str, numbers: str) -> None:
    """`RecordDataset` has no C++ object behind it, so an inherited Arrow method would crash the process."""
    public = [name for name in dir(ds.Dataset) if not name.startswith("_")]
    assert [name for name in public if name not in vars(RecordDataset)] == []
    wanted = [name for name in dir(ds.Scanner) if not name.startswith(("_", "from_"))]
    assert [name for name in wanted if name not in vars(RecordScanner)] == []


def test_it_does_what_arrow_datasets_do(servers: str, numbers: str) -> None:
    dataset = topic_dataset(numbers, servers)
    copy = dataset.to_table()
    assert (copy.num_rows, dataset.count_rows(), dataset.count_rows(C("partition") == 1)) == (100, 100, 50)
    assert dataset.scanner(columns=["offset"]).count_rows() == 100
    assert dataset.head(3, columns=["offset"]).to_pydict() == {"offset": [0, 1, 2]}
    assert dataset.head(3, filter=C("partition") == 1).num_rows == 3
    assert dataset.take([0, 99]).num_rows == 2
    computed = dataset.to_table(columns={"twice": C("offset") * 2}, filter=C("offset") < 2)
    assert sorted(computed.column("twice").to_pylist()) == [0, 0, 2, 2]
    part = dataset.filter(C("offset") < 10).filter(C("partition") == 0)
    assert part.count_rows() == part.to_table().num_rows == 10
    assert part.to_reader().read_all().num_rows == 10
    ordered = dataset.sort_by([("offset", "descending")]).to_table()
    assert ordered.column("offset")[0].as_py() == 49
    assert "partition, offset" in repr(dataset)
    assert duckdb.from_arrow(dataset).aggregate("count(*)").fetchall() == [(100,)]
    assert isinstance(dataset, ds.Dataset)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: d.get_fragments(),
        lambda d: d.join(d, "partition"),
        lambda d: d.join_asof(d, "timestamp", [], 1),
        lambda d: d.replace_schema(pa.schema([])),
        lambda d: d.scanner().scan_batches(),
        lambda d: d.to_table(columns=["nope"]),
        lambda d: d.to_table(filter=C("offset") == 1, limit=3),
    ],
)
def test_what_it_does_not_do_is_said(servers: str, numbers: str, call: Any) -> None:
    with pytest.raises(ConfigError):
        call(topic_dataset(numbers, servers))


def test_it_goes_to_other_processes(numbers: str) -> None:
    from penstock.queries.columns.values import RecordsShape
    from penstock.queries.sources import LogSource

    made = RecordDataset(LogSource("/nowhere", None), RecordsShape(is_text=True))
    assert pickle.loads(pickle.dumps(made)).schema == made.schema


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"value_format": "xml"}, "value_format is 'xml'"),
        ({"value_schema": pa.schema([])}, "value_schema is for value_format 'json'"),
        ({"value_schema": 7, "value_format": "json"}, "value_schema is 7"),
        ({"max_lateness": "soon"}, "max_lateness is 'soon'"),
        ({"max_lateness": 7}, "max_lateness is 7"),
        ({"key_partitioner": "dice"}, "key_partitioner is 'dice'"),
        ({"isolation": "none"}, "isolation"),
        ({"config": {"no.such.option": 1}}, "no.such.option"),
    ],
)
def test_wrong_arguments_say_what_is_wrong(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        topic_dataset("orders", "127.0.0.1:1", **arguments)
    with pytest.raises(ConfigError):
        topic_dataset("orders", 7)  # type: ignore[arg-type]


def test_errors_of_reading_come_out_of_a_table(servers: str) -> None:
    with pytest.raises(KafkaError, match="no-such-topic"):
        topic_dataset("no-such-topic", servers).to_table()
    with pytest.raises(NetworkError):
        topic_dataset("orders", "127.0.0.1:1", config={"default.api.timeout.ms": 300}).count_rows()


def test_a_directory_answers_without_a_broker(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path, log_retention_ms=-1) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("kept", 3)
            admin.create_topic("other", 1)
        table = pa.table(
            {
                "key": [b"a", b"b", None] * 100,
                "value": [b'{"n": %d}' % n for n in range(300)],
                "timestamp": pa.array([1_000 * n for n in range(300)], pa.timestamp("ms", tz="UTC")),
            }
        )
        write_topic(table, "kept", broker.bootstrap_servers)
    dataset = log_dataset(tmp_path, "kept", value_format="json", text=True)
    copy = pa.table(read_log(tmp_path, "kept"))
    assert dataset.count_rows() == copy.num_rows == 300
    connection = duckdb.connect()
    connection.register("d", dataset)
    connection.register("c", copy)
    for condition in (
        "partition = 1",
        "partition in (0, 9)",
        "partition = 9",
        '"offset" between 5 and 9',
        '"offset" > 99999',
        "timestamp >= '1970-01-01T00:04:00Z'",
        "topic = 'other'",
        'partition = 2 and "offset" < 7 and key is null',
    ):
        asked = f'select partition, "offset" from {{}} where {condition} order by all'
        found = connection.sql(asked.format("d")).fetchall()
        assert found == connection.sql(asked.format("c")).fetchall(), condition
    assert sql("select sum(n)::bigint as s from d", tables={"d": dataset}).to_pylist() == [
        {"s": sum(range(300))}
    ]
    with pytest.raises(ConfigError):
        log_dataset(tmp_path, "nothing")
    assert dataset.head(4).num_rows == 4


def test_events_are_columns(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    event = Event(id="1", source="/s", type="t", subject="x", data=b"{}", datacontenttype="application/json")
    _, value, pairs = to_record(event)
    headers = [[{"key": name, "value": text} for name, text in pairs]]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    write_topic(pa.table({"value": [value], "headers": pa.array(headers, kind)}), topic, servers)
    dataset = topic_dataset(topic, servers, value_format="cloudevents")
    found = dataset.to_table(columns=["id", "type", "subject", "offset"], filter=C("type") == "t")
    assert found.to_pylist() == [{"id": "1", "type": "t", "subject": "x", "offset": 0}]
    assert dataset.to_table(columns=["offset"]).num_rows == 1


# --- JSON

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
ROW = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, max_size=3)
HOSTILE = st.sampled_from(
    [None, b"", b"{", b"null", b"[]", b"7", b'{"a": 1}{"a": 2}', b'1}\n{"v": 2', b"\xff", b'{"a":\n 5}',
     b'{"a": 1, "a": 2}', b'{"a": 1e400}', b'{"a": 99999999999999999999}', b"[" * 500, b'{"a": "\\ud800"}']
)  # fmt: skip


@given(st.lists(st.one_of(ROW, HOSTILE), min_size=1, max_size=150))
def test_rows_stay_in_their_places_whatever_stands_between_them(rows: list[Any]) -> None:
    values = [json.dumps(row).encode() if isinstance(row, dict) else row for row in rows]
    fields = pa.schema([("a", pa.int64()), ("b", pa.string())])
    found = JsonColumns(fields).of(pa.array(values, pa.binary()))
    assert len(found["a"]) == len(found["b"]) == len(values)
    for row, a, b in zip(rows, found["a"].to_pylist(), found["b"].to_pylist(), strict=True):
        if isinstance(row, dict):
            whole = row.get("a")
            is_number = isinstance(whole, (int, float)) and not isinstance(whole, bool)
            assert a == (whole if is_number and whole == int(whole) else None)
            text = row.get("b")
            if isinstance(text, str):
                assert b == text


@given(st.lists(ROW, max_size=30))
def test_what_is_inferred_holds_the_values_that_it_was_inferred_from(rows: list[Any]) -> None:
    values = [json.dumps(row).encode() for row in rows]
    fields = inferred(values)
    decoded = JsonColumns(fields).of(pa.array(values, pa.binary())) if fields.names else {}
    for name, column in decoded.items():
        for row, found in zip(rows, column.to_pylist(), strict=True):
            if row.get(name) is not None:
                assert found is not None, (name, row, fields)


def test_versions_of_a_schema_are_joined() -> None:
    sample = [
        b'{"a": 1}',
        b'{"a": 1.5, "b": {"x": 1}}',
        b'{"b": {"y": "z"}, "c": [1, 2]}',
        b'{"d": null}',
        b"x",
    ]
    assert inferred(sample) == pa.schema(
        [
            ("a", pa.float64()),
            ("b", pa.struct([("x", pa.int64()), ("y", pa.string())])),
            ("c", pa.list_(pa.int64())),
            ("d", pa.string()),
        ]
    )


def test_a_sample_says_whether_values_are_json() -> None:
    assert looks_like_json([b'{"a": 1}', None])
    assert not looks_like_json([b"7", b"[]"])
    assert not looks_like_json([])
    assert not looks_like_json([b"{}", b"x"])


def test_fields_never_take_the_name_of_a_column() -> None:
    names = column_names_of(["offset", "Value", "a", "A", "", "value_offset"])
    assert len({name.lower() for name in names}) == 6
    assert names["value_offset"] == "offset"
    assert names["a"] == "a"


def test_bytes_that_are_no_text_are_replaced() -> None:
    column = pa.array([b"a", None, b"\xff", "ü".encode()], pa.binary())
    assert text_of(column).to_pylist() == ["a", None, "\ufffd", "ü"]


def test_a_time_in_the_future_or_before_1970_is_no_error(servers: str, numbers: str) -> None:
    dataset = topic_dataset(numbers, servers)
    for moment in (
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, tzinfo=UTC),
        datetime(1969, 1, 1, tzinfo=UTC),
    ):
        after = dataset.count_rows(C("timestamp") >= moment)
        assert after == (0 if moment.year == 9999 else 100)
    assert random.Random(1).random() < 1
