"""Addresses of brokers in the form of ``bootstrap.servers``: ``host:port``, or several of these."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from typing import NamedTuple

DEFAULT_PORT = 9092


class Address(NamedTuple):
    """The host and port on which a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = self.host if self.host.isprintable() else self.host.encode("unicode_escape").decode()
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def parse_addresses(value: object) -> tuple[Address, ...]:
    """Return the addresses in text ``host:port,host:port``, or in several such texts.

    The default port is 9092.
    """
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        raise ValueError("expected host:port, or several separated by commas")
    addresses = tuple(parse_address(item) for item in items if str(item).strip())
    if not addresses:
        raise ValueError("no address given; expected host:port")
    return addresses


def parse_address(value: object) -> Address:
    """Return the address in ``host:port``.

    A prefix such as ``PLAINTEXT://`` is allowed; IPv6 is in brackets.
    """
    if isinstance(value, Address):
        return value
    text = str(value).strip()
    if text.isdecimal():
        raise ValueError(f"{text!r} is a port alone: write localhost:{text}")
    listener, scheme, rest = text.partition("://")
    if scheme:
        if listener.lower() in ("http", "https"):
            raise ValueError(f"{text!r} is a web address: Kafka's is host:port, such as localhost:9092")
        text = rest
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        port = (rest[1:] if rest.startswith(":") else str(DEFAULT_PORT)) if bracket else ""
    elif text.count(":") > 1:
        raise ValueError(f"{text!r}: write an IPv6 address as [address]:port")
    else:
        host, colon, port = text.partition(":")
        port = port if colon else str(DEFAULT_PORT)
    if not host or not (port.isascii() and port.isdigit()):
        raise ValueError(f"{text!r} is not host:port")
    if not 0 < int(port[:9]) < 65536:
        raise ValueError(f"{text!r}: ports go from 1 to 65535")
    return Address(host, int(port))


def what_to_look_at(addresses: Sequence[Address], errors: Iterable[BaseException]) -> str:
    """Return advice for the user, for the error message after no broker answered.

    `errors` are the failures to connect to `addresses`.

    If a host name has no dot and no port, and cannot be resolved, the advice is that it may be the name of a
    topic.
    """
    words = [each.host for each in addresses if each.port == DEFAULT_PORT and "." not in each.host]
    unknown = all(isinstance(each.__cause__, socket.gaierror) for each in errors)
    if unknown and len(words) == len(addresses):
        return (
            f"is {words[0]!r} the name of a topic? the first argument of a client, bootstrap_servers=, "
            "is where brokers are: host:port, such as localhost:9092"
        )
    return "is it running? is bootstrap.servers right?"
