"""The transaction coordinator's output for its caller: records to store, markers to write, responses.

The caller (`TransactionService`) takes every entry once. It reports the result of a `StoreRecord` with
`TransactionRegistry.stored` or `not_stored`, and the result of `Markers` with `Marking.marked`, each exactly
once. If a partition of the coordinator is lost, its pending entries are dropped, and late reports about them
are ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from penstock.broker.coordination.records import KeyAndValue
    from penstock.broker.transactions.transaction import TopicPartition

Ticket = object
"""Any object that identifies a request which waits for its response."""


class ApiOutcome(NamedTuple):
    """The response to a transaction request of any API, with the error codes of the API's newest version."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    epoch: int = -1
    closes_connection: bool = False
    """True if the request may be a late one: its connection is closed without a response. A client that
    still waits repeats the request on a new connection, and gets the response there."""


class StoreRecord:
    """A record for partition `index` of `__transaction_state`. Records are compared by identity."""

    __slots__ = ("coordinator_epoch", "index", "record", "transactional_id")

    def __init__(
        self, transactional_id: str, index: int, coordinator_epoch: int, record: KeyAndValue
    ) -> None:
        self.transactional_id = transactional_id
        self.index = index
        self.coordinator_epoch = coordinator_epoch
        self.record = record


class Markers(NamedTuple):
    """One transaction's markers: a control batch for each of `partitions`."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_commit: bool
    coordinator_epoch: int
    client_version: int
    """The transaction version of a marker: with 2, partitions make the checks of KIP-1228."""
    partitions: tuple[TopicPartition, ...]


class TransactionOutbox:
    """Queues of the coordinator's records, markers and responses, which its caller has not taken yet."""

    def __init__(self) -> None:
        self.stores: list[StoreRecord] = []
        self.markers: list[Markers] = []
        self.replies: list[tuple[Ticket, ApiOutcome]] = []

    def __bool__(self) -> bool:
        return bool(self.stores or self.markers or self.replies)

    def take_stores(self) -> list[StoreRecord]:
        """Remove and return the records to store."""
        taken, self.stores = self.stores, []
        return taken

    def take_markers(self) -> list[Markers]:
        """Remove and return the markers to write."""
        taken, self.markers = self.markers, []
        return taken

    def take_replies(self) -> list[tuple[Ticket, ApiOutcome]]:
        """Remove and return the answers to send."""
        taken, self.replies = self.replies, []
        return taken
