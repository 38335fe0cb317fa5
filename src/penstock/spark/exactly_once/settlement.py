"""Carry out a decision, without I/O: from the fates of its transactions follows the next action.

In the end, every transaction of a decision is committed, or a copy of its rows is. A transaction that cannot
be committed any more (it timed out, or a zombie took its id) was aborted: its rows are still in the log, at
the offsets in the decision. They are copied into one new transaction. A new decision that names the new
transaction is stored before that is committed.

The answer to EndTxn is not always proof: once the id was used again, or has expired, the coordinator has no
trace of the transaction. The log has one: the marker behind the rows commits or aborts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from penstock.errors import PenstockError
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.exactly_once.decision import Decision, TaskTransaction


class LostRowsError(PenstockError):
    """Rows of a decided batch were never committed and are no longer in the log."""


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
"""Errors of EndTxn for a transaction that was aborted, or that was committed and its id used again."""


def fate_after_end(code: int) -> TransactionFate | None:
    """Return the fate of a transaction by the error code of its commit; None if the error must be raised."""
    if code == ErrorCode.NONE:
        return TransactionFate.COMMITTED
    return TransactionFate.UNCLEAR if code in UNCLEAR_CODES else None


class EndTransactions(NamedTuple):
    """The action: commit `transactions`, in any order."""

    transactions: tuple[TaskTransaction, ...]


class Inspect(NamedTuple):
    """The action: find out from the log whether `transactions` were committed."""

    transactions: tuple[TaskTransaction, ...]


class Copy(NamedTuple):
    """Settle a batch: copy the rows of `transactions` into one new transaction, and store that decision."""

    transactions: tuple[TaskTransaction, ...]


class Lose(NamedTuple):
    """The action: stop the query with an error, because rows of `transactions` are no longer in the log."""

    transactions: tuple[TaskTransaction, ...]


class Finish(NamedTuple):
    """The action: store that all rows of the batch are committed."""


Action = EndTransactions | Inspect | Copy | Lose | Finish


class Settlement:
    """The fates of one decision's transactions, and the next action that follows from them."""

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
