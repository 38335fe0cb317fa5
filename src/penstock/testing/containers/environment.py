"""Converts environment variables of Kafka's images to settings of a broker.

The images of Apache, Confluent and Bitnami make ``server.properties`` of their environment:
``KAFKA_NUM_PARTITIONS=3`` is ``num.partitions=3``, a double underscore stands for one underscore, a triple
one for a dash. The stand-in container ignores settings of listener addresses and data directories, and
chooses its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.security_settings import check
from penstock.common.properties_files import parse_properties
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError

_PREFIXES = ("KAFKA_CFG_", "KAFKA_")

_OF_IMAGES = (
    "gc.log", "heap.opts", "home", "jmx", "jvm.performance", "log4j", "opts", "security.opts", "tools.log4j",
    "version",
)  # fmt: skip
"""Beginnings of the names of environment variables that are for the image's scripts, not for the broker."""

_PLACES = (
    "advertised.", "broker.id", "broker.rack", "control.plane.", "controller.", "host.name", "inter.broker.",
    "listener.security.protocol.map", "listeners", "log.dir", "log.dirs", "metadata.log.dir", "node.id",
    "port", "process.roles", "zookeeper.",
)  # fmt: skip
"""Beginnings of the settings of a broker's addresses, directories, ids and roles, which the stand-in
container chooses itself."""


class ReadEnvironment(NamedTuple):
    """The result of `read_environment`: broker settings, and remarks about variables that have no effect."""

    settings: dict[str, str]
    remarks: list[str]


class ClientListener(NamedTuple):
    """A broker's listener for clients: its name and its security protocol."""

    name: str
    protocol: str

    @property
    def has_tls(self) -> bool:
        """True if the listener uses TLS, so that clients compare its host with a certificate."""
        return self.protocol in {"SSL", "SASL_SSL"}

    def settings(self, host: str, port: int, advertised_host: str) -> dict[str, str]:
        """Return the settings of a broker with only this listener, advertised as `advertised_host`."""
        found = {
            "listeners": f"{self.name}://{host}:{port}",
            "listener.security.protocol.map": f"{self.name}:{self.protocol}",
            "inter.broker.listener.name": self.name,
        }
        if advertised_host != host:
            found["advertised.listeners"] = f"{self.name}://{advertised_host}:{port}"
        return found


def listener_at(port: int, variables: Mapping[str, object]) -> ClientListener | None:
    """Return the listener that an image's environment defines for a port, or None if it defines none."""
    by_setting = {setting_name(variable): str(value) for variable, value in variables.items()}
    protocols = dict(_pairs(by_setting.get("listener.security.protocol.map", "")))
    for name, address in _pairs(by_setting.get("listeners", "")):
        if address.rpartition(":")[2] == str(port):
            return ClientListener(name, protocols.get(name, name))
    return None


def client_port(variables: Mapping[str, object]) -> int | None:
    """Return the port of the first listener that is not the controller's, or None if none is defined."""
    by_setting = {setting_name(variable): str(value) for variable, value in variables.items()}
    controllers = {"CONTROLLER", *by_setting.get("controller.listener.names", "").split(",")}
    for setting in ("listeners", "advertised.listeners"):
        for name, address in _pairs(by_setting.get(setting, "")):
            port = address.rpartition(":")[2]
            if name not in controllers and port.isdecimal():
                return int(port)
    return None


def node_id_of(variables: Mapping[str, object]) -> int:
    """Return the broker id that an image's environment defines, or 1, the default of the images."""
    by_setting = {setting_name(variable): str(value).strip() for variable, value in variables.items()}
    text = by_setting.get("node.id") or by_setting.get("broker.id") or ""
    return int(text) if text.isdecimal() else 1


def _pairs(text: str) -> list[tuple[str, str]]:
    """Split a list ``name:value,name:value`` at its commas and the first colon of each entry."""
    found = [word.strip().partition(":") for word in text.split(",")]
    return [(name, value) for name, _, value in found if name]


def setting_name(variable: str) -> str | None:
    """Return the setting of an image's environment variable, or None if the variable is not a setting.

    >>> setting_name("KAFKA_NUM_PARTITIONS")
    'num.partitions'
    """
    for prefix in _PREFIXES:
        if variable.startswith(prefix):
            rest = variable[len(prefix) :].lower()
            return rest.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
    return None


def read_environment(variables: Mapping[str, object], is_secured: bool = False) -> ReadEnvironment:
    """Return the broker settings in environment variables; with `is_secured`, security settings too.

    Raises:
        ConfigError: a value is invalid.
    """
    settings: dict[str, str] = {}
    remarks: list[str] = []
    for variable, value in variables.items():
        name = setting_name(variable)
        if name is None or name.startswith((*_OF_IMAGES, *_PLACES)):
            continue
        text = _written(name, str(value))
        if name in BROKER_KEYS:
            settings[name] = text
        elif _is_of_security(variable, name, text):
            if is_secured:
                settings[name] = text
            else:
                remarks.append(f"{variable} has no effect: the listener of clients is PLAINTEXT")
        else:
            remarks.append(f"{variable}: there is no setting {name}{did_you_mean(name, BROKER_KEYS)}")
    return ReadEnvironment(settings, remarks)


def _written(name: str, text: str) -> str:
    """Return the value that Kafka reads after an image's script has written `text` to a properties file."""
    if "\\" not in text or "\n" in text:
        return text.strip()
    ((_, _, value),) = parse_properties(f"{name}={text}", name)
    return value.strip()


def _is_of_security(variable: str, name: str, text: str) -> bool:
    try:
        return check(name, text)
    except ConfigError as error:
        raise ConfigError(f"{variable}: {error}") from None
