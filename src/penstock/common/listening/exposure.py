"""A check whether other machines can reach a listener, and a warning if it is unprotected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import logging


class _Bound(Protocol):
    """A bound socket, or asyncio's wrapper of one."""

    def getsockname(self) -> Any: ...


def is_loopback(address: str) -> bool:
    """Return True if only this machine can reach a socket bound to `address`, an IP address."""
    if address.startswith("127."):
        return True
    import ipaddress  # takes a millisecond to load, and most brokers listen on 127.0.0.1

    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def warn_if_exposed(listener: _Bound, what: str, logger: logging.Logger) -> None:
    """Log a warning if other machines can reach a bound socket without authentication.

    `what` completes the text of the log: what machines without authentication can do there.
    """
    host, port = listener.getsockname()[:2]
    if not is_loopback(host):
        logger.warning(
            "listening on %s, port %d, without authentication: all machines that reach this address can %s; "
            "listen on 127.0.0.1, or let a firewall keep others away",
            host,
            port,
            what,
        )
