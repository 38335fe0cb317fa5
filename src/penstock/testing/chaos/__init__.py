"""A checker of what an application did: lost, doubled, reordered records, offsets ahead of the work.

history = History()
history.flow("orders", "bills", group="billing", of=lambda record: record.key)
history.attach(broker)
with history.watching():
    bill_everything(broker.bootstrap_servers)
history.check(exactly_once=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.testing.chaos.findings import AbortedRead as AbortedRead
    from penstock.testing.chaos.findings import DoubledWork as DoubledWork
    from penstock.testing.chaos.findings import DuplicateWrite as DuplicateWrite
    from penstock.testing.chaos.findings import Finding as Finding
    from penstock.testing.chaos.findings import HangingTransaction as HangingTransaction
    from penstock.testing.chaos.findings import HistoryError as HistoryError
    from penstock.testing.chaos.findings import InconsistentOffsets as InconsistentOffsets
    from penstock.testing.chaos.findings import LostWork as LostWork
    from penstock.testing.chaos.findings import LostWrite as LostWrite
    from penstock.testing.chaos.findings import NonMonotonicPoll as NonMonotonicPoll
    from penstock.testing.chaos.findings import OffsetAheadOfWork as OffsetAheadOfWork
    from penstock.testing.chaos.findings import OffsetsOutsideTransaction as OffsetsOutsideTransaction
    from penstock.testing.chaos.findings import PollSkip as PollSkip
    from penstock.testing.chaos.findings import ReorderedWork as ReorderedWork
    from penstock.testing.chaos.findings import ReorderedWrite as ReorderedWrite
    from penstock.testing.chaos.findings import UndoneWork as UndoneWork
    from penstock.testing.chaos.findings import UnheededFailure as UnheededFailure
    from penstock.testing.chaos.findings import WorkAfterRebalance as WorkAfterRebalance
    from penstock.testing.chaos.history import History as History

_FINDINGS = (
    "AbortedRead",
    "DoubledWork",
    "DuplicateWrite",
    "Finding",
    "HangingTransaction",
    "HistoryError",
    "InconsistentOffsets",
    "LostWork",
    "LostWrite",
    "NonMonotonicPoll",
    "OffsetAheadOfWork",
    "OffsetsOutsideTransaction",
    "PollSkip",
    "ReorderedWork",
    "ReorderedWrite",
    "UndoneWork",
    "UnheededFailure",
    "WorkAfterRebalance",
)

_HOMES = {
    **dict.fromkeys(_FINDINGS, "findings"),
    "History": "history",
}

__all__ = [
    *_FINDINGS,
    "History",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
