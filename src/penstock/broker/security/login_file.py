"""The JAAS file that KAFKA_OPTS names, as for Apache Kafka: ``-Djava.security.auth.login.config=FILE``.

Its section ``KafkaServer`` is for all listeners, ``NAME.KafkaServer`` for the listener of that name in lower
case, as in Apache Kafka's JaasContext. An entry becomes the setting ``MECHANISM.sasl.jaas.config``
of a listener, unless that setting is set explicitly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from penstock.broker.config.server_properties import FILE_CHARACTERS_MAX
from penstock.errors import ConfigError
from penstock.security.jaas import MECHANISMS, JaasEntry, parse_jaas_file

VARIABLE = "KAFKA_OPTS"
PROPERTY = "-Djava.security.auth.login.config="
SECTION = "KafkaServer"

_READ = frozenset(("PLAIN", "GSSAPI", "OAUTHBEARER"))
"""The SASL mechanisms whose JAAS entries a broker reads. SCRAM is not among them: its users are in the
metadata log, as in Apache Kafka.
"""

_SETTING = "sasl.jaas.config"


class LoginListener(Protocol):
    """The attributes of a listener by which its section of a JAAS file is found."""

    @property
    def name(self) -> str: ...

    @property
    def has_sasl(self) -> bool: ...


def login_file(options: str) -> str | None:
    """Return the path of the JAAS file that `options`, the text of KAFKA_OPTS, names, or None.

    As in a JVM, the last of several paths applies, and ``==`` and ``file:`` URLs are accepted.
    """
    named = [word.removeprefix(PROPERTY) for word in options.split() if word.startswith(PROPERTY)]
    if not named:
        return None
    path = named[-1].removeprefix("=")
    if path.startswith("file:"):
        path = path.removeprefix("file:")
        path = "/" + path.lstrip("/") if path.startswith("/") else path
    return path or None


def login_settings(
    options: str, listeners: Sequence[LoginListener], settings: Mapping[str, str]
) -> dict[str, str]:
    """Return settings made from the JAAS file that KAFKA_OPTS names; `settings` override the file.

    The file is read only if a listener has SASL.

    Raises:
        ConfigError: the file cannot be read, does not follow the grammar, or has no section for a listener
            that has no login module in `settings`.
    """
    path = login_file(options)
    named = [each.name.lower() for each in listeners if each.has_sasl]
    if path is None or not named:
        return {}
    sections = _read(path)
    found: dict[str, str] = {}
    for listener in named:
        prefix = f"listener.name.{listener}."
        section = next((each for each in (f"{listener}.{SECTION}", SECTION) if each in sections), None)
        if section is None:
            if not _has_own(listener, settings):
                raise ConfigError(
                    f"{path}, which {VARIABLE} names, has no section {SECTION} or {listener}.{SECTION} for"
                    f" the listener {listener.upper()}; its sections are {', '.join(sections) or 'none'}"
                )
            continue
        for mechanism, text in _texts(sections[section], f"{path}: section {section}").items():
            own = f"{mechanism.lower()}.{_SETTING}"
            if not {prefix + own, prefix + _SETTING, own} & settings.keys():
                found[prefix + own] = text
    return found


def _has_own(listener: str, settings: Mapping[str, str]) -> bool:
    """Return True if `settings` contain a login module for the listener, so that no file is needed."""
    own = f"listener.name.{listener}."
    modules = [name for name in settings if name.endswith(f".{_SETTING}")]
    return any(name.startswith(own) or not name.startswith("listener.name.") for name in modules)


def _texts(entries: list[JaasEntry], place: str) -> dict[str, str]:
    """Return a dict from mechanism to the text of its JAAS entry, for the mechanisms in `_READ`."""
    found: dict[str, str] = {}
    for entry in entries:
        mechanism = MECHANISMS.get(entry.name)
        if mechanism not in _READ:
            continue
        if mechanism in found:
            raise ConfigError(f"{place} has two entries of {entry.name}; write all options into one")
        found[mechanism] = entry.text
    return found


def _read(path: str) -> dict[str, list[JaasEntry]]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(FILE_CHARACTERS_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot read {path}, which {VARIABLE} names: {why}") from None
    return parse_jaas_file(text, path)
