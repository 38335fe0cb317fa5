"""Sets TCP_CORK, so that the kernel sends full TCP segments although a response is written in parts."""

from __future__ import annotations

import asyncio
import socket

from penstock.common.operating_system import TCP_CORK


def cork(transport: asyncio.Transport, is_corked: bool) -> None:
    """Let the kernel send full TCP segments although a response is written in parts, if it has TCP_CORK.

    Without TCP_CORK, the bytes between regions of files are sent as small segments, and each of them counts
    as much against the congestion window as a full one. A receiver that delays its acknowledgement then stops
    the connection for 40 ms every few megabytes.
    """
    if TCP_CORK is not None:
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, TCP_CORK, is_corked)
