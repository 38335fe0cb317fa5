"""Tests of `penstock wire`, which decodes and encodes messages: input, output, and one line per error."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer import captures
from explorer.test_conversation import ANSWERS, REQUESTS, packets
from penstock.cli import main
from penstock.explorer.tree import wants_colour

Wire = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Wire:
    """Return a function that runs `penstock wire` in this process: exit code, stdout and stderr."""

    def run(*words: object, stdin: bytes = b"") -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(["wire", *map(str, words)])
        out, err = capsysbinary.readouterr()
        return code, out, err.decode()

    return run


def test_hex_as_an_argument_from_stdin_and_from_a_file(wire: Wire, tmp_path: Path) -> None:
    path = tmp_path / "request"
    path.write_bytes(REQUESTS[1])
    ways = [wire("decode", REQUESTS[1].hex()), wire("decode", path), wire("decode", "-", stdin=REQUESTS[1])]
    ways.append(wire("decode", stdin=REQUESTS[1].hex(" ").encode() + b"\n"))
    for code, out, err in ways:
        assert (code, err) == (0, "")
        assert json.loads(out)["name"] == "MetadataRequest"
    assert wire("encode", stdin=ways[0][1]) == (0, REQUESTS[1].hex().encode() + b"\n", "")


def test_a_capture_there_and_back(wire: Wire, tmp_path: Path) -> None:
    path = tmp_path / "talk.pcap"
    path.write_bytes(captures.pcap(packets()))
    code, out, _ = wire("decode", path, "--port", 9092)
    assert code == 0
    assert wire("encode", "--binary", stdin=out) == (0, b"".join(REQUESTS + ANSWERS), "")


def test_requests_and_answers_in_two_files(wire: Wire, tmp_path: Path) -> None:
    for name, frames in (("requests", REQUESTS), ("answers", ANSWERS)):
        (tmp_path / name).write_bytes(b"".join(frames))
    code, out, _ = wire("decode", tmp_path / "requests", "--answers", tmp_path / "answers")
    names = [json.loads(line)["name"] for line in out.splitlines()]
    assert code == 0
    assert names[:4] == ["ApiVersionsRequest", "ApiVersionsResponse", "MetadataRequest", "MetadataResponse"]


def test_a_tree_without_colour(wire: Wire) -> None:
    code, out, _ = wire("decode", "--tree", ANSWERS[1].hex(), "-n", "MetadataResponse", "-v", 12, "--header")
    assert code == 0
    assert out.decode().splitlines() == [
        "← MetadataResponse v12",
        "├─ header",
        "│  └─ correlationId: 1",
        "├─ throttleTimeMs: 0",
        "├─ brokers (1)",
        "│  └─ [0]",
        "│     ├─ nodeId: 1",
        '│     ├─ host: "b"',
        "│     ├─ port: 1",
        "│     └─ rack: null",
        "├─ clusterId: null",
        "├─ controllerId: -1",
        "└─ topics: []",
    ]


def test_the_tree_names_errors_and_unpacks_records(wire: Wire) -> None:
    code, out, _ = wire("decode", "--tree", (REQUESTS[3] + ANSWERS[2]).hex())
    text = out.decode()
    assert code == 0
    assert "errorCode: 3 UNKNOWN_TOPIC_OR_PARTITION" in text
    assert 'compression: "gzip"' in text
    assert "\x1b" not in text


def test_a_name_cannot_steer_the_terminal(wire: Wire) -> None:
    form = json.dumps({"key": "\x1b[2J\x9b", "error": 1}).replace(', "error": 1', "")
    _, out, _ = wire("encode", "-n", "FindCoordinatorRequest", "-v", 0, form)
    _, out, _ = wire("decode", "--tree", "-n", "FindCoordinatorRequest", "-v", 0, out.decode().strip())
    assert b"\x1b" not in out
    assert "\x9b" not in out.decode()


def test_framed(wire: Wire) -> None:
    assert (
        wire("encode", "-n", "GroupMetadataKey", "-v", 0, "--framed", '{"group": "g"}')[1] == b"0002000167\n"
    )
    _, out, _ = wire("decode", "-n", "GroupMetadataKey", "--framed", "0002000167")
    assert json.loads(out) == {"name": "GroupMetadataKey", "version": 0, "json": {"group": "g"}}
    again = out.replace(b"{", b'{"framed": true, ', 1)
    assert wire("encode", stdin=again) == (0, b"0002000167\n", "")


def test_a_definition_of_ones_own(wire: Wire, tmp_path: Path) -> None:
    path = tmp_path / "Lamp.json"
    fields = [{"name": "Watts", "type": "unsigned_varint32", "versions": "0+"}]
    source = {"name": "Lamp", "type": "data", "validVersions": "0-1", "flexibleVersions": "none"}
    path.write_text(json.dumps({**source, "fields": fields}))
    assert wire("encode", "-n", path, "-v", 1, "--framed", '{"watts": 200}')[1] == b"0001c801\n"
    code, out, _ = wire("decode", "-n", path, "--framed", "0001c801")
    assert (code, json.loads(out)) == (0, {"name": "Lamp", "version": 1, "json": {"watts": 200}})


def test_lines_one_for_one(wire: Wire, tmp_path: Path) -> None:
    first = b'{"name":"ResponseHeader","version":0,"hex":"00000007"}'
    lines = first + b"\n\nx\n" + first.replace(b"00000007", b"")
    code, out, err = wire("decode", "--jsonl", stdin=lines)
    assert (code, err) == (0, "")
    answers = [json.loads(line) for line in out.splitlines()]
    assert answers[0]["json"] == {"correlationId": 7}
    assert ["error" in answer for answer in answers] == [False, True, True, True]
    path = tmp_path / "lines"
    path.write_bytes(out.splitlines()[0].replace(b'"hex":"00000007",', b""))
    assert json.loads(wire("encode", "--jsonl", path)[1])["hex"] == "00000007"


def test_several_objects_however_broken_into_lines(wire: Wire) -> None:
    one = {"name": "ResponseHeader", "version": 0, "json": {"correlationId": 1}}
    text = json.dumps(one, indent=2) + json.dumps(one) + "\n\n" + json.dumps(one) + " "
    assert wire("encode", stdin=text.encode()) == (0, b"00000001\n" * 3, "")


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["decode", "no-such-file"], 2, "neither a file nor hex digits"),
        (["decode", ""], 1, "nothing to decode"),
        (["decode", "-v", 3, "00"], 2, "name it with -n"),
        (["decode", "-n", "FetchRespons", "-v", 1, "00"], 2, "did you mean FetchResponse?"),
        (["decode", "-n", "FetchResponse", "-v", 99, "00"], 1, "has versions 0 to"),
        (["decode", "-n", "FetchResponse", "-v", 4, "00"], 1, "FetchResponse v4"),
        (["decode", "-n", "FetchRequest", "-v", 4, "--header", "00"], 1, "is no response"),
        (["decode", "-n", "FetchRequest", "-v", 4, "--framed", "00"], 2, "no version in front"),
        (["decode", "--answers", "no-such-file", "00000000"], 1, "no-such-file"),
        (["decode", "--jsonl", "no-such-file"], 1, "no-such-file"),
        (["encode", "-n", "FetchRequest", "{}"], 2, "give it with -v"),
        (["encode", "-n", "FetchRequest", "-v", 4, "{}"], 1, "FetchRequest.replicaId: the field is missing"),
        (["encode", "{"], 1, "no JSON"),
        (["encode", "[3]"], 1, "an object was expected"),
        (["encode", "{}"], 2, "there is no message called None"),
        (["encode", '{"name": "FetchRequest"}'], 1, "needs a version"),
        (["encode", '{"name": "FetchRequest", "version": 4}'], 1, "has no json"),
        (
            ["encode", '{"name": "TopicRecord", "version": 0, "json": {}, "header": {}}'],
            1,
            "TopicRecord.name",
        ),
    ],
)
def test_mistakes_are_one_line(wire: Wire, words: list[object], code: int, complaint: str) -> None:
    found, out, err = wire(*words)
    assert (found, out) == (code, b"")
    assert complaint in err
    assert err.count("\n") == 1


def test_what_cannot_be_read_is_shown_and_counted(wire: Wire) -> None:
    code, out, err = wire("decode", (REQUESTS[0] + b"\0\0\0\4\x7f\xff\0\0").hex())
    assert code == 1
    assert "1 message could not be read" in err
    assert json.loads(out.splitlines()[1])["hex"] == "7fff0000"
    assert wire("decode", "--tree", "0000000c7fff00000000000000000000")[0] == 1


def test_colour_only_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())


def test_help_teaches(wire: Wire) -> None:
    for words in (["--help"], ["decode", "--help"], ["encode", "--help"]):
        code, out, _ = wire(*words)
        assert code == 0
        assert b"Examples:" in out
