"""`listeners` and `advertised.listeners` in all the spellings that files for Apache Kafka have.

``PLAINTEXT://:9092`` listens everywhere, ``CLIENTS://host:9092`` has a name that
`listener.security.protocol.map` explains, ``CONTROLLER://:9093`` beside it is for other controllers and left
out. Before 0.9 there were `host.name` and `port`, which go as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig


class Listener(NamedTuple):
    """One address. An empty host is every address of the machine."""

    name: str
    host: str
    port: int


def parse_listener(text: str) -> Listener:
    """Read one listener such as ``PLAINTEXT://127.0.0.1:9092``.

    Raises:
        ConfigError: it is no such address.
    """
    name, separator, address = text.strip().partition("://")
    host, colon, port = address.rpartition(":")
    if not name or not separator or not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"Listener {text!r} is not understood; write PLAINTEXT://HOST:PORT")
    return Listener(name.upper(), host.strip("[]"), int(port))


def listening_at(config: BrokerConfig) -> tuple[str, int]:
    """Host and port to listen on.

    Raises:
        ConfigError: a listener is malformed, none or several are for clients, or one asks for TLS or SASL.
    """
    older_port = config["port"]
    if "listeners" not in config.settings and isinstance(older_port, int):
        return config.text("host.name") or "", older_port
    found = _for_clients("listeners", config.text("listeners") or "", config)
    return found.host, found.port


def advertised_at(config: BrokerConfig) -> tuple[str, int] | None:
    """Host and port to tell clients; None where they are told the address they have reached.

    Raises:
        ConfigError: as `listening_at`.
    """
    text = config.text("advertised.listeners")
    if text:
        found = _for_clients("advertised.listeners", text, config)
        return found.host, found.port
    host = config.text("advertised.host.name")
    if host is None:
        return None
    port = config["advertised.port"]
    return host, port if isinstance(port, int) else listening_at(config)[1]


def _for_clients(setting: str, text: str, config: BrokerConfig) -> Listener:
    """The one listener that is for clients."""
    listeners = [parse_listener(part) for part in text.split(",") if part.strip()]
    controllers = {
        name.strip().upper() for name in (config.text("controller.listener.names") or "").split(",")
    }
    clients = [each for each in listeners if each.name not in controllers]
    if len(clients) != 1:
        names = ", ".join(each.name for each in clients) or "none"
        raise ConfigError(f"{setting} has {names} for clients; Penstock listens on one address")
    protocol = _protocols(config).get(clients[0].name, clients[0].name)
    if protocol != "PLAINTEXT":
        raise ConfigError(f"{setting} asks for {protocol}; only PLAINTEXT is offered")
    return clients[0]


def _protocols(config: BrokerConfig) -> Mapping[str, str]:
    """Security protocols by the names of listeners."""
    pairs = (part.partition(":") for part in (config.text("listener.security.protocol.map") or "").split(","))
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs if name.strip()}
