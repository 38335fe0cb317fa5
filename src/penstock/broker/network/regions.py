"""Sending regions of files: filling segments from piece to piece, and reading what TLS has to encrypt."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

from penstock.log.contract import FileRegion

TCP_CORK: int | None = getattr(socket, "TCP_CORK", None)
"""Linux has it; elsewhere nothing is corked."""


def cork(transport: asyncio.Transport, is_corked: bool) -> None:
    """Have the kernel fill its segments from one piece to the next, where it can.

    Pages of a file and what stands between files otherwise leave as segments of a few bytes, each of
    which counts as much against the congestion window as a full one. A reader's kernel that delays
    its acknowledgement then stops the connection for 40 ms every few megabytes.
    """
    if TCP_CORK is not None:
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, TCP_CORK, is_corked)


def blocks_of(region: FileRegion, size: int) -> Iterator[memoryview]:
    """The bytes of a region in blocks of `size`, for connections with TLS.

    Raises:
        OSError: the file cannot be read, or has become shorter.
    """
    end = region.position + region.size
    for position in range(region.position, end, size):
        wanted = min(size, end - position)
        block = FileRegion(region.file, position, wanted).read()
        if len(block) < wanted:
            raise OSError(f"{region!r} has become shorter")
        yield memoryview(block)
