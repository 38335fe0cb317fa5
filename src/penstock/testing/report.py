"""The contents of a broker as text for the report of a failing test: topics, groups with lag, last records.

The text has a limited size, and is printable. Values of headers and settings, and internal topics, are left
out, since they may hold passwords and tokens. No function here raises: a failed test keeps its own error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from itertools import islice
from typing import TYPE_CHECKING

from penstock.broker.groups.lag import Lags
from penstock.broker.partitions.internal_topics import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.common.listening.serving_thread import Served
from penstock.errors import PenstockError
from penstock.log.walk import walk
from penstock.model import Record
from penstock.printable import printable
from penstock.records.batch import iter_records
from penstock.records.compression.codecs import UnpackBudget

if TYPE_CHECKING:
    from penstock.broker.metadata.replica_manager import Topic
    from penstock.broker.node import Node
    from penstock.broker.partitions.partition import Partition

TOPICS_MAX = 20
PARTITIONS_MAX = 20
"""The greatest number of partitions shown per topic, and of committed offsets shown per group."""
LAST_RECORDS = 5
"""The number of records shown per partition, counted from the end of its log."""
RECORDED_MAX = 10
"""The greatest number of partitions whose last records are shown."""
READ_BYTES_MAX = 1 << 20
TEXT_MAX = 80
"""The greatest number of characters shown of a key or value."""
PATIENCE_S = 2.0
"""The longest wait, in seconds, for the report of a broker: a paused broker does not answer."""

CONTROL_BIT = 0x20
INTERNAL = {METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC}


def sections(
    fixtures: Mapping[str, object], ended: Iterable[tuple[str, str]], log: Iterable[str]
) -> list[tuple[str, str]]:
    """Return the title and text of each section of a test's report.

    The sections are the contents of the brokers among the fixtures, the reports of ended brokers, and the
    log.
    """
    serving = [value for value in fixtures.values() if isinstance(value, Served) and value._holds_records]
    found = [(title_of(each), report_of(each)) for each in {id(each): each for each in serving}.values()]
    found += ended
    lines = [printable(line, "\n") for line in log]
    return [*found, ("Penstock's log", "\n".join(lines))] if lines else found


def title_of(served: Served) -> str:
    """Return the title of a broker's section in the report."""
    return printable(repr(served))


def report_of(served: Served) -> str:
    """Return the current contents of a broker or cluster, or the reason why they are not available."""
    loop = served._thread.loop
    if loop is None:
        return "not running"
    found: Future[str] = Future()

    def look() -> None:
        try:
            found.set_result("\n".join(_lines(served)))
        except BaseException as error:
            found.set_exception(error)

    try:
        loop.call_soon_threadsafe(look)
        return found.result(PATIENCE_S)
    except TimeoutError:
        return f"does not answer within {PATIENCE_S:g} s: it is paused, or at work"
    except Exception as error:
        return f"cannot be looked at: {error}"


def _lines(served: Served) -> Iterator[str]:
    nodes = nodes_of(served)
    for fault in getattr(getattr(served, "faults", None), "active", ()):
        yield f"in force: {fault!r}"
    topics = [topic for name, topic in sorted(nodes[0].cluster.topics.items()) if name not in INTERNAL]
    if not topics:
        yield "no topics"
    for topic in topics[:TOPICS_MAX]:
        yield _topic_line(nodes, topic)
    yield from _more(len(topics), TOPICS_MAX, "topics")
    yield from _group_lines(nodes)
    led = [
        leader
        for topic in topics
        for each in topic.partitions
        if (leader := leader_of(nodes, each.topic, each.index)) is not None
    ]
    written = [each for each in led if each.high_watermark]
    for partition in written[:RECORDED_MAX]:
        yield f"last records of {printable(partition.topic)}-{partition.index}:"
        yield from _record_lines(partition)
    yield from _more(len(written), RECORDED_MAX, "partitions with records")


def nodes_of(served: Served) -> list[Node]:
    """Return the running nodes of a broker (one) or a cluster (several)."""
    server = getattr(served, "server", None)
    shared = getattr(served, "_shared", None)
    nodes: list[Node] = []
    if server is not None:
        nodes = [server.node]
    elif shared is not None:
        nodes = [*shared.nodes.values()]
    if not nodes:
        raise PenstockError("no broker of the cluster runs")
    return nodes


def leader_of(nodes: Iterable[Node], name: str, index: int) -> Partition | None:
    """Return the partition object of the node that leads the partition, or None if no node leads it."""
    for node in nodes:
        topic = node.cluster.topics.get(name)
        if topic is not None and index < len(topic.partitions):
            found = topic.partitions[index]
            if found.leads:
                return found
    return None


def _topic_line(nodes: Iterable[Node], topic: Topic) -> str:
    spans = []
    for partition in topic.partitions[:PARTITIONS_MAX]:
        led = leader_of(nodes, partition.topic, partition.index)
        span = "no leader" if led is None else f"offsets {led.reader.start_offset} to {led.high_watermark}"
        spans.append(f"{partition.index}: {span}")
    spans += _more(len(topic.partitions), PARTITIONS_MAX, "partitions")
    return f"topic {printable(topic.name)}, {', '.join(spans)}"


def _group_lines(nodes: Iterable[Node]) -> Iterator[str]:
    for node in nodes:
        service = node.groups if OFFSETS_TOPIC in node.cluster.topics else node.groups_if_used
        if service is None:
            continue
        offsets: dict[str, list[str]] = {}
        for row in Lags(node.cluster.topics, service).rows:
            # By the leader: a follower's high watermark comes after it, and the test may have just written.
            led = leader_of(nodes, row.topic, row.partition)
            behind = "" if led is None else f" ({max(0, led.high_watermark - row.offset)} behind)"
            place = f"{printable(row.topic)}-{row.partition}"
            offsets.setdefault(row.group, []).append(f"{place} at {row.offset}{behind}")
        groups = service.coordinator.groups
        for name, group in islice(groups.items(), TOPICS_MAX):
            of_group = offsets.get(name, ["nothing committed"])
            shown = [*of_group[:PARTITIONS_MAX], *_more(len(of_group), PARTITIONS_MAX, "offsets")]
            members = len(group.members)
            yield f"group {printable(name)}, {group.state}, {members} members: {', '.join(shown)}"
        yield from _more(len(groups), TOPICS_MAX, "groups")


def _more(count: int, shown: int, noun: str) -> list[str]:
    return [f"and {count - shown} more {noun}"] if count > shown else []


def _record_lines(partition: Partition) -> Iterator[str]:
    end = partition.high_watermark
    log = partition.reader
    first = max(log.start_offset, end - LAST_RECORDS)
    try:
        data = log.read(first, READ_BYTES_MAX, up_to_offset=end, at_least_one=False).to_bytes()
        if not data:
            yield f"  a batch of more than {READ_BYTES_MAX:,} bytes"
        lines: deque[str] = deque(maxlen=LAST_RECORDS)
        for entry in walk(lambda position, size: data[position : position + size], 0, len(data)):
            if entry.attributes & CONTROL_BIT:
                lines.append(f"  {entry.last_offset}  (the end of a transaction)")
                continue
            budget = UnpackBudget(READ_BYTES_MAX, READ_BYTES_MAX)
            stop = entry.position + entry.size
            for some in iter_records(data, entry.position, stop, partition.topic, partition.index, budget):
                lines.extend(_record_line(record) for record in some if record.offset >= first)
        yield from lines
    except PenstockError as error:
        yield f"  cannot be read: {error}"


def _record_line(record: Record) -> str:
    headers = ", ".join(_short(name) for name, _ in record.headers[:PARTITIONS_MAX])
    return f"  {record.offset}  key {_shown(record.key)}, value {_shown(record.value)}" + (
        f", headers {headers}" if headers else ""
    )


def _shown(data: bytes | None) -> str:
    return (
        "null"
        if data is None
        else _short(data[: 4 * TEXT_MAX].decode("utf-8", "backslashreplace"), len(data))
    )


def _short(text: str, size: int | None = None) -> str:
    text = printable(text)
    if len(text) <= TEXT_MAX:
        return text
    return f"{text[:TEXT_MAX]}..." + ("" if size is None else f" ({size:,} bytes)")
