"""Sets TCP_CORK, so that the kernel fills TCP segments across the parts of a large response."""

from __future__ import annotations

import asyncio
import socket

from penstock.common.operating_system import TCP_CORK


def cork(transport: asyncio.Transport, is_corked: bool) -> None:
    """Let the kernel fill TCP segments across the parts of a response, where the system has TCP_CORK.

    Without it, the bytes between regions of files leave as segments of a few bytes, and each segment counts
    as much against the congestion window as a full one. A receiver that delays its acknowledgement then stops
    the connection for 40 ms every few megabytes.
    """
    if TCP_CORK is not None:
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, TCP_CORK, is_corked)
