"""Answers in memory on their way to peers that read slowly or not at all, within the budget of kept state.

Records leave from files and are not counted. What is counted: records that were converted for old clients,
and large answers without records. Where there is no room for another one, the reader that has had one for
longest without reading is hung up on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.broker.network.connection import Connection
    from penstock.broker.requests.kept_state import KeptState

LOSS = 2
"""Who loses an answer loses a connection; sessions and ids of members go first."""


class KeptAnswers:
    """The answers that the connections of one server have not sent whole."""

    def __init__(self, kept: KeptState) -> None:
        self.size_bytes = 0
        """What all of them take in memory."""
        self._kept = kept
        self._sizes: dict[Connection, int] = {}
        kept.add("answers", lambda: self.size_bytes, self._hang_up_on_one, loss=LOSS)

    def keep(self, connection: Connection, size: int) -> bool:
        """Count the answer that a connection is going to send; False where there is no room for it.

        There is always room for the only one.
        """
        if not self._kept.has_room_for(size) and self._sizes:
            return False
        self._sizes[connection] = size
        self.size_bytes += size
        return True

    def drop(self, connection: Connection) -> None:
        """The answer of a connection has been sent, or never will be; none is fine."""
        self.size_bytes -= self._sizes.pop(connection, 0)

    def _hang_up_on_one(self) -> bool:
        """Close the connection whose peer has not read for longest; whether there was one."""
        if not self._sizes:
            return False
        slowest = next((each for each in self._sizes if each.is_blocked), next(iter(self._sizes)))
        self.drop(slowest)
        slowest.close("its answer is not read, and others need the memory (penstock.kept.state.bytes.max)")
        return True
