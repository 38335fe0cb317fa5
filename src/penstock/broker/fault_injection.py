"""`FaultInjection`: installs faults and observers in a broker, or in all brokers of a cluster."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.broker.faults.connection_faults import ConnectionFaults
    from penstock.broker.faults.faults import Faults
    from penstock.broker.network.connection import ServedConnection
    from penstock.broker.network.server import Server
    from penstock.broker.requests.routes import Interceptor


class FaultInjection:
    """Holds the faults and observers of one or more brokers, and installs them in the brokers' servers.

    Faults and observers are created, and their modules imported, on first use, since most brokers have none.
    """

    def __init__(
        self, servers: Callable[[], Iterable[Server]], loop: Callable[[], AbstractEventLoop | None]
    ) -> None:
        """Prepare without faults. `servers` returns the running servers.

        `loop` returns the event loop of the servers, or None while no server runs.
        """
        self._servers = servers
        self._loop = loop
        self._faults: Faults | None = None
        self._observers: tuple[Interceptor, ...] = ()

    @property
    def faults(self) -> Faults:
        """The faults of the brokers. Changes apply to requests that clients send from now on."""
        if self._faults is None:
            from penstock.broker.faults.faults import Faults

            self._faults = Faults()
            self._spread()
        return self._faults

    def observe(self, interceptor: Interceptor) -> Callable[[], None]:
        """Add an observer, an interceptor directly around the handlers; return a function that removes it."""
        _ = self.faults  # a server gets observers and faults together

        def remove() -> None:
            self._observers = tuple(each for each in self._observers if each is not interceptor)
            self._spread()

        self._observers += (interceptor,)
        self._spread()
        return remove

    def install(self, server: Server) -> None:
        """Install the faults and observers, if there are any, in a server and its open connections.

        Call this method in the thread of the server.
        """
        faults = self._faults
        if faults is None:
            return
        from penstock.broker.faults.answers import answering_faults
        from penstock.broker.faults.connection_faults import ConnectionFaults
        from penstock.broker.interceptors import Stage

        def faults_of(connection: ServedConnection) -> ConnectionFaults:
            return ConnectionFaults(server, connection, faults)

        server.set_faults(faults_of)
        chain = server.node.interceptors
        chain.set(Stage.FAULTS, answering_faults(faults))
        chain.set(Stage.EFFECTS, *self._observers)

    def _spread(self) -> None:
        """Install the faults and observers in all running servers, before any request that follows."""

        def install() -> None:
            for server in self._servers():
                self.install(server)

        loop = self._loop()
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(install)
