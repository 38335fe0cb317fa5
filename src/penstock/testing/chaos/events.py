"""Events of a history: what an application did, and what a broker did for the application, in order.

`number` orders all events of a history. A `LogRecord` is a record that is in a partition's log at the end of
the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from penstock.errors import ConfigError, KafkaError, PenstockError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.testing.chaos.findings import RecordPlace

Outcome = Literal["acknowledged", "failed", "unknown"]
State = Literal["committed", "aborted", "open"]

Content = tuple[str, int, Any, Any, tuple[tuple[str, bytes | None], ...]]
"""The topic, partition, key, value and headers of a record, to find copies of a sent record in logs."""

Ends = Mapping[TopicPartition, int]
"""A dict from partition to the end offset of the partition's log at one moment."""


class LogRecord(NamedTuple):
    """A record in a partition's log at the end of a history.

    `state` is the state of its transaction; a record without a transaction is ``committed``.
    """

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...] = ()
    state: State = "committed"
    producer_id: int = -1
    settled_at: int = -1
    """The offset of the marker that ended the record's transaction; -1 if there is none."""

    @property
    def place(self) -> RecordPlace:
        """Return the topic, partition and offset of the record."""
        return RecordPlace(self.topic, self.partition, self.offset)

    @property
    def content(self) -> Content:
        """Return topic, partition, key, value and headers, to compare the record with sent records."""
        return self.topic, self.partition, self.key, self.value, self.headers


@dataclass
class Sent:
    """An event of a history: the application passed a record to a producer."""

    number: int
    client: int
    topic: str
    partition: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...] = ()
    delivery: Callable[[], tuple[Outcome, int, str]] = lambda: ("unknown", -1, "")
    """A function that returns the send's outcome so far, the offset (-1 if unknown), and a failure's
    reason.
    """
    transaction: int = 0
    """The number of the producer's transaction, counted from 1; 0 outside of transactions."""

    @property
    def content(self) -> Content:
        """Return the sent record's topic, partition, key, value and headers, to find its copies in a log."""
        return self.topic, self.partition, self.key, self.value, self.headers


@dataclass
class Polled:
    """An event of a history: a consumer returned records of one partition to the application."""

    number: int
    client: int
    records: tuple[LogRecord, ...]
    ends: Ends = field(default_factory=dict)
    """The end offsets of the logs after the poll, by partition, without partitions whose end offset is not
    available."""


@dataclass
class Moved:
    """An event of a history: a consumer's position changed by a seek, an assignment or a revocation."""

    number: int
    client: int
    partitions: frozenset[TopicPartition]


@dataclass
class CommitRefused:
    """An event: a group refused a consumer's commit, since the group had rebalanced without the consumer."""

    number: int
    client: int
    code: int


@dataclass
class Committed:
    """An event of a history: a broker stored committed offsets of a group."""

    number: int
    group: str
    offsets: Mapping[TopicPartition, int]
    ends: Ends | None = None
    """The end offsets of all logs at the time of the commit, or None if they are not available."""
    in_transaction: bool = False


@dataclass
class TransactionEnded:
    """An event of a history: a producer's transaction was committed or aborted.

    `transaction` counts the producer's transactions from 1.
    """

    number: int
    client: int
    transaction: int
    is_committed: bool


@dataclass
class Worked:
    """An event of a history: the application has called `History.work` for a record."""

    number: int
    place: RecordPlace


Event = Sent | Polled | Moved | CommitRefused | Committed | TransactionEnded | Worked


@dataclass(frozen=True)
class Flow:
    """A step of an application: `group` consumes `source`, and writes to `sinks` or calls `History.work`."""

    source: str
    sinks: tuple[str, ...]
    group: str | None
    of: Callable[[Any], object]
    """A function that returns a record's identity: equal for an input and its result; None for a record
    outside the flow."""
    sink_of: Callable[[Any], object]


def flow_of(
    source: str,
    sink: str | Iterable[str] | None,
    group: str | None,
    of: Callable[[Any], object] | None,
    sink_of: Callable[[Any], object] | None,
) -> Flow:
    """Check the arguments, and return a flow. The default identity is a record's key, or else its value.

    Raises:
        ConfigError: the name of a topic is not a text, or `of` or `sink_of` is not a function.
    """
    sinks = () if sink is None else (sink,) if isinstance(sink, str) else tuple(sink)
    for topic in (source, *sinks):
        if not isinstance(topic, str) or not topic:
            raise ConfigError(f"{topic!r} is no name of a topic")
    for name, function in (("of", of), ("sink_of", sink_of)):
        if function is not None and not callable(function):
            raise ConfigError(f"{name}={function!r}: {name} is a function of a record, to what identifies it")
    identity = of or _key_or_value
    return Flow(source, sinks, group, identity, sink_of or identity)


def _key_or_value(record: Any) -> object:
    return record.value if record.key is None else record.key


_MAY_BE_WRITTEN = frozenset((ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))


def outcome_of(error: BaseException | None) -> Outcome:
    """Return the outcome of a send from its delivery's error: acknowledged (no error), failed or unknown.

    An error code from a broker means that the record was not written, except REQUEST_TIMED_OUT and
    NOT_ENOUGH_REPLICAS_AFTER_APPEND. After these two, a timeout or a lost connection, the outcome is unknown.
    """
    if error is None:
        return "acknowledged"
    if isinstance(error, KafkaError):
        return "unknown" if error.code in _MAY_BE_WRITTEN else "failed"
    return "unknown" if isinstance(error, PenstockError) else "failed"
