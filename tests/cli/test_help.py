"""Tests of the help texts of all commands."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from for_each import for_each
from penstock.cli.commands import penstock


def commands(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*words, name))


@for_each([(words, columns) for words in commands(penstock, ()) for columns in (80, 120)])
def test_help_is_laid_out(words: tuple[str, ...], columns: int) -> None:
    """Layout characters are not printed, each example has its own line, and no line is cut off."""
    done = CliRunner().invoke(penstock, [*words, "--help"], terminal_width=columns)
    assert done.exit_code == 0
    assert "\b" not in done.output
    assert "\\b" not in done.output
    assert "..." not in done.output.partition("\nCommands:\n")[2], "a summary that is cut off"
    for line in done.output.splitlines():
        assert line.count("penstock " + " ".join(words) + " -") <= 1, line
        assert len(line) <= columns, line
        assert line == line.rstrip(), line


@for_each([(words,) for words in commands(penstock, ())])
def test_every_option_says_what_it_is_for(words: tuple[str, ...]) -> None:
    command: click.Command = penstock
    for word in words:
        assert isinstance(command, click.Group)
        inner = command.get_command(click.Context(command), word)
        assert inner is not None
        command = inner
    options = [one for one in command.params if isinstance(one, click.Option)]
    assert [one.opts for one in options if not one.help and not one.hidden] == []


@pytest.mark.parametrize("words", [["-V"], ["--version"]])
def test_the_version_is_told_as_kcat_tells_it(words: list[str]) -> None:
    done = CliRunner().invoke(penstock, words)
    assert done.exit_code == 0
    assert done.output.startswith("penstock, version ")
