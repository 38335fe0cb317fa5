"""Tests of client settings from files, profiles and the environment: their precedence and display."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock.cli import main
from penstock.cli.settings import OTHER_VARIABLES, OWN_VARIABLES, unread_variables

FILE = """
profile = "local"

[local]
bootstrap.servers = "local:1"
client.id = "from profile"

[staging]
bootstrap_servers = ["s1:1", "s2:1"]
security.protocol = "SASL_SSL"
"sasl.mechanism" = "PLAIN"
sasl.username = "ann"
sasl.password = "canary"
request.timeout.ms = 5000
enable.ssl.certificate.verification = false
acks = "all"
"""

Show = Callable[..., dict[str, tuple[str, str]]]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the user's configuration file with two profiles, and return its path."""
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "penstock" / "config.toml"
    file.parent.mkdir()
    file.write_text(FILE)
    file.chmod(0o600)
    return file


@pytest.fixture
def show(path: Path, capsys: pytest.CaptureFixture[str]) -> Show:
    """Return a function that runs ``penstock config show``: a dict from setting to value and origin."""

    def call(*words: str) -> dict[str, tuple[str, str]]:
        code = main(["config", "show", "--json", *words])
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return {row["name"]: (row["value"], row["origin"]) for row in map(json.loads, out.splitlines())}

    return call


def test_what_stands_further_up_wins(
    show: Show, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step of the test adds a source of settings that takes precedence over all earlier ones."""

    def address() -> tuple[str, str]:
        return (
            show(*words)["bootstrap.servers"] if "-b" in words or "metadata" not in str(words) else ("", "")
        )

    words: list[str] = []
    path.write_text("")
    assert address() == ("127.0.0.1:9092", "default")
    path.write_text(FILE)
    assert address() == ("local:1", f"profile local in {path}")
    monkeypatch.setenv("PENSTOCK_PROFILE", "staging")
    assert address() == ("s1:1,s2:1", f"profile staging in {path}")
    other = tmp_path / "other.conf"
    other.write_text("metadata.broker.list=other:1\n")
    monkeypatch.setenv("PENSTOCK_CONFIG", str(other))
    assert show()["metadata.broker.list"] == ("other:1", f"{other} (PENSTOCK_CONFIG)")
    assert "bootstrap.servers" not in show(), "two names for one thing"
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP_SERVERS", "variable:1")
    assert address() == ("variable:1", "PENSTOCK_BOOTSTRAP_SERVERS")
    words += ["--profile", "local"]
    assert address() == ("local:1", f"profile local in {path}")
    file = tmp_path / "file.conf"
    file.write_text("bootstrap.servers=file:1\n")
    words += ["--config", str(file)]
    assert address() == ("file:1", f"--config {file}")
    words += ["-b", "typed:1"]
    assert address() == ("typed:1", "-b")
    assert show(*words, "-X", "client.id=x")["client.id"] == ("x", "-X")


def test_a_profile_is_taken_as_it_is_meant(show: Show) -> None:
    found = show("--profile", "staging")
    assert {name: value for name, (value, _) in found.items()} == {
        "bootstrap.servers": "s1:1,s2:1",
        "enable.ssl.certificate.verification": "false",
        "request.timeout.ms": "5000",
        "sasl.mechanism": "PLAIN",
        "sasl.password": "(hidden)",
        "sasl.username": "ann",
        "security.protocol": "SASL_SSL",
    }


def test_passwords_are_never_shown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["config"], ["config", "show", "--profile", "staging"], ["config", "profiles"]):
        assert main(words) == 0
        out, err = capsys.readouterr()
        assert "canary" not in out + err
    path.chmod(0o644)
    assert main(["config", "show", "--profile", "staging"]) == 0
    assert f"chmod 600 {path}" in capsys.readouterr().err


def test_the_whole_command_takes_a_profile_too(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--profile", "staging", "config"]) == 0
    assert "s1:1,s2:1" in capsys.readouterr().out
    assert main(["config", "profiles", "--profile", "staging"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["profile", "is", "used", "bootstrap", "servers"],
        ["local", "no", "local:1"],
        ["staging", "yes", "s1:1,s2:1"],
    ]


def test_a_variable_that_is_nearly_one_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP_SERVER", "x:1")
    monkeypatch.setenv("PENSTOCK_SASL_PASSWORD", "canary")
    assert main(["config"]) == 0
    out, err = capsys.readouterr()
    assert "PENSTOCK_BOOTSTRAP_SERVER is not read; did you mean PENSTOCK_BOOTSTRAP_SERVERS" in err
    assert "sasl.password" not in out, "a protocol without passwords has no use for it"


def test_no_variable_of_penstock_is_told_as_misspelt() -> None:
    """A Spark session sets some ``PENSTOCK_`` variables, which commands started from it inherit."""
    sources = Path(penstock.__file__).parent.parent
    variables = {
        found
        for package in ("penstock", "pyspark_penstock")
        for path in (sources / package).rglob("*.py")
        for found in re.findall(r'"(PENSTOCK_[A-Z_]*[A-Z])"', path.read_text())
    }
    assert len(variables) > 10
    assert unread_variables(dict.fromkeys(variables, "1")) == []
    assert variables <= OTHER_VARIABLES | OWN_VARIABLES, "cli/settings.py knows every variable"


@pytest.mark.parametrize(
    "variable", ["PENSTOCK_OTHER", "PENSTOCK_SEED", "PENSTOCK_HOME", "PENSTOCK_TEST_USER"]
)
def test_a_variable_that_is_like_none_is_not_told(variable: str) -> None:
    """A variable that only shares the prefix ``PENSTOCK_`` with a known one is no misspelling."""
    assert unread_variables({variable: "1"}) == []


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (FILE, ["--profile", "stagin"], "has no profile 'stagin'; did you mean staging"),
        ("", ["--profile", "staging"], "there are no profiles"),
        ("profile = 'gone'\n[a]\n", [], "has no profile 'gone'"),
        ("[a]\nclient.id = me\n", [], "strings stand in quotes"),
        ("client_id = 'me'\n", [], "stands above all sections"),
        ("[a]\nclient.idd = 'me'\n", ["--profile", "a"], "no setting 'client.idd'; did you mean client.id"),
        ("[a]\nclient.id = 'x'\nclient_id = 'y'\n", ["--profile", "a"], "client.id is set twice"),
        ("[a]\nclient.id = [1]\n", ["--profile", "a"], "a setting is text, a number"),
        ("profile = 5\n", [], "names the profile to use"),
        ("[" * 100_000, [], "config.toml"),
        ("#" * (1 << 20 | 1), [], "is longer than"),
    ],
)
def test_mistakes_are_told_in_one_line(
    text: str, words: list[str], message: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(text)
    for command in (["config", "show"], ["topic", "list"]):
        assert main([*command, *words]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert message in err


def test_the_tab_key_knows_profiles(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, expected in ((FILE, ["staging"]), ("[", [])):
        path.write_text(text)
        monkeypatch.setenv("_PENSTOCK_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", "penstock topic list --profile st")
        monkeypatch.setenv("COMP_CWORD", "4")
        main([])
        assert [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()] == expected
