"""``penstock user``: manages users with passwords (SCRAM), and their quotas."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from penstock.cli.doing import done, listed, quiet_option
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import note, put
from penstock.cli.quota import parse_quotas
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.security.secrets import Secret

PASSWORD_VARIABLE = "PENSTOCK_NEW_PASSWORD"
"""The environment variable that may hold the password to set."""


@click.group("user")
def command() -> None:
    """List, add and remove users; set their passwords and quotas.

    A password comes from --password-file, from the environment variable PENSTOCK_NEW_PASSWORD, or from the
    keyboard; never from the command line, where other users of the machine could read it.

    \b
    Examples:
      penstock user list
      penstock user add ann
      penstock user password ann --password-file secret.txt
      penstock user quota ann producer_byte_rate=1000000
      penstock user remove ann
    """


@command.command("list")
@bootstrap_option()
@property_option()
@json_option()
def list_users(bootstrap: str, properties: tuple[str, ...], as_json: bool) -> None:
    """List users that have passwords, with mechanisms and iterations."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        users = sorted(admin.list_users().items())
    if as_json:
        rows = [
            {"user": name, "mechanism": mechanism, "iterations": iterations}
            for name, mechanisms in users
            for mechanism, iterations in mechanisms.items()
        ]
        put_rows("user", rows, as_json)
        return
    if not users:
        note("there are no users with passwords; penstock user add makes one")
    for name, mechanisms in users:
        put(f"{name}: " + ", ".join(f"{each} ({count})" for each, count in mechanisms.items()))


def _password_command(name: str, help_text: str, *, is_new: bool) -> None:
    @command.command(name, help=help_text)
    @bootstrap_option()
    @property_option()
    @click.option(
        "--mechanism",
        "mechanisms",
        multiple=True,
        type=click.Choice(["SCRAM-SHA-256", "SCRAM-SHA-512"]),
        help="For this mechanism only; both by default.",
    )
    @click.option("--password-file", type=click.Path(), help="A file whose text is the password.")
    @click.option(
        "--iterations",
        type=click.IntRange(4096, 16384),
        default=4096,
        show_default=True,
        help="Rounds of hashing (RFC 5802): more make a stolen hash dearer to try, and each login slower.",
    )
    @click.argument("user")
    @quiet_option()
    def set_password(
        bootstrap: str,
        properties: tuple[str, ...],
        mechanisms: tuple[str, ...],
        password_file: str | None,
        iterations: int,
        user: str,
    ) -> None:
        from penstock.client import Admin
        from penstock.client.admin.security import MECHANISMS

        with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
            is_known = user in admin.list_users()
            if is_new and is_known:
                raise ConfigError(f"user {user} exists; penstock user password gives a new password")
            if not is_new and not is_known:
                raise ConfigError(f"there is no user {user}; penstock user add makes one")
            password = _read_password(user, password_file)
            admin.set_password(user, password, mechanisms or tuple(MECHANISMS), iterations)
        done(f"added user {user}" if is_new else f"user {user} has a new password")


_password_command("add", "Add USER with a password.", is_new=True)
_password_command("password", "Give USER another password.", is_new=False)


def _read_password(user: str, path: str | None) -> Secret:
    """Return the password from a file, the environment, or the keyboard."""
    from penstock.security.secrets import Secret, secret_from_file

    if path is not None:
        password = secret_from_file(path)
    elif PASSWORD_VARIABLE in os.environ:
        password = Secret(os.environ[PASSWORD_VARIABLE])
    else:
        password = Secret(click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True))
    if not password:
        raise ConfigError("the password is empty")
    return password


@command.command("remove")
@bootstrap_option()
@property_option()
@click.argument("user")
@quiet_option()
def remove_user(bootstrap: str, properties: tuple[str, ...], user: str) -> None:
    """Remove USER. Connections that are already authenticated continue."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        admin.delete_user(user)
    done(f"removed user {user}")


@command.command("quota")
@bootstrap_option()
@property_option()
@click.argument("user")
@click.argument("quotas", metavar="NAME=VALUE...", nargs=-1, required=True)
@quiet_option()
def set_quotas(bootstrap: str, properties: tuple[str, ...], user: str, quotas: tuple[str, ...]) -> None:
    """Set quotas of USER; an empty VALUE removes one.

    Names are producer_byte_rate and consumer_byte_rate (bytes a second), and request_percentage.
    """
    wanted = parse_quotas(quotas)
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        admin.set_user_quotas(user, wanted)
    done(f"user {user}: changed {listed(list(wanted))}")
