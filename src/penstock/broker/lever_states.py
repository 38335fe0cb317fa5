"""States of replicas, partitions and brokers, as `Cluster` and the command ``penstock cluster`` show them."""

from __future__ import annotations

from typing import NamedTuple


class Replica(NamedTuple):
    """One replica of a partition: its broker, and the offsets of its log."""

    node: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int


class PartitionState(NamedTuple):
    """One partition in the controller's metadata. `leader` is -1 if the partition has no leader."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class NodeState(NamedTuple):
    """The state of one broker of a cluster: running, fenced, following leaders, reachable by clients."""

    broker: int
    address: str
    state: str
    """``running``, ``paused`` or ``stopped``."""
    is_fenced: bool
    """True if the controller has fenced the broker."""
    is_frozen: bool
    """True if a test has stopped the broker from fetching from leaders."""
    is_cut_from_clients: bool
