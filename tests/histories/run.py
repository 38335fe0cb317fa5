"""Run clients on a topic while its brokers fail, and judge the result with Jepsen's checks for Kafka.

Brokers are killed, paused and disconnected. Meanwhile DeleteRecords removes records that all clients have
read.

    make histories ARGS="[--minutes 5] [--seed 1] [--target broker] [--client penstock] [--no-page]"

The program runs one history after the other with consecutive seeds, each for `--seconds`. The targets take
turns: `broker`, `cluster` (three of Penstock's brokers) and `kafka` (three of Apache Kafka's). A seed
determines the faults and the clients' operations, but not the scheduling of threads. The program prints a
line for each history, adds the result to `ledger.json`, and writes docs/reference/histories.md. The exit
status is 1 if there was an anomaly.

A history of an hour uses little CPU with `--pause 1` between transactions and `--calm 20` between faults, in
seconds; several programs may run in parallel. SIGINT and SIGTERM end a history early, and its result counts.
The brokers' data of a history with an anomaly is kept, and the program prints its directory.
"""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from histories.clients import CLIENTS
from histories.page import Entry, add
from histories.rules import ALLOWED, anomalies
from histories.targets import CALM_S, TARGETS
from histories.workload import PARTITIONS, PAUSE_S, Workload


def make(
    target: str,
    kinds: list[str],
    seed: int,
    seconds: float,
    *,
    pause_s: float = PAUSE_S,
    calm_s: tuple[float, float] = CALM_S,
    stopping: threading.Event | None = None,
) -> Entry:
    """Run one history, check it, and return its result; setting `stopping` ends it early.

    The brokers' data is deleted at the end. After an anomaly it is kept, and its directory is printed.
    """
    rng = random.Random(seed)
    stopping = stopping or threading.Event()
    directory = Path(tempfile.mkdtemp(prefix=f"histories-{target}-{seed}-"))
    with TARGETS[target](directory) as served:
        topic = f"history-{seed}"
        served.create_topic(topic, PARTITIONS)
        workload = Workload(served.servers, topic, kinds, seed, pause_s)
        served.add(workload.delete_records)
        workload.start()
        over = threading.Event()
        nemesis = threading.Thread(target=served.trouble, args=(rng, over, calm_s), daemon=True)
        nemesis.start()
        began = time.monotonic()
        while time.monotonic() < began + seconds and not stopping.is_set() and not over.wait(0.2):
            pass
        over.set()
        nemesis.join(300)
        lasted = time.monotonic() - began
        if served.error is not None:  # judged as far as it has come, where the others can be read
            print(f"{target} seed {seed}: a broker did not come back: {served.error}", file=sys.stderr)
        workload.finish()
    found = anomalies(workload.story)
    committed = sum(bool(each.is_committed) for each in workload.story.transactions)
    records = sum(len(log.records) for log in workload.story.history.logs.values())
    entry = Entry(
        target=target,
        clients=kinds,
        seed=seed,
        seconds=round(lasted),
        records=records,
        transactions=committed,
        troubles={each: served.happened.count(each) for each in sorted(set(served.happened))},
        done={each.name: each.done for each in workload.workers},
        allowed={name: len(texts) for name, texts in found.items() if name in ALLOWED},
        anomalies={name: texts[:5] for name, texts in found.items() if name not in ALLOWED},
        hung=workload.hung,
    )
    if entry.anomalies:
        print(f"{target} seed {seed}: the brokers' data is kept in {directory}", file=sys.stderr, flush=True)
    else:
        shutil.rmtree(directory, ignore_errors=True)
    return entry


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seconds", type=float, default=40, help="of one history")
    parser.add_argument("--pause", type=float, default=PAUSE_S, help="mean seconds between transactions")
    parser.add_argument("--calm", type=float, default=CALM_S[1], help="most seconds between two troubles")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", action="append", choices=list(TARGETS))
    parser.add_argument("--client", action="append", choices=list(CLIENTS))
    parser.add_argument("--no-page", action="store_true", help="print only")
    given = parser.parse_args(words)
    for library in ("aiokafka", "kafka", "penstock", "histories"):
        logging.getLogger(library).setLevel(logging.CRITICAL)  # that a broker is away is the point
    kinds = given.client or list(CLIENTS)
    targets = given.target or list(TARGETS)
    end, seed, has_failed = time.monotonic() + 60 * given.minutes, given.seed, False
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    while time.monotonic() < end and not stopping.is_set():
        entry = make(
            targets[seed % len(targets)],
            kinds,
            seed,
            min(given.seconds, max(1, end - time.monotonic())),
            pause_s=given.pause,
            calm_s=(CALM_S[0], given.calm),
            stopping=stopping,
        )
        print(entry.line(), flush=True)
        has_failed |= bool(entry.anomalies)
        if not given.no_page:
            add(entry)
        seed += 1
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
