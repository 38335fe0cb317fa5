"""A sample application that writes a bill for each order: correct variants, and eleven with a defect.

Chaos tests must find each defect; all of them occur in real applications. A worker that raises an error is
restarted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar

from penstock import Consumer, Producer, Record, TopicPartition
from penstock.errors import KafkaError, PenstockError, TransactionAbortableError
from penstock.testing import KafkaBroker, KafkaCluster
from penstock.testing.chaos import History
from penstock.testing.chaos.events import Committed
from penstock.testing.chaos.runs import ChaosRun

ORDERS, PARTITIONS = 16, 2
FAST: dict[str, Any] = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 20, "reconnect_backoff_ms": 1}
CRASHES_MAX = 30


class Billing:
    """The correct at-least-once application: it commits an order's offset after the bill is acknowledged."""

    promises: ClassVar[dict[str, bool]] = {"at_least_once": True, "ordered": True}
    faults: ClassVar[Sequence[str] | None] = None
    settings: ClassVar[dict[str, Any]] = {}
    """The settings of the broker."""
    finds: ClassVar[str] = ""
    """The name of the chaos finding that reports the variant's defect; empty for a correct variant."""
    patience_s: ClassVar[float] = 60.0
    """The time without a commit after which the test ends the application, in seconds."""

    def __init__(self, servers: str, history: History) -> None:
        self.servers = servers
        self.history = history
        self.crashes = 0
        self._moved_at = time.monotonic()
        self._committed = -1

    def run(self) -> None:
        """Process orders until all of them are committed, or until no more progress is made."""
        while not self.is_over():
            try:
                self.work()
            except PenstockError:
                self.crashes += 1
                if self.crashes > CRASHES_MAX:
                    raise

    def is_over(self) -> bool:
        offsets: dict[TopicPartition, int] = {}
        for event in list(self.history.events):
            if isinstance(event, Committed):
                offsets.update(event.offsets)
        committed = sum(offsets.values())
        if committed != self._committed:
            self._committed, self._moved_at = committed, time.monotonic()
        return committed >= ORDERS or time.monotonic() > self._moved_at + self.patience_s

    @contextmanager
    def consumer(self, **settings: Any) -> Iterator[Consumer]:
        options: dict[str, Any] = {
            "group_id": "billing",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
        }
        if "group_protocol" not in settings:  # a member learns by its next heartbeat that it is expelled
            options["heartbeat_interval_ms"] = 20
        with Consumer(self.servers, **{**options, **FAST, **settings}) as consumer:
            yield consumer

    def producer(self, **settings: Any) -> Producer:
        return Producer(self.servers, **{"linger_ms": 0, **FAST, **settings})

    def send(self, producer: Producer, record: Record) -> Any:
        """Write the bill for one order, to the partition with the number of the order's partition.

        So the bills of a partition have an expected order.
        """
        return producer.send(
            "bills", b"bill for " + (record.value or b""), key=record.key, partition=record.partition
        )

    def work(self) -> None:
        with self.consumer() as consumer, self.producer() as producer:
            consumer.subscribe("orders")
            while not self.is_over():
                records = consumer.poll(20, 4)
                if records:
                    self.bill(consumer, producer, records)

    def bill(self, consumer: Consumer, producer: Producer, records: Sequence[Record]) -> None:
        for delivery in [self.send(producer, record) for record in records]:
            delivery.result(30)
        consumer.commit()


class ExactBilling(Billing):
    """The correct exactly-once application: bills and offsets are in one transaction, aborted on failure."""

    promises: ClassVar[dict[str, bool]] = {"exactly_once": True, "ordered": True}

    def work(self) -> None:
        with self.consumer() as consumer, self.producer(transactional_id="billing") as producer:
            consumer.subscribe("orders")
            while not self.is_over():
                records = consumer.poll(20, 4)
                if records:
                    try:
                        self.bill(consumer, producer, records)
                    except TransactionAbortableError:
                        consumer.seek_to_committed()

    def bill(self, consumer: Consumer, producer: Producer, records: Sequence[Record]) -> None:
        with producer.transaction():
            for record in records:
                self.send(producer, record)
            producer.send_offsets(consumer.positions(), consumer)


BEAT: dict[str, Any] = {
    "group_consumer_heartbeat_interval_ms": 100,
    "group_consumer_min_heartbeat_interval_ms": 100,
}


class BillingByNewerGroup(Billing):
    """The correct at-least-once application with a consumer group of KIP-848."""

    settings: ClassVar[dict[str, Any]] = BEAT

    @contextmanager
    def consumer(self, **settings: Any) -> Iterator[Consumer]:
        with super().consumer(group_protocol="consumer", **settings) as consumer:
            yield consumer


class ExactBillingByNewerGroup(ExactBilling):
    """The correct exactly-once application with a consumer group of KIP-848."""

    settings: ClassVar[dict[str, Any]] = BEAT

    @contextmanager
    def consumer(self, **settings: Any) -> Iterator[Consumer]:
        with super().consumer(group_protocol="consumer", **settings) as consumer:
            yield consumer


class CommitsBeforeTheWork(Billing):
    finds: ClassVar[str] = "OffsetAheadOfWork"

    def bill(self, consumer: Consumer, producer: Producer, records: Sequence[Record]) -> None:
        consumer.commit()
        for delivery in [self.send(producer, record) for record in records]:
            delivery.result(30)


class CommitsPositions(Billing):
    """A defective variant: after each bill it commits the position, which is after all polled records."""

    finds: ClassVar[str] = "OffsetAheadOfWork"

    def bill(self, consumer: Consumer, producer: Producer, records: Sequence[Record]) -> None:
        for record in records:
            self.send(producer, record).result(30)
            consumer.commit()


class NeverTriesAgain(Billing):
    """A defective variant: it turns retries off, logs failed deliveries, and continues."""

    finds: ClassVar[str] = "UnheededFailure"

    def producer(self, **settings: Any) -> Producer:
        return super().producer(retries=0, enable_idempotence=False, **settings)

    def bill(self, consumer: Consumer, producer: Producer, records: Sequence[Record]) -> None:
        for delivery in [self.send(producer, record) for record in records]:
            try:
                delivery.result(30)
            except PenstockError as error:
                self.logged = str(error)
        consumer.commit()


class IgnoresDeliveries(Billing):
    """A defective variant: it sends, flushes and ignores deliveries.

    Its flush raises no error for refused records.
    """

    finds: ClassVar[str] = "UnheededFailure"
    faults: ClassVar[Sequence[str] | None] = ("refusals", "errors", "lost_answers")

    def bill(self, consumer: Consumer, producer: Producer, records: Sequence[Record]) -> None:
        for record in records:
            self.send(producer, record)
        producer.flush(30)
        consumer.commit()


class TriesAgainWithoutIdempotence(Billing):
    promises: ClassVar[dict[str, bool]] = {"at_least_once": True, "writes_once": True}
    finds: ClassVar[str] = "DuplicateWrite"

    def producer(self, **settings: Any) -> Producer:
        return super().producer(enable_idempotence=False, **settings)


class LosesAWakeUp(Billing):
    """A defective variant: it pauses partitions that are assigned to it a second time.

    It forgets to mark such partitions as ready again.
    """

    finds: ClassVar[str] = "UndoneWork"
    patience_s: ClassVar[float] = 1.0

    def work(self) -> None:
        ready: set[TopicPartition] = set()
        had: set[TopicPartition] = set()

        def assigned(partitions: list[TopicPartition]) -> None:
            ready.update(set(partitions) - had)  # what comes back is never ready again
            had.update(partitions)

        def revoked(partitions: list[TopicPartition]) -> None:
            ready.difference_update(partitions)

        with self.consumer() as consumer, self.producer() as producer:
            consumer.subscribe("orders", on_assigned=assigned, on_revoked=revoked)
            while not self.is_over():
                consumer.pause([each for each in consumer.assignment() if each not in ready])
                records = consumer.poll(20, 4)
                if records:
                    try:
                        self.bill(consumer, producer, records)
                    except KafkaError as error:
                        if error.name not in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"):
                            raise


class SwallowsARebalance(Billing):
    """A defective variant: it ignores every failed commit, and relies on the next one."""

    finds: ClassVar[str] = "WorkAfterRebalance"

    def bill(self, consumer: Consumer, producer: Producer, records: Sequence[Record]) -> None:
        for record in records:
            self.send(producer, record).result(30)
            try:
                consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})
            except KafkaError as error:
                self.logged = str(error)


class WorksInThreads(Billing):
    """A defective variant: a pool of threads sends bills, and each thread retries on its own."""

    finds: ClassVar[str] = "ReorderedWork"

    def producer(self, **settings: Any) -> Producer:
        return super().producer(retries=0, enable_idempotence=False, **settings)

    def bill(self, consumer: Consumer, producer: Producer, records: Sequence[Record]) -> None:
        first = [self.send(producer, record) for record in records]

        def bill_one(index: int) -> None:
            delivery = first[index]
            while True:
                try:
                    delivery.result(30)
                except PenstockError:
                    # Threads come in any order; here in the worst one, so that every run finds the same.
                    for other in first:
                        other.exception(30)
                    time.sleep(0.02 * (len(records) - index))
                    delivery = self.send(producer, records[index])
                else:
                    return

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(bill_one, range(len(records))))
        consumer.commit()


class LeavesOffsetsOut(ExactBilling):
    """A defective variant: it writes bills in a transaction, but commits the offsets after it."""

    finds: ClassVar[str] = "OffsetsOutsideTransaction"

    def bill(self, consumer: Consumer, producer: Producer, records: Sequence[Record]) -> None:
        with producer.transaction():
            for record in records:
                self.send(producer, record)
        consumer.commit()


class NeverAborts(ExactBilling):
    """A defective variant: after a failed transaction it leaves it open and creates another producer.

    The new producer has another transactional id.
    """

    finds: ClassVar[str] = "UnendedTransaction"
    left: ClassVar[list[Producer]] = []

    def work(self) -> None:
        with self.consumer() as consumer:
            consumer.subscribe("orders")
            while not self.is_over():
                producer = self.producer(transactional_id=f"billing-{len(self.left)}")
                try:
                    while not self.is_over():
                        records = consumer.poll(20, 4)
                        if records:
                            self.bill(consumer, producer, records)
                except TransactionAbortableError:
                    self.left.append(producer)
                    consumer.seek_to_committed()
                else:
                    producer.close()

    def bill(self, consumer: Consumer, producer: Producer, records: Sequence[Record]) -> None:
        producer.begin_transaction()
        for record in records:
            self.send(producer, record).result(30)
        producer.send_offsets(consumer.positions(), consumer)
        producer.commit_transaction()


class ReadsWhatIsAborted(ExactBilling):
    """A defective variant: it reads the bills for a report with isolation level read_uncommitted."""

    finds: ClassVar[str] = "AbortedRead"

    def bill(self, consumer: Consumer, producer: Producer, records: Sequence[Record]) -> None:
        with producer.transaction():
            for record in records:
                self.send(producer, record).result(30)
            producer.send_offsets(consumer.positions(), consumer)

    def run(self) -> None:
        super().run()
        with Consumer(self.servers, **FAST) as report:
            report.assign([("bills", partition) for partition in range(PARTITIONS)])
            report.seek_to_beginning()
            while any(report.lag().values()):
                report.poll(20)


RIGHT: tuple[type[Billing], ...] = (Billing, ExactBilling)
RIGHT_IN_NEWER_GROUPS: tuple[type[Billing], ...] = (BillingByNewerGroup, ExactBillingByNewerGroup)

DEFECTS: tuple[type[Billing], ...] = (
    CommitsBeforeTheWork,
    CommitsPositions,
    NeverTriesAgain,
    IgnoresDeliveries,
    TriesAgainWithoutIdempotence,
    LosesAWakeUp,
    SwallowsARebalance,
    WorksInThreads,
    LeavesOffsetsOut,
    NeverAborts,
    ReadsWhatIsAborted,
)


def fill(served: KafkaBroker | KafkaCluster) -> None:
    """Create the topics, and write the orders to theirs."""
    for topic in ("orders", "bills"):
        served.create_topic(topic, PARTITIONS)
    with Producer(served.bootstrap_servers) as producer:
        for number in range(ORDERS):
            key = b"%d" % number
            producer.send("orders", b"order " + key, key=key, partition=number % PARTITIONS)


def bills_orders(application: type[Billing]) -> Callable[[KafkaBroker, History, ChaosRun], None]:
    """Return a chaos test that runs one application with one broker."""

    def test(kafka_broker: KafkaBroker, kafka_history: History, kafka_chaos: ChaosRun) -> None:
        with kafka_chaos.paused():
            fill(kafka_broker)
        kafka_history.flow("orders", "bills", group="billing")
        application(kafka_broker.bootstrap_servers, kafka_history).run()

    return test


def bills_orders_in_a_cluster(
    application: type[Billing],
) -> Callable[[KafkaCluster, History, ChaosRun], None]:
    """Return a chaos test that runs one application with three brokers.

    Its partition leaders and coordinators really move.
    """

    def test(kafka_cluster: KafkaCluster, kafka_history: History, kafka_chaos: ChaosRun) -> None:
        with kafka_chaos.paused():
            fill(kafka_cluster)
        kafka_history.flow("orders", "bills", group="billing")
        application(kafka_cluster.bootstrap_servers, kafka_history).run()

    return test
