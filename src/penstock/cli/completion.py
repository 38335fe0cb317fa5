"""``penstock completion``: TAB completion for bash, zsh and fish. Topics and groups come from the cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from penstock.cli.definition_names import known_names
from penstock.cli.options import DEFAULT_BOOTSTRAP, client_settings
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.client import Admin

VARIABLE = "_PENSTOCK_COMPLETE"
"""The environment variable by which the shell requests completions when TAB is pressed."""

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Print what makes the TAB key work.")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print a script that makes SHELL complete commands, options, topics and groups.

    \b
    Examples:
      eval "$(penstock completion bash)"           # in ~/.bashrc
      eval "$(penstock completion zsh)"            # in ~/.zshrc
      penstock completion fish > ~/.config/fish/completions/penstock.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    # Not `source()` of the bash one: it would start bash, to complain if that is older than 4.4.
    plain = kind(command, {}, "penstock", VARIABLE)
    print(plain.source_template % plain.source_vars())


def complete(root: click.Command) -> int | None:
    """Answer the shell's completion request and return the exit code, or None if there is no request."""
    asked = os.environ.get(VARIABLE)
    return None if not asked else shell_complete(root, {}, "penstock", VARIABLE, asked)


def topics(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return completions of a topic name; internal topics only if the typed word begins with ``_``."""
    internal = incomplete.startswith("_")
    return ask(context, incomplete, lambda admin: admin.list_topics(include_internal=internal))


def transactional_ids(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return completions of a transactional id, from the coordinators of the cluster."""
    return ask(context, incomplete, lambda admin: [one.transactional_id for one in admin.list_transactions()])


def groups(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return completions of the name of a consumer group."""
    return ask(context, incomplete, lambda admin: [group.group_id for group in admin.list_groups()])


def share_groups(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return completions of the name of a share group."""
    return ask(context, incomplete, lambda admin: [each.group_id for each in admin.list_share_groups()])


def definitions(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the API and message names that begin with the typed word, or complete files if none does."""
    found = _beginning(incomplete, known_names())
    return [CompletionItem(name) for name in found] or [CompletionItem(incomplete, type="file")]


def ask(context: click.Context, incomplete: str, find: Callable[[Admin], Iterable[str]]) -> list[str]:
    """Return the names that `find` requests from the cluster and that begin with the typed word.

    If the cluster does not answer, no names are returned.
    """
    from penstock.client import Admin

    given = context.params
    with contextlib.suppress(PenstockError, OSError):
        config = client_settings(cast("tuple[str, ...]", given.get("properties") or ()), may_ask=False)
        with Admin(given.get("bootstrap") or DEFAULT_BOOTSTRAP, config=config) as admin:
            return _beginning(incomplete, find(admin))
    return []


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    # The shell takes one word a line: a name that steers a terminal or ends a line cannot be offered.
    return sorted(name for name in names if name.startswith(incomplete) and name.isprintable())
