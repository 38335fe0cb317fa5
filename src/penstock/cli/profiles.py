"""Profiles: named sections of the user's settings file, ``~/.config/penstock/config.toml``.

A malformed file, a missing profile and an unknown setting are errors, which suggest the nearest existing
name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError

PROFILE_VARIABLE = "PENSTOCK_PROFILE"
"""The environment variable that names a profile if ``--profile`` is not given."""

CHOICE = "profile"
"""The top-level key of the settings file that names the default profile."""

FILE_BYTES_MAX = 1 << 20


class Profiles(NamedTuple):
    """The contents of the user's settings file: its path, its sections, and the default profile."""

    path: Path
    sections: Mapping[str, Mapping[str, str]]
    default: str | None = None

    def named(self, name: str, asked_by: str) -> Mapping[str, str]:
        """Return the settings of a profile. Errors mention `asked_by`, the option or variable with its name.

        Raises:
            ConfigError: the profile does not exist.
        """
        if name in self.sections:
            return self.sections[name]
        if not self.sections:
            raise ConfigError(
                f"{asked_by}: there are no profiles; {self.path} may have them, as sections like [{name}]"
            )
        hint = did_you_mean(name, self.sections) or f"; there are {', '.join(sorted(self.sections))}"
        raise ConfigError(f"{asked_by}: {self.path} has no profile {name!r}{hint}")


def profiles_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the user's settings file, below ``$XDG_CONFIG_HOME`` or else ``~/.config``."""
    home = environment.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path("~/.config").expanduser()) / "penstock" / "config.toml"


def read_profiles(path: Path) -> Profiles:
    """Return the profiles in a file, or no profiles if the file does not exist.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or has a value that is not a setting.
    """
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return Profiles(path, {})
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{path} is longer than {FILE_BYTES_MAX} bytes: is it a file of settings?")
    import tomllib  # few users have such a file

    try:
        found = tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f'{path}: {error}; strings stand in quotes, as in client.id = "me"') from None
    default = found.pop(CHOICE, None)
    if default is not None and not isinstance(default, str):
        raise ConfigError(f'{path}: {CHOICE} names the profile to use, as in {CHOICE} = "local"')
    sections: dict[str, dict[str, str]] = {}
    for name, section in found.items():
        if not isinstance(section, dict):
            raise ConfigError(
                f"{path}: {name} stands above all sections; settings belong into one, as [local]"
            )
        sections[name] = _flat(section, f"{path}, [{name}]")
    return Profiles(path, sections, default)


def _flat(section: Mapping[str, Any], where: str, prefix: str = "") -> dict[str, str]:
    """Convert nested tables to dotted names, since TOML parses ``security.protocol = "SSL"`` as tables."""
    flat: dict[str, str] = {}
    for key, value in section.items():
        name = prefix + key
        if isinstance(value, dict):
            found = _flat(value, where, f"{name}.")
        else:
            dotted = name.replace("_", ".") if "." not in name else name
            found = {dotted: _text(value, f"{where}: {name}")}
        for each in found:
            if each in flat:
                raise ConfigError(f"{where}: {each} is set twice")
        flat.update(found)
    return flat


def _text(value: object, where: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    raise ConfigError(f"{where}: a setting is text, a number, true or false, or a list of texts")
