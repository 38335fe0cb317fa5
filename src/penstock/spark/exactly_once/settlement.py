"""Carries out a decision, without I/O: determines the next action from the fates of its transactions.

In the end, every transaction of a decision is committed, or a copy of its rows is. A transaction that cannot
be committed any more (it timed out, or a zombie used its id) was aborted: its rows are still in the log, at
the offsets in the decision. They are copied into one new transaction. A new decision that names the new
transaction is stored before the new transaction is committed.

The answer to EndTxn is not always conclusive: once the id was used again, or has expired, the coordinator has
no data about the transaction. The log has: the marker after the rows commits or aborts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from penstock.errors import PenstockError
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.exactly_once.decision import Decision, TaskTransaction


class LostRowsError(PenstockError):
    """Raised if rows of a decided batch were never committed, and are no longer in the log."""


class TransactionFate(Enum):
    """The state of a transaction, as far as the driver has found out."""

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
"""Errors of EndTxn for a transaction that was aborted, or that was committed and whose id was then used
again."""


def fate_after_end(code: int) -> TransactionFate | None:
    """Return a transaction's fate from the error code of its commit; None if the error must be raised."""
    if code == ErrorCode.NONE:
        return TransactionFate.COMMITTED
    return TransactionFate.UNCLEAR if code in UNCLEAR_CODES else None


class EndTransactions(NamedTuple):
    """The next action of a settlement: commit `transactions`, in any order."""

    transactions: tuple[TaskTransaction, ...]


class Inspect(NamedTuple):
    """The next action of a settlement: find out from the log whether `transactions` were committed."""

    transactions: tuple[TaskTransaction, ...]


class Copy(NamedTuple):
    """The next action of a settlement: copy rows into a new transaction, and store a decision for it.

    The rows are those of the aborted `transactions`."""

    transactions: tuple[TaskTransaction, ...]


class Lose(NamedTuple):
    """The next action: stop the query with an error, as rows of `transactions` are no longer in the log."""

    transactions: tuple[TaskTransaction, ...]


class Finish(NamedTuple):
    """The next action of a settlement: store that all rows of the batch are committed."""


Action = EndTransactions | Inspect | Copy | Lose | Finish


class Settlement:
    """The fates of one decision's transactions, from which the driver's next action follows."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self._fates = dict.fromkeys(decision.transactions, TransactionFate.OPEN)

    def learn(self, fates: Mapping[TaskTransaction, TransactionFate]) -> None:
        """Set the fates of some transactions; a final fate does not change."""
        for transaction, fate in fates.items():
            if self._fates[transaction] in (TransactionFate.OPEN, TransactionFate.UNCLEAR):
                self._fates[transaction] = fate

    def give_up(self, transactions: Iterable[TaskTransaction]) -> None:
        """Treat `transactions` as committed, although their rows are lost."""
        self._fates.update(dict.fromkeys(transactions, TransactionFate.COMMITTED))

    def next_action(self) -> Action:
        """Return the next action; `Finish` if all transactions are committed."""
        for fate, action in (
            (TransactionFate.OPEN, EndTransactions),
            (TransactionFate.UNCLEAR, Inspect),
            (TransactionFate.LOST, Lose),
            (TransactionFate.ABORTED, Copy),
        ):
            which = tuple(each for each, known in self._fates.items() if known is fate)
            if which:
                return action(which)
        return Finish()
