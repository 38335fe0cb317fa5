"""Generate the documentation page of all commands from the command line's own definitions."""

from __future__ import annotations

import inspect

import click

from option_pages import cell, table
from penstock.cli.commands import penstock


def command_pages() -> dict[str, str]:
    """Return a dict from the page's file name to its text."""
    root = click.Context(penstock, info_name="penstock", max_content_width=100)
    text = (
        "# Commands\n\nThese are the texts of `--help`. For exit codes and habits see "
        "[the command line](../how-to/command-line.md).\n"
    )
    return {"commands.md": text + described(penstock, root, 2)}


def described(command: click.Command, context: click.Context, level: int) -> str:
    """Return the Markdown for a command with its parameters, followed by its subcommands."""
    usage = " ".join(command.collect_usage_pieces(context))
    text = (
        f"\n{'#' * min(level, 4)} {context.command_path}\n\n```text\n{context.command_path} {usage}\n```\n\n"
    )
    text += help_text(command) + "\n"
    rows = [
        (f"`{names}`", meaning)
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context)) is not None
        for names, meaning in [record]
        if "--help" not in names
    ]
    if rows:
        text += "\n" + table(("option", "meaning"), rows)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                text += described(below, click.Context(below, info_name=name, parent=context), level + 1)
    return text


def help_text(command: click.Command) -> str:
    """Return a command's help as Markdown.

    A paragraph that click prints without refilling becomes a text block.
    """
    parts = []
    for paragraph in inspect.cleandoc(command.help or command.short_help or "").split("\n\n"):
        lines = paragraph.split("\n")
        if lines[0].strip() == "\b":
            parts.append("```text\n" + "\n".join(lines[1:]) + "\n```")
        else:
            parts.append(cell(paragraph))
    return "\n\n".join(parts) + "\n"
