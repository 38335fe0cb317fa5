"""Tests of typing options of kcat, Kafka's scripts or rpk: the error suggests an existing command."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from for_each import for_each
from penstock.cli import main
from penstock.cli.commands import NOUNS, penstock, run
from penstock.cli.formats import format_printer
from penstock.common.habits.table import table
from penstock.errors import ConfigError

SECTIONS = [name for name in table() if name.split()[0] == "penstock" and (" " in name)]


def command_at(path: str) -> click.Command:
    """Return the command that these words name.

    Raises:
        KeyError: there is none.
    """
    command: click.Command = penstock
    for word in path.split()[1:]:
        found = (
            command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        )
        if found is None:
            raise KeyError(path)
        command = found
    return command


def options_of(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


@for_each(SECTIONS)
def test_a_section_of_the_table_is_a_command_and_advises_against_nothing_that_it_has(section: str) -> None:
    command = command_at(section)
    assert options_of(command).isdisjoint(table()[section])
    if isinstance(command, click.Group):
        assert set(command.list_commands(click.Context(command))).isdisjoint(table()[section])


def test_what_the_table_says_to_type_exists() -> None:
    for section in [*SECTIONS, "commands", "groups of commands"]:
        for name, said in table()[section].items():
            for noun, verb in re.findall(r"penstock ([a-z]+)(?: ([a-z-]+))?", said):
                assert noun in NOUNS, (section, name, said)
                if isinstance(command_at(f"penstock {noun}"), click.Group) and verb[:1].isalpha():
                    command_at(f"penstock {noun} {verb}")
            lead = re.match(r"(--?[a-zA-Z-]+)", said)
            if lead and section != "commands":
                assert lead[1] in options_of(command_at(section)), (section, name, said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-L -b localhost:9092", "penstock topic list"),
        ("-C -t orders", "penstock consume -t TOPIC"),
        ("-P -t orders", "penstock produce -t TOPIC"),
        ("topic alter orders", "penstock config set TOPIC NAME=VALUE"),
        ("topic add-partitions orders", "penstock topic grow TOPIC"),
        ("topic create --topic orders", "penstock topic create TOPIC"),
        ("kafka-topics.sh --list", "penstock topic"),
        ("consume -t orders --from-beginning", "-o beginning"),
        ("consume -t orders --max-messages 3", "-c COUNT"),
        ("consume -t orders --grep ada", "| grep WORD"),
        ("consume -t orders --timeout-ms 5", "-e"),
        ("group seek billing --to start", "penstock group reset"),
        ("group describe --group billing", "without an option"),
        ("config alter --add-config a=b", "penstock config set"),
        ("cluster info", "penstock cluster describe"),
        ("broker --log-dirs data", "--data-dir"),
    ],
)
def test_a_habit_says_what_to_type(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(words)) == 2
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1


def test_a_misspelt_noun_is_suggested_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topc", "list"]) == 2
    assert "Did you mean 'topic'? See penstock --help" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("metrics list -b localhost:9192", "No such option '-b'"),
        ("topic -b localhost:9092 list", "it goes behind the command"),
        ("quota set --user ada producer_byte_rates=1", "did you mean producer_byte_rate?"),
        ("user quota ada speed=1", "there are producer_byte_rate, consumer_byte_rate"),
        ("topic rename a b", "Kafka renames no topics"),
        ("broker data", "penstock broker --data-dir data"),
        ("perf produce --num-records 5", "-n COUNT"),
        ("topic list -b 9092", "write localhost:9092"),
    ],
)
def test_what_a_newcomer_types_ends_in_what_to_type(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(words)) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("word", ["json", "xml", "avro"])
def test_the_name_of_a_format_that_is_none_is_not_printed_for_each_message(word: str) -> None:
    with pytest.raises(ConfigError, match="-J for JSON lines"):
        format_printer(word)
    for literal in (".", "%s", r"\n", "a b"):
        format_printer(literal)
