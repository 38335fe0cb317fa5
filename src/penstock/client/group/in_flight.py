"""Requests of a member: those to be sent, and those whose answers are awaited."""

from __future__ import annotations

from collections.abc import Callable

from penstock.client.group.requests import Call, Outgoing


class InFlight:
    """Requests by ticket. An answer whose ticket is not known any more is ignored."""

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
        """Return the request that an outcome belongs to; None if it was answered or dropped."""
        return self._calls.pop(ticket, None)

    def has(self, kind: type) -> bool:
        """Return whether a request of this kind is under way."""
        return any(isinstance(call, kind) for call in self._calls.values())

    def forget(self, *kinds: type) -> None:
        """Ignore the answers to requests of these kinds."""
        self.keep(lambda call: not isinstance(call, kinds))

    def keep(self, is_kept: Callable[[Call], bool]) -> None:
        """Ignore the answers to all other requests."""
        self._calls = {ticket: call for ticket, call in self._calls.items() if is_kept(call)}
