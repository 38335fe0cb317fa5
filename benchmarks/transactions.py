"""Measure transactions of 1, 1,000 and 100,000 records, with three clients at two brokers.

    python benchmarks/transactions.py [--quick] [--rounds N]

The clients are Penstock's, librdkafka (confluent-kafka) and Java's, in turn in every round. The brokers are
Penstock and Apache Kafka, both with data on disk. A transaction is timed from the call that begins it to the
return of the one that commits it. Records have values of 100 bytes and go to one partition. Linger is 0 for
transactions of one record, and each client's own default for larger ones. Without Java, only Penstock's
broker and the first two clients are measured.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import confluent_kafka
import pyarrow as pa

from broker_sides import KAFKA_VERSION, Side, kafka_side, penstock_side
from harness import arguments, print_table
from penstock import Producer

VALUE = bytes(100)
SIZES = (1, 1_000, 100_000)
TIMES = {1: 60, 1_000: 12, 100_000: 2}
"""A dict from a transaction's number of records to the number of such transactions per round."""

ARROW_SIZE_MIN = 1_000
JAVA = Path(__file__).with_name("transactions_java") / "Transactions.java"

Run = Callable[[int, int], list[float]]
"""A function that runs a number of transactions of a given size; returns the milliseconds of each."""

_names = itertools.count()


def timed(transact: Callable[[], object], times: int) -> list[float]:
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        transact()
        found.append((time.perf_counter() - begin) * 1000)
    return found


@contextmanager
def penstock_rows(bootstrap: str, topic: str) -> Iterator[Run]:
    with Producer(bootstrap, transactional_id=f"rows-{next(_names)}") as producer:

        def run(size: int, times: int) -> list[float]:
            def transact() -> None:
                with producer.transaction():
                    for _ in range(size):
                        producer.send(topic, VALUE)

            return timed(transact, times)

        yield run


@contextmanager
def penstock_arrow(bootstrap: str, topic: str) -> Iterator[Run]:
    with Producer(bootstrap, transactional_id=f"arrow-{next(_names)}") as producer:
        tables = {size: pa.table({"value": [VALUE] * size}) for size in SIZES}

        def run(size: int, times: int) -> list[float]:
            def transact() -> None:
                with producer.transaction():
                    producer.send_arrow(topic, tables[size])

            return timed(transact, times) if size >= ARROW_SIZE_MIN else []

        yield run


@contextmanager
def confluent(bootstrap: str, topic: str) -> Iterator[Run]:
    settings = {"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000, "log_level": 2}
    producers = {}
    for size in SIZES:
        linger = {"linger.ms": 0} if size == 1 else {}
        name = f"confluent-{next(_names)}"
        producers[size] = confluent_kafka.Producer({**settings, **linger, "transactional.id": name})
        producers[size].init_transactions(60)

    def run(size: int, times: int) -> list[float]:
        producer = producers[size]

        def transact() -> None:
            producer.begin_transaction()
            for _ in range(size):
                producer.produce(topic, VALUE)
            producer.commit_transaction(60)

        return timed(transact, times)

    yield run


@contextmanager
def java(bootstrap: str, topic: str) -> Iterator[Run]:
    from compat import peers

    classpath = peers.maven_classpath(f"kafka-{KAFKA_VERSION}")
    options = ["-Xmx512M", *peers.JAVA_OPTIONS[1:]]
    command = ["java", *options, "-cp", classpath, str(JAVA), bootstrap, topic, f"java-{next(_names)}"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines = process.stdin

    def run(size: int, times: int) -> list[float]:
        assert process.stdout is not None
        lines.write(f"{size} {times}\n")
        lines.flush()
        return [int(word) / 1e6 for word in process.stdout.readline().split()]

    try:
        yield run
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


CLIENTS = {
    "Penstock": penstock_rows,
    "Penstock, Arrow table": penstock_arrow,
    "confluent-kafka": confluent,
    "Java": java,
}


def at_broker(target: Side, rounds: int, factor: float, has_java: bool) -> dict[tuple[str, int], list[float]]:
    """Measure all clients at a broker.

    Returns the milliseconds of every transaction, keyed by client and number of records.
    """
    target.create("bench", 1)
    found: dict[tuple[str, int], list[float]] = {}
    with ExitStack() as stack:
        clients = {
            name: stack.enter_context(make(target.bootstrap, "bench"))
            for name, make in CLIENTS.items()
            if has_java or name != "Java"
        }
        for size in SIZES:
            times = max(1, int(TIMES[size] * factor))
            for run in clients.values():
                run(size, max(2, times // 3))
            for number in range(rounds):
                order = list(clients.items())
                for name, run in order if number % 2 == 0 else reversed(order):
                    found.setdefault((name, size), []).extend(run(size, times))
    return found


def main() -> None:
    options = arguments("Transactions from begin to commit", rounds=10, quick_rounds=2)
    has_java = shutil.which("java") is not None and shutil.which("mvn") is not None
    factor = 0.2 if options.quick else 1.0
    found: dict[str, dict[tuple[str, int], list[float]]] = {}
    sides = [penstock_side, kafka_side] if has_java else [penstock_side]
    for make in sides:
        with make() as target:
            found[target.name] = at_broker(target, options.rounds, factor, has_java)
    for name, at_one in found.items():
        rows = [
            (
                client,
                *(
                    f"{statistics.median(at_one[client, size]):,.2f}" if at_one.get((client, size)) else ""
                    for size in SIZES
                ),
            )
            for client in dict.fromkeys(client for client, _ in at_one)
        ]
        head = ("", *(f"{size:,} record{'s' if size > 1 else ''}" for size in SIZES))
        print_table(f"At {name}: milliseconds from begin to commit, median", head, rows)


if __name__ == "__main__":
    main()
