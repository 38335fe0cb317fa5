"""Tests of the formats in which records are printed: kcat's format string and kcat's JSON."""

from __future__ import annotations

import json

import pytest

from for_each import for_each
from penstock.cli.envelopes import json_printer
from penstock.cli.formats import format_printer
from penstock.errors import ConfigError
from penstock.model import Record, TimestampType

RECORD = Record(
    "delays", 3, 42, 1357034400000, TimestampType.CREATE_TIME, b"EWR", b"late", [("a", b"1"), ("b", None)]
)
NULLS = Record("delays", 0, 0, 7, TimestampType.LOG_APPEND_TIME, None, None, [])

TABLE = [
    ("%s", b"late", b""),
    ("%S", b"4", b"-1"),
    ("%R", b"\0\0\0\x04", b"\xff\xff\xff\xff"),
    ("%k", b"EWR", b""),
    ("%K", b"3", b"-1"),
    ("%t/%p/%o", b"delays/3/42", b"delays/0/0"),
    ("%T", b"1357034400000", b"7"),
    ("%h", b"a=1,b=", b""),
    (r"100%% %s\n", b"100% late\n", b"100% \n"),
    (r"\x41\t%k\\", b"A\tEWR\\", b"A\t\\"),
    ("", b"", b""),
]


@for_each(TABLE)
def test_tokens(layout: str, full: bytes, empty: bytes) -> None:
    printer = format_printer(layout)
    assert printer(RECORD) == full
    assert printer(NULLS) == empty


def test_nulls_can_be_shown() -> None:
    assert format_printer("%k=%s", b"NULL")(NULLS) == b"NULL=NULL"


@pytest.mark.parametrize("layout", ["%x", "100%", r"\q", "tail\\"])
def test_what_is_no_token_is_refused(layout: str) -> None:
    with pytest.raises(ConfigError, match=r"is no (token|escape)"):
        format_printer(layout)


def test_json_has_the_names_of_kcat() -> None:
    line = json_printer(RECORD)
    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "topic": "delays",
        "partition": 3,
        "offset": 42,
        "tstype": "create",
        "ts": 1357034400000,
        "key": "EWR",
        "payload": "late",
        "headers": ["a", "1", "b", None],
    }
    assert json.loads(json_printer(NULLS))["payload"] is None
    assert "headers" not in json.loads(json_printer(NULLS))
