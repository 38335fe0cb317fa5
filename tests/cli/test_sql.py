"""Tests of ``penstock sql``: single queries, files, output formats, and the interactive shell."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from penstock import Admin, Broker, read_topic, write_topic
from penstock.cli import main
from penstock.cli.sql_shell import Completer

Penstock = Callable[..., tuple[int, bytes, str]]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker(log_retention_ms=-1) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("delays", 2)
            admin.create_topic("late-ones", 1)
        values = [b'{"carrier": "%s", "delay": %d}' % (b"AB"[n % 2 : n % 2 + 1], n) for n in range(100)]
        table = pa.table(
            {
                "key": [b"k"] * 100,
                "value": values,
                "timestamp": pa.array([1_000 * n for n in range(100)], pa.timestamp("ms", tz="UTC")),
            }
        )
        write_topic(table, "delays", broker.bootstrap_servers)
        yield broker.bootstrap_servers


@pytest.fixture
def penstock(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Penstock:
    """Return a function that runs a command in this process: exit code, stdout and stderr."""

    def run(*words: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(words)
        out, err = capsysbinary.readouterr()
        return code, out, err.decode()

    return run


QUERY = "select carrier, count(*) as n, avg(delay) as mean from delays group by all order by all"


def test_rows_are_a_table(penstock: Penstock, address: str) -> None:
    code, out, err = penstock("sql", "-b", address, "-c", QUERY)
    lines = out.decode().splitlines()
    assert (code, err) == (0, "")
    assert lines[0].split() == ["carrier", "n", "mean"]
    assert [line.split() for line in lines[2:]] == [["A", "50", "49.0"], ["B", "50", "50.0"]]


def test_rows_are_csv_and_json(penstock: Penstock, address: str) -> None:
    _, out, _ = penstock("sql", "-b", address, "-c", QUERY, "--format", "csv")
    assert out == b"carrier,n,mean\nA,50,49.0\nB,50,50.0\n"
    asked = "select carrier, {'a': [delay]} as s, null as e, value::blob as b from delays where delay = 7"
    _, out, _ = penstock("sql", "-b", address, "-c", asked, "--format", "json")
    value = '{"carrier": "B", "delay": 7}'
    assert json.loads(out) == {"carrier": "B", "s": {"a": [7]}, "e": None, "b": value}
    _, out, _ = penstock("sql", "-b", address, "-c", "select 'a,\"b' as x, null as y", "--format", "csv")
    assert out == b'x,y\n"a,""b",\n'


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_files_get_the_last_rows(penstock: Penstock, address: str, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"out.{ending}"
    code, out, err = penstock("sql", "-b", address, "-c", "select 1", "-c", QUERY, "-o", str(file))
    assert (code, out) == (0, b"")
    assert err.startswith("% 2 rows in ")
    if ending == "json":
        assert [json.loads(line)["n"] for line in file.read_text().splitlines()] == [50, 50]
        return
    table = pyarrow.csv.read_csv(file) if ending == "csv" else pyarrow.parquet.read_table(file)
    assert table.column("mean").to_pylist() == [49.0, 50.0]


def test_statements_come_from_files(penstock: Penstock, address: str, tmp_path: Path) -> None:
    file = tmp_path / "two.sql"
    file.write_text("select 1 as a; -- and\nselect ';' as b")
    for words, stdin in ((["-f", str(file)], b""), (["-f", "-"], file.read_bytes())):
        _, out, _ = penstock("sql", "-b", address, *words, "--format", "csv", stdin=stdin)
        assert out == b"a\n1\nb\n;\n"


def test_rows_are_inserted_and_topics_shown(penstock: Penstock, address: str) -> None:
    insert = (
        "insert into \"late-ones\" select key, to_json({'c': carrier}) as value from delays where delay > 97"
    )
    assert penstock("sql", "-b", address, "-c", insert)[0] == 0
    assert sorted(read_topic("late-ones", address).column("value").to_pylist()) == [
        b'{"c":"A"}',
        b'{"c":"B"}',
    ]
    _, out, _ = penstock("sql", "-b", address, "-c", "show tables", "--format", "csv")
    assert out == b"name,kind\ndelays,topic\nlate-ones,topic\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-c", "select offset from delays"], 2, 'write the column as "offset"'),
        (["-c", "select * from nope"], 2, "there is no table 'nope'"),
        (["-c", "select * from delay"], 2, "'delays'"),
        (["-c", "select 1", "-f", "x"], 2, "leave out one of them"),
        (["-f", "/nowhere/x.sql"], 1, "/nowhere/x.sql"),
        (["--follow"], 2, "--follow needs a query"),
        (["--follow", "-c", "select count(*) from delays"], 2, "Spark"),
        (["--follow", "-c", "select * from delays", "-o", "x.csv"], 2, "--follow has no end"),
        (["-c", "select 1", "-o", "x.xls"], 2, "the ending says no format"),
        (["-c", "select 1", "-o", "x.csv", "--format", "table"], 2, "a table is for terminals"),
        ([], 2, "a shell needs a terminal"),
        (["-c", "select 1", "--max-lateness", "soon"], 0, ""),
        (["-c", "select * from delays", "--max-lateness", "soon"], 2, "max_lateness is 'soon'"),
    ],
)
def test_mistakes_are_one_line(
    penstock: Penstock, address: str, words: list[str], code: int, said: str
) -> None:
    found, _, err = penstock("sql", "-b", address, *words)
    assert found == code
    assert said in err
    assert err.count("\n") <= 1


def test_names_and_values_cannot_move_the_cursor(
    penstock: Penstock, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.cli.sql_rows.is_terminal", lambda: True)
    monkeypatch.setattr("penstock.cli.outcome.is_terminal", lambda: True)
    _, out, _ = penstock("sql", "-b", address, "-c", "select chr(27) || '[2J' as a, repeat('x', 99) as b")
    assert b"\x1b[2J" not in out
    assert "x" * 59 + "…" in out.decode()


def test_following_prints_rows_as_they_come_and_ends_at_ctrl_c(address: str) -> None:
    words = ["sql", "-b", address, "--follow", "-c", "select delay from delays where delay >= 98", "--format"]
    with subprocess.Popen(
        [sys.executable, "-m", "penstock", *words, "csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        lines = sorted(process.stdout.readline() for _ in range(3))
        assert lines == [b"98\n", b"99\n", b"delay\n"]
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.wait(20) == 130
        assert time.monotonic() - began < 5


def test_ctrl_c_ends_a_query_that_computes(address: str) -> None:
    endless = "select count(*) from range(10000000000) a, range(1000000) b where hash(a.range + b.range) = 1"
    words = [sys.executable, "-m", "penstock", "sql", "-b", address, "-c", f"select 1 as a; {endless}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"a\n"
        time.sleep(0.2)  # whether it has begun changes nothing
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


def test_words_are_completed() -> None:
    columns = {"delays": ["partition", "offset", "carrier", "Delay"], "late-ones": ["other"]}
    completer = Completer(lambda: list(columns), columns.__getitem__)
    assert completer.words("del", "select ") == ["delays"]
    assert completer.words("lat", "from ") == ['"late-ones"', "lateral"]
    assert completer.words('"lat', "from ") == ['"late-ones"']
    assert "carrier" in completer.words("ca", "from delays where ca")
    assert "carrier" not in completer.words("ca", "from nothing where ca")
    assert completer.words("de", "from delays where de") == ["delays", '"Delay"', "desc", "describe"]
    assert completer.words("off", "from delays where off") == ['"offset"', "offset"]


def test_the_shell_answers_and_keeps_its_history(address: str, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "dumb"}
    words = [sys.executable, "-m", "penstock", "sql", "-b", address]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        said = b""

        def until(text: bytes) -> None:
            nonlocal said
            while text not in said:
                said += os.read(ours, 4096)

        until(b"sql  >")
        os.write(ours, b"select count(*) + 4200 as answer\n")
        until(b"     >")
        os.write(ours, b"from delays;\n")
        until(b"4300")
        said = b""
        os.write(ours, b"select nope;\n")
        until(b"penstock: ")
        os.write(ours, b"\\f csv\nselect 7 as seven;\n")
        until(b"seven\r\n7")
        os.write(ours, b"\\q\n")
        assert process.wait(20) == 0
    os.close(ours)
    history = (tmp_path / "penstock" / "sql_history").read_text()
    assert "from delays;" in history


def test_a_process_of_its_own_says_nothing_but_its_answer(address: str) -> None:
    words = [sys.executable, "-m", "penstock", "sql", "-b", address, "--format", "csv", "-c"]
    done = subprocess.run([*words, "select count(*) as n from delays"], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"n\n100\n", b"")
    done = subprocess.run([*words, "select nope from delays"], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"penstock: ")
    assert done.stderr.count(b"\n") == 1
