"""`FaultInjection`: the faults and the observers of a broker, or of all brokers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.broker.faults.answers import answering_faults
from penstock.broker.faults.connection_faults import ConnectionFaults
from penstock.broker.faults.faults import Faults
from penstock.broker.interceptors import Stage

if TYPE_CHECKING:
    from penstock.broker.network.connection import Connection
    from penstock.broker.network.server import Server
    from penstock.broker.requests.routes import Interceptor


class FaultInjection:
    """One set of `Faults` and of observers, which `install` gives to the server of each broker."""

    def __init__(self) -> None:
        self.faults = Faults()
        self._observers: tuple[Interceptor, ...] = ()

    def install(self, server: Server) -> None:
        """Give them to a server, its open connections included. Call it in the thread of the server."""

        def faults_of(connection: Connection) -> ConnectionFaults:
            return ConnectionFaults(server, connection, self.faults)

        server.set_faults(faults_of)
        chain = server.node.interceptors
        chain.set(Stage.FAULTS, answering_faults(self.faults))
        chain.set(Stage.EFFECTS, *self._observers)

    def observe(self, interceptor: Interceptor, changed: Callable[[], None]) -> Callable[[], None]:
        """Add an observer, which stands next to the handlers; return a function that takes it away.

        `changed` is called after both.
        """

        def remove() -> None:
            self._observers = tuple(each for each in self._observers if each is not interceptor)
            changed()

        self._observers += (interceptor,)
        changed()
        return remove
