"""Findings: what is wrong with what an application did, each kind a class, with the records that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.printable import printable

TEXTS_SHOWN = 10
"""How many findings the text of a `HistoryError` lists."""


class Place(NamedTuple):
    """One offset of one partition."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return printable(f"{self.topic}-{self.partition}@{self.offset}")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. The class says what kind it is; `text` says it of these records."""

    text: str
    places: tuple[Place, ...] = ()
    """The offsets that show it."""

    @property
    def name(self) -> str:
        """The name of the kind, such as ``LostWork``."""
        return type(self).__name__

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


class LostWrite(Finding):
    """A send was acknowledged, and the log does not hold its record."""


class UnheededFailure(Finding):
    """A send failed, or was never waited for, and its record is in no log: the application went on."""


class DuplicateWrite(Finding):
    """One send is in the log more than once: it was tried again by a producer that is not idempotent."""


class ReorderedWrite(Finding):
    """Two sends of one producer to one partition were stored in the other order (non-monotonic send)."""


class InconsistentOffsets(Finding):
    """Two polls, or a poll and the log, have different records at one offset."""


class AbortedRead(Finding):
    """The application was handed a record of a transaction that was aborted."""


class PrecommittedRead(Finding):
    """The application was handed a record of a transaction before the transaction was committed."""


class NonMonotonicPoll(Finding):
    """A consumer was handed an offset again, or a lower one, although nothing had moved its position."""


class PollSkip(Finding):
    """A consumer was handed an offset, and one before it never, although nothing had moved its position."""


class HangingTransaction(Finding):
    """A transaction is still open at the end: readers of committed records wait behind it."""


class OffsetsOutsideTransaction(Finding):
    """Offsets were committed by themselves, while the work that they stand for was in a transaction."""


class OffsetAheadOfWork(Finding):
    """Offsets were committed before the work on a record below them was done: a crash then loses it."""


class WorkAfterRebalance(Finding):
    """A consumer went on with records after its group had refused its commit, and gone on without it."""


class LostWork(Finding):
    """The committed offset has passed a record on which no work was ever done."""


class UndoneWork(Finding):
    """No work was done on a record by the end, and no offset has passed it: the application stands still."""


class DoubledWork(Finding):
    """The work on a record was done more than once."""


class ReorderedWork(Finding):
    """The work on two records of a partition was done in the other order."""


GRAVITY: tuple[type[Finding], ...] = (
    InconsistentOffsets,
    LostWrite,
    AbortedRead,
    PrecommittedRead,
    HangingTransaction,
    OffsetsOutsideTransaction,
    UnheededFailure,
    OffsetAheadOfWork,
    WorkAfterRebalance,
    DuplicateWrite,
    NonMonotonicPoll,
    PollSkip,
    ReorderedWrite,
    ReorderedWork,
    LostWork,
    UndoneWork,
    DoubledWork,
)
"""Every kind, causes before their consequences: the first one found names a failure."""


def by_gravity(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings in the order of `GRAVITY`, those of one kind as they were."""
    order = {kind: number for number, kind in enumerate(GRAVITY)}
    return sorted(findings, key=lambda finding: order.get(type(finding), len(order)))


class HistoryError(AssertionError):
    """What an application did breaks what it promises. `findings` has every reason, the gravest first."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = by_gravity(findings)
        shown = [str(finding) for finding in self.findings[:TEXTS_SHOWN]]
        if len(self.findings) > TEXTS_SHOWN:
            shown.append(f"and {len(self.findings) - TEXTS_SHOWN} more findings")
        super().__init__("\n".join(shown))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.findings,)
