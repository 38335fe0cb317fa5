"""IP addresses as text in one form each, so that equal texts are equal addresses.

A socket that listens on ``[::]`` names IPv4 clients ``::ffff:127.0.0.1``; Java writes the address ``::1`` as
``0:0:0:0:0:0:0:1``. Rules, quotas, limits and logs compare and print texts.
"""

from __future__ import annotations

import socket

_IN_IPV4 = bytes(10) + b"\xff\xff"
"""What an IPv6 address begins with that stands for an IPv4 address."""


def canonical_address(text: str) -> str:
    """Return an address in its one form: IPv4 in four numbers, IPv6 as short as possible (RFC 5952).

    A zone (``%eth0``) stays. What is no IPv6 address is returned as it is: IPv4 addresses have one form only.
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
    """Return an address without the interface that it is reached through, ``%eth0``."""
    return text.partition("%")[0]


def is_address(text: str) -> bool:
    """Return whether a text is an IP address, or the name of this machine's own."""
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        return text == "localhost" or bool(socket.inet_pton(family, text.strip("[]")))
    except (OSError, ValueError):
        return False


def address_of(text: str) -> str:
    """Return the one form of an address, or of the name of this machine's own."""
    return "127.0.0.1" if text == "localhost" else canonical_address(text)
