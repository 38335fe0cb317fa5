"""Tests that records exported to JSON lines, Parquet or CSV and imported again are equal.

Others check the errors for records that a format cannot hold.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet
import pytest

from for_each import for_each
from penstock import Admin, Broker, Consumer, Producer
from penstock.cli import main, table_files
from penstock.cli.envelopes import OutgoingRecord, parse_envelope
from penstock.cli.table_files import output_file
from penstock.errors import ConfigError

Penstock = Callable[..., tuple[int, bytes, str]]

RECORDS = [
    # key, value, partition, timestamp in ms, headers
    (b"k", b"v", 0, 1_700_000_000_123, [("lang", b"en"), ("lang", b"de"), ("none", None)]),
    (None, None, 1, 0, []),
    (b"", b"", 2, 1, [("", b"")]),
    (
        b"\xff\x00\x80",
        'gr\u00fc\u00df \U0001f680 \u2028"\\'.encode(),
        1,
        5,
        [("bin", b"\xfe\xff"), ("ok", b"o")],
    ),
    (b"k2", b'\x00\n\r\xc3\x28,"', 2, 1_760_000_000_000, []),
    (b"half\xed\xa0\x80", b"line\nline", 0, 2, []),
]
TEXT_RECORDS = [
    (b"k", b"v", 0, 1_700_000_000_123, [("lang", b"en"), ("none", None)]),
    (None, None, 1, 0, []),
    (b"", b"", 2, 1, [("", b"")]),
    (b"a,b", 'gr\u00fc\u00df "q"\nnext'.encode(), 1, 5, []),
    (b"1", b"007", 1, 6, []),
    (b"null", b"NA", 2, 7, []),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker(log_retention_ms=-1) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            for name in ("all", "text"):
                admin.create_topic(name, partitions=3)
        with Producer(broker.bootstrap_servers) as producer:
            for topic, records in (("all", RECORDS), ("text", TEXT_RECORDS)):
                for key, value, partition, timestamp, headers in records:
                    options = {"key": key, "partition": partition, "timestamp": timestamp}
                    producer.send(topic, value, headers=headers, **options).result()
        yield broker.bootstrap_servers


@pytest.fixture
def penstock(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes], address: str
) -> Penstock:
    def run(*words: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([*words, "-b", address])
        out, err = capsysbinary.readouterr()
        return code, out, err.decode()

    return run


def contents(address: str, topic: str) -> list[tuple[object, ...]]:
    """Return all records of a topic with three partitions, ordered by partition and offset."""
    with Consumer(address) as consumer:
        partitions = [(topic, number) for number in range(3)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = sum(consumer.end_offsets(consumer.assignment()).values())
        found = []
        while len(found) < ends:
            found += consumer.poll(timeout_ms=1000)
    return sorted(
        (r.partition, r.offset, r.key, r.value, r.timestamp, tuple(r.headers)) for r in found
    )  # fmt: skip


@pytest.fixture
def copy(address: str, request: pytest.FixtureRequest) -> str:
    """Create an empty topic of three partitions, and return its name."""
    name = f"copy-{abs(hash(request.node.name))}"
    with Admin(address) as admin:
        admin.create_topic(name, partitions=3)
    return name


def test_lines_of_json_are_the_records(penstock: Penstock, address: str, copy: str) -> None:
    code, lines, _ = penstock("consume", "-t", "all", "-e", "-q", "-J")
    assert code == 0
    assert penstock("produce", "-t", copy, "-J", stdin=lines) == (0, b"", f"% 6 messages to {copy}\n")
    assert contents(address, copy) == contents(address, "all")


def test_lines_of_json_name_their_topic_and_options_go_over_them(
    penstock: Penstock, address: str, copy: str
) -> None:
    lines = b'{"topic":"%s","payload":"a","partition":2}\n\n{"topic":"%s","key":null,"payload":"b"}\n'
    assert penstock("produce", "-J", stdin=lines % (copy.encode(), copy.encode()))[0] == 0
    assert penstock("produce", "-J", "-p", "1", "-t", copy, "-c", "1", stdin=b'{"payload":"c"}\n{}')[0] == 0
    found = {row[3]: row[0] for row in contents(address, copy)}
    assert (found[b"a"], found[b"c"], b"b" in found) == (2, 1, True)


@pytest.mark.compat
def test_lines_of_kcat_are_the_records(penstock: Penstock, address: str, copy: str) -> None:
    done = subprocess.run(
        ["kcat", "-b", address, "-C", "-t", "all", "-e", "-q", "-J"], capture_output=True, check=True
    )
    assert penstock("produce", "-t", copy, "-J", stdin=done.stdout)[:2] == (0, b"")
    assert contents(address, copy) == contents(address, "all")


def test_kcat_writes_bytes_into_its_json_as_they_are() -> None:
    line = b'{"topic":"t","partition":1,"offset":2,"tstype":"create","ts":5,"broker":1,'
    line += b'"headers":["a","\xfe"],"key":"key","payload":"\xff\xfe bin"}'
    assert parse_envelope(line) == OutgoingRecord(b"key", b"\xff\xfe bin", 1, 5, [("a", b"\xfe")], "t")


@for_each(
    [
        (b"{", "this is no JSON"),
        (b"[" * 100_000, "this is no JSON"),
        (b"[1]", "a JSON object is expected"),
        (b'{"value":"x"}', 'neither "key" nor "payload"'),
        (b'{"payload":{"a":1}}', "jq makes text of it by tojson"),
        (b'{"payload":"x","ts":"now"}', '"ts" is "now": a whole number'),
        (b'{"payload":"x","partition":-2}', "a whole number from 0 on"),
        (b'{"payload":"x","headers":["a"]}', "names and values in turn"),
        (b'{"payload":"x","headers":{"a":"b"}}', "names and values in turn"),
        (b'{"payload_base64":"?"}', "is no base64"),
        (b'{"payload":"\\ud800"}', "half of a surrogate pair"),
        (b'{"payload":"x","topic":5}', '"topic" is text'),
    ]
)
def test_lines_that_are_none(line: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_envelope(line)


def test_the_line_of_a_mistake_is_named(penstock: Penstock, copy: str) -> None:
    code, _, err = penstock("produce", "-t", copy, "-J", stdin=b'{"payload":"x"}\n{"payload":5}\n')
    assert (code, err.count("\n")) == (2, 1)
    assert "line 2:" in err


@pytest.mark.parametrize(
    ("source", "kind", "options"),
    [("all", "parquet", []), ("text", "csv", []), ("all", "csv", ["--base64"])],
    ids=["parquet", "csv", "csv in base64"],
)
def test_files_are_the_records(
    penstock: Penstock, address: str, copy: str, tmp_path: Path, source: str, kind: str, options: list[str]
) -> None:
    file = tmp_path / f"out.{kind}"
    code, out, err = penstock("consume", "-t", source, "-e", "--output", str(file), *options)
    assert (code, out) == (0, b""), err
    assert "% 6 messages" in err
    assert [path.name for path in tmp_path.iterdir()] == [file.name], "nothing else is left there"
    code, _, err = penstock("produce", "-t", copy, "-f", kind, str(file))
    assert (code, err) == (0, f"% 6 messages to {copy}\n")
    assert contents(address, copy) == contents(address, source)


def test_a_span_of_a_topic_as_a_file(penstock: Penstock, tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    words = ["consume", "-t", "all", "-f", "parquet", "--output", str(file), "-q"]
    assert penstock(*words, "-o", "s@5", "-o", "e@1750000000000", "-p", "0", "-p", "1")[0] == 0
    found = pyarrow.parquet.read_table(file)
    assert sorted(found.column("key").to_pylist()) == [b"half\xed\xa0\x80", b"k", b"\xff\x00\x80"]
    assert penstock(*words, "-e", "-c", "2")[0] == 0
    assert pyarrow.parquet.read_table(file).num_rows == 2


def test_csv_goes_through_pipes(penstock: Penstock, address: str, copy: str) -> None:
    code, out, _ = penstock("consume", "-t", "text", "-e", "-q", "-f", "csv")
    assert code == 0
    assert out.startswith(b'"topic","partition","offset","timestamp","key","value","headers"\n"text",0,0,')
    assert penstock("produce", "-t", copy, "-f", "csv", "-z", "zstd", stdin=out)[0] == 0
    assert contents(address, copy) == contents(address, "text")


def test_rows_of_any_table_become_json(penstock: Penstock, address: str, copy: str, tmp_path: Path) -> None:
    file = tmp_path / "flights.csv"
    file.write_text("origin,delay,day\nEWR,12,2013-01-01\nJFK,,2013-01-02\n")
    code, _, err = penstock("produce", "-t", copy, "-f", "csv", str(file))
    assert (code, "column 'origin' would be lost; --rows makes each row" in err) == (2, True)
    words = ["produce", "-t", copy, "-f", "csv", "--rows", "--key-column", "origin", "-p", "0", str(file)]
    assert penstock(*words)[0] == 0
    rows = [(row[2], json.loads(str(row[3], "utf-8"))) for row in contents(address, copy)]  # type: ignore[arg-type, call-overload]
    assert rows == [
        (b"EWR", {"origin": "EWR", "delay": 12, "day": "2013-01-01"}),
        (b"JFK", {"origin": "JFK", "delay": None, "day": "2013-01-02"}),
    ]


def test_a_file_in_a_directory_among_devices_is_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`/dev/shm`, for example, holds ordinary files, although it is below /dev.

    The test uses a directory of its own, since not every system has `/dev/shm`.
    """
    assert "/dev" in table_files.DEVICES
    monkeypatch.setattr(table_files, "DEVICES", (tmp_path.as_posix(),))
    directory = tmp_path / "shm"
    directory.mkdir()
    with pytest.raises(ValueError, match="half"), output_file(str(directory / "x.csv")):
        raise ValueError("half of it")
    assert os.listdir(directory) == []
    with output_file(str(tmp_path / "device")):
        assert sorted(os.listdir(tmp_path)) == ["device", "shm"]


def test_what_a_format_cannot_hold_leaves_no_file(penstock: Penstock, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    code, _, err = penstock("consume", "-t", "all", "-e", "--output", str(file))
    assert (code, err.count("\n")) == (2, 1)
    assert "that is not UTF-8 text, which CSV cannot hold: --base64" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("consume -t all --output x.parquet", "needs an end: add -e"),
        ("consume -t all -e --output x.txt", "name it .parquet or .csv"),
        ("consume -t all -e -J --output x.csv", "leave out -G, -J and -K"),
        ("consume -t all -e -f json --output x", "--output is for Parquet and CSV"),
        ("consume -t all -e --base64", "--base64 is for CSV"),
        ("consume -t all -e --output /none/x.csv", "penstock: /none/x.csv: there is no such file"),
        ("produce -J", 'say which topic with -t, or as "topic" in the line'),
        ("produce", "Missing argument: which topic?"),
        ("produce -t all -J -k x", "-k does not go with json"),
        ("produce -t all -f csv -c 1", "-c does not go with csv"),
        ("produce -t all --rows", "are for -f csv and -f parquet"),
        ("produce -t all -f csv --key-column x", "--key-column goes with --rows"),
        ("produce -t all -f parquet", "-f parquet takes FILEs"),
        ("produce -t all -f parquet pyproject.toml", "pyproject.toml: "),
        ("produce -t all -f csv --rows --key-column nine", "has no column 'nine'; there are payload"),
    ],
)
def test_mistakes(words: str, message: str, penstock: Penstock) -> None:
    stdin = b'{"payload":"x"}\n' if "-J" in words else b"payload\nx\n"
    code, _, err = penstock(*words.split(), stdin=stdin)
    assert code in (1, 2)
    assert message in err
    assert err.count("\n") == 1
