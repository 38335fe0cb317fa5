"""Where a sink writes, and the names that it uses there. Values only."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.security.secrets import Secret

STATE_TOPIC = "__penstock_sinks"
"""The topic that keeps what sinks have decided. Compacted: it holds two records for each query."""

DEFAULT_PREFIX = "penstock"

TRANSACTION_TIMEOUT_MS = 300_000
"""How long a batch may take from its first record to its commit, and how long readers of committed rows wait
for one that has died for good. Kafka's default of a minute is short for a task."""


@dataclass(frozen=True, slots=True)
class SinkPlace:
    """A cluster, and one sink in it."""

    sink: str
    """Its name: a prefix of all its transactional ids, the same for all runs of a query and no other's."""
    bootstrap_servers: str
    client: Mapping[str, str | Secret] = field(default_factory=dict)
    """Settings of its producers."""
    state_topic: str = STATE_TOPIC

    @property
    def driver_id(self) -> str:
        """The transactional id under which decisions are written: who has it last is the driver."""
        return f"{self.sink}-driver"

    @property
    def copy_id(self) -> str:
        """The transactional id under which rows of aborted transactions are written again."""
        return f"{self.sink}-copy"

    @property
    def gate_id(self) -> str:
        """The transactional id of the gate that lets the rows of a job appear at once."""
        return f"{self.sink}-gate"

    @property
    def task_prefix(self) -> str:
        return f"{self.sink}-task-"

    def task_id(self, batch: int, partition: int, attempt: int, generation: int = 0) -> str:
        """Return the transactional id of an attempt of a task.

        Used again two batches later, so that coordinators keep few of them, and not earlier: while a batch is
        being committed, nothing that belongs to its neighbours touches its ids. `generation` sets an id
        apart from one whose transaction a former run has left open.
        """
        return f"{self.task_prefix}{batch % 2}-{partition}-{attempt}" + (
            f"-{generation}" if generation else ""
        )

    @property
    def decision_key(self) -> bytes:
        return f"{self.sink} decided".encode()

    @property
    def finished_key(self) -> bytes:
        return f"{self.sink} finished".encode()

    def state_partition(self, count: int) -> int:
        """Return which of `count` partitions of the state topic keeps this sink."""
        return zlib.crc32(self.sink.encode()) % count

    def settings(self, **more: object) -> dict[str, object]:
        """Return the settings of a producer of this sink; `more` wins over what the user says."""
        settings: dict[str, object] = dict(self.client)
        settings.setdefault("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
        for name, value in more.items():
            settings.pop(name, None)
            settings[name.replace("_", ".")] = value
        return settings
