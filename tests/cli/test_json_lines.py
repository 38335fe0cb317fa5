"""Tests that JSON lines made from columns are equal, byte for byte, to those made from records."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from column_rows import rows_of
from penstock import Broker, Producer
from penstock.cli import consume, main
from penstock.cli.envelopes import json_printer, parse_envelope
from penstock.cli.json_lines import json_lines, rows_before
from penstock.model import Record, TimestampType, TopicPartition
from penstock.records.batch import encode_batch
from penstock.records.decode import decode_columns

TEXTS = st.text(max_size=12).map(lambda text: text.encode("utf-8", "surrogatepass"))
VALUES = st.none() | st.binary(max_size=12) | TEXTS
HEADERS = st.lists(
    st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), VALUES), max_size=3
)
ROWS = st.lists(st.tuples(VALUES, VALUES, HEADERS, st.integers(0, 1 << 62)), min_size=1, max_size=6)


def lines_of(rows: Sequence[tuple], topic: str = "t", **options: object) -> tuple[bytes, list[Record]]:  # type: ignore[type-arg]
    """Encode rows as a batch; return the JSON lines of its columns, and its records."""
    columns = decode_columns(encode_batch(rows, **options))  # type: ignore[arg-type]
    return bytes(json_lines(columns, TopicPartition(topic, 7))), rows_of(columns, topic, 7)


@given(ROWS, st.text(max_size=3), st.sampled_from(list(TimestampType)[1:]))
def test_columns_become_the_lines_that_records_become(rows: list, topic: str, kind: TimestampType) -> None:  # type: ignore[type-arg]
    lines, records = lines_of(rows, topic, timestamp_type=kind)
    assert lines == b"".join(map(json_printer, records))
    for line, (key, value, headers, _) in zip(lines.splitlines(), rows, strict=True):
        envelope = json.loads(line)
        assert (envelope["partition"], envelope["tstype"]) == (7, "logappend" if kind else "create")
        message = parse_envelope(line)
        assert (message.key, message.value, list(message.headers)) == (key, value, headers)


@pytest.mark.parametrize("size", range(1, 5))
def test_every_beginning_of_a_character_is_replaced_as_python_does(size: int) -> None:
    edges = (
        0x00,
        0x22,
        0x41,
        0x7F,
        0x80,
        0x8F,
        0x90,
        0x9F,
        0xA0,
        0xBF,
        0xC1,
        0xC2,
        0xE0,
        0xED,
        0xF0,
        0xF4,
        0xF5,
    )
    found = [b""]
    for _ in range(size):
        found = [one + bytes((edge,)) for one in found for edge in edges]
    found = found[:: max(1, len(found) // 20_000)]
    lines, records = lines_of([(None, value, [], 0) for value in found])
    assert lines == b"".join(map(json_printer, records))


def test_numbers_at_their_limits() -> None:
    rows = [(None, b"", [], at) for at in (0, 9, 10, (1 << 63) - 1, -1, -(1 << 62))]
    lines, records = lines_of(rows, base_offset=(1 << 63) - 10)
    assert lines == b"".join(map(json_printer, records))


def test_rows_are_cut_where_a_time_is_reached() -> None:
    columns = decode_columns(encode_batch([(None, None, [], at) for at in (5, 7, 6)]))
    assert rows_before(columns, None) == (3, False)
    assert rows_before(columns, 8) == (3, False)
    assert rows_before(columns, 6) == (1, True)
    assert bytes(json_lines(columns, TopicPartition("t", 0), 1)).count(b"\n") == 1


@pytest.mark.parametrize("words", ["", "-c 2500", "-o s@1000 -o e@4000", "-p 1", "-o -1700"])
def test_many_records_are_printed_as_few_are(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(log_retention_ms=-1, num_partitions=2) as broker:
        with Producer(broker.bootstrap_servers, compression_type="lz4") as producer:
            for number in range(6_000):
                where = {"partition": number % 2, "timestamp": number}
                producer.send("t", b"%d" % number, key=b"\xff", headers=[("h", b"v")], **where)
        printed = []
        for much in (1 << 40, 1):
            monkeypatch.setattr(consume, "MUCH_RECORDS", much)
            output = io.TextIOWrapper(io.BytesIO())
            monkeypatch.setattr("sys.stdout", output)
            options = ["-b", broker.bootstrap_servers, "-t", "t", "-e", "-q", "-J", *words.split()]
            assert main(["consume", *options]) == 0
            output.flush()
            printed.append(sorted(output.buffer.getvalue().splitlines()))  # type: ignore[attr-defined]
        assert printed[0] == printed[1] != []


def test_a_few_records_load_no_kernels_and_are_the_same(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with Broker(num_partitions=1) as broker:
        with Producer(broker.bootstrap_servers, linger_ms=50) as producer:
            for _ in range(200):
                producer.send("t", b"v" * 1_000, timestamp=1)
        words = ["-b", broker.bootstrap_servers, "-t", "t", "-e", "-q", "-J"]
        program = f"""
import sys
from penstock.cli import main
assert main({["consume", *words, "-c", "150"]}) == 0
sys.exit("numpy" in sys.modules)
"""
        few = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout
        assert main(["consume", *words]) == 0
    assert few.splitlines() == capfdbinary.readouterr().out.splitlines()[:150]
