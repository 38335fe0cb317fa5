"""Findings: the mistakes that a check reports.

Each kind is a class; a finding has the records that show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.printable import printable

TEXTS_SHOWN = 10
"""The greatest number of findings that the text of a `HistoryError` lists."""


class RecordPlace(NamedTuple):
    """A topic, a partition and an offset."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return printable(f"{self.topic}-{self.partition}@{self.offset}")


@dataclass(frozen=True)
class Finding:
    """One mistake of an application.

    The class is the kind of mistake; `text` describes the records concerned.
    """

    text: str
    places: tuple[RecordPlace, ...] = ()
    """The topics, partitions and offsets of the records that show the mistake."""

    @property
    def name(self) -> str:
        """The name of the kind of mistake, such as ``LostWork``."""
        return type(self).__name__

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


class LostWrite(Finding):
    """A send was acknowledged, but the log does not hold its record."""


class UnheededFailure(Finding):
    """A send failed or was never awaited, its record is in no log, and the application continued."""


class DuplicateWrite(Finding):
    """One send is stored more than once: a producer that is not idempotent has retried it."""


class ReorderedWrite(Finding):
    """Two records of one producer are stored in a partition in the reverse order (non-monotonic send)."""


class InconsistentOffsets(Finding):
    """Two polls, or a poll and the log, have different records at the same offset."""


class AbortedRead(Finding):
    """The application received a record of a transaction that was aborted."""


class PrecommittedRead(Finding):
    """The application received a record of a transaction before the transaction was committed."""


class NonMonotonicPoll(Finding):
    """A consumer returned the same offset again, or a lower one, although nothing had moved its position."""


class PollSkip(Finding):
    """A consumer skipped a committed record, although nothing had moved the consumer's position."""


class UnendedTransaction(Finding):
    """A transaction is still open at the end, so that consumers with `read_committed` cannot read past it."""


class OffsetsOutsideTransaction(Finding):
    """Offsets were committed outside of the transaction that holds the results of the records below them."""


class OffsetAheadOfWork(Finding):
    """Offsets were committed before the work on a record below them was done: a crash loses that work."""


class WorkAfterRebalance(Finding):
    """A consumer continued its work after its group had rebalanced without it and refused its commit."""


class LostWork(Finding):
    """The committed offset has passed a record on which no work was ever done."""


class UndoneWork(Finding):
    """No work was done on a record by the end, and no committed offset has passed the record."""


class DoubledWork(Finding):
    """The work on a record was done more than once."""


class ReorderedWork(Finding):
    """The work on two records of a partition was done in the reverse order."""


GRAVITY: tuple[type[Finding], ...] = (
    InconsistentOffsets,
    LostWrite,
    AbortedRead,
    PrecommittedRead,
    UnendedTransaction,
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
"""All kinds of findings, causes before consequences. The first kind that was found names a failed run."""


def by_gravity(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings sorted by `GRAVITY`, the gravest kind first; findings of one kind keep their order."""
    order = {kind: number for number, kind in enumerate(GRAVITY)}
    return sorted(findings, key=lambda finding: order.get(type(finding), len(order)))


class HistoryError(AssertionError):
    """A check found mistakes of an application. `findings` lists all of them, the gravest first."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = by_gravity(findings)
        shown = [str(finding) for finding in self.findings[:TEXTS_SHOWN]]
        if len(self.findings) > TEXTS_SHOWN:
            shown.append(f"and {len(self.findings) - TEXTS_SHOWN} more findings")
        super().__init__("\n".join(shown))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.findings,)
