"""Histories of every client on brokers that are killed, paused and cut off, held to the checks of Jepsen.

    make histories ARGS="[--minutes 5] [--seed 1] [--target broker] [--client penstock] [--no-page]"

One history after the other, by consecutive seeds, each of `--seconds`, on the targets in turn: `broker`,
`cluster` (three of Penstock's) and `kafka` (three of Apache Kafka's). A seed draws what befalls the
brokers and what the clients do; how the threads take turns it does not. Prints a line for each, adds it to
`ledger.json`, and writes docs/reference/histories.md. Ends with 1 if there was an anomaly.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from histories.clients import CLIENTS
from histories.page import Entry, add, write_page
from histories.rules import ALLOWED, anomalies
from histories.targets import TARGETS
from histories.workload import PARTITIONS, Workload


def make(target: str, kinds: list[str], seed: int, seconds: float) -> Entry:
    """Make one history and judge it."""
    rng = random.Random(seed)
    with (
        tempfile.TemporaryDirectory(prefix="histories-", ignore_cleanup_errors=True) as name,
        TARGETS[target](Path(name)) as served,
    ):
        topic = f"history-{seed}"
        served.create_topic(topic, PARTITIONS)
        workload = Workload(served.servers, topic, kinds, seed)
        workload.start()
        stopping = threading.Event()
        nemesis = threading.Thread(target=served.trouble, args=(rng, stopping), daemon=True)
        nemesis.start()
        began = time.monotonic()
        time.sleep(seconds)
        stopping.set()
        nemesis.join(300)
        lasted = time.monotonic() - began
        workload.finish()
    found = anomalies(workload.story)
    committed = sum(bool(each.is_committed) for each in workload.story.transactions)
    records = sum(len(log.records) for log in workload.story.history.logs.values())
    return Entry(
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


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seconds", type=float, default=40, help="of one history")
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
    while time.monotonic() < end:
        entry = make(targets[seed % len(targets)], kinds, seed, given.seconds)
        print(entry.line(), flush=True)
        has_failed |= bool(entry.anomalies)
        if not given.no_page:
            add(entry)
            write_page()
        seed += 1
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
