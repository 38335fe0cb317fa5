"""The producer id and epoch, by which brokers recognise duplicates and fenced producers (KIP-98)."""

from __future__ import annotations

from typing import NamedTuple


class ProducerId(NamedTuple):
    """A producer id and epoch. `NO_PRODUCER_ID` stands for a producer without idempotence."""

    producer_id: int
    epoch: int


NO_PRODUCER_ID = ProducerId(-1, -1)
