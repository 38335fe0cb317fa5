"""The cluster and name of a sink, and the transactional ids that it uses. No I/O."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.security.secrets import Secret

STATE_TOPIC = "__penstock_sinks"
"""The compacted topic that stores the decisions of sinks: two records for each query."""

DEFAULT_PREFIX = "penstock"

TRANSACTION_TIMEOUT_MS = 300_000
"""The default transaction timeout of tasks in ms: the longest time from a batch's first record to its commit.
If a query dies, its open transactions block `read_committed` consumers for this time. Kafka's default, a
minute, is too short.
"""


@dataclass(frozen=True, slots=True)
class SinkPlace:
    """The cluster, name, client settings and state topic of a sink, and transactional ids made from them."""

    sink: str
    """The prefix of all transactional ids of the sink: equal in all runs of a query, and used by no other
    query."""
    bootstrap_servers: str
    client: Mapping[str, str | Secret] = field(default_factory=dict)
    """A dict from Kafka's names of settings to the user's values, for the sink's producers."""
    state_topic: str = STATE_TOPIC

    @property
    def driver_id(self) -> str:
        """The transactional id of the sink's driver, under which decisions are written."""
        return f"{self.sink}-driver"

    @property
    def copy_id(self) -> str:
        """The transactional id under which rows of aborted transactions are copied."""
        return f"{self.sink}-copy"

    @property
    def gate_id(self) -> str:
        """The transactional id of the gate, which makes the rows of a job visible at once."""
        return f"{self.sink}-gate"

    @property
    def task_prefix(self) -> str:
        return f"{self.sink}-task-"

    def task_id(self, batch: int, partition: int, attempt: int, generation: int = 0) -> str:
        """Return the transactional id of an attempt of a task.

        The id is reused two batches later, so that coordinators store few ids. It is not reused earlier:
        while a batch is being committed, the batches before and after it use other ids. `generation` is above
        0 if an earlier run has left a transaction open under the plain id.
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
        """Return the partition that stores this sink's state; the state topic has `count` partitions."""
        return zlib.crc32(self.sink.encode()) % count

    def settings(self, **more: object) -> dict[str, object]:
        """Return the settings of a producer of this sink; `more` overrides the user's settings."""
        settings: dict[str, object] = dict(self.client)
        settings.setdefault("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
        for name, value in more.items():
            settings.pop(name, None)
            settings[name.replace("_", ".")] = value
        return settings
