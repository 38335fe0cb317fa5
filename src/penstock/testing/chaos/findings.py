"""Findings: the mistakes of an application that a check of its history reports.

Each kind of mistake is a class; a finding has the records that show the mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.printable import printable

TEXTS_SHOWN = 10
"""The maximum number of findings that the message of a `HistoryError` lists."""


class RecordPlace(NamedTuple):
    """The topic, partition and offset of a record."""

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
    """A mistake: a send was acknowledged, but the log does not have its record."""


class UnheededFailure(Finding):
    """A mistake: a send failed or was never awaited, its record is lost, and the application continued."""


class DuplicateWrite(Finding):
    """A mistake: a send is stored more than once, because a producer that is not idempotent retried it."""


class ReorderedWrite(Finding):
    """A mistake: two records of one producer are in a partition in reverse order (non-monotonic send)."""


class InconsistentOffsets(Finding):
    """A mistake: two polls, or a poll and the log, have different records at one offset."""


class AbortedRead(Finding):
    """A mistake: the application received a record of an aborted transaction."""


class PrecommittedRead(Finding):
    """A mistake: the application received a record before the record's transaction was committed."""


class NonMonotonicPoll(Finding):
    """A mistake: a consumer returned an offset again, or a lower one, without a seek or rebalance."""


class PollSkip(Finding):
    """A mistake: a consumer skipped a committed record without a seek or rebalance."""


class UnendedTransaction(Finding):
    """A mistake: a transaction is still open at the end, so that `read_committed` consumers are blocked."""


class OffsetsOutsideTransaction(Finding):
    """A mistake: offsets were committed outside of the transaction that holds the records' results."""


class OffsetAheadOfWork(Finding):
    """A mistake: an offset was committed before the work on a record below it; a crash would lose it."""


class WorkAfterRebalance(Finding):
    """A mistake: a consumer continued after its group had rebalanced without it and refused its commit."""


class LostWork(Finding):
    """A mistake: the committed offset has passed a record on which no work was ever done."""


class UndoneWork(Finding):
    """A mistake: no work was done on a record by the end; the committed offset has not passed it either."""


class DoubledWork(Finding):
    """A mistake: the work on a record was done more than once."""


class ReorderedWork(Finding):
    """A mistake: the work on two records of a partition was done in reverse order."""


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
"""All kinds of findings, causes before consequences. A failed run is named after its first finding in this
order.
"""


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
