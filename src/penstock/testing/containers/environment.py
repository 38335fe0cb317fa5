"""Environment variables of Kafka's images, as the settings of a broker.

The images of Apache, Confluent and Bitnami make ``server.properties`` of their environment:
``KAFKA_NUM_PARTITIONS=3`` is ``num.partitions=3``, a double underscore stands for one underscore, a triple
one for a dash. Where the broker listens and keeps its data is the container's affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.security_settings import check
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError

_PREFIXES = ("KAFKA_CFG_", "KAFKA_")

_OF_IMAGES = (
    "gc.log", "heap.opts", "home", "jmx", "jvm.performance", "log4j", "opts", "security.opts", "tools.log4j",
    "version",
)  # fmt: skip
"""Beginnings of what such variables are called that are for the image's scripts and not for the broker."""

_PLACES = (
    "advertised.", "broker.id", "broker.rack", "control.plane.", "controller.", "host.name", "inter.broker.",
    "listener.security.protocol.map", "listeners", "log.dir", "log.dirs", "metadata.log.dir", "node.id",
    "port", "process.roles", "zookeeper.",
)  # fmt: skip
"""Beginnings of settings that say where a broker is and what is around it: the container decides."""


class Reading(NamedTuple):
    """The settings that variables ask for, and remarks about those without effect."""

    settings: dict[str, str]
    remarks: list[str]


def setting_name(variable: str) -> str | None:
    """The setting that a variable of an image stands for, None where it is no setting.

    >>> setting_name("KAFKA_NUM_PARTITIONS")
    'num.partitions'
    """
    for prefix in _PREFIXES:
        if variable.startswith(prefix):
            rest = variable[len(prefix) :].lower()
            return rest.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
    return None


def read_environment(variables: Mapping[str, object], is_secured: bool = False) -> Reading:
    """The settings that variables ask for; those of security where the listener of clients is secured.

    Raises:
        ConfigError: a value does not fit.
    """
    settings: dict[str, str] = {}
    remarks: list[str] = []
    for variable, value in variables.items():
        name = setting_name(variable)
        if name is None or name.startswith((*_OF_IMAGES, *_PLACES)):
            continue
        text = str(value)
        if name in BROKER_KEYS:
            settings[name] = text
        elif _is_of_security(variable, name, text):
            if is_secured:
                settings[name] = text
            else:
                remarks.append(f"{variable} has no effect: the listener of clients is PLAINTEXT")
        else:
            remarks.append(f"{variable}: there is no setting {name}{did_you_mean(name, BROKER_KEYS)}")
    return Reading(settings, remarks)


def _is_of_security(variable: str, name: str, text: str) -> bool:
    try:
        return check(name, text)
    except ConfigError as error:
        raise ConfigError(f"{variable}: {error}") from None
