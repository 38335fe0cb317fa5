"""IP addresses as text in a canonical form, so that equal addresses are equal texts.

A socket that listens on ``[::]`` names IPv4 clients ``::ffff:127.0.0.1``; Java writes the address ``::1`` as
``0:0:0:0:0:0:0:1``. Access rules, quotas, limits and logs compare and print the canonical texts.
"""

from __future__ import annotations

import socket

_IN_IPV4 = bytes(10) + b"\xff\xff"
"""The first bytes of an IPv6 address that stands for an IPv4 address."""


def canonical_address(text: str) -> str:
    """Return an address in its canonical form: IPv4 as four numbers, IPv6 as in RFC 5952.

    A zone (``%eth0``) stays. Text that is not an IPv6 address is returned unchanged, since IPv4 addresses
    have one form only.
    """
    if ":" not in text:
        return text
    number, percent, zone = text.strip("[]").partition("%")
    try:
        packed = socket.inet_pton(socket.AF_INET6, number)
    except (OSError, ValueError):
        return text
    if packed.startswith(_IN_IPV4):
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    return socket.inet_ntop(socket.AF_INET6, packed) + percent + zone


def without_zone(text: str) -> str:
    """Return an address without its zone, the interface through which it is reached (``%eth0``)."""
    return text.partition("%")[0]


def is_address(text: str) -> bool:
    """Return True if a text is an IP address, or ``localhost``."""
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        return text == "localhost" or bool(socket.inet_pton(family, text.strip("[]")))
    except (OSError, ValueError):
        return False


def address_of(text: str) -> str:
    """Return the canonical form of an address; ``localhost`` becomes 127.0.0.1."""
    return "127.0.0.1" if text == "localhost" else canonical_address(text)
