"""Free loopback ports for servers that tests start, and restart on the same port."""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOWEST = 20_000
"""The lowest port that is chosen.

Lower ones appear in documentation pages, which tests run.
"""

EPHEMERAL_FROM = 32_768
"""The default for the first ephemeral port.

It is Linux's; other systems begin later.
"""

TRIES_MAX = 1_000


def free_ports(count: int) -> list[int]:
    """Return `count` different loopback ports that are unused and not in the system's ephemeral range.

    A server takes seconds until it listens, and a killed one is restarted. Meanwhile the system could give a
    port of the ephemeral range to any connection, or to a server on port 0.

    Raises OSError if there are too few.
    """
    end = max(_ephemeral_from(), LOWEST + count)
    dice = random.SystemRandom()
    found: list[int] = []
    for _ in range(TRIES_MAX):
        port = dice.randrange(LOWEST, end)
        if port not in found and is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"{count} free ports between {LOWEST} and {end} were not found in {TRIES_MAX} tries")


def _ephemeral_from() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return EPHEMERAL_FROM


def is_free(port: int) -> bool:
    """Return True if a server can listen on a port of 127.0.0.1."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
