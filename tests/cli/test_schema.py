"""Tests of `penstock schema`: its output about message definitions, and its exit codes."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import main
from penstock.protocol.inspect.json_form import to_json
from penstock.protocol.messages import MetadataResponse
from penstock.protocol.schema.loader import definitions_directory
from protocol.test_packed_integers import e1

Schema = Callable[..., tuple[int, str, str]]


@pytest.fixture
def schema(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Schema:
    """Return a function that runs `penstock schema` in this process: exit code, stdout and stderr."""

    def run(*words: object, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main(["schema", *map(str, words)])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def lamp(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a message definition; its keyword arguments replace keys of it."""

    def write(name: str = "LampReport.json", **change: Any) -> Path:
        fields = [{"name": "Watts", "type": "int32", "versions": "0+"}]
        source = {"name": "LampReport", "type": "data", "validVersions": "0-1", "flexibleVersions": "1+"}
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**source, "fields": fields, **change}))
        return path

    return write


def test_an_api_by_name_or_key_shows_both_messages(schema: Schema) -> None:
    for word in ("Fetch", "fetch", "1"):
        code, out, _ = schema("show", word, 4)
        assert code == 0
        assert "Fetch Request (Version: 4) => replica_id max_wait_ms" in out
        assert "Fetch Response (Version: 4) => throttle_time_ms [responses]" in out
    assert "\x1b" not in out


def test_a_message_of_all_versions(schema: Schema) -> None:
    code, out, _ = schema("show", "OffsetCommitValue")
    assert code == 0
    assert out.splitlines()[0].startswith("OffsetCommitValue (Version: 4) => ")
    assert "OffsetCommitValue: coordinator-value, versions 0-4, key 1, flexible from 4" in out
    table = [line.split() for line in out.splitlines()]
    assert ["field", "type", "versions", "nullable", "default", "notes"] in table
    assert ["expireTimestamp", "int64", "1", "-1", "ignorable"] in table


def test_a_definition_of_ones_own(schema: Schema, lamp: Callable[..., Path]) -> None:
    code, out, _ = schema("show", lamp(), 1)
    assert code == 0
    assert out.startswith("LampReport (Version: 1) => watts _tagged_fields\n  watts => INT32\n")
    code, out, _ = schema("code", lamp(), 1)
    assert "message.watts" in out


def test_what_has_no_fields_or_no_versions(schema: Schema, lamp: Callable[..., Path]) -> None:
    _, out, _ = schema("show", lamp(fields=[]), 1)
    assert out == (
        "LampReport (Version: 1) => _tagged_fields\n\nLampReport: data, versions 0-1, flexible from 1\n"
    )
    gone = lamp("gone.json", validVersions="none", fields=[])
    assert schema("show", gone)[1] == "LampReport: data, versions none, never flexible\n"
    code, out, _ = schema("check", lamp(), gone)
    assert code == 1
    assert "validVersions shrank: peers may speak what is gone (versions 0-1)" in out


def test_code_is_python(schema: Schema) -> None:
    for version in (0, 12):
        code, out, _ = schema("code", "Metadata", version)
        assert code == 0
        compile(out, "shown", "exec")
        assert out.count("def decode(") == out.count("def encode(") == 2
        assert f"# MetadataResponse v{version}" in out


def test_check_tells_by_its_exit_code(schema: Schema, lamp: Callable[..., Path]) -> None:
    old = lamp("old.json")
    assert schema("check", old, old) == (0, "compatible\n", "")
    wider = lamp("wider.json", fields=[{"name": "Watts", "type": "int64", "versions": "0+"}])
    code, out, _ = schema("check", old, wider)
    assert (code, out) == (1, "breaks: LampReport.Watts: type was INT32 and is INT64 (versions 0-1)\n")
    other = lamp("other.json", fields=[{"name": "Watts", "type": "int32", "versions": "0+", "default": 5}])
    code, out, _ = schema("check", old, other)
    assert (code, out) == (0, "note: LampReport.Watts: default was 0 and is 5\ncompatible, 1 note\n")
    assert schema("check", "-q", old, other) == (0, "", "")
    assert schema("check", "FetchRequest", "FetchRequest")[0] == 0


def test_check_of_directories(schema: Schema, lamp: Callable[..., Path], tmp_path: Path) -> None:
    lamp("old/A.json")
    lamp("old/B.json")
    lamp("new/A.json")
    code, out, _ = schema("check", tmp_path / "old", tmp_path / "new")
    assert (code, out) == (1, "breaks: LampReport: the definition is gone\n")
    lamp("new/B.json", validVersions="x")
    code, out, _ = schema("check", tmp_path / "old", tmp_path / "new")
    assert code == 1
    assert out.startswith("breaks: B.json: ")
    assert schema("check", definitions_directory(), definitions_directory()) == (0, "compatible\n", "")


def test_sizes_of_the_proposals_example(schema: Schema, tmp_path: Path) -> None:
    sample = tmp_path / "sample.json"
    sample.write_text(json.dumps(to_json(e1(MetadataResponse), 9)))
    code, out, _ = schema("sizes", "MetadataResponse", sample, "-v", 9)
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert out.startswith("MetadataResponse v9: 3216 bytes\n")
    assert ["topics.partitions.replicaNodes", "int32", "200", "800", "200", "200", "zig-zag"] in lines
    assert lines[-1] == ["whole", "message", "3216", "1208", "1170", "1170"]
    assert schema("sizes", "MetadataResponse", "-", "-v", 9, stdin=sample.read_text())[1] == out
    decoded = json.dumps({"name": "MetadataResponse", "version": 9, "json": json.loads(sample.read_text())})
    assert schema("sizes", "MetadataResponse", "-", stdin=decoded)[1] == out


def test_sizes_of_a_definition_of_ones_own(schema: Schema, lamp: Callable[..., Path]) -> None:
    code, out, _ = schema("sizes", lamp(), "-", stdin='{"watts": 200}')
    assert code == 0
    assert "LampReport v1: 5 bytes" in out


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["show", "Fech"], 2, "did you mean Fetch?"),
        (["show", "Fetch", 99], 2, "FetchRequest has versions 0-18, not 99"),
        (["show", "no/such.json"], 1, "no such file"),
        (["code", "Fetch", "x"], 2, "not a whole number"),
        (["check", "Fetch", "Fetch"], 2, "has two definitions"),
        (["sizes", "Fetch", "-"], 2, "has two definitions"),
        (["sizes", "FetchRequest", "-", "-v", 4], 1, "no JSON"),
        (["sizes", "FetchRequest", "no-such-file"], 1, "no-such-file"),
    ],
)
def test_mistakes_are_one_line(schema: Schema, words: list[object], code: int, complaint: str) -> None:
    found, out, err = schema(*words)
    assert (found, out) == (code, "")
    assert complaint in err
    assert err.count("\n") == 1


def test_a_broken_definition_names_file_and_field(schema: Schema, lamp: Callable[..., Path]) -> None:
    path = lamp(fields=[{"name": "Watts", "type": "int33", "versions": "0+"}])
    code, _, err = schema("show", path)
    assert code == 2
    assert err.startswith("penstock: LampReport.json: Watts: ")


def test_help_teaches(schema: Schema) -> None:
    for words in (
        ["--help"],
        ["show", "--help"],
        ["code", "--help"],
        ["check", "--help"],
        ["sizes", "--help"],
    ):
        code, out, _ = schema(*words)
        assert code == 0
        assert "Example" in out
