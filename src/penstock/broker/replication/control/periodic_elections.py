"""Periodic elections by the controller: of preferred leaders, and unclean elections where allowed.

Like the controller, the module does no I/O and reads no clock. The rules are those of Apache Kafka's KRaft
controller, which moves every partition that it can: `leader.imbalance.per.broker.percentage` has no effect
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.replication.control.elections import ElectionKind

if TYPE_CHECKING:
    from penstock.broker.replication.control.controller import Controller
    from penstock.protocol.message import Message

UNCLEAN_S = 300.0
"""The default in seconds of `unclean.leader.election.interval.ms`, a setting that Apache Kafka does not list.
It is the interval of elections for partitions without a leader whose topics allow unclean elections."""

ELECTIONS_MAX = 1_000
"""The maximum number of elections in one `take_due`; any further elections are due at once."""


class PeriodicElections:
    """Schedules and holds the controller's periodic elections.

    `preferred_s` is `leader.imbalance.check.interval.seconds`, or None if `auto.leader.rebalance.enable` is
    off. `unclean_s` is `unclean.leader.election.interval.ms` in seconds.
    """

    def __init__(
        self, controller: Controller, now_s: float, preferred_s: float | None, unclean_s: float = UNCLEAN_S
    ) -> None:
        self._controller = controller
        self._intervals: dict[ElectionKind, float] = {ElectionKind.UNCLEAN: unclean_s}
        if preferred_s is not None:
            self._intervals[ElectionKind.PREFERRED] = preferred_s
        self._due = {kind: now_s + interval_s for kind, interval_s in self._intervals.items()}

    def take_due(self, now_s: float) -> list[Message]:
        """Return the records of the elections that are due, and schedule the next ones."""
        records: list[Message] = []
        for kind, interval_s in self._intervals.items():
            if now_s >= self._due[kind]:
                found = self._controller.elections(kind, ELECTIONS_MAX)
                self._due[kind] = now_s if len(found) >= ELECTIONS_MAX else now_s + interval_s
                if found:
                    # The next kind of election must see the changes of this one.
                    records = found
                    break
        return records
