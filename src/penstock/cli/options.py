"""Options that several commands share, and the small languages their values are written in."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

import click

from penstock.cli.client_config import completed, remember, remembered, without_passwords
from penstock.errors import ConfigError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


def bootstrap_option() -> Decorator:
    """``-b``, as kcat and the console tools spell it."""
    return click.option(
        "-b",
        "--bootstrap-server",
        "--broker",
        "bootstrap",
        metavar="HOST:PORT",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        help="Where the cluster is; several addresses separated by commas.",
    )


def property_option(*, has_config: bool = True) -> Decorator:
    """``-X name=value`` and ``--config FILE``: client settings under Kafka's own dotted names.

    `has_config`: False for a command whose ``--config`` means something else; there, it is ``-F`` only.
    """
    file_option = click.option(
        "-F",
        "--config-file",
        *(["--config"] if has_config else []),
        "config_file",
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=remember,
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

    def both(function: Callable[..., Any]) -> Callable[..., Any]:
        return file_option(property_option(function))

    return both


def client_settings(words: Iterable[str], *, may_ask: bool = True) -> dict[str, str]:
    """Settings of the client: of ``--config``, of ``-X`` over them, and secrets from where they are kept.

    `may_ask`: whether a password that is missing may be asked for on the terminal.

    Raises:
        ConfigError: as `pairs`, or a password stands on the command line.
    """
    return completed({**remembered(), **without_passwords(pairs(words, "-X"))}, may_ask=may_ask)


def pairs(values: Iterable[str], option: str) -> dict[str, str]:
    """`name=value` words as a mapping.

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
    """Whether the shell gave UTF-8. Other bytes become characters that cannot be encoded."""
    return not any("\ud800" <= character <= "\udfff" for character in word)


def unescape(text: str) -> bytes:
    r"""Bytes of `text`, in which ``\n``, ``\t``, ``\r``, ``\0``, ``\\`` and ``\xHH`` mean what they do in C.

    Raises:
        ConfigError: a backslash is followed by anything else.
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
    """The bytes that separate messages or keys; never empty.

    Raises:
        ConfigError: nothing is left of `text`.
    """
    separator = unescape(text)
    if not separator:
        raise ConfigError(f"{option} takes at least one character")
    return separator
