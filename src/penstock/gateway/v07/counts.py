"""Counts of the messages and requests of Kafka 0.7 clients, and of their outcomes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.gateway.counters import ClientCount

SOFTWARE = "Kafka 0.7"
"""The software name under which clients of Kafka 0.7 are counted, since they send no name."""


@dataclass
class Counts07:
    """The counts of messages and requests since the start of a gateway's listener for Kafka 0.7."""

    sets: int = 0
    """The number of message sets in PRODUCE and MULTIPRODUCE requests."""
    produced: int = 0
    """The number of messages that were passed to the producer for the cluster."""
    dropped: int = 0
    """The number of messages that were dropped because they are too large, as a broker of 0.7 does."""
    lost_sets: int = 0
    """The number of message sets that the cluster did not accept completely. For each, the gateway closes the
    client's connection."""
    fetches: int = 0
    """The number of fetched partitions in FETCH and MULTIFETCH requests."""
    fetched: int = 0
    """The number of records in responses to fetches, even if the client did not read the response."""
    refused: int = 0
    """The number of fetches that were answered with an error code."""
    offsets: int = 0
    """The number of OFFSETS requests."""

    def rows(self) -> list[ClientCount]:
        """Return the counts of PRODUCE, FETCH and OFFSETS as rows for `Gateway.clients`."""
        kinds = {"Fetch": self.fetches, "ListOffsets": self.offsets, "Produce": self.sets}
        return [
            ClientCount(SOFTWARE, "", "", "", api, 0, count, 0, 0, False)
            for api, count in kinds.items()
            if count
        ]
