"""Tests that control characters from other programs are escaped in errors, logs and reprs."""

from __future__ import annotations

import io
import logging
import pickle
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.cloudevents import InvalidEvent, InvalidEventError
from penstock.common.logs import PrintableFormatter, logger_named
from penstock.errors import KafkaError, NetworkError, PenstockError, StorageError
from penstock.model import TopicPartition
from penstock.printable import printable, printable_bytes

HOSTILE = {
    "\x1b[2J\x1b]0;title\x07": r"\x1b[2J\x1b]0;title\x07",
    "a\nb\r\tc\0": r"a\nb\r\tc\x00",
    "\x7f\x80\x9b31m": r"\x7f\x80\x9b31m",
    "\u202egpj.exe\u2066": r"\u202egpj.exe\u2066",
    "\u2028\u2029\x85": r"\u2028\u2029\x85",
    "\u200b\u200f\ufeff": r"\u200b\u200f\ufeff",
    "\udc80\ud800": r"\udc80\ud800",
    "\U000e0041": r"\U000e0041",
    "[red]bold[/red] {x} %s \\n": "[red]bold[/red] {x} %s \\n",
    "ümläut 漢字 🙂": "ümläut 漢字 🙂",
}


@for_each(HOSTILE)
def test_what_is_not_printed_is_spelled_out(text: str) -> None:
    assert printable(text) == HOSTILE[text]
    assert printable(printable(text)) == printable(text)


@given(st.text(st.characters()))
def test_whatever_comes_is_printable_afterwards(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(text, "\n\t").replace("\n", "").replace("\t", "").isprintable()
    if text.isprintable():
        assert printable(text) is text


@given(st.binary())
def test_bytes_likewise(data: bytes) -> None:
    assert printable_bytes(data).decode().isprintable()


def test_bytes_that_are_no_text() -> None:
    assert printable_bytes(b"a\xff\x1b\tb", "\t") == b"a\\xff\\x1b\tb"


@for_each(HOSTILE)
def test_errors_and_reprs_are_printable(text: str) -> None:
    errors: list[BaseException] = [
        PenstockError(text),
        NetworkError(text),
        StorageError(5, text, text),
        KafkaError(3, "UNKNOWN", text, detail=text),
        InvalidEventError("D1", text),
    ]
    for error in errors:
        assert str(error).isprintable()
        assert repr(error).isprintable()
    assert str(InvalidEvent("D1", text)).isprintable()
    assert str(TopicPartition(text, 0)).isprintable()
    assert errors[0].args == (text,)
    again = pickle.loads(pickle.dumps(errors[3]))
    assert (again.args, again.detail) == ((text,), text)


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


@for_each(HOSTILE)
def test_users_own_handlers_get_printable_lines(text: str) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logger_named("penstock.test_printable")
    logger.addHandler(handler)
    try:
        logger.warning("%s, %r and %s: %d, %.1f, %s", text, text, Named(text), 5, 1.5, None)
        logger.warning("%(name)s", {"name": text})
        logger.warning(f"{text.replace('%', '')}")
        logger.warning("%s", RuntimeError(text))
    finally:
        logger.removeHandler(handler)
    lines = stream.getvalue().removesuffix("\n").split("\n")
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)
    assert lines[0] == f"{printable(text)}, {printable(repr(text))} and {printable(text)}: 5, 1.5, None"


def test_the_command_lines_own_log_cannot_be_forged() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PrintableFormatter("%(levelname)s %(message)s"))
    logger = logging.getLogger("test_printable.elsewhere")
    logger.propagate = False
    logger.addHandler(handler)
    try:
        try:
            raise RuntimeError("first\nERROR forged \x1b[31m")
        except RuntimeError:
            logger.exception("a\nERROR forged %s", "\x1b[2J\u202e")
    finally:
        logger.removeHandler(handler)
    lines = stream.getvalue().removesuffix("\n").split("\n")
    assert lines[0] == r"ERROR a\nERROR forged \x1b[2J\u202e"
    assert all(line.isprintable() for line in lines)
    assert all(line.startswith("  ") for line in lines[1:])


def test_every_logger_makes_its_arguments_printable() -> None:
    package = Path(__file__).resolve().parent.parent / "src" / "penstock"
    allowed = {"common/logs.py", "broker/config/log_levels.py", "broker/process.py", "cli/consume.py"}
    allowed |= {"testing/plugin.py"}  # it gives the logger a handler, and logs nothing
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"\bgetLogger\(", path.read_text("utf-8"))
    }
    assert found <= allowed, "loggers come from penstock.common.logs.logger_named"


def test_the_command_line_prints_in_one_place() -> None:
    package = Path(__file__).resolve().parent.parent / "src" / "penstock" / "cli"
    found = {
        path.name
        for path in package.glob("*.py")
        if re.search(r"(?<![\w.])print\(|click\.(?:echo|secho)\(", path.read_text("utf-8"))
    }
    # The two others print help of their own, which holds no word of a peer.
    assert found == {"outcome.py", "commands.py", "completion.py"}
