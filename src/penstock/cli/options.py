"""Options that several commands share, and the syntax of their values."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

import click

from penstock.cli.client_config import completed, without_passwords
from penstock.cli.profiles import PROFILE_VARIABLE, profiles_path, read_profiles
from penstock.cli.settings import BOOTSTRAP, ShownSetting, gathered, meaning
from penstock.errors import ConfigError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"

REGISTRY_URL = "http://localhost:8081"

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


def registry_option(*names: str) -> Decorator:
    """Return the option for the URL of a schema registry, under the given names."""
    return click.option(
        *names,
        metavar="URL",
        envvar="SCHEMA_REGISTRY_URL",
        default=REGISTRY_URL,
        show_default=True,
        help="The schema registry; SCHEMA_REGISTRY_URL says it as well.",
    )


def bootstrap_option() -> Decorator:
    """Return the option ``-b``, with the names that kcat and Kafka's console tools use."""
    return click.option(
        "-b",
        "--bootstrap-server",
        "--broker",
        "bootstrap",
        metavar="HOST:PORT",
        default=_known_bootstrap,
        show_default=f"as configured, or {DEFAULT_BOOTSTRAP}",
        help="Where the cluster is; several addresses separated by commas.",
    )


CONFIG_PATH, PROFILE = "penstock.config", "penstock.profile"
"""The keys under which click's context stores the values of ``--config`` and ``--profile``."""


def _remember(key: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    """Return a click callback that stores the value of an option for `settings_in_force`."""

    def keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            context.meta[key] = value

    return keep


def _profile_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the profiles whose names begin with `incomplete`, or none if the file is malformed."""
    try:
        names = read_profiles(profiles_path()).sections
    except ConfigError:
        return []
    return sorted(name for name in names if name.startswith(incomplete) and name.isprintable())


def profile_option() -> Decorator:
    """Return the option ``--profile NAME``, which selects a section of the user's settings file."""
    return click.option(
        "--profile",
        metavar="NAME",
        is_eager=True,
        expose_value=False,
        callback=_remember(PROFILE),
        shell_complete=_profile_names,
        help="A section of ~/.config/penstock/config.toml with settings of the client.",
    )


def property_option(*, has_config: bool = True) -> Decorator:
    """Return the options ``-X name=value``, ``--config FILE`` and ``--profile NAME`` for client settings.

    `has_config`: False for a command whose ``--config`` means something else; the file is then given by
    ``-F``.
    """
    file_option = click.option(
        "-F",
        "--config-file",
        *(["--config"] if has_config else []),
        "config_file",
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=_remember(CONFIG_PATH),
        type=click.Path(),
        help="Client settings: client.properties, or a file of librdkafka or kcat.",
    )
    property_option = click.option(
        "-X",
        "properties",
        metavar="NAME=VALUE",
        multiple=True,
        help="A client setting under its dotted name, as in -X client.id=me. May be repeated.",
    )

    def all_three(function: Callable[..., Any]) -> Callable[..., Any]:
        return profile_option()(file_option(property_option(function)))

    return all_three


def settings_in_force(words: Iterable[str] = ()) -> dict[str, ShownSetting]:
    """Return the settings of the current command, each with its origin; `words` are those of ``-X``.

    Raises:
        ConfigError: a word is malformed or has a password, or a file or profile does not exist.
    """
    context = click.get_current_context(silent=True)
    meta = {} if context is None else context.meta
    typed = without_passwords(pairs(words, "-X"))
    return gathered(meta.get(CONFIG_PATH), meta.get(PROFILE), typed=typed)


def profile_in_force() -> str | None:
    """Return the profile that ``--profile`` or PENSTOCK_PROFILE names, or None if neither does."""
    context = click.get_current_context(silent=True)
    typed = None if context is None else context.meta.get(PROFILE)
    return typed or os.environ.get(PROFILE_VARIABLE) or None


def _known_bootstrap() -> str:
    """Return the bootstrap servers from a file, a profile or the environment, or else the local default."""
    try:
        found = settings_in_force()
    except ConfigError as error:
        raise click.UsageError(str(error), click.get_current_context(silent=True)) from None
    return next(
        (setting.value for name, setting in found.items() if meaning(name) == meaning(BOOTSTRAP)),
        DEFAULT_BOOTSTRAP,
    )


def client_settings(words: Iterable[str], *, may_ask: bool = True) -> dict[str, str]:
    """Return the settings of the client except its addresses; `penstock.cli.settings` lists their sources.

    With `may_ask`, a missing password is requested on the terminal.

    Raises:
        ConfigError: the settings are invalid, as in `settings_in_force`.
    """
    words = tuple(words)
    typed = pairs(words, "-X")
    found = {
        name: setting.value
        for name, setting in settings_in_force(words).items()
        if name in typed or meaning(name) != meaning(BOOTSTRAP)
    }
    return completed(found, may_ask=may_ask)


def pairs(values: Iterable[str], option: str) -> dict[str, str]:
    """Parse command-line words ``name=value`` into a dictionary.

    Raises:
        ConfigError: a word has no name or no equals sign, or is not UTF-8 text.
    """
    found = {}
    for word in values:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise ConfigError(f"{option} takes NAME=VALUE, not {word!r}")
        if not is_text(word):
            raise ConfigError(f"{word!r} is not UTF-8 text, which names and settings have to be")
        found[name] = value
    return found


def is_text(word: str) -> bool:
    """Return True if a command-line word was UTF-8; Python decodes other bytes as surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in word)


def unescape(text: str) -> bytes:
    r"""Return the bytes of `text`, replacing the escapes ``\n``, ``\t``, ``\r``, ``\0``, ``\\`` and ``\xHH``.

    Raises:
        ConfigError: a backslash is followed by another character.
    """
    pieces = re.split(r"\\(x[0-9a-fA-F]{2}|.|$)", text, flags=re.DOTALL)
    result = bytearray(os.fsencode(pieces[0]))
    for escape, plain in zip(pieces[1::2], pieces[2::2], strict=True):
        if escape in _ESCAPES:
            result += _ESCAPES[escape]
        elif len(escape) == 3:
            result.append(int(escape[1:], 16))
        else:
            raise ConfigError(f"{text!r}: \\{escape} is no escape; use \\n \\r \\t \\0 \\\\ or \\xHH")
        result += os.fsencode(plain)
    return bytes(result)


def delimiter(text: str, option: str) -> bytes:
    """Return the bytes that separate messages, or keys from values; never empty.

    Raises:
        ConfigError: `text` is empty.
    """
    separator = unescape(text)
    if not separator:
        raise ConfigError(f"{option} takes at least one character")
    return separator
