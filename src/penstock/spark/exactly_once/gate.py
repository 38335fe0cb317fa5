"""A gate transaction that hides the rows of a job until all of them are committed.

Consumers with `read_committed` get no records after the first open transaction of a partition. The gate puts
one record into every partition of the topic before the first row, so that the rows of all tasks appear at
once, when the gate ends. It is aborted, so that its records are never read.

The driver gets the producer id; each task writes all records of the gate: with one producer id, epoch and
sequence number, a partition takes the first and acknowledges the others as duplicates.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import Future
from typing import NamedTuple

from penstock.client.background_loop import background_loop, run
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.metadata import NO_TOPIC_ID
from penstock.client.cluster.retry import only
from penstock.client.config import ProducerConfig
from penstock.client.transactions.coordinators import speaks_implicit_adds
from penstock.model import TopicPartition
from penstock.protocol.error_codes import error_for
from penstock.protocol.field_values import ALL_REPLICAS
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.protocol.since import PRODUCE_IMPLICIT_ADDS_SINCE, PRODUCE_TOPIC_IDS_SINCE
from penstock.records.batch import encode_batch
from penstock.spark.exactly_once.coordinators import UNENDED_STATES, Coordinators
from penstock.spark.exactly_once.decision import TaskTransaction
from penstock.spark.exactly_once.place import SinkPlace

MARKERS_PATIENCE_S = 30.0
"""The longest wait in seconds for the markers of committed transactions, which are usually written within
milliseconds.
"""

MARKERS_PAUSE_S = 0.01

_held: set[TaskTransaction] = set()
"""The gate transactions of this process whose records are already written."""


class Gate(NamedTuple):
    """A gate transaction that hides the rows of a job in `partitions` partitions of `topic` until it ends."""

    transaction: TaskTransaction
    topic: str
    partitions: int


def gate_for(place: SinkPlace, topic: str) -> Gate:
    """Return a new gate for all partitions of `topic`.

    It hides no rows until a task writes the gate's records.

    Raises:
        KafkaError: the topic does not exist, or access to the transactional id is denied.
        NetworkError, RequestTimeoutError: no broker answers.
    """
    config = ProducerConfig.parse(
        place.settings(), {"bootstrap_servers": place.bootstrap_servers}, prefix="kafka."
    )

    async def get() -> Gate:
        async with AsyncClient(config) as client:
            await client.bootstrap()
            count = len((await client.topic(topic)).partitions)
            coordinators = Coordinators(client, int(config.transaction_timeout_ms))
            owner = await coordinators.initialize(place.gate_id)
            return Gate(TaskTransaction(place.gate_id, owner.producer_id, owner.epoch), topic, count)

    return run(get())


def hold(place: SinkPlace, gate: Gate) -> Future[None]:
    """Start to write the gate's records, unless this process has done so; return a future for the end.

    The caller waits for this future before it writes the first row.

    Raises, with the result of the future:
        KafkaError: the gate has ended: the job is over, or has taken longer than the transaction timeout.
        NetworkError, RequestTimeoutError: no broker answers.
    """
    done: Future[None] = Future()
    if gate.transaction in _held:
        done.set_result(None)
        return done
    config = ProducerConfig.parse(
        place.settings(), {"bootstrap_servers": place.bootstrap_servers}, prefix="kafka."
    )

    async def write() -> None:
        async with AsyncClient(config) as client:
            await client.bootstrap()
            partitions = [TopicPartition(gate.topic, number) for number in range(gate.partitions)]
            is_implicit = speaks_implicit_adds(client)
            if not is_implicit:
                coordinators = Coordinators(client, int(config.transaction_timeout_ms))
                await coordinators.add_partitions(gate.transaction, partitions)
            await asyncio.gather(*(_write(client, gate, tp, is_implicit) for tp in partitions))

        _held.add(gate.transaction)

    return asyncio.run_coroutine_threadsafe(write(), background_loop())


async def _write(client: AsyncClient, gate: Gate, tp: TopicPartition, is_implicit: bool) -> None:
    """Write the gate's record into one partition; the broker acknowledges repetitions as duplicates."""
    name, producer_id, epoch = gate.transaction
    batch = encode_batch(
        [(None, b"", (), time.time_ns() // 1_000_000)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        is_transactional=True,
    )
    what = f"closing the gate of {tp}"

    async def attempt() -> None:
        leader = await client.leader(tp)
        topic_id = client.cluster.topic_id(tp.topic)
        newest = PRODUCE_IMPLICIT_ADDS_SINCE - 1 if not is_implicit else None
        if newest is None and topic_id == NO_TOPIC_ID:
            newest = PRODUCE_TOPIC_IDS_SINCE - 1
        data = PartitionProduceData(index=tp.partition, records=batch)
        request = ProduceRequest(
            transactional_id=name,
            acks=ALL_REPLICAS,
            timeout_ms=int(client.config.request_timeout_ms),
            topic_data=[TopicProduceData(name=tp.topic, topic_id=topic_id, partition_data=[data])],
        )
        answer = await client.request(request, leader, at_most=newest)
        broker = client.address_of(leader)
        found = only(only(answer.responses, broker, "Produce").partition_responses, broker, "Produce")
        if found.error_code:
            raise error_for(found.error_code, what)

    await client.retrying(what, attempt)


async def until_marked(coordinators: Coordinators, transactions: Iterable[TaskTransaction]) -> None:
    """Wait, at most MARKERS_PATIENCE_S, until ended transactions have markers in all their partitions."""
    deadline = asyncio.get_running_loop().time() + MARKERS_PATIENCE_S

    async def wait(name: str) -> None:
        while await coordinators.state_of(name) in UNENDED_STATES:
            if asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(MARKERS_PAUSE_S)

    await asyncio.gather(*(wait(each.transactional_id) for each in transactions))
