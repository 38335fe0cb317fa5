"""`server.properties`: Java's format, and what a file written for Apache Kafka means here.

A remark names each unknown setting, with the most similar known one, and those of Kafka's that have no effect
in a single process. A setting whose loss would leave the broker less protected than the file says is refused.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.common.properties_files import parse_properties
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError

_SECURITY = ("ssl.", "sasl.", "authorizer.", "security.", "super.users", "allow.everyone.if.no.acl.found")
"""Beginnings of names that ask for protection which is not there."""

_RETIRED = (
    "controller.", "kafka.metrics", "log.initial", "quota.", "replica.", "server.max", "zookeeper.",
)  # fmt: skip
"""Beginnings of names that only releases before 3.9 had. They mean nothing here."""


FILE_CHARACTERS_MAX = 1 << 20
"""A hundred times the longest file of settings there is; what is larger, or has no end, is another file."""


class Reading(NamedTuple):
    """The settings of a file, and remarks about the lines that have no effect."""

    settings: dict[str, str]
    remarks: list[str]


def read_properties(path: str) -> Reading:
    """Read a file of settings.

    Raises:
        ConfigError: it cannot be read, a line is malformed, or it asks for TLS, SASL or authorization.
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
    remarks = []
    idle: list[str] = []
    for line, name, value in parse_properties(text, path):
        prefix = f"{path}:{line}: "
        key = BROKER_KEYS.get(name)
        if key is not None:
            settings[name] = value
            if not key.has_effect:
                idle.append(name)
        elif _is_security_setting(name, value, prefix):
            settings[name] = value
        elif name.startswith(_SECURITY):
            raise ConfigError(f"{prefix}{name} asks for protection that this broker does not have; remove it")
        elif _is_kafkas(name):
            idle.append(name)
        else:
            remarks.append(f"{prefix}unknown setting {name}, passed over{did_you_mean(name, BROKER_KEYS)}")
    if idle:
        remarks.append(f"{path}: without effect in a single process: {', '.join(dict.fromkeys(idle))}")
    return Reading(settings, remarks)


def _is_security_setting(name: str, value: str, where: str) -> bool:
    from penstock.broker.config.security_settings import check  # few files have any

    try:
        return check(name, value)
    except ConfigError as error:
        raise ConfigError(f"{where}{error}") from None


def _is_kafkas(name: str) -> bool:
    """Whether a name that has no key here is one of Apache Kafka's, of any release."""
    from penstock.broker.config.inert_keys import settings_of_release  # reads a file, few starts need it

    return name.startswith(_RETIRED) or any(name in settings_of_release(release) for release in ("3", "4"))
