"""Tests of `penstock.sql`, which queries topics as tables, and of its error messages."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import penstock
from for_each import for_each
from penstock import Admin, read_topic, sql, topic_dataset, write_topic
from penstock.errors import ConfigError, EncodeError, KafkaError, NetworkError
from penstock.queries.session import SqlSession, TopicOptions
from penstock.queries.statements import names_only, newest_rows
from penstock.queries.watching import StoppedError

NewTopic = Callable[..., str]
ROWS = 1_000


@pytest.fixture(scope="module")
def orders(servers: str, new_topic: NewTopic) -> str:
    """Write JSON objects to a new topic of two partitions, and return its name."""
    topic = new_topic(2)
    values = [b'{"user": "u%d", "amount": %d, "at": {"x": [%d]}}' % (n % 5, n, n) for n in range(ROWS)]
    table = pa.table(
        {
            "key": [b"u%d" % (n % 5) for n in range(ROWS)],
            "value": values,
            "timestamp": pa.array([1_000 * n for n in range(ROWS)], pa.timestamp("ms", tz="UTC")),
            "partition": pa.array([n % 2 for n in range(ROWS)], pa.int32()),
        }
    )
    write_topic(table, topic, servers)
    return topic


def test_fields_of_json_objects_are_columns(servers: str, orders: str) -> None:
    found = sql(
        f'select key, sum(amount)::bigint as total, max("at".x[1]) as most from "{orders}" '
        "where \"user\" in ('u1', 'u2') and value like '%amount%' group by key order by key",
        servers,
    )
    assert found.to_pylist() == [
        {"key": "u1", "total": sum(range(1, ROWS, 5)), "most": ROWS - 4},
        {"key": "u2", "total": sum(range(2, ROWS, 5)), "most": ROWS - 3},
    ]


def test_topics_join_frames_files_and_other_data_sets(servers: str, orders: str, tmp_path: Path) -> None:
    names = pl.DataFrame({"user": ["u1", "u2"], "name": ["Ann", "Bo"]})
    ages = pd.DataFrame({"user": ["u1", "u2"], "age": [30, 40]})
    (tmp_path / "cities.csv").write_text("user,city\nu1,Bern\nu2,Ulm\n")
    again = topic_dataset(orders, servers, text=True)
    found = sql(
        f'select name, age, city, count(*) as n from "{orders}" o join names using ("user") '
        f'join ages using ("user") join \'{tmp_path}/cities.csv\' using ("user") '
        'join again a on a.partition = o.partition and a."offset" = o."offset" group by all order by name',
        servers,
        tables={"names": names, "ages": ages, "again": again},
    )
    assert found.to_pylist() == [
        {"name": "Ann", "age": 30, "city": "Bern", "n": 200},
        {"name": "Bo", "age": 40, "city": "Ulm", "n": 200},
    ]


@pytest.mark.parametrize("name", ["with.dots", "with-hyphen", "Upper", "select", "_1", "é".encode().hex()])
def test_topics_have_their_own_names(servers: str, admin: Admin, name: str) -> None:
    admin.create_topic(name, 1)
    write_topic(pa.table({"value": [b"it's"]}), name, servers)
    assert sql(f'select value from "{name}"', servers).to_pylist() == [{"value": "it's"}]


def test_names_that_differ_in_case_alone_are_told_apart(servers: str, admin: Admin) -> None:
    for name in ("Same", "SAME"):
        admin.create_topic(name, 1)
        write_topic(pa.table({"value": [name.encode()]}), name, servers)
    assert sql("select value from Same", servers).to_pylist() == [{"value": "Same"}]
    assert sql("select value from SAME", servers).to_pylist() == [{"value": "SAME"}]
    with pytest.raises(ConfigError, match="'same' may be any of the topics 'SAME', 'Same'"):
        sql("select value from same", servers)


def test_explain_says_what_would_be_fetched(servers: str, orders: str) -> None:
    since = datetime(1970, 1, 1, 0, 15, tzinfo=UTC).isoformat()
    rows = sql(
        f"explain select amount from \"{orders}\" where timestamp >= '{since}' and partition = 1", servers
    ).to_pylist()
    assert [(row["table"], row["partition"], row["first_offset"], row["end_offset"]) for row in rows] == [
        (orders, 1, 450, 500)
    ]
    assert rows[0]["columns"] == "partition, timestamp, value"
    assert 0 < rows[0]["estimated_bytes"] < 10_000
    nothing = sql(f'explain select * from "{orders}" where "offset" > 99999', servers).to_pylist()
    assert [row["note"] for row in nothing] == ["nothing is fetched"]
    late = sql(f"explain select * from \"{orders}\" where timestamp < '{since}'", servers).to_pylist()
    assert {row["note"] for row in late} == {
        "read to the end, since late records may be there: max_lateness ends it"
    }


def test_rows_are_inserted_with_key_headers_partition_and_timestamp(
    servers: str, orders: str, new_topic: NewTopic
) -> None:
    target = new_topic(3)
    found = sql(
        f'insert into "{target}" (value, key, headers, partition) '
        f"select to_json({{'n': count(*)}}), key, map {{'h': 'x'}}, 2 from \"{orders}\" group by key",
        servers,
    )
    assert found.to_pylist() == [{"rows": 5}]
    written = read_topic(target, servers).sort_by("key").to_pylist()
    assert [(row["key"], row["value"], row["partition"]) for row in written] == [
        (b"u%d" % n, b'{"n":200}', 2) for n in range(5)
    ]
    assert written[0]["headers"] == [{"key": "h", "value": b"x"}]
    sql(f"insert into \"{target}\" (value) values ('a'), ('b'), (null)", servers)
    assert read_topic(target, servers).num_rows == 8


def test_an_insert_may_begin_with_what_its_query_names(
    servers: str, orders: str, new_topic: NewTopic
) -> None:
    target = new_topic(1)
    inserted = f'insert /* into */ into "{target}" (key, value) select key, value from picked -- ends here'
    text = f"""with picked as (
        select key, 'insert (' || amount as value from "{orders}" where amount < 3 -- insert into
    ) {inserted}"""
    assert {row["columns"] for row in sql(f"explain {text}", servers).to_pylist()} == {"key, value"}
    assert read_topic(target, servers).num_rows == 0
    assert sql(text, servers).to_pylist() == [{"rows": 3}]
    assert sorted(read_topic(target, servers)["value"].to_pylist()) == [b"insert (%d" % n for n in range(3)]


@pytest.mark.parametrize("name", ["duckdb_tables", "pg_class", "sqlite_master"])
def test_a_topic_may_be_called_as_a_view_of_duckdb(servers: str, admin: Admin, name: str) -> None:
    admin.create_topic(name, 1)
    write_topic(pa.table({"value": [b"x"]}), name, servers)
    assert sql(f"select value from {name}", servers).to_pylist() == [{"value": "x"}]
    assert sql("select count(*) as n from pg_type where typname = ''", servers).to_pylist() == [{"n": 0}]


def test_a_topic_with_a_dot_is_no_table_of_a_schema(servers: str, admin: Admin) -> None:
    admin.create_topic("shop.orders", 1)
    with pytest.raises(
        ConfigError, match=r"write topic 'shop\.orders' as \"shop\.orders\", in double quotes"
    ):
        sql("select value from shop.orders", servers)


def test_no_record_ends_a_query(servers: str, new_topic: NewTopic) -> None:
    """The JSON values have lone surrogates, extremely long numbers and deeply nested lists."""
    topic = new_topic(1)
    values = [
        b'{"a": "\\ud800x", "b": 1}',
        b'{"\\udfff": 1, "a": {"\\udfff": 1}}',
        b'{"a": "y", "b": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"b": ' + b"9" * 5_000 + b"}",
        b'{"b": 1e999, "a": null}',
        *[b'{"a": "z"}'] * 10,
    ]
    write_topic(pa.table({"value": values}), topic, servers)
    found = sql(f'select a, b, value from "{topic}" order by "offset"', servers)
    assert found["a"].to_pylist()[:5] == ["\ufffdx", '{"\ufffd": 1}', "y", None, None]
    assert found["value"].to_pylist() == [value.decode() for value in values]


def test_tables_are_created_and_files_written(servers: str, orders: str, tmp_path: Path) -> None:
    file = tmp_path / "out.parquet"
    found = sql(
        f'create table mine as select amount from "{orders}" where amount < 10; '
        f"insert into mine values (77); copy mine to '{file}'; select count(*) as n from '{file}'",
        servers,
    )
    assert found.to_pylist() == [{"n": 11}]


@for_each(
    [
        ("select * from nothing_there", ConfigError, "there is no table 'nothing_there'"),
        ("insert into nothing_there select 1", ConfigError, "there is no table 'nothing_there'"),
        ("selec 1", ConfigError, "syntax error"),
        ("", ConfigError, "there is no statement"),
        ("  -- nothing", ConfigError, "there is no statement"),
        ('select offset from "{topic}"', ConfigError, 'write the column as "offset"'),
        ("select * from my-topic", ConfigError, "in double quotes"),
        ('select nope from "{topic}"', ConfigError, "nope"),
        ('insert into "{topic}" select 1 as v', EncodeError, "column 'v' would be lost"),
        ('insert into "{topic}" (key, value) select 1', EncodeError, "2 columns are named"),
        ("insert or replace into \"{topic}\" (value) values ('x')", ConfigError, "topics take insert into"),
        ("with w as (select 1) update \"{topic}\" set value = 'insert'", ConfigError, "update"),
        ('update "{topic}" set value = 1', ConfigError, "update"),
        ('delete from "{topic}"', ConfigError, "delete"),
        ("select 'x'::integer", ConfigError, "Conversion Error"),
        (f"select {'(' * 5000}1{')' * 5000}", ConfigError, ""),
        (f"select * from \"{{topic}}\" where value = '{'x' * 1_000_000}'", None, ""),
        ('select * from "{topic}" where partition in (select range from range(1000000))', None, ""),
        ("""select * from "a'"";drop" """, ConfigError, "there is no table"),
    ]
)
def test_wrong_queries_say_what_is_wrong(
    query: str, error: type[Exception] | None, said: str, servers: str, orders: str
) -> None:
    query = query.replace("{topic}", orders)
    if error is None:
        assert sql(query, servers).num_rows in (0, ROWS)
        return
    with pytest.raises(error) as raised:
        sql(query, servers)
    assert said.lower() in str(raised.value).lower()


@pytest.mark.parametrize("rest", ["", " limit 1 offset 2", ' where "offset" = 1'])
def test_a_missing_column_is_not_taken_for_the_keyword_offset(servers: str, orders: str, rest: str) -> None:
    with pytest.raises(ConfigError, match='"nope" not found') as raised:
        sql(f'select nope from "{orders}"{rest}', servers)
    assert "keyword" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"value_format": "xml"}, "value_format is 'xml'"),
        ({"memory_limit": "much"}, "memory_limit is 'much'"),
        ({"max_lateness": "soon"}, "max_lateness is 'soon'"),
        ({"key_partitioner": "dice"}, "key_partitioner is 'dice'"),
        ({"isolation": "none"}, "isolation"),
        ({"tables": {"t": 7}}, "table 't' is a int"),
        ({"tables": {"": pa.table({})}}, "no name of a table"),
    ],
)
def test_wrong_arguments_say_what_is_wrong(
    servers: str, orders: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        sql(f'select * from "{orders}"', servers, **arguments)


def test_what_is_spilled_is_private_and_goes_with_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with SqlSession(None) as session:
        (place,) = tmp_path.iterdir()
        assert place.stat().st_mode & 0o777 == 0o700
        (row,) = session.table(session.run("select current_setting('temp_directory') as there")).to_pylist()
        assert Path(row["there"]) == place
        (place / "spilled").touch()
    assert list(tmp_path.iterdir()) == []


def test_brokers_that_are_away_are_an_error() -> None:
    with pytest.raises(NetworkError):
        sql("select * from orders", "127.0.0.1:1", config={"default.api.timeout.ms": 500})


def test_a_topic_that_is_deleted_meanwhile_is_an_error(servers: str, admin: Admin) -> None:
    admin.create_topic("going", 1)
    write_topic(pa.table({"value": [b"x"]}), "going", servers)
    with SqlSession(servers) as session:
        assert session.table(session.run("select * from going")).num_rows == 1
        admin.delete_topics(["going"])
        with pytest.raises(KafkaError):
            session.table(session.run("select * from going"))
        assert session.table(session.run("select 1")).num_rows == 1


def test_a_variable_of_the_program_is_no_table(servers: str) -> None:
    options = pa.table({"a": [1]})
    with pytest.raises(ConfigError, match="there is no table 'options'"):
        sql("select * from options", servers)
    assert options.num_rows == 1


def test_a_stream_is_read_while_it_is_taken(servers: str, orders: str) -> None:
    with sql(f'select amount from "{orders}"', servers, stream=True) as rows:
        assert rows.schema.names == ["amount"]
        assert sum(batch.num_rows for batch in rows) == ROWS
    assert pa.table(sql(f'select amount from "{orders}"', servers, stream=True)).num_rows == ROWS


def test_a_query_that_waits_is_ended_from_another_thread(servers: str, new_topic: NewTopic) -> None:
    waiting = threading.Event()

    class Endless:
        """A table that yields batches without end."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            def batches() -> Iterator[pa.RecordBatch]:
                while True:
                    waiting.set()
                    yield pa.record_batch({"a": [1]})

            schema = pa.schema([("a", pa.int64())])
            return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__()

    with SqlSession(servers, tables={"endless": Endless()}) as session:
        failures: list[BaseException] = []

        def work() -> None:
            try:
                session.table(session.run("select sum(a) from endless"))
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        assert waiting.wait(10)
        began = time.monotonic()
        session.interrupt()
        thread.join(10)
        assert not thread.is_alive()
        assert time.monotonic() - began < 5
        assert isinstance(failures[0], StoppedError)


def test_ctrl_c_ends_a_program_that_waits_for_a_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        program = f"import penstock; penstock.sql('select * from t', {address!r})"
        with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) as process:
            connection, _ = silent.accept()
            with connection:
                assert connection.recv(1)  # it has asked, and gets no answer
                began = time.monotonic()
                process.send_signal(signal.SIGINT)
                _, said = process.communicate(timeout=30)
                assert time.monotonic() - began < 5
    assert b"KeyboardInterrupt" in said


def test_values_are_what_is_asked_for(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    write_topic(pa.table({"key": [b"\xff", None], "value": [b'{"a": 1}', b"no json"]}), topic, servers)
    asked = f'select * exclude (timestamp) from "{topic}" order by "offset"'
    text = sql(asked, servers).to_pylist()
    assert [(row["key"], row["value"]) for row in text] == [("\ufffd", '{"a": 1}'), (None, "no json")]
    raw = sql(asked, servers, value_format="bytes").to_pylist()
    assert raw[0]["key"] == b"\xff"
    known = pa.schema([("a", pa.float64()), ("b", pa.string())])
    shaped = sql(asked, servers, value_schema=known, value_format="json").to_pylist()
    assert [(row["a"], row["b"]) for row in shaped] == [(1.0, None), (None, None)]


def test_it_is_found_at_the_top() -> None:
    assert penstock.sql is sql
    assert TopicOptions().value_format == "auto"


@for_each(
    [
        ('select count(*) from t where "offset" > 3', True),
        ('select a.partition, max(a."OFFSET") from t a group by 1', True),
        ("select key from t join u using (key)", True),
        ("select key from t join u using (x)", False),
        ("select key from t natural join u", False),
        ("from t", False),
        ("select a.* from t a", False),
        ("select columns('k.*') from t", False),
        ("select amount from t", False),
        ("select at.key from t", False),
        ("select t.key.key from t", False),
        ("select count(*) as n from t order by n", False),
        ("pivot t on key using count(*)", False),
        ("with c as (select value from t) select count(*) from c", True),
        ("insert into t values (1)", False),
    ]
)
def test_a_query_that_names_columns_of_records_alone_needs_no_look_at_values(query: str, found: bool) -> None:
    text = duckdb.execute("select json_serialize_sql(?)", [query]).fetchall()[0][0]
    assert names_only(json.loads(text), frozenset(["key", "value", "partition", "offset"])) is found


@for_each(
    [
        ('select value from t order by "offset" desc limit 10', 10),
        ('select * from t order by "offset" desc, partition limit 10 offset 2', 12),
        ('from t order by "OFFSET" desc limit 3', 3),
        ('select timestamp as "offset" from t order by "offset" desc limit 1', None),
        ('select -"offset" as "offset" from t order by "offset" desc limit 1', None),
        ('select * replace (1 as "offset") from t order by "offset" desc limit 1', None),
        ('select max(value) from t order by "offset" desc limit 1', None),
        ('select value, row_number() over () from t order by "offset" desc limit 1', None),
        ('select distinct key from t order by "offset" desc limit 1', None),
        ('select value from t where key = 1 order by "offset" desc limit 1', None),
        ('select value from t order by "offset" limit 1', None),
        ('select value from t order by partition desc, "offset" desc limit 1', None),
        ('select value from t order by "offset" desc limit 10%', None),
        ('select value from t order by "offset" desc', None),
        ('select value from t join u using (key) order by "offset" desc limit 1', None),
        ('select value from t as t(a, "offset") order by "offset" desc limit 1', None),
        ("select value from t limit 1", None),
        ("insert into t values (1)", None),
    ]
)
def test_a_query_of_this_form_alone_needs_the_newest_rows(query: str, found: int | None) -> None:
    text = duckdb.execute("select json_serialize_sql(?)", [query]).fetchall()[0][0]
    assert newest_rows(json.loads(text)) == found


def test_one_session_asks_a_topic_with_and_without_its_fields(servers: str, orders: str) -> None:
    with SqlSession(servers) as session:
        for query, rows in (
            (f'select count(*) as n from "{orders}"', [{"n": ROWS}]),
            (f'select max(amount) as n from "{orders}"', [{"n": ROWS - 1}]),
            (f'select count(*) as n from "{orders}" where partition = 1', [{"n": ROWS // 2}]),
            (
                f'select amount as n from "{orders}" order by "offset" desc, partition limit 1',
                [{"n": ROWS - 2}],
            ),
        ):
            assert session.table(session.run(query)).to_pylist() == rows
        assert session.table(session.run("show tables")).column("kind").to_pylist() != []
