"""The links between the nodes of a cluster and the controller, which tests can cut and slow down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

Answered: TypeAlias = Callable[[Any], None]
"""A callback for the response to a message. It is called with None if no response will come."""

Receive: TypeAlias = Callable[[int, Any, Answered], None]
"""A handler of messages. Its arguments are the source, the message, and the callback for the response."""


class Transport(Protocol):
    """Carries messages between nodes. It may lose, delay, repeat and reorder them; it never raises."""

    def send(self, source: int, target: int, message: Any, answered: Answered) -> None:
        """Send a message; `answered` is called at most once, and never from within this call."""


class Links:
    """The state of the links between nodes, which tests cut and slow down."""

    def __init__(self) -> None:
        self._cut: set[tuple[int, int]] = set()
        self._delays: dict[tuple[int, int], float] = {}

    def cut(self, one: int, other: int) -> None:
        """Cut the link between two nodes, in both directions."""
        self._cut |= {(one, other), (other, one)}

    def heal(self, one: int | None = None, other: int | None = None) -> None:
        """Restore the link between two nodes, all links of one node, or all links; also remove delays."""
        wanted = {each for each in (one, other) if each is not None}
        self._cut = {link for link in self._cut if not wanted <= set(link)}
        self._delays = {link: delay for link, delay in self._delays.items() if not wanted <= set(link)}

    def slow(self, one: int, other: int, delay_s: float) -> None:
        """Delay every message between two nodes by `delay_s` seconds."""
        self._delays[one, other] = self._delays[other, one] = delay_s

    def passes(self, source: int, target: int) -> bool:
        """Return True if a message from `source` reaches `target` now."""
        return (source, target) not in self._cut

    def delay_s(self, source: int, target: int) -> float:
        """Return the delay of messages on a link, in seconds."""
        return self._delays.get((source, target), 0.0)
