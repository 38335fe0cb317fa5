"""Filling segments from one piece of an answer to the next."""

from __future__ import annotations

import asyncio
import socket

from penstock.common.operating_system import TCP_CORK


def cork(transport: asyncio.Transport, is_corked: bool) -> None:
    """Have the kernel fill its segments from one piece to the next, where it can.

    Pages of a file and what stands between files otherwise leave as segments of a few bytes, each of
    which counts as much against the congestion window as a full one. A reader's kernel that delays
    its acknowledgement then stops the connection for 40 ms every few megabytes.
    """
    if TCP_CORK is not None:
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, TCP_CORK, is_corked)
