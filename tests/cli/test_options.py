"""Tests of the syntax of option values, and of the two parsers for the options of `penstock broker`."""

from __future__ import annotations

import io
import random

import pytest

from for_each import for_each
from penstock.broker import command_line
from penstock.cli import broker_command
from penstock.cli.options import delimiter, pairs, unescape
from penstock.cli.produce import split
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\n", b"\n"),
        (r"a\tb\r\0", b"a\tb\r\0"),
        (r"\x00\xfF", b"\x00\xff"),
        (r"\\n", b"\\n"),
        ("é", b"\xc3\xa9"),
        ("", b""),
    ],
)
def test_escapes(text: str, expected: bytes) -> None:
    assert unescape(text) == expected


@pytest.mark.parametrize("text", ["\\", r"\x1", r"\d", r"a\xzz"])
def test_what_is_no_escape_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no escape"):
        unescape(text)


def test_a_delimiter_is_not_empty() -> None:
    assert delimiter("::", "-K") == b"::"
    with pytest.raises(ConfigError, match="-K takes"):
        delimiter("", "-K")


def test_pairs() -> None:
    assert pairs(["a=b", "c=", "d=e=f", "a=z"], "-X") == {"a": "z", "c": "", "d": "e=f"}
    for word in ("a", "=b", ""):
        with pytest.raises(ConfigError, match="-X takes NAME=VALUE"):
            pairs([word], "-X")


def test_splitting_does_not_depend_on_how_bytes_arrive() -> None:
    dice = random.Random(3)
    for separator in (b"\n", b"::"):
        stream = (
            separator.join(bytes(dice.choices(b"ab:\nc", k=dice.randrange(9))) for _ in range(200)) + b"end"
        )
        expected = stream.split(separator)
        for size in (1, 2, 3, 7, 1000):
            chunks = iter([stream[i : i + size] for i in range(0, len(stream), size)] + [b""])
            source = io.BytesIO()
            source.read1 = lambda _, chunks=chunks: next(chunks)  # type: ignore[method-assign]
            assert list(split(source, separator)) == expected


def test_what_follows_the_last_delimiter_is_a_message_unless_it_is_nothing() -> None:
    assert list(split(io.BytesIO(b"a\n\nb\n"), b"\n")) == [b"a", b"", b"b"]
    assert list(split(io.BytesIO(b""), b"\n")) == []


PLAIN = [
    [],
    ["--port", "0"],
    ["--port=9093", "--host", "0.0.0.0"],
    ["-d", "data", "-o", "num.partitions=6", "--config", "a.b=c=d", "--override=x=y"],
    ["--data-dir=here", "--port", "65535"],
    ["--for-tests", "--brokers", "3", "-o", "num.partitions=6"],
]

NOT_PLAIN = [
    ["--help"],
    ["-h"],
    ["--port"],
    ["--port", "65536"],
    ["--port", "many"],
    ["--port", "-1"],
    ["--data-dir="],
    ["--nonsense", "1"],
    ["extra"],
    ["-o", "nothing"],
    ["-o=a=b"],
    ["--config", "=b"],
    ["--for-tests=yes"],
]


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_both_readers_of_broker_options_agree(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[command_line.CommandLine] = []
    monkeypatch.setattr(broker_command, "run", lambda settings: seen.append(settings) or 0)
    broker_command.command.main(args=words, standalone_mode=False)
    (clicks,) = seen
    plain = command_line.read_plain(words)
    assert plain is not None
    assert plain == clicks


@for_each(NOT_PLAIN)
def test_what_needs_words_is_left_to_click(words: list[str]) -> None:
    assert command_line.read_plain(words) is None


def test_the_table_makes_every_option_of_the_command() -> None:
    known = {opt for param in broker_command.command.params for opt in param.opts}
    assert known == {spelling for option in command_line.OPTIONS for spelling in option.spellings}


@for_each(command_line.OPTIONS)
def test_the_usage_names_every_option(option: command_line.Option) -> None:
    assert f"[{f'{option.spellings[-1]} {option.metavar}'.rstrip()}]" in command_line.usage("penstock")
