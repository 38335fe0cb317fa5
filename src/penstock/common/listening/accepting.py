"""Accepting connections without ever running out of file descriptors.

asyncio's own accept loop logs every failed attempt and tries hundreds of times a second when the process is
at its limit of descriptors. An `Acceptor` stops before that: it reserves descriptors for log segments, stops
accepting while no other descriptor is free, logs that once a minute, and continues when one is free again.
Connections wait in the kernel's queue meanwhile.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from penstock.common.failures import REPEAT_S, Failures
from penstock.common.logs import logger_named
from penstock.common.operating_system import REUSE_ADDRESS, descriptor_limits, raise_descriptor_limit_to

logger = logger_named("penstock.broker")

DESCRIPTORS_RESERVED = 128
"""The number of file descriptors that connections leave free for log segments; a quarter of the limit if that
is less."""

DESCRIPTORS_WANTED = 1 << 20
"""The highest soft limit to set. Some systems have hard limits of a thousand million, and child processes may
loop over all possible descriptors."""

AT_ONCE = 64
"""The maximum number of connections that are accepted in a row, before the event loop does other work."""

REFUSED_MAX = 1000
"""The maximum number of refused connections that stay open for a while; beyond that, the oldest is closed."""

RETRY_S = 0.5
"""The interval in seconds between checks for free file descriptors."""

_SHORTAGES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files towards the hard limit; return the soft limit, -1 if there is none.

    Use it in programs that are a broker and nothing else, since the limit applies to the whole process.
    """
    soft, hard = descriptor_limits()
    if soft is None:
        return -1
    wanted = DESCRIPTORS_WANTED if hard is None else min(hard, DESCRIPTORS_WANTED)
    for limit in (wanted, 10_240):  # macOS allows no more than this, although its hard limit is higher
        if limit > soft and raise_descriptor_limit_to(limit):
            return limit
    return soft


class AcceptGate(Protocol):
    """Decides when an acceptor may accept connections, for example within limits on connections."""

    def wait_s(self) -> float:
        """Count a new connection; return the seconds for which it has to wait."""

    def has_room(self) -> bool:
        """Return True if one more connection may be accepted.

        After it has returned False, `Acceptor.look_for_room` must be called as soon as there is room.
        """

    def refuse_s(self, address: str) -> float:
        """Return 0 to accept a connection from `address`, else the seconds after which to close it again."""

    def enter(self) -> None:
        """Count a connection as accepted."""

    def leave(self) -> None:
        """Stop counting an accepted connection that could not be set up."""


class Acceptor:
    """Accepts connections of listening sockets. `make` returns the protocol object of a connection.

    A `gate` decides when connections are accepted; while one connection waits for it, all later ones wait.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        make: Callable[[], asyncio.BaseProtocol],
        failures: Failures,
        gate: AcceptGate | None = None,
    ) -> None:
        self._loop = loop
        self._make = make
        self._failures = failures
        self._gate = gate
        self._held: tuple[socket.socket, str] | None = None
        self._holding: asyncio.TimerHandle | None = None
        self._refused: dict[socket.socket, asyncio.TimerHandle] = {}
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._said_at = -REPEAT_S
        self._is_stopped = False
        soft = descriptor_limits().soft
        if soft is None:
            self._number_max = DESCRIPTORS_WANTED * 1024
        else:
            self._number_max = soft - min(DESCRIPTORS_RESERVED, soft // 4)

    def start(self, listener: socket.socket, backlog: int) -> None:
        """Listen on a bound socket, which belongs to the acceptor from now on.

        Raises:
            OSError: the socket cannot listen.
        """
        listener.setblocking(False)
        listener.listen(backlog)
        self._sockets.append(listener)
        self._loop.add_reader(listener, self._accept, listener)

    @property
    def is_paused(self) -> bool:
        """True while no connection is accepted because file descriptors are short."""
        return self._retry is not None

    @property
    def holds_connection(self) -> bool:
        """True while a connection waits for the gate."""
        return self._held is not None

    async def stop(self) -> None:
        """Accept no more connections.

        Returns when all connections accepted before have their protocol objects.
        """
        self._is_stopped = True
        if self._retry is not None:
            self._retry.cancel()
        for listener in self._sockets:
            self._loop.remove_reader(listener)
        if self._holding is not None:
            self._holding.cancel()
        if self._held is not None:
            self._held[0].close()
        for refused in list(self._refused):
            self._close_refused(refused)
        while self._tasks:
            await asyncio.wait(self._tasks)
        for listener in self._sockets:
            listener.close()
        self._sockets.clear()

    # --- taking in ---------------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        try:
            for _ in range(AT_ONCE):
                connection, peer = listener.accept()
                if connection.fileno() >= self._number_max:
                    connection.close()
                    self._pause("file descriptors are needed for the logs")
                    return
                try:
                    if not self._pass(connection, str(peer[0]) if peer else ""):
                        return
                except BaseException:
                    connection.close()
                    raise
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            pass  # the queue is empty, or the peer has gone again
        except OSError as error:
            if error.errno not in _SHORTAGES:
                self._failures.caught("accept", "taking in a connection")
            self._pause(error.strerror or str(error))
        except Exception:
            self._failures.caught("accept", "taking in a connection")
            self._pause("an error of the broker")

    def _pass(self, connection: socket.socket, address: str) -> bool:
        """Accept a connection, or hold it until the gate allows it. Return False if it was not accepted."""
        if self._gate is None:
            self._begin(connection)
            return True
        wait_s = self._gate.wait_s()
        if wait_s <= 0 and self._gate.has_room():
            self._admit(connection, address)
            return True
        for listener in self._sockets:
            self._loop.remove_reader(listener)
        self._held = connection, address
        if wait_s > 0:
            self._holding = self._loop.call_later(wait_s, self._end_wait)
        return False

    def _end_wait(self) -> None:
        self._holding = None
        self.look_for_room()

    def look_for_room(self) -> None:
        """Accept the connection that waits for the gate, if there is one and the gate has room now."""
        if self._held is None or self._holding is not None or self._gate is None or self._is_stopped:
            return
        if not self._gate.has_room():
            return
        held, self._held = self._held, None
        try:
            self._admit(*held)
        except Exception:
            held[0].close()
            self._failures.caught("accept", "taking in a connection")
        if self._retry is None:
            for listener in self._sockets:
                self._loop.add_reader(listener, self._accept, listener)

    def _admit(self, connection: socket.socket, address: str) -> None:
        assert self._gate is not None
        refuse_s = self._gate.refuse_s(address)
        if refuse_s <= 0:
            self._gate.enter()
            self._begin(connection)
            return
        if len(self._refused) >= REFUSED_MAX:
            self._close_refused(next(iter(self._refused)))
        self._refused[connection] = self._loop.call_later(refuse_s, self._close_refused, connection)

    def _close_refused(self, connection: socket.socket) -> None:
        self._refused.pop(connection).cancel()
        connection.close()

    def _begin(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        task = self._loop.create_task(self._take_in(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take_in(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, connection)
        except Exception:
            connection.close()
            if self._gate is not None:
                self._gate.leave()
            self._failures.caught("accept", "taking in a connection")

    # --- no room -----------------------------------------------------------------------------------------

    def _pause(self, reason: str) -> None:
        if self._is_stopped or self._retry is not None:
            return
        for listener in self._sockets:
            self._loop.remove_reader(listener)
        self._retry = self._loop.call_later(RETRY_S, self._look_again)
        if self._loop.time() - self._said_at >= REPEAT_S:
            self._said_at = self._loop.time()
            logger.warning(
                "no room for another connection at port %d (%s); new ones wait until there is. Raise the "
                "limit of open files (ulimit -n), or lower max.connections",
                self._sockets[0].getsockname()[1],
                reason,
            )

    def _look_again(self) -> None:
        self._retry = None
        if self._is_stopped:
            return
        if self._has_room():
            if self._held is not None:
                return  # whose end of waiting goes on
            for listener in self._sockets:
                self._loop.add_reader(listener, self._accept, listener)
        else:
            self._retry = self._loop.call_later(RETRY_S, self._look_again)

    def _has_room(self) -> bool:
        """Return True if a new file descriptor would leave the reserved descriptors free."""
        try:
            number = os.dup(self._sockets[0].fileno())
        except OSError:
            return False
        os.close(number)
        return number < self._number_max


def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """Return sockets bound to every address of a host. An empty host means all addresses of the machine.

    Raises:
        OSError: the machine does not have such an address, or the port is taken.
    """
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    bound: list[socket.socket] = []
    try:
        for family, kind, number, _, address in dict.fromkeys(found):
            try:
                one = socket.socket(family, kind, number)
            except OSError:
                continue  # a family that this machine does not have
            bound.append(one)
            if REUSE_ADDRESS is not None:
                one.setsockopt(socket.SOL_SOCKET, REUSE_ADDRESS, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
    except OSError:
        for one in bound:
            one.close()
        raise
    if not bound:
        raise OSError(errno.EADDRNOTAVAIL, f"no address of {host} can be listened on")
    return bound


def streaming(
    loop: asyncio.AbstractEventLoop,
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
    limit_bytes: int,
) -> Callable[[], asyncio.BaseProtocol]:
    """Return a factory of asyncio protocol objects. `serve` handles each connection in a separate task."""

    def make() -> asyncio.BaseProtocol:
        reader = asyncio.StreamReader(limit=limit_bytes, loop=loop)
        return asyncio.StreamReaderProtocol(reader, serve, loop=loop)

    return make
