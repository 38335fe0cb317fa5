"""Addresses of brokers, as ``bootstrap.servers`` has them: ``host:port``, or several."""

from __future__ import annotations

from typing import NamedTuple


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = self.host if self.host.isprintable() else self.host.encode("unicode_escape").decode()
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def parse_addresses(value: object) -> tuple[Address, ...]:
    """Read ``host:port,host:port`` or a sequence of ``host:port``. A missing port is 9092."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        raise ValueError("expected host:port, or several separated by commas")
    addresses = tuple(parse_address(item) for item in items if str(item).strip())
    if not addresses:
        raise ValueError("no address given; expected host:port")
    return addresses


def parse_address(value: object) -> Address:
    """Read one ``host:port``; IPv6 in brackets; a listener name such as ``PLAINTEXT://`` may lead."""
    if isinstance(value, Address):
        return value
    text = str(value).strip()
    listener, scheme, rest = text.partition("://")
    if scheme:
        if listener.lower() in ("http", "https"):
            raise ValueError(f"{text!r} is a web address: Kafka's is host:port, such as localhost:9092")
        text = rest
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        port = (rest[1:] if rest.startswith(":") else "9092") if bracket else ""
    elif text.count(":") > 1:
        raise ValueError(f"{text!r}: write an IPv6 address as [address]:port")
    else:
        host, colon, port = text.partition(":")
        port = port if colon else "9092"
    if not host or not (port.isascii() and port.isdigit()):
        raise ValueError(f"{text!r} is not host:port")
    if not 0 < int(port[:9]) < 65536:
        raise ValueError(f"{text!r}: ports go from 1 to 65535")
    return Address(host, int(port))
