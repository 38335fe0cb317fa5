"""Tests of ``penstock event``, which converts and validates CloudEvents in files, lines and topics."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import Broker
from penstock.cli import main
from penstock.client import Producer
from penstock.cloudevents import Event, to_record, write_events

Penstock = Callable[..., tuple[int, bytes, str]]
EVENT = Event(id="1", source="/s", type="t", subject="ä", json={"a": 1.5})


@pytest.fixture
def penstock(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Penstock:
    """Return a function that runs a command in this process: exit code, stdout and stderr."""

    def run(*words: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(words)
        out, err = capsysbinary.readouterr()
        return code, out, err.decode()

    return run


def record_line(event: Event, **options: object) -> bytes:
    key, value, headers = to_record(event, **options)  # type: ignore[arg-type]
    text = [None if part is None else base64.b64encode(part).decode() for part in (key, value)]
    pairs = [[name, base64.b64encode(content).decode()] for name, content in headers]
    return json.dumps({"key": text[0], "value": text[1], "headers": pairs}).encode() + b"\n"


def test_there_and_back_again(penstock: Penstock) -> None:
    for mode in ("binary", "structured"):
        line = record_line(EVENT, mode=mode, key=b"k")
        code, out, err = penstock("event", "decode", "--jsonl", stdin=line)
        assert (code, err) == (0, "")
        answer = json.loads(out)
        assert answer["mode"] == mode
        assert answer["event"]["data"] == {"a": 1.5}
        assert penstock("event", "encode", "--jsonl", "--mode", mode, stdin=out)[1] == line


def test_every_line_is_answered_whatever_it_holds(penstock: Penstock) -> None:
    stdin = b'\n{"key"\n\xff\n{}\n' + record_line(EVENT) + b"[" * 100_000 + b"\n" + record_line(EVENT).strip()
    for words in (["decode"], ["encode"], ["convert", "--mode", "structured"]):
        code, out, err = penstock("event", *words, "--jsonl", stdin=stdin)
        assert (code, err) == (0, "")
        assert len(out.splitlines()) == 7
        assert all(json.loads(line) for line in out.splitlines())


def test_a_line_that_is_too_long_is_an_error_with_its_number(
    penstock: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines before it are answered; no part of it is left out to make it shorter."""
    monkeypatch.setattr("penstock.cli.event_input.LINE_BYTES_MAX", 100_000)
    code, out, err = penstock("event", "decode", "--jsonl", stdin=b"{}\n" * 30_000 + b" " * 200_000 + b"{}\n")
    assert code == 1
    assert out.count(b"\n") in range(25_000, 30_001)
    assert "line 30001 has more than 100,000 bytes" in err


def test_profiles_and_declared_types(penstock: Penstock) -> None:
    headers = [(name.upper(), value) for name, value in to_record(EVENT)[2]] + [("CE_N", b"5")]
    pairs = [[name, base64.b64encode(value).decode()] for name, value in headers]
    line = json.dumps({"key": None, "value": None, "headers": pairs}).encode()
    assert json.loads(penstock("event", "decode", "--jsonl", stdin=line)[1])["rule"] == "K16"
    assert json.loads(penstock("event", "decode", "--jsonl", "--strict", stdin=line)[1])["rule"] == "K16"
    answer = json.loads(
        penstock("event", "decode", "--jsonl", "--lenient", "--type", "n=Integer", stdin=line)[1]
    )
    assert answer["event"]["n"] == 5
    assert penstock("event", "decode", "--jsonl", "--type", "n=Float", stdin=line)[0] == 2


def test_one_record_and_one_event(penstock: Penstock, tmp_path: Path) -> None:
    words = [f"-H{name}={value.decode()}" for name, value in to_record(EVENT)[2]]
    code, out, _ = penstock("event", "decode", *words, stdin=b'{"a":1.5}')
    assert code == 0
    assert json.loads(out)["subject"] == "ä"
    code, out, err = penstock("event", "decode", *words[1:], stdin=b"")
    assert (code, out) == (1, b"")
    assert err == "penstock: C1: the required header ce_specversion is missing\n"

    file = tmp_path / "event.json"
    file.write_bytes(write_events([EVENT], "application/cloudevents+json"))
    code, out, _ = penstock("event", "encode", str(file))
    assert code == 0
    assert b"ce_type: t\n" in out
    assert out.endswith(b'\n\n{"a":1.5}\n')
    assert (
        b"content-type: application/cloudevents+json\n"
        in penstock("event", "encode", "--mode", "structured", str(file))[1]
    )


def test_validate_names_the_rule(penstock: Penstock, tmp_path: Path) -> None:
    good, bad, lines = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "records.jsonl"
    good.write_bytes(write_events([EVENT, EVENT]))
    bad.write_bytes(b'{"specversion":"1.0","id":"","source":"/s","type":"t"}')
    lines.write_bytes(record_line(EVENT) + b"{}\n")
    assert penstock("event", "validate", str(good)) == (0, f"{good}: valid\n".encode(), "")
    code, out, _ = penstock("event", "validate", str(good), str(bad))
    assert (code, out.splitlines()[1].decode()) == (1, f"{bad}: C6: id is empty")
    code, out, _ = penstock("event", "validate", "--jsonl", str(lines))
    assert code == 1
    assert out.decode().startswith(f"{lines}:2: K16: ")
    assert penstock("event", "validate", "--jsonl", stdin=record_line(EVENT)) == (0, b"stdin: valid\n", "")
    assert penstock("event", "validate", "--format", "avro", str(bad))[0] == 1


def test_formats_of_files(penstock: Penstock) -> None:
    body = write_events([EVENT], "application/cloudevents+json")
    for name in ("avro", "protobuf", "json-batch", "protobuf-batch"):
        code, out, err = penstock("event", "convert", "--to", name, stdin=body)
        assert (code, err) == (0, "")
        assert penstock("event", "convert", "--from", name, "--to", "json", stdin=out)[1] == body
        if "batch" not in name:
            for words in (["validate"], ["convert", "--to", "json"]):
                code, told, err = penstock("event", *words, stdin=out)
                assert code == 1
                option = "--format" if words == ["validate"] else "--from"
                assert f"if it is Avro or Protobuf, say so with {option}" in told.decode() + err
    assert penstock("event", "convert", stdin=body)[0] == 2
    assert penstock("event", "convert", "--to", "avro", stdin=b"{}")[0] == 1


WHOLE = b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}'


@pytest.mark.parametrize(
    ("words", "stdin", "code", "said"),
    [
        ("decode", WHOLE, 1, "add -H content-type=application/cloudevents+json, or --assume-structured"),
        ("decode --jsonl", WHOLE, 0, "the line is an event itself, not a record"),
        ("validate --jsonl", WHOLE, 1, "the line is an event itself, not a record"),
        ("encode", b"[" + WHOLE + b"]", 2, "encode takes one event, or with --jsonl one a line"),
        ("encode", b"", 1, "J1: the value is empty"),
        ("encode", b'{"id": "1",\n "type" "t"}', 1, "not JSON: expecting ':' delimiter at line 2, column 9"),
        ("encode", b"3", 1, "J1: the value is JSON, but not an object"),
        ("encode --format avro", WHOLE, 2, "--format is for structured records: add --mode structured"),
        ("convert --jsonl --binary-headers", b"", 2, "--binary-headers is for structured records"),
        ("validate", b"[" + WHOLE + b', {"id": ""}]', 1, "C1: event 2 of the batch: the required"),
        ("validate", b"[" + WHOLE + b", 3]", 1, "J18: event 2 of the batch: it is not a JSON object"),
    ],
)
def test_what_went_wrong_and_what_to_do(
    penstock: Penstock, words: str, stdin: bytes, code: int, said: str
) -> None:
    exit_code, out, err = penstock("event", *words.split(), stdin=stdin)
    assert exit_code == code
    assert said in out.decode() + err


def test_an_event_in_a_protobuf_batch_is_named(penstock: Penstock) -> None:
    body = write_events([EVENT, EVENT], "application/cloudevents-batch+protobuf")
    broken = body[: len(body) // 2] + body[len(body) // 2 :].replace(b"1.0", b"2.0")
    _, out, _ = penstock("event", "validate", "--format", "protobuf-batch", stdin=broken)
    assert out.decode().startswith("stdin: D13: event 2 of the batch: ")


def test_reading_a_topic(penstock: Penstock) -> None:
    with Broker() as broker:
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for mode in ("binary", "structured"):
                key, value, headers = to_record(EVENT, mode=mode)
                producer.send("mixed", value, key=key, headers=headers, partition=0)
            producer.send("mixed", b"none", partition=0)
        where = ["-b", broker.bootstrap_servers, "-t", "mixed", "-p", "0", "-e"]
        code, out, err = penstock("event", "read", *where)
        assert (code, err) == (0, "")
        shown = out.decode().splitlines()
        assert shown[0].startswith("mixed/0/0  t  /s  1  ")
        assert shown[2].startswith("mixed/0/2  K16: ")
        out = penstock("event", "read", *where, "--jsonl")[1]
        answers = [json.loads(line) for line in out.splitlines()]
        assert [answer.get("mode") for answer in answers] == ["binary", "structured", None]
        assert answers[1]["offset"] == 1
        assert answers[0]["event"] == answers[1]["event"]


def test_lines_are_answered_as_they_come() -> None:
    words = [sys.executable, "-m", "penstock", "event", "decode", "--jsonl"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(2):
            process.stdin.write(record_line(EVENT))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["event"]["id"] == "1"
        process.stdin.close()
        assert process.stdout.read() == b""


@pytest.mark.parametrize("words", [[], ["decode"], ["encode"], ["validate"], ["convert"], ["read"]])
def test_help_explains(penstock: Penstock, words: list[str]) -> None:
    code, out, _ = penstock("event", *words, "--help")
    assert code == 0
    assert b"Examples:" in out or b"penstock event" in out
