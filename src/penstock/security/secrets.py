"""Passwords that no output shows, and their sources: the environment, a file, or the keyboard."""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from penstock.errors import ConfigError

HIDDEN = "[hidden]"
"""The text that replaces a secret in every output, as in Apache Kafka (its class `types.Password`)."""

FILE_BYTES_MAX = 1 << 20
"""The maximum size in bytes of a file that is read as a secret; stores and tokens are far smaller."""


SECRET_NAME = re.compile(r"(?i)password|secret|token(?!\.endpoint)|jaas|\.key$|key\.pem|username")


def is_secret_name(name: str) -> bool:
    """Return True if the value of a setting of this name must be hidden, even if the setting is unknown."""
    return SECRET_NAME.search(name) is not None


class Secret:
    """A text that `repr`, `str`, `format` and tracebacks show as ``[hidden]``; `reveal` returns it.

    It is not a subclass of `str`, since ``"".join``, `json` and concatenation would use its characters.
    Pickling keeps the text, because settings travel to other processes.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the secret text itself, which the caller should not store."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, specification: str) -> str:
        return format(HIDDEN, specification)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(
            self._text.encode("utf-8", "surrogatepass"), other._text.encode("utf-8", "surrogatepass")
        )

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return (Secret, (self._text,))


def secret(value: object) -> Secret:
    """Return a setting's value as a `Secret`. If it is no text, raise ValueError without quoting it."""
    if isinstance(value, Secret):
        return value
    if not isinstance(value, str):
        raise ValueError("expected text")
    return Secret(value)


def revealed(value: Secret | str) -> str:
    """Return `value` as plain text, whether it is a `Secret` or a str."""
    return value.reveal() if isinstance(value, Secret) else value


def secret_from_file(path: str) -> Secret:
    """Return the text of a file without its last line end. Raises ConfigError if it cannot be read."""
    try:
        with open(os.path.expanduser(path), "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:  # ValueError: no system takes such a path
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"the secret in {path} cannot be read: {why}") from None
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{path} is longer than {FILE_BYTES_MAX} bytes: is that a secret?")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"the secret in {path} is not UTF-8 text") from None
    return Secret(text.removesuffix("\n").removesuffix("\r"))


def secret_from_environment(name: str, environment: Mapping[str, str] = os.environ) -> Secret:
    """Return the value of an environment variable. Raises ConfigError if it is not set."""
    value = environment.get(name)
    if value is None:
        raise ConfigError(f"environment variable {name} is not set: a secret is expected there")
    return Secret(value)


ENVIRONMENT, FILE, DIRECTORIES = "env", "file", ("dir", "directory")
"""The names of providers in references. Apache Kafka's documentation uses them for ``EnvVarConfigProvider``,
``FileConfigProvider`` and ``DirectoryConfigProvider`` (KIP-297, KIP-632)."""


class SecretReference(NamedTuple):
    """A reference to a secret: an environment variable, a file, or a key of a properties file."""

    variable: str | None
    path: str | None
    key: str | None = None

    def read(self) -> Secret:
        """Return the secret's current text. Raises ConfigError if the variable, file or key is missing."""
        if self.path is None:
            return secret_from_environment(self.variable or "")
        text = secret_from_file(self.path)
        return text if self.key is None else _property(text, self.path, self.key)


def reference(text: str) -> SecretReference | None:
    """Parse a text such as ``${env:NAME}``; return None for a text that is no reference.

    ``${env:NAME}`` is a variable, ``${file:/path}`` a whole file, ``${file:/path:key}`` one entry of a
    properties file, ``${dir:/path:name}`` (or ``directory``) a whole file in a directory.
    """
    if not (text.startswith("${") and text.endswith("}")):
        return None
    provider, colon, rest = text[2:-1].partition(":")
    if not colon or not rest:
        return None
    if provider == ENVIRONMENT:
        return SecretReference(rest, None)
    path, _, key = rest.rpartition(":")
    # A colon may belong to the path: of a drive, or of a file whose name has one.
    is_keyed = bool(path and key) and not set(key) & {"/", "\\"}
    if provider in DIRECTORIES and is_keyed:
        return SecretReference(None, f"{path}/{key}")
    if provider == FILE:
        is_keyed = is_keyed and not os.path.exists(os.path.expanduser(rest))
        return SecretReference(None, path, key) if is_keyed else SecretReference(None, rest)
    return None


def _property(text: Secret, path: str, key: str) -> Secret:
    from penstock.common.properties_files import parse_properties

    found = [entry.value for entry in parse_properties(text.reveal(), path) if entry.name == key]
    if not found:
        raise ConfigError(f"{path} has no entry {key!r}: a secret is expected there, as {key}=…")
    return Secret(found[-1])


def resolved(text: str) -> Secret:
    """Return the secret that a text refers to (see `reference`), or the text itself as a secret.

    Raises ConfigError if the variable, the file or its entry is missing.
    """
    kept_at = reference(text)
    return Secret(text) if kept_at is None else kept_at.read()
