"""Broker settings of all releases of Kafka that have no effect in Penstock, from ``inert_keys.txt``.

Apache Kafka lists some three hundred settings of a broker. Settings without effect are accepted, checked,
stored and listed, too, because files and tools contain them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from penstock.broker.config.broker_keys import BROKER_KEYS, LISTENER_KEYS
from penstock.broker.config.definition import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    ConfigKey,
    idle,
)
from penstock.broker.config.security_settings import KEYS, base_name, refuse_unprotected
from penstock.broker.config.security_settings import check as check_security

READ_ONLY, CLUSTER, BROKER, LISTENER = "no", "cluster", "broker", "listener"
"""The scopes in which a setting can be changed at run time: none; all brokers or one broker; only one
broker; only one listener.
"""

_TYPES = {
    "boolean": BOOLEAN,
    "string": STRING,
    "int": INT,
    "short": SHORT,
    "long": LONG,
    "double": DOUBLE,
    "list": LIST,
    "class": CLASS,
    "password": PASSWORD,
}
_DOC = "there is nothing here that it could be for."
_UNLISTED = ("hidden", "old")
_LISTENER_PREFIX = "listener.name."


class BrokerSetting(NamedTuple):
    """A setting in ``inert_keys.txt``. `change` is its scope: READ_ONLY, CLUSTER, BROKER or LISTENER."""

    key: ConfigKey
    change: str


@cache
def settings_of_release(release: str) -> Mapping[str, BrokerSetting]:
    """Return the settings in ``inert_keys.txt`` that Kafka of major version `release`, 3 or 4, lists."""
    return {
        name: setting for name, (releases, setting) in _read(release).items() if releases not in _UNLISTED
    }


@cache
def hidden_settings() -> Mapping[str, BrokerSetting]:
    """Return the settings that Apache Kafka 4 has, but that its DescribeConfigs does not list."""
    return {name: setting for name, (releases, setting) in _read("4").items() if releases == "hidden"}


@cache
def known_settings() -> Mapping[str, BrokerSetting]:
    """Return the settings of any release, as defined by the newest release that has them."""
    return {name: setting for each in ("3", "4") for name, (_, setting) in _read(each).items()}


def _read(release: str) -> dict[str, tuple[str, BrokerSetting]]:
    found = {}
    path = os.path.join(os.path.dirname(__file__), "inert_keys.txt")
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith("#"):
                continue
            words, equals, default = line.rstrip("\n").partition(" =")
            name, releases, type_, change, limits = words.split()
            if releases in ("all", release, *_UNLISTED):
                key = idle(ConfigKey(name, _TYPES[type_], default if equals else None, _DOC))
                found[name] = releases, BrokerSetting(_limited(key, limits), change)
    return found


def _limited(key: ConfigKey, limits: str) -> ConfigKey:
    """Return a copy of the key with bounds or choices parsed from `limits`, a field of ``inert_keys.txt``."""
    least, dots, most = limits.partition("..")
    if dots:
        return key._replace(at_least=_number(least), at_most=_number(most))
    if limits == "-":
        return key
    is_any_case = limits.startswith("i:")
    return key._replace(choices=tuple(limits.removeprefix("i:").split("|")), is_any_case=is_any_case)


def _number(text: str) -> float | None:
    if not text:
        return None
    return float(text) if "." in text else int(text)


def listener_setting(name: str) -> str:
    """Return SETTING if `name` has the form ``listener.name.NAME.SETTING``, otherwise `name` unchanged."""
    if name.startswith(_LISTENER_PREFIX):
        return name.removeprefix(_LISTENER_PREFIX).partition(".")[2]
    return name


def key_besides(name: str, text: str) -> ConfigKey | None:
    """Return the definition of a setting that is not in `BROKER_KEYS`, or None for an unknown name.

    Raises:
        ConfigError: the setting requires protection that this broker does not have, or a security setting has
            a wrong value.
    """
    if check_security(name, text):
        base = str(base_name(name))
        listed = known_settings().get(base)
        key = ConfigKey(name, STRING, None, "") if listed is None else listed.key
        return key._replace(name=name, has_effect=base in KEYS)
    setting = listener_setting(name)
    key_of_all = BROKER_KEYS.get(setting)
    if key_of_all is not None:
        has_effect = key_of_all.has_effect and setting in LISTENER_KEYS
        return key_of_all._replace(name=name, has_effect=has_effect)
    known = known_settings().get(setting)
    refuse_unprotected(name, setting, text, is_known=known is not None)
    return None if known is None else known.key._replace(name=name)


def is_known(name: str) -> bool:
    """Return True if any release of Apache Kafka, or Penstock, has a broker setting with this name."""
    setting = listener_setting(name)
    return setting in BROKER_KEYS or base_name(name) is not None or setting in known_settings()
