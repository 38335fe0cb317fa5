"""Write the rows of one attempt of a task, on an executor, into a transaction that is left open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.background_loop import run
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.metadata import NO_TOPIC_ID
from penstock.client.config import ProducerConfig
from penstock.spark.exactly_once.coordinators import UNENDED_STATES, Coordinators
from penstock.spark.exactly_once.decision import Ranges, TaskTransaction, TopicIds
from penstock.spark.exactly_once.gate import Gate, hold
from penstock.spark.exactly_once.log_reader import spans_of
from penstock.spark.exactly_once.place import SinkPlace

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.produce.columns import TableDelivery

GENERATIONS = 4
"""The most transactional ids that an attempt tries. If earlier runs have left a transaction open under each
of these ids, the attempt takes the first id, whose old transaction is thereby aborted. (If a decision lists
that transaction, its rows are copied.)
"""

_runs_met: set[tuple[str, str]] = set()
"""The (sink, run) pairs whose transactional id was free when this process checked it. Later batches of such a
run need no check.
"""


class TaskAttempt(NamedTuple):
    """The identity of a Spark task attempt that writes rows: query run, batch, partition, attempt number."""

    run: str | None
    """The id of the query's run; None for a job with a generated name, which has only one run."""
    batch: int
    partition: int
    number: int


class AttemptResult(NamedTuple):
    """The result of one task attempt: its open transaction (None without rows), and its rows' offsets."""

    transaction: TaskTransaction | None
    ranges: Ranges
    rows: int
    topic_ids: TopicIds = frozenset()


def write_attempt(
    place: SinkPlace,
    attempt: TaskAttempt,
    pieces: Iterator[tuple[str, pa.RecordBatch]],
    gate: Gate | None = None,
) -> AttemptResult:
    """Write `pieces`, pairs of topic and rows, and wait until the brokers have acknowledged all rows.

    With a `gate`, a transaction that hides the rows until the job ends, the gate's records are written first.

    Raises:
        PenstockError: a row was refused, no broker acknowledged a row in time, or another attempt has the
            transactional id. The transaction is aborted then.
    """
    from penstock.client import Producer
    from penstock.client.produce.columns import TableDelivery

    deliveries: dict[str, TableDelivery] = {}
    producer: Producer | None = None
    try:
        for topic, rows in pieces:
            if not rows.num_rows:
                continue
            if producer is None:
                # The gate is closed while the producer gets its id: rows come after both.
                held = hold(place, gate) if gate is not None else None
                settings = place.settings(**{"transactional.id": _free_id(place, attempt)})
                producer = Producer(place.bootstrap_servers, settings)
                producer.begin_transaction()
                if held is not None:
                    held.result()
            delivery = deliveries.setdefault(topic, TableDelivery(topic))
            producer.send_arrow(topic, rows, delivery=delivery)
        if producer is None:
            return AttemptResult(None, {}, 0)
        coordinates = producer.prepare_transaction()
        written = [delivery.result() for delivery in deliveries.values()]
        return AttemptResult(
            TaskTransaction(*coordinates),
            spans_of({each.topic: each.offsets for each in written}),
            sum(each.rows for each in written),
            known_ids(deliveries.values()),
        )
    finally:
        if producer is not None:
            producer.close()


def known_ids(deliveries: Iterable[TableDelivery]) -> TopicIds:
    """Return pairs (topic, topic id) for the topics in `deliveries`, without topics that have no id."""
    return frozenset((each.topic, each.topic_id) for each in deliveries if each.topic_id != NO_TOPIC_ID)


def _free_id(place: SinkPlace, attempt: TaskAttempt) -> str:
    """Return a transactional id for an attempt, under which no earlier run has left a transaction open.

    A run that was killed may have decided this batch, and not committed it: using one of its ids would abort
    a transaction that must still be committed. Its rows would then have to be copied. Later batches need no
    check, since a batch is committed before the next one begins.
    """
    name = place.task_id(attempt.batch, attempt.partition, attempt.number)
    if attempt.run is None:
        return name
    this_run = place.sink, attempt.run
    if this_run in _runs_met:
        return name
    config = ProducerConfig.parse(
        place.settings(), {"bootstrap_servers": place.bootstrap_servers}, prefix="kafka."
    )

    async def look() -> str:
        async with AsyncClient(config) as client:
            coordinators = Coordinators(client, int(config.transaction_timeout_ms))
            for generation in range(GENERATIONS):
                found = place.task_id(attempt.batch, attempt.partition, attempt.number, generation)
                if await coordinators.state_of(found) not in UNENDED_STATES:
                    return found
        return name

    free = run(look())
    if free == name:
        _runs_met.add(this_run)
    return free
