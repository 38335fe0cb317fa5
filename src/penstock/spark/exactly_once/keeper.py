"""Keeps the `SinkDriver` of each sink between batches, since Spark makes a new writer for each batch.

All functions block.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence

from penstock.client.background_loop import run
from penstock.common.logs import logger_named
from penstock.errors import PenstockError
from penstock.spark.exactly_once.attempt import AttemptResult
from penstock.spark.exactly_once.decision import Ranges, TaskTransaction, TopicIds, merged
from penstock.spark.exactly_once.driver import SinkDriver
from penstock.spark.exactly_once.gate import Gate
from penstock.spark.exactly_once.kafka_cluster import KafkaSinkCluster, UnnamedJobCluster
from penstock.spark.exactly_once.place import SinkPlace

_log = logger_named("penstock.spark")

_drivers: dict[str, tuple[str, KafkaSinkCluster, SinkDriver]] = {}
"""A dict from the name of a sink to the run of its query, its cluster and its driver."""


def commit_batch(
    place: SinkPlace, run_id: str, batch: int, written: Sequence[AttemptResult], *, fails_on_loss: bool
) -> None:
    """Commit a micro-batch with the driver of the query's run; drop the driver if this fails.

    Raises: the errors of `SinkDriver.commit`.
    """
    known = _drivers.get(place.sink)
    if known is not None and known[0] != run_id:
        _drop(place.sink)
        known = None
    if known is None:
        if not _drivers:
            atexit.register(_close)
        known = _drivers[place.sink] = (run_id, *run(_made(place, fails_on_loss)))
    try:
        run(known[2].commit(batch, *_united(written)))
    except BaseException:
        _drop(place.sink)
        raise


def commit_job(
    place: SinkPlace,
    batch: int,
    written: Sequence[AttemptResult],
    *,
    is_repeatable: bool = False,
    fails_on_loss: bool = True,
    gate: Gate | None = None,
) -> tuple[TaskTransaction, ...]:
    """Commit the rows of a batch query, and end its gate. Raises the errors of `SinkDriver.commit`.

    Returns the transactions that hold the job's rows: those of an earlier run if its decision is stored.
    The state is stored only if the job `is_repeatable`, that is, may be run again under its name.
    """

    async def commit() -> tuple[TaskTransaction, ...]:
        cluster, driver = await _made(place, fails_on_loss, _kind(is_repeatable))
        try:
            committed = await driver.commit(batch, *_united(written))
            if gate is not None:
                await cluster.end_gate(gate, committed)
            return committed
        finally:
            await cluster.close()

    # A repeated run without rows may still have to commit what the one before has decided. Without a row, no
    # task has written the records of the gate.
    if is_repeatable or any(each.transaction for each in written):
        return run(commit())
    return ()


def abort_batch(
    place: SinkPlace,
    batch: int,
    written: Sequence[AttemptResult],
    gate: Gate | None = None,
    *,
    is_repeatable: bool = True,
) -> None:
    """Abort the transactions of a failed batch, unless the decision to commit them is stored.

    Errors of the cluster are logged, because Spark would show them instead of the batch's own failure.
    Transactions that stay open are ended by the next run, or by their timeout.
    """

    async def abort() -> None:
        cluster, driver = await _made(place, True, _kind(is_repeatable))
        try:
            state = await cluster.peek()
            await driver.abort(state, batch, _united(written)[0])
            # Where the batch is decided, the gate stays: the next run may commit the rest behind it.
            if gate is not None and state is not None and state.last_batch != batch:
                await cluster.end_gate(gate)
        finally:
            await cluster.close()

    try:
        run(abort())
    except PenstockError as error:
        _log.warning("the transactions of batch %d of %s could not be aborted: %s", batch, place.sink, error)


def _united(written: Sequence[AttemptResult]) -> tuple[list[TaskTransaction], Ranges, int, TopicIds]:
    transactions = [each.transaction for each in written if each.transaction is not None]
    topic_ids: TopicIds = frozenset().union(*(each.topic_ids for each in written))
    ranges = merged(each.ranges for each in written)
    return transactions, ranges, sum(each.rows for each in written), topic_ids


def _kind(is_repeatable: bool) -> type[KafkaSinkCluster]:
    return KafkaSinkCluster if is_repeatable else UnnamedJobCluster


async def _made(
    place: SinkPlace, fails_on_loss: bool, kind: type[KafkaSinkCluster] = KafkaSinkCluster
) -> tuple[KafkaSinkCluster, SinkDriver]:
    cluster = kind(place)
    return cluster, SinkDriver(cluster, accepts_loss=not fails_on_loss)


def _drop(sink: str) -> None:
    known = _drivers.pop(sink, None)
    if known is not None:
        run(known[1].close())


def _close() -> None:
    for sink in list(_drivers):
        _drop(sink)
