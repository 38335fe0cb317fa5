"""Passwords that no output shows, and where they are read from: the environment, a file, or the keyboard."""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.errors import ConfigError

HIDDEN = "[hidden]"
"""What stands for a secret in every output, as in Apache Kafka (its class `types.Password`)."""

FILE_BYTES_MAX = 1 << 20
"""The longest file that is read as a secret; stores and tokens are far shorter."""


SECRET_NAME = re.compile(r"(?i)password|secret|token(?!\.endpoint)|jaas|\.key$|key\.pem|username")


def is_secret_name(name: str) -> bool:
    """Whether the value of a setting of this name is to be hidden, whether or not the setting is known."""
    return SECRET_NAME.search(name) is not None


class Secret:
    """A text that `repr`, `str`, `format` and tracebacks show as ``[hidden]``; `reveal` returns it.

    No subclass of `str`, since ``"".join``, `json` and the concatenation of texts would take its characters.
    Pickling keeps the text: settings travel to other processes.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the moment of its use."""
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
    """A setting's value as a secret. Raises ValueError, which does not quote it, for what is no text."""
    if isinstance(value, Secret):
        return value
    if not isinstance(value, str):
        raise ValueError("expected text")
    return Secret(value)


def revealed(value: Secret | str) -> str:
    """The text of what may be a secret or a plain text."""
    return value.reveal() if isinstance(value, Secret) else value


def secret_from_file(path: str) -> Secret:
    """The text of a file without its last line end. Raises ConfigError where it cannot be read."""
    try:
        with Path(path).expanduser().open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"the secret in {path} cannot be read: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{path} is longer than {FILE_BYTES_MAX} bytes: is that a secret?")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"the secret in {path} is not UTF-8 text") from None
    return Secret(text.removesuffix("\n").removesuffix("\r"))


def secret_from_environment(name: str, environment: Mapping[str, str] = os.environ) -> Secret:
    """The value of an environment variable. Raises ConfigError where it is not set."""
    value = environment.get(name)
    if value is None:
        raise ConfigError(f"environment variable {name} is not set: a secret is expected there")
    return Secret(value)


REFERENCES: Mapping[str, Callable[[str], Secret]] = {
    "env:": secret_from_environment,
    "file:": secret_from_file,
}
"""Beginnings of ``${env:NAME}`` and ``${file:/path}``, which settings may hold in place of a secret."""


def resolved(text: str) -> Secret:
    """The secret that a text stands for: what ``${env:NAME}`` or ``${file:/path}`` names, or itself.

    Raises ConfigError where the variable or the file is missing.
    """
    if text.startswith("${") and text.endswith("}"):
        for beginning, read in REFERENCES.items():
            if text[2:].startswith(beginning):
                return read(text[2 + len(beginning) : -1])
    return Secret(text)
