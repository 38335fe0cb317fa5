"""Options of stores and catalogs, from arguments and a file; hides secret values in messages."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from penstock.common.errno_advice import reason_of
from penstock.errors import ConfigError
from penstock.security.secrets import HIDDEN, is_secret_name

SECRET_NAMES = (
    "access_key_id",
    "access-key-id",
    "account_key",
    "account-key",
    "authorization",
    "client_secret",
    "credential",
    "password",
    "sas",
    "secret",
    "signature",
    "token",
)
"""An option is secret if its name contains one of these texts, or is that of a secret Kafka setting."""

_NAMED = "|".join(map(re.escape, SECRET_NAMES))
_PAIR = re.compile(rf"(?i)((?:[\w.-]*(?:{_NAMED})[\w.-]*)[\"']?\s*[=:]\s*[\"']?)([^\s\"',;&<]+)")
_USER = re.compile(r"(\w[\w+.-]*://)[^/\s@]*:[^/\s@]*@")


def is_hidden(name: str) -> bool:
    """Return True if the value of an option is hidden in messages, because it is a secret."""
    lowered = name.lower()
    return any(part in lowered for part in SECRET_NAMES) or is_secret_name(name)


def without_secrets(text: str) -> str:
    """Return a text in which the values of secret options, and passwords in URLs, are hidden."""
    return _PAIR.sub(rf"\1{HIDDEN}", _USER.sub(rf"\1{HIDDEN}@", text))


class StoreOptions:
    """The options of a store or catalog, from arguments and from a file that is read again when it changes.

    The file is TOML with one option a line, such as ``access_key_id = "..."``. Arguments override
    the file.
    """

    def __init__(self, given: Mapping[str, str], path: str | os.PathLike[str] | None = None) -> None:
        """Read the file, if `path` is given.

        Raises:
            ConfigError: the file cannot be read, is no TOML, or has a table or list as a value.
        """
        self._given = dict(given)
        self._path = None if path is None else Path(path)
        self._read: dict[str, str] = {}
        self._stamp: tuple[int, int, int] | None = None
        self.renew()

    def __repr__(self) -> str:
        shown = {name: HIDDEN if is_hidden(name) else value for name, value in self.values().items()}
        return f"<StoreOptions: {shown}>"

    def values(self) -> dict[str, str]:
        """Return the current options."""
        return {**self._read, **self._given}

    def renew(self) -> bool:
        """Read the file again if it has changed; return True if it has. Raises as the constructor."""
        if self._path is None:
            return False
        try:
            found = self._path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp == self._stamp:
                return False
            document = tomllib.loads(self._path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"cannot read {self._path}: {reason_of(error)}") from None
        except ValueError as error:
            raise ConfigError(f"{self._path} is no TOML: {without_secrets(str(error))}") from None
        for name, value in document.items():
            if isinstance(value, (dict, list)):
                raise ConfigError(f"{self._path}: option {name!r} has to be a text")
        self._read = {name: _text(value) for name, value in document.items()}
        self._stamp = stamp
        return True


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
