"""Large responses in memory that are being sent, within the budget `penstock.kept.state.bytes.max`.

Records that are sent directly from files are not counted; records converted for old clients and large
responses without records are. If memory is needed, the connection that has been sending for longest to a
client that does not read is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.broker.requests.kept_state import KeptState

LOSS = 2
"""The position of unsent responses in the eviction order of the memory budget. Fetch sessions and
member ids have lower numbers, and are evicted before a connection is closed.
"""


class Sending(Protocol):
    """The interface of a connection that sends a large response."""

    @property
    def is_blocked(self) -> bool:
        """True while the transport's buffer is full, because the client does not read."""

    def close(self, reason: str) -> None:
        """Close the connection at once."""


class KeptAnswers:
    """Counts the memory of the large responses that one server's connections have not sent completely."""

    def __init__(self, kept: KeptState) -> None:
        self.size_bytes = 0
        """The memory that the counted responses take, in bytes."""
        self._kept = kept
        self._sizes: dict[Sending, int] = {}
        kept.add("answers", lambda: self.size_bytes, self._hang_up_on_one, loss=LOSS)

    def keep(self, connection: Sending, size: int) -> bool:
        """Count the response that a connection is about to send; return False if the budget is exceeded.

        If no other response is counted, the response is always accepted.
        """
        if not self._kept.has_room_for(size) and self._sizes:
            return False
        self._sizes[connection] = size
        self.size_bytes += size
        return True

    def drop(self, connection: Sending) -> None:
        """Stop counting a connection's response, if there is one: it has been sent or abandoned."""
        self.size_bytes -= self._sizes.pop(connection, 0)

    def _hang_up_on_one(self) -> bool:
        """Close the oldest blocked connection, or else the oldest one; return False if there is none."""
        if not self._sizes:
            return False
        slowest = next((each for each in self._sizes if each.is_blocked), next(iter(self._sizes)))
        self.drop(slowest)
        slowest.close("its answer is not read, and others need the memory (penstock.kept.state.bytes.max)")
        return True
