"""The checks of Jepsen's workload for Kafka and a search for cycles of transactions.

They find anomalies in what clients have written and read. Some rules about writes and polls are in
`penstock.testing.chaos`, the others in this module. Each is a pure function of a `Story`, for any client and
cluster.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from penstock.model import TopicPartition
from penstock.testing.chaos.events import Polled, Sent
from penstock.testing.chaos.evidence import Evidence
from penstock.testing.chaos.findings import Finding
from penstock.testing.chaos.history import History
from penstock.testing.chaos.poll_rules import poll_findings
from penstock.testing.chaos.write_rules import write_findings

CHECKS = (
    "lost-write",
    "aborted-read",
    "precommitted-read",
    "inconsistent-offsets",
    "duplicate",
    "unseen",
    "poll-skip",
    "nonmonotonic-poll",
    "int-poll-skip",
    "int-nonmonotonic-poll",
    "nonmonotonic-send",
    "int-nonmonotonic-send",
    "int-send-skip",
)
"""The names of Jepsen's checks; the prefix `int` means within one transaction or one poll."""

MORE_CHECKS = ("hanging-transaction", "divided-transaction", "G1c")
"""The names of further checks: a transaction that stays open, one that is committed in part, and a cycle.

A cycle (G1c) consists of transactions that each read a record of the previous one.
"""

ALLOWED = ("int-send-skip", "G0")
"""Anomalies that Kafka permits, and that are only counted.

Transactions of several producers may interleave in a partition.
"""

_NAMES = {
    "LostWrite": "lost-write",
    "AbortedRead": "aborted-read",
    "InconsistentOffsets": "inconsistent-offsets",
    "DuplicateWrite": "duplicate",
    "PollSkip": "poll-skip",
    "NonMonotonicPoll": "nonmonotonic-poll",
    "ReorderedWrite": "nonmonotonic-send",
    "UnendedTransaction": "hanging-transaction",
}

Place = tuple[TopicPartition, int]


@dataclass
class Transaction:
    """One transaction of a client: its writes and reads, the time of its commit call, and its outcome."""

    name: str
    writes: list[tuple[TopicPartition, bytes]] = field(default_factory=list)
    reads: list[Place] = field(default_factory=list)
    committing_s: float = float("inf")
    """The time at which its commit was called, in seconds; no consumer may read its records earlier."""
    is_committed: bool | None = None
    """True if committed, False if aborted, None if the client never learned the outcome."""


@dataclass
class Story:
    """The events of one history: its clients' writes and reads, in which the checks search for anomalies.

    `history` has the events, and the contents of the logs at the end.
    """

    history: History = field(default_factory=History)
    transactions: list[Transaction] = field(default_factory=list)
    seen_s: dict[Place, float] = field(default_factory=dict)
    """The time at which each record was first returned to a read_committed consumer, in seconds."""
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    """The start offset of each log at the end.

    Records before it were deleted; `history` has copies of them.
    """
    readers: dict[str, set[Place]] = field(default_factory=dict)
    """The records that each consumer returned that read all partitions once more at the end."""


def anomalies(story: Story) -> dict[str, list[str]]:
    """Return a dict from a check's name to the anomalies it found, including those in `ALLOWED`."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    evidence = Evidence(list(story.history.events), story.history.logs, [])
    inner = [
        *poll_findings(_single_polls(evidence)),
        *write_findings(_single_sends(evidence), writes_once=False),
    ]
    internal = {
        (each.name, each.places): each
        for each in inner
        if each.name in {"PollSkip", "NonMonotonicPoll", "ReorderedWrite"}
    }
    for each in internal.values():
        found["int-" + _NAMES[each.name]].append(each.text)
    outer: Iterable[Finding] = [*write_findings(evidence, writes_once=True), *poll_findings(evidence)]
    for each in outer:
        name = _NAMES.get(each.name)
        if name is not None and (each.name, each.places) not in internal:
            found[name].append(each.text)
    offsets = _offsets(story)
    for name, rule in (
        ("unseen", _unseen(story)),
        ("precommitted-read", _precommitted(story, offsets)),
        ("divided-transaction", _divided(story)),
        ("int-send-skip", _send_skips(story, offsets)),
        ("G1c", _cycles(_who_read_whom(story, offsets))),
        ("G0", _cycles(_who_wrote_behind_whom(story, offsets))),
    ):
        found[name] += rule
    return {name: texts for name, texts in found.items() if texts}


def _single_polls(evidence: Evidence) -> Evidence:
    """Return each poll as that of a separate client, so that checks compare only within one poll."""
    polls = [each for each in evidence.events if isinstance(each, Polled)]
    alone = [dataclasses.replace(each, client=number) for number, each in enumerate(polls)]
    return Evidence(alone, evidence.logs, [])


def _single_sends(evidence: Evidence) -> Evidence:
    """Return the sends of each transaction as those of a separate client.

    The checks then compare only within one transaction.
    """
    numbers: defaultdict[tuple[int, int], int] = defaultdict(itertools.count(1).__next__)
    sends = [each for each in evidence.events if isinstance(each, Sent) and each.transaction]
    alone = [dataclasses.replace(each, client=numbers[each.client, each.transaction]) for each in sends]
    return Evidence(alone, evidence.logs, [])


def _offsets(story: Story) -> dict[tuple[TopicPartition, bytes], int]:
    """Return a dict from each partition and committed value to its offset; values are unique."""
    return {
        (tp, record.value): record.offset
        for tp, log in story.history.logs.items()
        for record in log.records
        if record.state == "committed"
    }


def _unseen(story: Story) -> Iterator[str]:
    """Yield a text for each committed record that a consumer missed that read everything at the end."""
    for reader, places in story.readers.items():
        for tp, log in story.history.logs.items():
            for record in log.records:
                is_there = record.state == "committed" and record.offset >= story.starts.get(tp, 0)
                if is_there and (tp, record.offset) not in places:
                    yield f"{reader} read all of {tp}, and was not handed offset {record.offset}"


def _precommitted(story: Story, offsets: dict[tuple[TopicPartition, bytes], int]) -> Iterator[str]:
    """Yield a text for each record that a read_committed consumer got before its commit was called."""
    for each in story.transactions:
        for tp, value in each.writes:
            seen_s = story.seen_s.get((tp, offsets.get((tp, value), -1)))
            if seen_s is not None and seen_s < each.committing_s:
                yield f"{value!r} of {each.name} was read from {tp} before its commit was called"


def _divided(story: Story) -> Iterator[str]:
    """Yield a text for each transaction with both committed records and aborted or missing ones."""
    states = {
        (tp, record.value): record.state for tp, log in story.history.logs.items() for record in log.records
    }
    for each in story.transactions:
        found = {states.get(write, "missing") for write in each.writes}
        if "committed" in found and len(found) > 1:
            others = ", ".join(sorted(found - {"committed"}))
            yield f"of {each.name} some records are committed, and some {others}"
        elif each.is_committed is False and "committed" in found:
            yield f"{each.name} was aborted, and its records are committed"
        elif each.is_committed and found - {"committed"}:
            yield f"{each.name} was committed, and its records are {', '.join(sorted(found))}"


def _send_skips(story: Story, offsets: dict[tuple[TopicPartition, bytes], int]) -> Iterator[str]:
    """Yield a text where other records lie between two records of one transaction in a partition."""
    for each in story.transactions:
        by_partition: defaultdict[TopicPartition, list[int]] = defaultdict(list)
        for tp, value in each.writes:
            if (tp, value) in offsets:
                by_partition[tp].append(offsets[tp, value])
        for tp, placed in by_partition.items():
            for one, other in itertools.pairwise(placed):
                if story.history.logs[tp].between(one + 1, other):
                    yield f"{each.name} has {tp} {one} and {other}, and others between"


Graph = dict[int, set[int]]


def _writers(story: Story, offsets: dict[tuple[TopicPartition, bytes], int]) -> dict[Place, int]:
    return {
        (tp, offsets[tp, value]): number
        for number, each in enumerate(story.transactions)
        for tp, value in each.writes
        if (tp, value) in offsets
    }


def _who_read_whom(story: Story, offsets: dict[tuple[TopicPartition, bytes], int]) -> Graph:
    """Return a graph with an edge from each transaction to those that read its records (wr)."""
    writers, graph = _writers(story, offsets), defaultdict(set)
    for number, each in enumerate(story.transactions):
        for place in each.reads:
            writer = writers.get(place)
            if writer is not None and writer != number:
                graph[writer].add(number)
    return graph


def _who_wrote_behind_whom(story: Story, offsets: dict[tuple[TopicPartition, bytes], int]) -> Graph:
    """Return a graph with an edge from each transaction to the writer of the next record (ww)."""
    graph: Graph = defaultdict(set)
    places = sorted(_writers(story, offsets).items())
    for ((one_tp, _), one), ((other_tp, _), other) in itertools.pairwise(places):
        if one_tp == other_tp and one != other:
            graph[one].add(other)
    return graph


def _cycles(graph: Graph) -> Iterator[str]:
    """Yield a line for each cycle of transactions in a graph.

    The search is Tarjan's, without recursion.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    waiting: set[int] = set()
    for root in list(graph):
        if root in index:
            continue
        work = [(root, iter(graph.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        waiting.add(root)
        while work:
            node, ways = work[-1]
            for other in ways:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    waiting.add(other)
                    work.append((other, iter(graph.get(other, ()))))
                    break
                if other in waiting:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        waiting.discard(group[-1])
                    if len(group) > 1:
                        yield f"{len(group)} transactions reach one another, such as {sorted(group)[:5]}"
