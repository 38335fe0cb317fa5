"""Counts of what clients of Kafka 0.7 have sent, and of the outcomes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.gateway.counters import ClientCount

SOFTWARE = "Kafka 0.7"
"""What clients of 0.7, which send no name, are counted under."""


@dataclass
class Counts07:
    """Counts since the start of a gateway's listener for Kafka 0.7."""

    sets: int = 0
    """Message sets: the parts of PRODUCE and MULTIPRODUCE."""
    produced: int = 0
    """Messages that were handed to the cluster."""
    dropped: int = 0
    """Messages that were left out because they are too large, as a broker of 0.7 does it."""
    lost_sets: int = 0
    """Message sets of which the cluster did not take all. The connection was closed each time."""
    fetches: int = 0
    """The parts of FETCH and MULTIFETCH."""
    fetched: int = 0
    """Records that were sent to readers; those of a response that was not read count as well."""
    refused: int = 0
    """Fetches that were answered with an error code."""
    offsets: int = 0
    """Requests OFFSETS."""

    def rows(self) -> list[ClientCount]:
        """Return a row for each kind of request that has come, for the list of all clients."""
        kinds = {"Fetch": self.fetches, "ListOffsets": self.offsets, "Produce": self.sets}
        return [
            ClientCount(SOFTWARE, "", "", "", api, 0, count, 0, 0, False)
            for api, count in kinds.items()
            if count
        ]
