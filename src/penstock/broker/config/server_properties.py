"""`server.properties`: reading Java's format, and warnings about settings without effect.

Each unknown setting causes a warning with the most similar known name. One more warning names all settings of
Kafka that have no effect in a single process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.kafka_keys import is_known
from penstock.broker.config.security_settings import KEYS
from penstock.common.properties_files import parse_properties
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError

FILE_CHARACTERS_MAX = 1 << 20
"""The maximum number of characters of a settings file; usual files are a hundred times smaller."""


SUGGESTED_MAX = 20
"""The most unknown settings for which a similar name is searched, which takes some milliseconds per name."""


class ReadProperties(NamedTuple):
    """The result of `read_properties`: settings of a file, and the position of each (``PATH:LINE``)."""

    settings: dict[str, str]
    places: dict[str, str]


def read_properties(path: str) -> ReadProperties:
    """Read a file of settings. If a name occurs twice, its last value applies.

    Raises:
        ConfigError: the file cannot be read, or a line is malformed.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(FILE_CHARACTERS_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(text) > FILE_CHARACTERS_MAX:
        raise ConfigError(
            f"{path} has more than {FILE_CHARACTERS_MAX} characters: that is no server.properties"
        )
    settings: dict[str, str] = {}
    places: dict[str, str] = {}
    for line, name, value in parse_properties(text, path):
        settings[name], places[name] = value, f"{path}:{line}"
    return ReadProperties(settings, places)


def remarks(unheeded: Sequence[str], places: Mapping[str, str] | None = None) -> list[str]:
    """Return warnings about settings without effect: one per unknown name, one for all known names.

    `places` has the position of each setting in its file: ``PATH:LINE``.
    """
    known = [name for name in unheeded if is_known(name)]
    lines: list[str] = []
    for name in unheeded:
        if name not in known:
            place = (places or {}).get(name)
            hint = did_you_mean(name, (*BROKER_KEYS, *KEYS)) if len(lines) < SUGGESTED_MAX else ""
            lines.append(f"{place + ': ' if place else ''}unknown setting {name}, passed over{hint}")
    if known:
        lines.append(f"without effect in a single process: {', '.join(known)}")
    return lines
