"""Tests that generated files are current, that imports are cheap, and that public names can be imported."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import penstock.protocol
from penstock.protocol import messages
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.message_index import HOMES
from penstock.protocol.uuid import ZERO_UUID, random_uuid, uuid_from_text, uuid_to_text
from protocol import reference

HOUSE = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_generated_files_are_fresh():
    done = run(str(HOUSE / "tools" / "generate_messages.py"), "--check")
    assert (done.returncode, done.stdout) == (0, "")


def test_what_starts_a_broker_imports_little():
    code = (
        "import sys; before = set(sys.modules);"
        "import penstock.protocol.api, penstock.protocol.codec, penstock.protocol.framing;"
        "print(*sorted(set(sys.modules) - before))"
    )
    imported = set(run("-c", code).stdout.split())
    assert not imported & {
        "json",
        "dataclasses",
        "inspect",
        "asyncio",
        "numpy",
        "logging",
        "linecache",
        "ast",
    }
    own = {
        name.removeprefix("penstock.protocol.") for name in imported if name.startswith("penstock.protocol.")
    }
    assert own == {"api", "api_keys", "codec", "compiler", "compiler.runtime", "framing", "message"}


def test_an_answer_to_api_versions_loads_only_its_own_definitions():
    code = (
        "import builtins, sys; opened = []; plain = builtins.open\n"
        "def watched(path, *more, **named):\n"
        "    opened.append(str(path)); return plain(path, *more, **named)\n"
        "builtins.open = watched\n"
        "from penstock.protocol.framing import encode_response\n"
        "from penstock.protocol.messages.api_versions_response import ApiVersionsResponse\n"
        "encode_response(ApiVersionsResponse(), 4, 1)\n"
        "print(*[path for path in opened if path.endswith('.json')])"
    )
    done = run("-c", code)
    assert [Path(path).name for path in done.stdout.split()] == ["ApiVersionsResponse.json"], done.stderr


def test_every_message_is_found_in_the_package():
    assert dir(messages) == sorted(HOMES)
    for name in HOMES:
        assert name == getattr(messages, name).NAME
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        messages.Nothing  # noqa: B018


def test_the_package_exports_its_names():
    for name in penstock.protocol.__all__:
        assert getattr(penstock.protocol, name) is not None
    assert dir(penstock.protocol) == penstock.protocol.__all__
    with pytest.raises(AttributeError):
        penstock.protocol.nothing  # noqa: B018


def test_error_codes():
    assert [code.value for code in ErrorCode] == list(range(-1, 137))
    for code in ErrorCode:
        assert re.fullmatch(r"[A-Z].*\.", code.description), code
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert not ErrorCode.NONE.retriable


def test_errors_for_codes():
    error = error_for(3, "fetching t-0")
    assert (error.code, error.name, error.retriable) == (3, "UNKNOWN_TOPIC_OR_PARTITION", True)
    assert (
        str(error) == "fetching t-0: This broker has no such topic or partition. (UNKNOWN_TOPIC_OR_PARTITION)"
    )
    unknown = error_for(999)
    assert (unknown.code, unknown.name, unknown.retriable) == (999, "ERROR_999", False)


def test_error_codes_are_the_facts():
    rows = [line.split() for line in reference.ERROR_CODES.read_text("ascii").splitlines()]
    assert [(int(code), name, again == "retriable") for code, name, again in rows] == [
        (code.value, code.name, code.retriable) for code in ErrorCode
    ]


def test_text_of_ids():
    text = "H3KKO4NTRPaCWtEmm3vW7A"
    uuid = uuid_from_text(text)
    assert len(uuid) == 16
    assert uuid_to_text(uuid) == text
    assert uuid_to_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_to_text(b"\xff" * 16) == "_____________________w"
    for bad in (
        "",
        text[:-1],
        text + "A",
        text[:-1] + "+",
        text[:-2] + "/A",
        text[:-1] + "é",
        text[:-1] + "=",
    ):
        with pytest.raises(ValueError, match="is no id"):
            uuid_from_text(bad)
    with pytest.raises(ValueError, match="16 bytes"):
        uuid_to_text(b"short")


def test_new_ids():
    made = {random_uuid() for _ in range(500)}
    assert len(made) == 500
    for uuid in made:
        assert (uuid[6] >> 4, uuid[8] >> 6) == (4, 2)
        assert not uuid_to_text(uuid).startswith("-")
