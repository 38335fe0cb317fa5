"""The file with the results of all test histories, and the documentation page that is written from it."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from histories.rules import ALLOWED, CHECKS, MORE_CHECKS

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "tests" / "histories" / "ledger.json"
PAGE = ROOT / "docs" / "reference" / "histories.md"

TARGET_TEXTS = {
    "broker": "Penstock, one broker",
    "cluster": "Penstock, three brokers",
    "kafka": "Apache Kafka 4.3.0, three nodes",
}

CHECK_TEXTS = {
    "lost-write": "a send was acknowledged, and the log does not hold it",
    "aborted-read": "a record of an aborted transaction was read as committed (G1a)",
    "precommitted-read": "a record was read before the commit of its transaction was called",
    "inconsistent-offsets": "two readers, or a reader and the log, have different records at one offset",
    "duplicate": "one send of an idempotent producer is stored twice",
    "unseen": "a committed record that a reader of everything was not handed",
    "poll-skip": "a reader was never handed a committed record before one that it was handed",
    "nonmonotonic-poll": "a reader was handed an offset again",
    "int-poll-skip": "as poll-skip, inside one poll",
    "int-nonmonotonic-poll": "as nonmonotonic-poll, inside one poll",
    "nonmonotonic-send": "two acknowledged sends of a producer are stored in the other order",
    "int-nonmonotonic-send": "as nonmonotonic-send, inside one transaction",
    "int-send-skip": "records of others lie between two of one transaction: Kafka permits it, counted only",
    "hanging-transaction": "a transaction is open a minute after the end",
    "divided-transaction": "of one transaction a part is committed, or not what was answered",
    "G1c": "transactions that have read one another's writes, in a cycle",
    "G0": "transactions that have written behind one another, in a cycle: Kafka permits it, counted only",
}


NEW_PRODUCER = (
    "Cause found: Penstock's new producer took a broker that stalled for one of before 0.10, and went on "
    "without idempotence: in the logs of a run of that round (seed 1800) its batches have no producer id. "
    "Mended since: it asks several times, asks again once another broker has answered, and warns; histories "
    "insist on idempotence."
)
SLOW_READER = "Read with a minute's patience on a machine without a processor for it; readers have ten since."
PARTS_DROPPED = (
    "Cause found: the thread that polls Penstock's blocking consumer looked for a cursor in the moment in "
    "which the fetcher moved it behind the others, and dropped the records that had come. Mended since: the "
    "cursor itself says whether it is still wanted."
)
STALLED_BROKER = (
    "Probable cause found: on a machine with forty times its load, the broker left ApiVersions unanswered "
    "for seconds, and a reader took it for one of before 0.11, whose Fetch knows no isolation. Penstock's "
    "consumer did so, by a test; librdkafka has such a fallback, too. Mended since in Penstock's: a reader "
    "of committed records asks again."
)
LOOKED_INTO = {
    ("broker", 1300, "duplicate"): NEW_PRODUCER,
    ("broker", 1401, "duplicate"): NEW_PRODUCER,
    ("broker", 1401, "unseen"): SLOW_READER,
    ("cluster", 1501, "duplicate"): NEW_PRODUCER,
    ("cluster", 2100, "duplicate"): NEW_PRODUCER,
    ("cluster", 502, "poll-skip"): PARTS_DROPPED,
    ("broker", 20400, "aborted-read"): STALLED_BROKER,
    ("broker", 20400, "precommitted-read"): STALLED_BROKER,
}
"""The explanation of each anomaly that was examined, by target, seed and check."""


NOTHING = "nothing deleted"
"""The name under which a call of DeleteRecords is counted that had no records to delete."""


@dataclass
class Entry:
    """The result of one history: its target, clients, seed, duration, injected faults and anomalies."""

    target: str
    clients: list[str]
    seed: int
    seconds: int
    records: int
    transactions: int
    troubles: dict[str, int]
    done: dict[str, int]
    allowed: dict[str, int]
    anomalies: dict[str, list[str]]
    hung: list[str] = field(default_factory=list)
    """The clients whose last call did not return within two minutes."""

    def line(self) -> str:
        """Return a line of text about the history, with the first finding of each anomaly."""
        troubles = ", ".join(f"{count} {name}" for name, count in self.troubles.items())
        found = "; ".join(f"{name}: {texts[0]}" for name, texts in self.anomalies.items()) or "no anomaly"
        made = f"{self.records} records, {self.transactions} transactions committed"
        return f"{self.target} seed {self.seed}: {self.seconds} s, {made}, {troubles}: {found}"


def entries() -> list[Entry]:
    """Return all results in the file."""
    if not LEDGER.exists():
        return []
    return [Entry(**each) for each in json.loads(LEDGER.read_text(encoding="utf-8"))]


def add(entry: Entry) -> None:
    """Add the result of a history to the file, and write the page; a lock serializes parallel runs."""
    directory = os.open(LEDGER.parent, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        rows = [json.dumps(dataclasses.asdict(each), sort_keys=True) for each in [*entries(), entry]]
        part = LEDGER.with_suffix(".part")
        part.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")
        part.replace(LEDGER)  # in one step: who is killed here leaves the old one or the new one
        write_page()
    finally:
        os.close(directory)


def page(found: list[Entry]) -> str:
    """Return the text of the documentation page about all histories."""
    lines = [
        "# Histories",
        "",
        "`make histories` writes this page. Clients write and read one topic, half of them in transactions,",
        "while brokers are killed, paused and cut off, by seed, and (since December 2026) records that all",
        "clients have read are deleted; then everything is read, and judged by the checks of Jepsen's",
        "workload for Kafka.",
        "",
        "## What was run",
        "",
        "| On | Histories | Minutes | Records | Transactions | Killed, paused, cut, deleted | Anomalies |",
        "|---|---|---|---|---|---|---|",
    ]
    for target, text in TARGET_TEXTS.items():
        some = [each for each in found if each.target == target]
        minutes = sum(each.seconds for each in some) / 60
        troubles = sum(count for each in some for name, count in each.troubles.items() if name != NOTHING)
        anomalies = sum(len(each.anomalies) for each in some)
        records, transactions = sum(each.records for each in some), sum(each.transactions for each in some)
        lines.append(
            f"| {text} | {len(some)} | {minutes:.0f} | {records:,} | {transactions:,} | {troubles} "
            f"| {anomalies} |"
        )
    clients = sorted({name for each in found for name in each.clients})
    lines += [
        "",
        "Clients: " + ", ".join(clients) + "; each with one idempotent and one transactional producer.",
        "",
    ]
    lasts = [number for number, each in enumerate(found, 1) if each.anomalies]
    hours = sum(each.seconds for each in found[lasts[-1] if lasts else 0 :]) / 3600
    lines += [f"Histories without an anomaly since the last one was found: {hours:.1f} hours.", ""]
    hung = sum(len(each.hung) for each in found)
    lines += [f"Clients that did not come back from their last call within two minutes: {hung}.", ""]
    lines += ["## Checks", "", "| Check | Finds | Found |", "|---|---|---|"]
    for name in (*CHECKS, *MORE_CHECKS, "G0"):
        count = sum(
            each.allowed.get(name, 0) if name in ALLOWED else len(each.anomalies.get(name, ()))
            for each in found
        )
        lines.append(f"| {name} | {CHECK_TEXTS[name]} | {count:,} |")
    lines += ["", "## Anomalies", ""]
    rows = [(each, name, texts[0]) for each in found for name, texts in each.anomalies.items()]
    if rows:
        lines += ["| Target | Seed | Check | The first | Looked into |", "|---|---|---|---|---|"]
        lines += [
            f"| {each.target} | {each.seed} | {name} | {text} "
            f"| {LOOKED_INTO.get((each.target, each.seed, name), 'not yet')} |"
            for each, name, text in rows
        ]
    else:
        lines.append("None so far.")
    lines += [
        "",
        "## Run it",
        "",
        "```sh no-run: runs for minutes",
        'make histories ARGS="--minutes 60 --seed 100"',
        'make histories ARGS="--target cluster --client penstock --no-page"',
        "```",
    ]
    return "\n".join(lines) + "\n"


def write_page() -> None:
    """Write the documentation page from the results in the file."""
    PAGE.write_text(page(entries()), encoding="utf-8")
