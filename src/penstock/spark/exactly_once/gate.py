"""A gate before the rows of a job: a transaction that begins before them and is aborted after their commits.

Readers of committed rows see nothing behind the first open transaction of a partition. The gate puts one
record into every partition of the topic before the first row, so that the rows of all tasks appear at once,
when it ends. It is aborted, and its records are never seen.

The driver gets the producer id; the tasks write the records, each of them all of them: with one producer
id, epoch and sequence number, a partition takes the first and acknowledges the others as repetitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from penstock.client.background_loop import run
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ProducerConfig
from penstock.spark.exactly_once.coordinators import UNENDED_STATES, Coordinators
from penstock.spark.exactly_once.decision import TaskTransaction
from penstock.spark.exactly_once.place import SinkPlace

MARKERS_PATIENCE_S = 30.0
"""How long the gate waits for the markers of committed transactions. They are written within milliseconds."""

MARKERS_PAUSE_S = 0.01

_held: set[TaskTransaction] = set()
"""Gates whose records this process has written."""


class Gate(NamedTuple):
    """The transaction of a gate, and the partitions that it closes."""

    transaction: TaskTransaction
    topic: str
    partitions: int


def gate_for(place: SinkPlace, topic: str) -> Gate:
    """Get a gate for all partitions of `topic`. It holds nothing up before a task writes its records.

    Raises:
        KafkaError: the topic does not exist, or the transactional id may not be used.
        NetworkError, RequestTimeoutError: no broker answers.
    """
    config = ProducerConfig.parse(place.settings(), {"bootstrap_servers": place.bootstrap_servers})

    async def get() -> Gate:
        async with AsyncClient(config) as client:
            await client.bootstrap()
            count = len((await client.topic(topic)).partitions)
            coordinators = Coordinators(client, int(config.transaction_timeout_ms))
            owner = await coordinators.initialize(place.gate_id)
            return Gate(TaskTransaction(place.gate_id, owner.producer_id, owner.epoch), topic, count)

    return run(get())


def hold(place: SinkPlace, gate: Gate) -> None:
    """Write the records of the gate, unless this process has done so. To be called before the first row.

    Raises:
        TransactionError: the gate has ended: the job is over, or has taken longer than its timeout.
        NetworkError, RequestTimeoutError: no broker answers.
    """
    from penstock.client import Producer
    from penstock.client.transactions.steps import TransactionCoordinates

    if gate.transaction in _held:
        return
    settings = place.settings(**{"transactional.id": gate.transaction.transactional_id, "linger.ms": 0})
    producer = Producer(place.bootstrap_servers, settings)
    try:
        producer.join_transaction(TransactionCoordinates(*gate.transaction))
        for partition in range(gate.partitions):
            producer.send(gate.topic, b"", partition=partition)
        producer.prepare_transaction()
    finally:
        producer.close()
    _held.add(gate.transaction)


async def until_marked(coordinators: Coordinators, transactions: Iterable[TaskTransaction]) -> None:
    """Wait until the markers of ended transactions stand in all partitions, or for MARKERS_PATIENCE_S."""
    deadline = asyncio.get_running_loop().time() + MARKERS_PATIENCE_S

    async def wait(name: str) -> None:
        while await coordinators.state_of(name) in UNENDED_STATES:
            if asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(MARKERS_PAUSE_S)

    await asyncio.gather(*(wait(each.transactional_id) for each in transactions))
