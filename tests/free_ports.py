"""Ports of loopback for servers that tests start, and start again on the port that they had."""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOWEST = 20_000
"""Documents show ports below it, and tests run what documents show."""

EPHEMERAL_FROM = 32_768
"""Where a system's own choices begin, if it does not say: Linux has this, others begin later."""

TRIES_MAX = 1_000


def free_ports(count: int) -> list[int]:
    """So many different ports of loopback that no socket has now, and that the system gives to none unasked.

    A server takes seconds until it listens, and one that was killed comes back. Meanwhile a port of the range
    that the system chooses from becomes that of a connection of any process, or of a server on port 0.

    Raises OSError where there are too few.
    """
    end = max(_ephemeral_from(), LOWEST + count)
    dice = random.SystemRandom()
    found: list[int] = []
    for _ in range(TRIES_MAX):
        port = dice.randrange(LOWEST, end)
        if port not in found and _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"{count} free ports between {LOWEST} and {end} were not found in {TRIES_MAX} tries")


def _ephemeral_from() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return EPHEMERAL_FROM


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
