"""The click side of the command line: the tree of commands, whose modules are imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import ExitStack

import click

from penstock.cli import completion, waiting
from penstock.cli.interrupts import be_interruptible
from penstock.cli.options import is_text, profile_option
from penstock.cli.outcome import INTERRUPTED, WRONG_USE, say
from penstock.common.habits.table import advice
from penstock.common.suggestions import nearest
from penstock.errors import ConfigError, EncodeError

NOUNS = {
    "broker": "penstock.cli.broker_command",
    "directory": "penstock.cli.directory",
    "topic": "penstock.cli.topic",
    "offsets": "penstock.cli.offsets",
    "config": "penstock.cli.config",
    "group": "penstock.cli.group",
    "share": "penstock.cli.share",
    "transaction": "penstock.cli.transaction",
    "cluster": "penstock.cli.cluster",
    "logdir": "penstock.cli.logdir",
    "acl": "penstock.cli.acl",
    "user": "penstock.cli.user",
    "quota": "penstock.cli.quota",
    "metrics": "penstock.cli.client_metrics",
    "produce": "penstock.cli.produce",
    "consume": "penstock.cli.consume",
    "sql": "penstock.cli.sql",
    "event": "penstock.cli.event",
    "mirror": "penstock.cli.mirror",
    "land": "penstock.cli.land",
    "gateway": "penstock.cli.gateway",
    "spark": "penstock.cli.spark",
    "top": "penstock.cli.top",
    "perf": "penstock.cli.perf",
    "wire": "penstock.cli.wire",
    "schema": "penstock.cli.schema",
    "registry": "penstock.cli.registry",
    "follow": "penstock.cli.follow",
    "demo": "penstock.cli.demo",
    "completion": "penstock.cli.completion",
}

PLAIN_WORDS = {
    "is not a valid integer range": "is not a whole number",
    "is not a valid integer": "is not a whole number",
    "is not a valid float range": "is not a number",
    "is not a valid float": "is not a number",
}
"""A dict from phrases in click's error messages to the plainer phrases that replace them."""


class Nouns(click.Group):
    """A click command group whose commands, such as ``topic``, are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(NOUNS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in NOUNS:
            return None
        command: click.Command = importlib.import_module(NOUNS[cmd_name]).command
        return command


@click.command(
    cls=Nouns,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Every command explains itself: penstock consume --help",
)
@click.version_option(None, "-V", "--version", package_name="penstock", prog_name="penstock")
@profile_option()
def penstock() -> None:
    """Kafka for Python people: a broker, a client, and a pipeline on Spark.

    \b
    Start a broker, fill a topic, read it back:
      penstock broker --data-dir data &
      printf 'one\\ntwo\\n' | penstock produce -t numbers
      penstock consume -t numbers -e

    \b
    See all of it work on real data:
      penstock demo
    """


def run(words: Sequence[str], *, is_process: bool = False) -> int:
    """Run the command line `words`. For a mistake in it, print one line to stderr and return exit code 2.

    `is_process` is True if the process ends with the command.
    """
    if (code := completion.complete(penstock)) is not None:
        return code
    # Not through click's own main: it would end quietly on a closed pipe and talk on Ctrl-C, each with a
    # code of its own, where `penstock.cli.outcome` has one way for every command.
    try:
        with ExitStack() as stack:
            # A broker has its own way of ending, and waits for nothing.
            if is_process and (words[:1] != ["broker"] or words[1:2] == ["list"]):
                be_interruptible()
                stack.enter_context(waiting.shown())
            context = stack.enter_context(penstock.make_context("penstock", list(words)))
            code = penstock.invoke(context)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else error.format_message())
        return WRONG_USE
    except click.ClickException as error:
        say(_with_advice(error, words))
        return WRONG_USE
    except click.Abort:
        return INTERRUPTED
    except (UnicodeEncodeError, EncodeError):
        # Names are UTF-8 for a broker; what is sent (-k, -H) or a file's name may be any bytes.
        odd = next((word for word in words if not is_text(word)), None)
        if odd is None:
            raise
        raise ConfigError(f"{odd!r} is not UTF-8 text, which names and settings have to be") from None
    return code if isinstance(code, int) else 0


def _with_advice(error: click.ClickException, words: Sequence[str]) -> str:
    """Return an error's message in one line, with the correct option or command if known, and ``--help``."""
    message = " ".join(error.format_message().split()).rstrip(".")
    for theirs, plain in PLAIN_WORDS.items():
        message = message.replace(theirs, plain)
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else _command_path(words)
    typed = error.option_name if isinstance(error, click.NoSuchOption) else ""
    if message.startswith("No such command"):
        typed = message.split("'")[1]
    said = (advice(path, typed) if " " in path else None) or advice("commands", typed)
    if said is None and context and isinstance(context.command, click.Group):
        said = advice("groups of commands", typed)
    if said is not None:
        kind = "option" if typed.startswith("-") else "command"
        lead = "type " if said.startswith(("penstock", "-", "NAME")) else ""
        return f"there is no {kind} {typed}: {lead}{said}; see {path} --help"
    if typed and context and isinstance(context.command, Nouns) and not typed.startswith("-"):
        # click looks among the commands that are there, and these are imported when they are asked for.
        near = nearest(typed, NOUNS)
        message += f". Did you mean '{near[0]}'?" if near else ""
    return f"{message}{' See' if message.endswith('?') else '; see'} {path} --help"


def _command_path(words: Sequence[str]) -> str:
    """Return the names of the command in the command line `words`, for errors without a click context.

    click gives no context if an option lacks its value.
    """
    path: list[str] = []
    command: click.Command = penstock
    for word in words:
        found = (
            command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        )
        if found is None:
            break
        command = found
        path.append(word)
    return " ".join(["penstock", *path])
