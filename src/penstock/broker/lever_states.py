"""What a cluster with levers shows of itself: replicas, partitions and brokers."""

from __future__ import annotations

from typing import NamedTuple


class Replica(NamedTuple):
    """One replica of a partition as its node has it."""

    node: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int


class PartitionState(NamedTuple):
    """One partition as the controller has it. `leader` is -1 where there is none."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class NodeState(NamedTuple):
    """One broker, and what levers have done to it."""

    broker: int
    address: str
    state: str
    """``running``, ``paused`` or ``stopped``."""
    is_fenced: bool
    """Whether the controller takes it for dead."""
    is_frozen: bool
    """Whether it follows no leaders."""
    is_cut_from_clients: bool
