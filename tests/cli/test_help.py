"""What every command says about itself."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from penstock.cli.commands import penstock


def commands(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*words, name))


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("words", list(commands(penstock, ())), ids=" ".join)
def test_help_is_laid_out(words: tuple[str, ...], columns: int) -> None:
    """Marks of layout are followed, not printed, examples stay one a line, and nothing is cut off."""
    done = CliRunner().invoke(penstock, [*words, "--help"], terminal_width=columns)
    assert done.exit_code == 0
    assert "\b" not in done.output
    assert "\\b" not in done.output
    assert "..." not in done.output.partition("\nCommands:\n")[2], "a summary that is cut off"
    for line in done.output.splitlines():
        assert line.count("penstock " + " ".join(words) + " -") <= 1, line
        assert len(line) <= columns, line
        assert line == line.rstrip(), line
