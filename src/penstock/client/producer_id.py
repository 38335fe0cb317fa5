"""The producer id and epoch by which brokers recognise repetitions and zombies (KIP-98)."""

from __future__ import annotations

from typing import NamedTuple


class ProducerId(NamedTuple):
    """What makes repetitions recognisable; `NO_PRODUCER_ID` where nothing does."""

    producer_id: int
    epoch: int


NO_PRODUCER_ID = ProducerId(-1, -1)
