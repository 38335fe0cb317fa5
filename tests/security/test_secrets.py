"""Tests that secrets appear in no text or error, and can be read from files and other sources."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.security.secrets import HIDDEN, Secret, resolved, secret, secret_from_file

CANARY = "canary-7f3a"


def test_no_way_of_printing_shows_a_secret() -> None:
    one = Secret(CANARY)
    shown = [repr(one), str(one), f"{one}", f"{one!r:>20}", "%s %r" % (one, one), repr({"a": [one]})]  # noqa: UP031
    assert not [text for text in shown if CANARY in text]
    assert f"{one:>10}" == f"{HIDDEN:>10}"
    with pytest.raises(TypeError):
        json.dumps({"password": one})
    with pytest.raises(TypeError):
        "".join([one])  # type: ignore[list-item]


def test_logging_and_tracebacks_show_none(caplog: pytest.LogCaptureFixture) -> None:
    one = Secret(CANARY)
    logging.getLogger("penstock").warning("settings: %s %r", one, {"p": one})
    try:
        raise ConfigError(f"with {one}")
    except ConfigError as error:
        text = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert CANARY not in caplog.text
    assert CANARY not in text.replace("CANARY = ", "")


def test_equality_hash_truth_and_pickle() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert not Secret("")
    assert pickle.loads(pickle.dumps(Secret("a"))).reveal() == "a"
    assert secret(Secret("x")).reveal() == secret("x").reveal() == "x"
    with pytest.raises(ValueError, match="expected text"):
        secret(5)


def test_references_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text("from file\r\n")
    monkeypatch.setenv("PENSTOCK_TEST_SECRET", "from environment")
    assert resolved(f"${{file:{file}}}").reveal() == "from file"
    assert resolved("${env:PENSTOCK_TEST_SECRET}").reveal() == "from environment"
    assert resolved("${other}").reveal() == "${other}"
    with pytest.raises(ConfigError, match="PENSTOCK_NONE is not set"):
        resolved("${env:PENSTOCK_NONE}")
    with pytest.raises(ConfigError, match="No such file"):
        secret_from_file(str(tmp_path / "none"))
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        secret_from_file(str(file))
    file.write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(ConfigError, match="longer than"):
        secret_from_file(str(file))


@pytest.mark.parametrize("path", ["~no such user/secret", "a\0b"])
def test_a_path_that_no_system_takes_is_a_setting_that_is_wrong(path: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        resolved(f"${{file:{path}}}")


def test_references_name_entries_and_files_of_directories(tmp_path: Path) -> None:
    properties = tmp_path / "secrets.properties"
    properties.write_text("# of the client\nuser=ann\npass\\ word = a\\u0062c \nuser=bob\n")
    (tmp_path / "password").write_text("whole\n")
    (tmp_path / "odd:name").write_text("colon")
    assert resolved(f"${{file:{properties}:pass word}}").reveal() == "abc"
    assert resolved(f"${{file:{properties}:user}}").reveal() == "bob"
    assert resolved(f"${{dir:{tmp_path}:password}}").reveal() == "whole"
    assert resolved(f"${{directory:{tmp_path}:password}}").reveal() == "whole"
    assert resolved(f"${{file:{tmp_path}/odd:name}}").reveal() == "colon"
    with pytest.raises(ConfigError, match="has no entry 'none'"):
        resolved(f"${{file:{properties}:none}}")
    with pytest.raises(ConfigError, match="No such file"):
        resolved(f"${{dir:{tmp_path}:none}}")
    for literal in ("${}", "${file:}", "${env}", f"${{dir:{tmp_path}}}", "${vault:a:b}", "x${env:HOME}"):
        assert resolved(literal).reveal() == literal
