"""Limits of connections (KIP-402, KIP-612): their number, and the rate at which they are made.

As in Apache Kafka: a connection that exceeds a limit of the broker or of its listener waits until it is
accepted, and later connections of the same listener wait, too. A connection from an address that has too many
connections is closed at once; a connection from an address that connects too often is closed after a delay.

The module does not use sockets: callers pass listeners, addresses and `now`, and get delays in seconds.
Settings and quotas may change while the broker runs.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeVar

from penstock.broker.quota_entities import Entity
from penstock.common.listening.addresses import address_of, is_address
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.broker.requests.quotas import Usage


UNLIMITED = 2**31 - 1
"""The default of limits that are 32-bit numbers, 2,147,483,647. It means no limit."""

ADDRESSES_MAX = 10_000
"""The maximum number of addresses whose connection rate is measured; after that, the least recent is
dropped."""


class SettingText(Protocol):
    """One of the values of a setting, as text: a setting may be set in several sources, such as a file."""

    @property
    def text(self) -> str | None: ...


class QuotaSettings(Protocol):
    """The interface through which connection quotas read the broker's settings."""

    def integer(self, name: str) -> int:
        """Return the value of a numeric setting."""

    def text(self, name: str) -> str | None:
        """Return the effective value of a setting as text, or None if it is not set."""

    def set_texts(self, name: str) -> Iterable[SettingText]:
        """Return every value that was set for this setting, the effective value first."""


class HasQuotas(Protocol):
    """The interface to the broker's metadata that contain the client quotas."""

    @property
    def quotas(self) -> Mapping[Entity, Mapping[str, float]]:
        """A dict from quota entity to its limits, which are a dict from quota name to number."""

    @property
    def setting_checks(self) -> list[Callable[[Mapping[str, str]], None]]:
        """Functions that check settings before clients change them; each raises ConfigError."""

    @property
    def metadata_end_offset(self) -> int:
        """The end offset of the metadata log, which changes whenever quotas change."""


class NamedListener(Protocol):
    """The interface of a listener that `ConnectionQuotas` uses: only its name."""

    @property
    def name(self) -> str: ...


class CountedConnection(Protocol):
    """The interface of an accepted connection that `ConnectionQuotas` uses."""

    @property
    def listener(self) -> NamedListener | None:
        """The listener that has accepted this connection."""


C = TypeVar("C", bound=CountedConnection)


class ConnectionQuotas:
    """Counts a broker's connections against its limits. `cluster` has the quotas.

    Raises:
        ConfigError: `max.connections.per.ip.overrides` is malformed, or names a host that does not exist.
    """

    def __init__(self, config: QuotaSettings, listeners: list[str], cluster: HasQuotas) -> None:
        self._config = config
        self._cluster = cluster
        cluster.setting_checks.append(check_overrides)
        self._seen_version: int | None = None
        self._limits: dict[str | None, float] = {}
        self.by_listener = dict.fromkeys(listeners, 0)
        """The number of open connections of each listener."""
        self._by_address: dict[str, int] = {}
        self._used: dict[str, Usage] = {}
        """A dict from listener to the connections recently made there, for rate limits; the empty name
        stands for all listeners."""
        self._of_address: dict[str, Usage] = {}
        overrides = config.text("max.connections.per.ip.overrides") or ""
        self._overrides = overrides, parse_overrides(overrides, looks_up=True)
        inter_broker = (config.text("inter.broker.listener.name") or "").upper()
        self._protected = inter_broker if len(listeners) > 1 else None
        """The name of the inter-broker listener, to which only its own limits apply and not those of the
        broker; None if the broker has one listener.
        """

    # --- how many ----------------------------------------------------------------------------------------

    def _most(self, listener: str) -> int | None:
        text = self._of(listener, "max.connections")
        return None if text is None else int(text)

    def _of(self, listener: str, name: str) -> str | None:
        """Return the setting `name` of one listener, or None if it is not set for the listener."""
        return next(
            (s.text for s in self._config.set_texts(f"listener.name.{listener.lower()}.{name}")), None
        )

    def has_room(self, listener: str) -> bool:
        """Return True if the listener may accept one more connection."""
        most = self._most(listener)
        if most is not None and self.by_listener[listener] >= most:
            return False
        return listener == self._protected or self.total < self._config.integer("max.connections")

    @property
    def total(self) -> int:
        """The number of connections over all listeners."""
        return sum(self.by_listener.values())

    def excess(self, connections: Iterable[C]) -> list[C]:
        """Return the first of `connections` that must be closed to get down to `max.connections`.

        There are too many if the limit was lowered, or if other brokers have connected.
        """
        count = self.total - self._config.integer("max.connections")
        if count <= 0:
            return []
        others = (c for c in connections if c.listener is not None and c.listener.name != self._protected)
        return list(islice(others, count))

    def enter(self, listener: str) -> None:
        """Count a connection that a listener has accepted as open."""
        self.by_listener[listener] += 1

    def leave(self, listener: str) -> None:
        """Subtract an accepted connection that has ended."""
        self.by_listener[listener] -= 1

    def admit(self, address: str) -> bool:
        """Count a connection of an address; return False if the address now has too many."""
        count = self._by_address[address] = self._by_address.get(address, 0) + 1
        return count <= self._most_of_address(address)

    def forget(self, address: str) -> None:
        """Subtract a connection that `admit` has counted and that has ended."""
        count = self._by_address[address] - 1
        if count:
            self._by_address[address] = count
        else:
            del self._by_address[address]

    def _most_of_address(self, address: str) -> int:
        text = self._config.text("max.connections.per.ip.overrides") or ""
        if text != self._overrides[0]:
            try:
                self._overrides = text, parse_overrides(text)
            except ConfigError:
                self._overrides = text, {}
        most = self._overrides[1].get(address_of(address)) if text else None
        return self._config.integer("max.connections.per.ip") if most is None else most

    # --- how fast ----------------------------------------------------------------------------------------

    def arrive(self, listener: str, now: float) -> float:
        """Count a new connection against a listener's rate limits; return the seconds that it must wait."""
        delay_s = 0.0
        if listener != self._protected:
            most = self._config.integer("max.connection.creation.rate")
            if most < UNLIMITED:
                delay_s = self._charge(self._used_by(""), most, now)
        text = self._of(listener, "max.connection.creation.rate")
        if text is not None:
            delay_s = max(delay_s, self._charge(self._used_by(listener), int(text), now))
        return delay_s

    def refuse(self, listener: str, address: str, now: float) -> float:
        """Count a connection against its address's rate; return 0, or the seconds until it must be closed.

        A connection that is closed for this reason is not counted.
        """
        limits = self._address_limits()
        if not limits:
            return 0.0
        address = address_of(address)
        most = limits.get(address, limits.get(None))
        if most is None:
            return 0.0
        usage = self._of_address.pop(address, None) or self._new_usage()
        if len(self._of_address) >= ADDRESSES_MAX:
            del self._of_address[next(iter(self._of_address))]
        self._of_address[address] = usage
        delay_s = self._charge(usage, most, now)
        if delay_s:
            for each in (usage, self._used.get(""), self._used.get(listener)):
                if each is not None:
                    each.take_back(1)
        return delay_s

    def _address_limits(self) -> Mapping[str | None, float]:
        """Return a dict from address to its quota of connections per second; the key None has the default."""
        version = self._cluster.metadata_end_offset
        if version != self._seen_version:
            self._seen_version = version
            if not self._cluster.quotas:
                self._limits = {}
                return self._limits
            from penstock.broker.requests.quotas import CONNECTIONS, IP  # few brokers have quotas

            self._limits = {
                name if name is None else address_of(name): rates[CONNECTIONS]
                for ((kind, name), *_), rates in self._cluster.quotas.items()
                if kind == IP and CONNECTIONS in rates
            }
        return self._limits

    def _new_usage(self) -> Usage:
        from penstock.broker.requests.quotas import Usage, Windows  # few brokers have limits of rates

        number = self._config.integer("quota.window.num")
        return Usage(Windows(number, self._config.integer("quota.window.size.seconds")))

    def _used_by(self, name: str) -> Usage:
        if name not in self._used:
            self._used[name] = self._new_usage()
        return self._used[name]

    def _charge(self, usage: Usage, most: float, now: float) -> float:
        usage.add(1, now)
        rate, seconds = usage.rate(now)
        if rate <= most:
            return 0.0
        longest_s = self._config.integer("quota.window.size.seconds")
        return min((rate - most) / most * seconds, longest_s) if most > 0 else longest_s


class ListenerGate:
    """Applies `ConnectionQuotas` to the connections of one listener, for its acceptor."""

    def __init__(self, quotas: ConnectionQuotas, listener: str, monotonic: Callable[[], float]) -> None:
        self._quotas = quotas
        self._listener = listener
        self._monotonic = monotonic

    def wait_s(self) -> float:
        """Count a new connection against the rate limits; return the seconds that it must wait."""
        return self._quotas.arrive(self._listener, self._monotonic())

    def has_room(self) -> bool:
        """Return True if the listener may accept one more connection."""
        return self._quotas.has_room(self._listener)

    def refuse_s(self, address: str) -> float:
        """Return 0, or the seconds after which a connection from this address must be closed."""
        return self._quotas.refuse(self._listener, address, self._monotonic())

    def enter(self) -> None:
        """Count a connection that the listener accepts."""
        self._quotas.enter(self._listener)

    def leave(self) -> None:
        """Subtract a connection that `enter` counted and that could not be accepted."""
        self._quotas.leave(self._listener)


def parse_overrides(text: str, *, looks_up: bool = False) -> dict[str, int]:
    """Parse `max.connections.per.ip.overrides` (HOST:NUMBER,HOST:NUMBER); return limits by address.

    With `looks_up`, host names are resolved, which blocks the caller; otherwise every host must be an IP
    address.

    Raises:
        ConfigError: an item lacks its number, or its host is neither an address nor a name that can be
        resolved.
    """
    found = {}
    for item in filter(None, map(str.strip, text.split(","))):
        host, _, number = item.rpartition(":")
        address = host.strip() if is_address(host.strip()) else None
        if address is None and looks_up and host:
            with contextlib.suppress(OSError, UnicodeError):
                address = str(socket.getaddrinfo(host, None)[0][4][0])
        if not number.strip().isdecimal() or address is None:
            raise ConfigError(
                f"Invalid value {text} for configuration max.connections.per.ip.overrides:"
                " expected ADDRESS:NUMBER,ADDRESS:NUMBER,..."
            )
        found[address_of(address)] = int(number)
    return found


def check_overrides(texts: Mapping[str, str]) -> None:
    """Check the setting `max.connections.per.ip.overrides` in `texts`.

    Raises:
        ConfigError: the setting is malformed.
    """
    parse_overrides(texts.get("max.connections.per.ip.overrides", ""))
