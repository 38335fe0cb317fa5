"""Chaos tests: each run injects faults drawn from a seed, and a checker looks for lost or repeated work.

    @chaos(seed=7, runs=200, at_least_once=True)
    def test_billing(kafka_broker, kafka_history):
        kafka_history.flow("orders", "bills", group="billing", of=lambda record: record.key)
        bill_everything(kafka_broker.bootstrap_servers)

Each run has its own broker and its own faults. A run that fails is repeated with fewer faults. The report
names the seed, the shortest list of faults that still fails, the findings, and how to replay the run.
`History`, the checker, can also be used alone: without faults, and with any client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.testing.chaos.findings import AbortedRead as AbortedRead
    from penstock.testing.chaos.findings import DoubledWork as DoubledWork
    from penstock.testing.chaos.findings import DuplicateWrite as DuplicateWrite
    from penstock.testing.chaos.findings import Finding as Finding
    from penstock.testing.chaos.findings import HistoryError as HistoryError
    from penstock.testing.chaos.findings import InconsistentOffsets as InconsistentOffsets
    from penstock.testing.chaos.findings import LostWork as LostWork
    from penstock.testing.chaos.findings import LostWrite as LostWrite
    from penstock.testing.chaos.findings import NonMonotonicPoll as NonMonotonicPoll
    from penstock.testing.chaos.findings import OffsetAheadOfWork as OffsetAheadOfWork
    from penstock.testing.chaos.findings import OffsetsOutsideTransaction as OffsetsOutsideTransaction
    from penstock.testing.chaos.findings import PollSkip as PollSkip
    from penstock.testing.chaos.findings import PrecommittedRead as PrecommittedRead
    from penstock.testing.chaos.findings import ReorderedWork as ReorderedWork
    from penstock.testing.chaos.findings import ReorderedWrite as ReorderedWrite
    from penstock.testing.chaos.findings import UndoneWork as UndoneWork
    from penstock.testing.chaos.findings import UnendedTransaction as UnendedTransaction
    from penstock.testing.chaos.findings import UnheededFailure as UnheededFailure
    from penstock.testing.chaos.findings import WorkAfterRebalance as WorkAfterRebalance
    from penstock.testing.chaos.history import History as History
    from penstock.testing.chaos.plan import FAULTS as FAULTS
    from penstock.testing.chaos.plan import Plan as Plan
    from penstock.testing.chaos.runs import ChaosError as ChaosError
    from penstock.testing.chaos.runs import chaos as chaos
    from penstock.testing.chaos.runs import explore as explore

_FINDINGS = (
    "AbortedRead",
    "DoubledWork",
    "DuplicateWrite",
    "Finding",
    "HistoryError",
    "InconsistentOffsets",
    "LostWork",
    "LostWrite",
    "NonMonotonicPoll",
    "OffsetAheadOfWork",
    "OffsetsOutsideTransaction",
    "PollSkip",
    "PrecommittedRead",
    "ReorderedWork",
    "ReorderedWrite",
    "UndoneWork",
    "UnendedTransaction",
    "UnheededFailure",
    "WorkAfterRebalance",
)

_HOMES = {
    **dict.fromkeys(_FINDINGS, "findings"),
    "FAULTS": "plan",
    "ChaosError": "runs",
    "History": "history",
    "Plan": "plan",
    "chaos": "runs",
    "explore": "runs",
}

__all__ = [
    *_FINDINGS,
    "FAULTS",
    "ChaosError",
    "History",
    "Plan",
    "chaos",
    "explore",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
