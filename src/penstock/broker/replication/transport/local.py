"""The transport between nodes in one process: the event loop delivers each message in a call of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.replication.transport.links import Answered, Links, Receive

if TYPE_CHECKING:
    from penstock.common.failures import Failures


class Loop(Protocol):
    """The methods of an event loop that the transport uses."""

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> object: ...
    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> object: ...


class LocalTransport:
    """Carries messages between the attached nodes. Tests cut links in `links` or slow them down."""

    def __init__(self, loop: Loop, failures: Failures) -> None:
        self.links = Links()
        self._loop = loop
        self._failures = failures
        self._receivers: dict[int, Receive] = {}
        self._after: dict[int, Callable[[], None]] = {}
        self._lives: dict[int, int] = {}
        self._held: dict[int, list[Callable[[], None]]] = {}

    def attach(self, node: int, receive: Receive, after: Callable[[], None]) -> None:
        """Pass messages for a node to `receive` from now on; `after` is called after each message."""
        self._lives[node] = self._lives.get(node, 0) + 1
        self._receivers[node], self._after[node] = receive, after

    def detach(self, node: int) -> None:
        """Detach a node that has ended. Messages on their way to it are lost."""
        self._lives[node] = self._lives.get(node, 0) + 1
        self._receivers.pop(node, None)
        self._after.pop(node, None)
        self._held.pop(node, None)

    def pause(self, node: int) -> None:
        """Hold messages that arrive for a node, until `resume`."""
        self._held.setdefault(node, [])

    def resume(self, node: int) -> None:
        """Deliver the messages that `pause` held, and later ones as they arrive."""
        for deliver in self._held.pop(node, ()):
            self._loop.call_soon(deliver)

    def send(self, source: int, target: int, message: Any, answered: Answered) -> None:
        """Send a message. `answered` gets None if the link is cut or the target is not attached."""
        life = self._lives.get(source, 0)

        def answer(response: Any) -> None:
            if self.links.passes(target, source):
                self._pass(target, source, life, lambda: answered(response))
            else:
                self._pass(source, source, life, lambda: answered(None))

        if not self.links.passes(source, target) or target not in self._receivers:
            self._pass(source, source, life, lambda: answered(None))
            return
        receive = self._receivers[target]
        self._pass(source, target, self._lives[target], lambda: receive(source, message, answer))

    def _pass(self, source: int, target: int, life: int, deliver: Callable[[], None]) -> None:
        def run() -> None:
            if self._lives.get(target, 0) != life:
                return
            held = self._held.get(target)
            if held is not None:
                held.append(run)
                return
            with self._failures.barrier("replication", f"a message for broker {target}"):
                deliver()
            after = self._after.get(target)
            if after is not None:
                after()

        delay_s = self.links.delay_s(source, target)
        if delay_s > 0:
            self._loop.call_later(delay_s, run)
        else:
            self._loop.call_soon(run)
