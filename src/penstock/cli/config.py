"""``penstock config``: shows and changes settings of topics and brokers, and shows those of this client."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from penstock.cli import completion
from penstock.cli.doing import done, listed, quiet_option
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import (
    DEFAULT_BOOTSTRAP,
    bootstrap_option,
    client_settings,
    pairs,
    profile_in_force,
    profile_option,
    property_option,
    settings_in_force,
)
from penstock.cli.outcome import put, say
from penstock.cli.profiles import profiles_path, read_profiles
from penstock.cli.settings import (
    BOOTSTRAP,
    HIDDEN,
    ShownSetting,
    is_readable_by_others,
    meaning,
    shown,
    unread_variables,
)
from penstock.common.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.client import Admin
    from penstock.client.admin.configs import ConfigValue


@click.group("config", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Show settings; change those of topics and brokers.

    Without a subcommand, show the settings of this client, and where each comes from.

    \b
    Examples:
      penstock config
      penstock config show --profile staging
      penstock config profiles
      penstock config describe delays
      penstock config get delays retention.ms
      penstock config set delays retention.ms=60000 cleanup.policy=compact,delete
      penstock config set delays --delete retention.ms
      penstock config set --all-brokers log.retention.ms=3600000
    """

    if context.invoked_subcommand is None:
        context.invoke(show)


@command.command("show")
@click.option(
    "-b",
    "--bootstrap-server",
    "--broker",
    "bootstrap",
    metavar="HOST:PORT",
    help="As another command would be given it.",
)
@property_option()
@json_option()
def show(bootstrap: str | None = None, properties: tuple[str, ...] = (), as_json: bool = False) -> None:
    """Show the settings of this client, and where each comes from.

    Earlier sources override later ones: -b and -X; --config FILE; --profile NAME; the environment, as in
    PENSTOCK_BOOTSTRAP_SERVERS; the file that PENSTOCK_CONFIG names; the profile that PENSTOCK_PROFILE
    names, or else the default profile of config.toml. Passwords are not shown.
    """
    found = dict(settings_in_force(properties))
    if bootstrap is not None:
        found = {name: one for name, one in found.items() if meaning(name) != meaning(BOOTSTRAP)}
        found[BOOTSTRAP] = ShownSetting(bootstrap, "-b")
    elif all(meaning(name) != meaning(BOOTSTRAP) for name in found):
        found[BOOTSTRAP] = ShownSetting(DEFAULT_BOOTSTRAP, "default")
    rows = [
        {"name": name, "value": shown(name, found[name].value), "origin": found[name].origin}
        for name in sorted(found)
    ]
    put_rows("client setting", rows, as_json)
    path = profiles_path()
    has_secrets = any(
        shown(name, one.value) == HIDDEN and str(path) in one.origin for name, one in found.items()
    )
    if has_secrets and is_readable_by_others(path):
        say(f"{path} holds passwords, and other users of this machine can read it: chmod 600 {path}")
    for line in unread_variables(os.environ):
        say(line)


@command.command("profiles", short_help="Profiles in config.toml, and which is used.")
@profile_option()
@json_option()
def list_profiles(as_json: bool) -> None:
    """List the profiles in ~/.config/penstock/config.toml, and which of them is used."""
    profiles = read_profiles(profiles_path())
    used = profile_in_force() or profiles.default
    rows = [
        {
            "profile": name,
            "is_used": name == used,
            "bootstrap_servers": next(
                (value for key, value in settings.items() if meaning(key) == meaning(BOOTSTRAP)), None
            ),
        }
        for name, settings in sorted(profiles.sections.items())
    ]
    if not rows and not as_json:
        put(f"there are no profiles; {profiles.path} may have them, as sections like [local]")
        return
    put_rows("profile", rows, as_json)


_topic = click.argument("topic", required=False, shell_complete=completion.topics)
_broker = click.option(
    "--node", "broker", type=click.IntRange(0, 2**31 - 1), help="Settings of the broker with this number."
)


def _topic_then_names(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    given: tuple[str, ...] = context.params.get(param.name or "") or ()
    broker: int | None = context.params.get("broker")
    if broker is None and not given:
        return completion.topics(context, param, incomplete)
    topic = given[0] if broker is None else None
    return completion.ask(context, incomplete, lambda admin: admin.describe_config(topic, broker=broker))


def _where(topic: str | None, broker: int | None) -> None:
    if (topic is None) == (broker is None):
        raise click.UsageError("name a topic, or a broker with --node")


@command.command("describe")
@bootstrap_option()
@property_option()
@_topic
@_broker
@click.option("--all", "show_all", is_flag=True, help="Defaults, too.")
@json_option()
def describe(
    bootstrap: str,
    properties: tuple[str, ...],
    topic: str | None,
    broker: int | None,
    show_all: bool,
    as_json: bool,
) -> None:
    """Print settings of TOPIC or a broker as lines NAME=VALUE."""
    _where(topic, broker)
    settings = _describe(bootstrap, properties, topic, broker)
    chosen = [name for name in sorted(settings) if show_all or not settings[name].is_default]
    if as_json:
        put_rows("setting", [_row(topic, broker, name, settings[name]) for name in chosen], as_json)
        return
    for name in chosen:
        put(f"{name}={_shown(settings[name])}")
    if not chosen:
        name = topic or f"broker {broker}"
        say(f"{name} has no settings of its own; --all shows the defaults that hold for it")


def _row(topic: str | None, broker: int | None, name: str, setting: ConfigValue) -> dict[str, object]:
    return {
        "topic": topic,
        "broker": broker,
        "name": name,
        "value": None if setting.is_sensitive else setting.value,
        "is_default": setting.is_default,
        "is_read_only": setting.is_read_only,
        "is_sensitive": setting.is_sensitive,
    }


@command.command("get")
@bootstrap_option()
@property_option()
@click.argument("words", metavar="[TOPIC] NAME", nargs=-1, required=True, shell_complete=_topic_then_names)
@_broker
def get(bootstrap: str, properties: tuple[str, ...], words: tuple[str, ...], broker: int | None) -> None:
    """Print the value in force of a setting of TOPIC or of a broker."""
    if len(words) != (2 if broker is None else 1):
        raise click.UsageError("name a topic and a setting, or --node and a setting")
    name = words[-1]
    settings = _describe(bootstrap, properties, words[0] if broker is None else None, broker)
    if name not in settings:
        raise click.UsageError(f"there is no setting {name}{did_you_mean(name, settings)}")
    put(_shown(settings[name]))


@command.command("set", short_help="Change settings of TOPIC, of a broker or of all brokers.")
@bootstrap_option()
@property_option()
@click.argument("words", metavar="[TOPIC] NAME=VALUE...", nargs=-1, shell_complete=_topic_then_names)
@_broker
@click.option("--all-brokers", is_flag=True, help="What every broker takes unless it has a value of its own.")
@click.option("--delete", metavar="NAME", multiple=True, help="Back to the default; may be repeated.")
@click.option(
    "--append", metavar="NAME=ITEM", multiple=True, help="Add to a list, e.g. cleanup.policy=compact."
)
@click.option("--subtract", metavar="NAME=ITEM", multiple=True, help="Take from a list.")
@click.option("--dry-run", is_flag=True, help="Only check what would be set.")
@quiet_option()
def set_values(
    bootstrap: str,
    properties: tuple[str, ...],
    words: tuple[str, ...],
    broker: int | None,
    all_brokers: bool,
    delete: tuple[str, ...],
    append: tuple[str, ...],
    subtract: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Change settings of TOPIC, of a broker or of all brokers. If one change is invalid, none is made."""
    of_topic = broker is None and not all_brokers
    if of_topic and (not words or "=" in words[0]):
        raise click.UsageError("name a topic first, or use --node or --all-brokers")
    topic, values = (words[0], words[1:]) if of_topic else (None, words)
    if not (values or delete or append or subtract):
        raise click.UsageError("nothing to change; write NAME=VALUE, or use --delete NAME")
    present = pairs(values, "a setting")
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        if not of_topic:
            _warn_of_unknown(admin, broker, present)
        admin.alter_config(
            topic,
            broker=broker,
            all_brokers=all_brokers,
            set=present,
            delete=delete,
            append=pairs(append, "--append"),
            subtract=pairs(subtract, "--subtract"),
            validate_only=dry_run,
        )
    whose = f"topic {topic}" if of_topic else "all brokers" if all_brokers else f"broker {broker}"
    names = listed([*present, *delete, *pairs(append, "--append"), *pairs(subtract, "--subtract")])
    done(f"{whose}: {names} would be changed" if dry_run else f"{whose}: changed {names}")


def _warn_of_unknown(admin: Admin, broker: int | None, names: Iterable[str]) -> None:
    """Warn about settings that a broker does not define: it would store them, but they have no effect."""
    node = admin.describe_cluster().nodes[0].node_id if broker is None else broker
    known = admin.describe_config(broker=node)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            say(f"broker {node} has no setting {name}, and would keep it without effect{hint}")


def _describe(
    bootstrap: str, properties: tuple[str, ...], topic: str | None, broker: int | None
) -> dict[str, ConfigValue]:
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        return admin.describe_config(topic, broker=broker)


def _shown(setting: ConfigValue) -> str:
    return "(hidden)" if setting.is_sensitive else setting.value or ""
