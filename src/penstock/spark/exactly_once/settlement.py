"""How a decision is carried out, without I/O: what is known of each transaction in, the next action out.

Every transaction of a decision ends up committed, or its rows do so in a copy. A transaction that cannot be
committed any more (it ran into its timeout, or a zombie took its id) was aborted: its rows are still in the
log, at the offsets that the decision names. They are copied into one new transaction, and a new decision
names that instead, before it is committed.

The answer to EndTxn is not always proof: once the id was used again, or has expired, the coordinator has no
trace of the transaction. The log has: behind the rows stands a marker that says whether they count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from penstock.errors import PenstockError
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.exactly_once.decision import Decision, TaskTransaction


class LostRowsError(PenstockError):
    """Rows of a batch that was decided are no longer in the log, and were never committed."""


class Fate(Enum):
    """What is known of a transaction."""

    OPEN = "it is to be committed"
    UNCLEAR = "its coordinator does not know it any more"
    COMMITTED = "its rows count"
    ABORTED = "its rows are in the log, and do not count"
    LOST = "its rows do not count, and some are no longer in the log"


UNCLEAR_CODES = frozenset(
    (
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTION_ABORTABLE,
    )
)
"""Answers to a commit that may mean: aborted; or committed long ago, and the id used since."""


def fate_after_end(code: int) -> Fate | None:
    """Return what the answer to a commit says of the transaction; None where it is an error to be raised."""
    if code == ErrorCode.NONE:
        return Fate.COMMITTED
    return Fate.UNCLEAR if code in UNCLEAR_CODES else None


class End(NamedTuple):
    """Commit these transactions, in any order."""

    transactions: tuple[TaskTransaction, ...]


class Inspect(NamedTuple):
    """Read in the log what became of these."""

    transactions: tuple[TaskTransaction, ...]


class Copy(NamedTuple):
    """Write the rows of these into a new transaction, and decide for that one."""

    transactions: tuple[TaskTransaction, ...]


class Lose(NamedTuple):
    """The rows of these transactions cannot be read any more: the query stops with an error."""

    transactions: tuple[TaskTransaction, ...]


class Finish(NamedTuple):
    """All rows of the batch count."""


Action = End | Inspect | Copy | Lose | Finish


class Settlement:
    """What is known of the transactions of one decision."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self._fates = dict.fromkeys(decision.transactions, Fate.OPEN)

    def learn(self, fates: Mapping[TaskTransaction, Fate]) -> None:
        """Note what became of some transactions. What is settled stays so."""
        for transaction, fate in fates.items():
            if self._fates[transaction] in (Fate.OPEN, Fate.UNCLEAR):
                self._fates[transaction] = fate

    def give_up(self, transactions: Iterable[TaskTransaction]) -> None:
        """Go on without the rows of these, which are lost."""
        self._fates.update(dict.fromkeys(transactions, Fate.COMMITTED))

    def next_action(self) -> Action:
        """Return the next action of the settlement."""
        for fate, action in (
            (Fate.OPEN, End),
            (Fate.UNCLEAR, Inspect),
            (Fate.LOST, Lose),
            (Fate.ABORTED, Copy),
        ):
            which = tuple(each for each, known in self._fates.items() if known is fate)
            if which:
                return action(which)
        return Finish()
