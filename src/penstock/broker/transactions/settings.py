"""The settings of transactions, read from the broker's configuration."""

from __future__ import annotations

from typing import NamedTuple


class TransactionSettings(NamedTuple):
    """The settings of transactions. Times are in milliseconds; defaults are those of Apache Kafka 4.3."""

    max_timeout_ms: int = 900_000
    """`transaction.max.timeout.ms`: the longest transaction timeout that a producer may request."""
    abort_interval_ms: int = 10_000
    """`transaction.abort.timed.out.transaction.cleanup.interval.ms`: the interval of timeout checks."""
    expiration_ms: int = 604_800_000
    """`transactional.id.expiration.ms`: the time until an unused id expires."""
    expiration_interval_ms: int = 3_600_000
    """`transaction.remove.expired.transaction.cleanup.interval.ms`: the interval of checks for expired
    transactional ids."""
    two_phase_commit: bool = False
    """`transaction.two.phase.commit.enable`: True if producers may request transactions without timeout."""
