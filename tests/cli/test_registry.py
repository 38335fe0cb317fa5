"""Tests of ``penstock registry``: its commands for a schema registry, and the registry that it can run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.registry import Registry, RegistryClient, Schema

OLD = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
NEW = '{"type": "record", "name": "R", "fields": [{"name": "b", "type": "int"}]}'


def test_schemas_are_registered_checked_listed_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.avsc", tmp_path / "new.avsc"
    old.write_text(OLD)
    new.write_text(NEW)
    with Registry() as registry:

        def run(*words: str) -> tuple[int, str]:
            code = main(["registry", *words, "--url", registry.url])
            return code, capsys.readouterr().out

        assert run("register", "t-value", str(old)) == (0, "1\n")
        assert run("check", "t-value", str(old)) == (0, "compatible\n")
        code, text = run("check", "t-value", str(new))
        assert code == 1
        assert "READER_FIELD_MISSING_DEFAULT_VALUE" in text
        code, text = run("list", "--json")
        assert json.loads(text) == {"subject": "t-value", "version": 1, "id": 1, "type": "AVRO"}
        code, text = run("show", "t-value")
        assert json.loads(text) == json.loads(OLD)


def test_a_registry_runs_until_it_is_told_to_stop() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", "registry", "run", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("schema registry at http://127.0.0.1:")
        with RegistryClient(line.split()[3].rstrip(",")) as client:
            assert client.subjects() == []
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
        process.communicate()


def test_two_schemas_beside_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = tmp_path / "new.avsc"
    new.write_text(NEW)
    with Registry() as registry:
        client = registry.client()
        client.set_compatibility("NONE")
        client.register("t-value", Schema(OLD))

        def run(*words: str) -> tuple[int, list[str]]:
            code = main([*words, "--url", registry.url])
            shown = capsys.readouterr()
            return code, (shown.out + shown.err).splitlines()

        code, lines = run("registry", "diff", "t-value")
        assert (code, lines) == (
            2,
            ["penstock: subject 't-value' has one version: name what to compare it with"],
        )
        code, lines = run("registry", "diff", "t-value", str(new))
        assert code == 1
        assert lines[:3] == [
            "+ b: int",
            "- a: int",
            "the new schema reads what the old one wrote (BACKWARD): no",
        ]
        assert "READER_FIELD_MISSING_DEFAULT_VALUE" in lines[3]
        client.register("t-value", Schema('{"type": "record", "name": "R", "fields": []}'))
        code, lines = run("schema", "diff", "t-value")
        assert lines == [
            "- a: int",
            "the new schema reads what the old one wrote (BACKWARD): yes",
            "the old schema reads what the new one wrote (FORWARD): no",
            lines[-1],
        ]
        assert run("registry", "diff", "t-value:1", "t-value:1") == (0, ["no differences"])
