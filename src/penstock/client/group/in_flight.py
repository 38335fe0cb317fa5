"""The requests of a group member: those to be sent, and those that await a response."""

from __future__ import annotations

from collections.abc import Callable

from penstock.client.group.requests import Call, Outgoing


class InFlight:
    """The requests of a group member that await responses, by ticket. Unknown tickets are ignored.

    A ticket is a number that is passed back with the response.
    """

    def __init__(self) -> None:
        self.outbox: list[Outgoing] = []
        self._tickets = 0
        self._calls: dict[int, Call] = {}

    def send(self, call: Call, node: int | None, timeout_ms: float) -> None:
        """Put a request into the outbox. `node` is None for any broker."""
        self._tickets += 1
        self._calls[self._tickets] = call
        self.outbox.append(Outgoing(self._tickets, call, node, timeout_ms))

    def take(self, ticket: int) -> Call | None:
        """Return the request with this ticket, or None if it was answered or dropped already."""
        return self._calls.pop(ticket, None)

    def has(self, kind: type) -> bool:
        """Return True if a request of this class awaits a response."""
        return any(isinstance(call, kind) for call in self._calls.values())

    def forget(self, *kinds: type) -> None:
        """Drop requests of the given classes, so that their responses are ignored."""
        self.keep(lambda call: not isinstance(call, kinds))

    def keep(self, is_kept: Callable[[Call], bool]) -> None:
        """Drop the requests for which `is_kept` returns False, so that their responses are ignored."""
        self._calls = {ticket: call for ticket, call in self._calls.items() if is_kept(call)}
