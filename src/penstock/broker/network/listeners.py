"""Parses `listeners` and `advertised.listeners` in all forms that occur in Apache Kafka's files.

``PLAINTEXT://:9092`` listens on all addresses. ``CLIENTS://host:9092`` has a name of its own, and
`listener.security.protocol.map` gives the protocol. ``CONTROLLER://:9093`` is for controllers and ignored.
`host.name` and `port`, the settings of releases before 0.9, work as well.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import ConfigError, NetworkError

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.security.throwaway import Security

PLAINTEXT = "PLAINTEXT"
PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""The security protocols that a listener can have."""

LISTENERS_MAX = 64
"""The maximum number of listeners of one broker."""


class Listener(NamedTuple):
    """One address that the broker listens on. An empty host means all addresses of the machine."""

    name: str
    host: str
    port: int
    protocol: str = PLAINTEXT
    advertised: tuple[str, int] | None = None
    """Host and port that the broker gives to clients. None: each client gets the address to which it
    has connected.
    """

    def bound_to(self, port: int) -> Listener:
        """Return this listener with its real port and with the address that Metadata gives to clients.

        A listener whose host is a name advertises the name, as Apache Kafka does: certificates are for names.
        """
        host, told = self.advertised or (self.host if _is_name(self.host) else "", 0)
        return self._replace(port=port, advertised=(host, told or port) if host else None)

    @property
    def has_tls(self) -> bool:
        """True if connections are encrypted."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        """True if clients authenticate themselves with SASL."""
        return self.protocol.startswith("SASL_")


def parse_listener(text: str) -> Listener:
    """Parse one listener such as ``PLAINTEXT://127.0.0.1:9092``.

    Raises:
        ConfigError: `text` is not the address of a listener.
    """
    name, separator, address = text.strip().partition("://")
    host, colon, port = address.rpartition(":")
    if not name or not separator or not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"Listener {text!r} is not understood; write PLAINTEXT://HOST:PORT")
    return Listener(name.upper(), host.strip("[]"), int(port))


def listeners_of(config: BrokerConfig) -> list[Listener]:
    """Return the listeners for clients in the settings' order, with their advertised addresses.

    Raises:
        ConfigError: a listener is malformed, of an unknown protocol, or its name or address occurs twice; no
            listener is for clients; or an advertised listener does not exist.
    """
    older_port = config["port"]
    protocols = _protocols(config)
    advertised = {each.name: each for each in _parsed("advertised.listeners", config)}
    if "listeners" not in config.settings and isinstance(older_port, int):
        found = [Listener(PLAINTEXT, config.text("host.name") or "", older_port)]
    else:
        found = _parsed("listeners", config)
    if not found:
        raise ConfigError("listeners names none for clients; write PLAINTEXT://HOST:PORT")
    if len(found) > LISTENERS_MAX:
        raise ConfigError(f"listeners names {len(found)}, at most {LISTENERS_MAX} are possible")
    places = [(":" in each.host, each.port) for each in found if each.port]
    if len(set(places)) < len(places):
        raise ConfigError("listeners: each needs a port of its own")
    unknown = [name for name in advertised if name not in {each.name for each in found}]
    if unknown:
        raise ConfigError(f"advertised.listeners names {', '.join(unknown)}, which listeners does not have")
    older_host = config.text("advertised.host.name")
    complete = []
    for each in found:
        protocol = protocols.get(each.name, each.name)
        if protocol not in PROTOCOLS:
            raise ConfigError(
                f"listener {each.name}: {protocol} is no security protocol;"
                f" in listener.security.protocol.map, name one of {', '.join(PROTOCOLS)}"
            )
        told: tuple[str, int] | None = None
        if each.name in advertised:
            told = advertised[each.name].host, advertised[each.name].port
        elif older_host is not None:
            port = config["advertised.port"]
            told = older_host, port if isinstance(port, int) else each.port
        complete.append(each._replace(protocol=protocol, advertised=told))
    return complete


def reachable(host: str, port: int) -> str:
    """Return the address ``host:port`` at which a client on this machine reaches a listener."""
    host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def settings_for_clients(
    bootstrap_servers: str, security: Security | None, user: str | None, mechanism: str | None
) -> dict[str, str]:
    """Return settings for a client, under names that librdkafka and Penstock's clients support.

    `user` is a user of `security`, by default the first; `mechanism` is one of that user's SASL mechanisms.

    Raises:
        ConfigError: the user does not exist.
    """
    found = {"bootstrap.servers": bootstrap_servers}
    return found if security is None else found | security.client_settings(user, mechanism)


def listening_at(config: BrokerConfig) -> tuple[str, int]:
    """Return host and port of the first listener.

    Raises:
        ConfigError: for the same reasons as in `listeners_of`.
    """
    first = listeners_of(config)[0]
    return first.host, first.port


def _is_name(host: str) -> bool:
    """Return True if `host` is a host name, False if it is an IP address or a wildcard."""
    return ":" not in host and not all(part.isdecimal() for part in host.split(".") if part)


def _parsed(setting: str, config: BrokerConfig) -> list[Listener]:
    """Return the listeners in a setting, without those for controllers."""
    text = config.text(setting) or ""
    listeners = [parse_listener(part) for part in text.split(",") if part.strip()]
    controllers = {
        name.strip().upper() for name in (config.text("controller.listener.names") or "").split(",")
    }
    clients = [each for each in listeners if each.name not in controllers]
    names = [each.name for each in clients]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"{setting} names {', '.join(twice)} twice; each listener needs a name of its own")
    return clients


def _protocols(config: BrokerConfig) -> Mapping[str, str]:
    """Return the security protocol of each listener name in `listener.security.protocol.map`."""
    pairs = (part.partition(":") for part in (config.text("listener.security.protocol.map") or "").split(","))
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs if name.strip()}


def bind_error(host: str, port: int, error: OSError) -> NetworkError:
    """Return the error to raise if listening on an address failed, with advice for the common causes."""
    where = f"{host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return NetworkError(
            f"port {port} on {host} is in use; stop what listens there, or choose another port"
        )
    if error.errno == errno.EACCES:
        return NetworkError(
            f"cannot listen on {where}: ports below 1024 need privileges; choose another port"
        )
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return NetworkError(f"cannot listen on {where}: this machine has no such address")
    return NetworkError(f"cannot listen on {where}: {error.strerror or error}")
