"""Plan a read: from options and offsets to ranges, and from ranges to tasks. No I/O.

The brokers' offsets are arguments. A *range* is the part of one partition that one query (or one micro-batch)
reads: `start` inclusive, `end` exclusive. Spark's checkpoint stores offsets as ``{"topic": {"0": 23}}`` with
topics and partitions in a fixed order, because Spark compares them as text, and because the Kafka connector
of the JVM writes this format, so that a query can switch with its checkpoint. Further keys, whose value has
no partitions, contain the ids of topics (`StreamOffsets`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.errors import ConfigError, PenstockError
from penstock.model import EARLIEST, LATEST, OffsetRange, TopicPartition
from penstock.protocol.uuid import uuid_from_text, uuid_to_text
from penstock.queries.pushdown.wanted import Wanted, on_topic
from penstock.spark.source.options import Bound, Selection

Offsets = dict[TopicPartition, int]
OffsetsJson = dict[str, dict[str, int]]

Lookup = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int | None]]
"""A function that sends ListOffsets: from a dict of partitions to EARLIEST, LATEST or a time in ms, it
returns the offsets. An offset is None if all records are earlier than the time."""

DATA_LOSS_ADVICE = "set failOnDataLoss to 'false' to go on without"

BEGINS_HERE = "(begins here)"
"""A key that marks the start of a query in Spark's log of offsets: its micro-batch reads nothing.

The log has the ends of micro-batches, but not the start of the first one. No topic has such a name, and the
Kafka connector of the JVM takes the key for a topic without partitions.
"""


_TOPIC_ID = re.compile(r"\(id of ([\w.-]+): ([\w-]{22})\)", re.ASCII)
"""A pattern for the further keys in a document of offsets, each with a topic's name and id. Like
`BEGINS_HERE`, such a key is not a valid topic name, and the Kafka connector of the JVM takes the key for a
topic without partitions.
"""


class DataLossError(PenstockError):
    """Raised if unread records are no longer in the log, and failOnDataLoss is on."""


def offsets_to_json(offsets: Mapping[TopicPartition, int]) -> OffsetsJson:
    """Return offsets in the form of Spark's checkpoint, ordered by topic and partition number."""
    document: OffsetsJson = {}
    for tp in sorted(offsets):
        document.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return document


def offsets_from_json(document: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Return the offsets in a document that `offsets_to_json` made.

    Raises:
        ConfigError: the document does not contain offsets per topic and partition.
    """
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in document.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise ConfigError(f"no offsets per topic and partition: {document!r}; another source's?") from None


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """The offsets where a micro-batch begins or ends, and the ids of their topics, if known.

    Brokers before Kafka 2.8 have no ids, and checkpoints of other sources and of older releases have none.
    """

    offsets: Offsets
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def from_json(cls, document: Mapping[str, Mapping[str, int]]) -> StreamOffsets:
        """Return the offsets and topic ids in a document that `to_json` made. Raises ConfigError."""
        offsets = offsets_from_json(document)
        return cls(
            offsets,
            {found[1]: uuid_from_text(found[2]) for found in map(_TOPIC_ID.fullmatch, document) if found},
        )

    def to_json(self) -> OffsetsJson:
        """Return the document for Spark's checkpoint: `offsets_to_json` and a key for each topic id."""
        document = offsets_to_json(self.offsets)
        known = {topic: self.topic_ids[topic] for topic in document if topic in self.topic_ids}
        for topic, topic_id in known.items():
            document[f"(id of {topic}: {uuid_to_text(topic_id)})"] = {}
        return document

    def knowing(self, earlier: StreamOffsets) -> StreamOffsets:
        """Return these offsets, with topic ids from `earlier` added for topics without an id."""
        topics = {tp.topic for tp in self.offsets}
        known = {**earlier.topic_ids, **self.topic_ids}
        return StreamOffsets(self.offsets, {name: each for name, each in known.items() if name in topics})

    def without(self, topics: Iterable[str]) -> StreamOffsets:
        """Return these offsets without the partitions of some topics."""
        gone = set(topics)
        return StreamOffsets(
            {tp: offset for tp, offset in self.offsets.items() if tp.topic not in gone}, self.topic_ids
        )


def recreated_topics(earlier: Mapping[str, bytes], later: Mapping[str, bytes]) -> dict[str, str]:
    """Return a dict from each topic that was deleted and created again to an error message."""
    return {
        topic: f"topic {topic} was deleted and created anew: its id was {uuid_to_text(earlier[topic])} and "
        f"is {uuid_to_text(topic_id)}, and what was not yet read of the old one is gone"
        for topic, topic_id in sorted(later.items())
        if topic_id != earlier.get(topic, topic_id)
    }


def select_partitions(selection: Selection, partition_counts: Mapping[str, int]) -> list[TopicPartition]:
    """Return the partitions that `selection` includes, sorted; `partition_counts` has the existing topics.

    Raises:
        ConfigError: a topic or partition that the selection names does not exist.
    """
    if selection.partitions:
        for tp in selection.partitions:
            if tp.topic not in partition_counts:
                raise ConfigError(
                    f"unknown topic {tp.topic!r}: create it first, or correct the option assign"
                )
            count = partition_counts[tp.topic]
            if tp.partition >= count:
                raise ConfigError(f"assign names {tp}, but topic {tp.topic!r} has {count} partitions")
        return list(selection.partitions)
    for topic in selection.topics:
        if topic not in partition_counts:
            raise ConfigError(f"unknown topic {topic!r}: create it first, or correct the option subscribe")
    return [
        TopicPartition(topic, partition)
        for topic in sorted(partition_counts)
        if selection.matches(topic)
        for partition in range(partition_counts[topic])
    ]


def resolve(bound: Bound, partitions: Sequence[TopicPartition], lookup: Lookup) -> Offsets:
    """Return a dict from partition to the offset of `bound`, after looking up EARLIEST, LATEST and times.

    Raises:
        ConfigError: the option does not name exactly `partitions`, or all records are earlier than the
            timestamp and startingOffsetsByTimestampStrategy is "error".
    """
    if bound.everywhere is not None:
        questions = dict.fromkeys(partitions, bound.everywhere)
    else:
        questions = dict(bound.offsets or bound.timestamps)
        _refuse_other_partitions(bound.option, questions, partitions)
    if bound.offsets:
        found = _look_up_ends(questions, lookup)
    else:
        answers = lookup(questions) if questions else {}
        found = {tp: answers.get(tp) for tp in questions}
    late = [tp for tp, offset in found.items() if offset is None]
    if late and not bound.late_means_latest:
        raise ConfigError(
            f"{bound.option}: no record of {', '.join(map(str, late))} is that late; "
            "set startingOffsetsByTimestampStrategy to 'latest' to wait for one"
        )
    if late:
        found.update(lookup(dict.fromkeys(late, LATEST)))
    return {tp: offset for tp, offset in found.items() if offset is not None}


def _refuse_other_partitions(
    option: str, questions: Mapping[TopicPartition, int], partitions: Sequence[TopicPartition]
) -> None:
    missing = sorted(set(partitions) - set(questions))
    if missing:
        raise ConfigError(
            f"{option} must name every partition (-2 earliest, -1 latest); "
            f"missing: {', '.join(map(str, missing))}"
        )
    foreign = sorted(set(questions) - set(partitions))
    if foreign:
        raise ConfigError(
            f"{option} names what is not read or does not exist: {', '.join(map(str, foreign))}"
        )


def _look_up_ends(offsets: Mapping[TopicPartition, int], lookup: Lookup) -> dict[TopicPartition, int | None]:
    """Return offsets with EARLIEST and LATEST replaced by the current first and end offsets."""
    ends = {tp: offset for tp, offset in offsets.items() if offset in (EARLIEST, LATEST)}
    return {**offsets, **(lookup(ends) if ends else {})}


def batch_ranges(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    lookup: Lookup,
    *,
    fail_on_data_loss: bool,
) -> list[OffsetRange]:
    """Return the ranges between two resolved bounds that a batch query reads, without empty ones.

    Raises:
        ConfigError: a partition ends before it starts.
        DataLossError: records between the bounds are no longer, or not yet, in the log.
    """
    backwards = [tp for tp in sorted(start) if start[tp] > end[tp]]
    if backwards:
        spans = ", ".join(f"{tp} from {start[tp]} to {end[tp]}" for tp in backwards)
        raise ConfigError(f"the query ends before it starts: {spans}; correct where it starts, or ends")
    earliest = lookup(dict.fromkeys(start, EARLIEST))
    latest = lookup(dict.fromkeys(start, LATEST))
    ranges = []
    for tp in sorted(start):
        first, last = earliest.get(tp) or 0, latest.get(tp) or 0
        begin, until = start[tp], end[tp]
        if fail_on_data_loss and begin < first and begin < until:
            raise DataLossError(
                f"{tp} starts at offset {first}: {begin} to {first - 1} are gone; {DATA_LOSS_ADVICE}"
            )
        if fail_on_data_loss and until > last:
            raise DataLossError(
                f"{tp} ends at offset {last}, before the {until} asked for; {DATA_LOSS_ADVICE}"
            )
        begin, until = max(begin, first), min(until, last)
        if begin < until:
            ranges.append(OffsetRange(tp.topic, tp.partition, begin, until))
    return ranges


def narrowed_ranges(
    ranges: Sequence[OffsetRange], wanted: Wanted, lookup: Lookup | None
) -> list[OffsetRange]:
    """Return the parts of ranges that may hold records for which `wanted` is true, without empty ones.

    The ends of the ranges must have been looked up before the call, so that they exclude newer records.
    Without a `lookup`, offsets are byte positions of Kafka 0.7: a range is then kept or removed as a whole.
    """
    found = []
    for each in ranges:
        one = on_topic(wanted, each.topic)
        if one.is_nothing or not one.partitions_among([each.partition]):
            continue
        if lookup is not None:
            end = each.end if one.offset_end is None else min(each.end, one.offset_end)
            each = each._replace(start=max(each.start, one.offset_min), end=end)
        if each.start < each.end:
            found.append(each)
    if lookup is None or wanted.time_min_ms is None or wanted.time_min_ms < 0 or not found:
        return found
    # Brokers answer with the first offset whose record is that late: every record before it is older,
    # although times may fall behind it.
    partitions = [TopicPartition(each.topic, each.partition) for each in found]
    first = lookup(dict.fromkeys(partitions, wanted.time_min_ms))
    return [
        each._replace(start=max(each.start, start))
        for each, tp in zip(found, partitions, strict=True)
        if (start := first.get(tp)) is not None and start < each.end
    ]


def stream_ranges(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
    *,
    fail_on_data_loss: bool,
) -> list[OffsetRange]:
    """Return the ranges that a micro-batch reads, from the checkpoint's offsets before and after it.

    `earliest` has the log start offset of every partition in `end` that still exists. A partition
    that is new in `end` is read from its log start.

    Raises:
        DataLossError: a partition was deleted, its offsets decreased, or its log starts after the batch's
        start.
    """
    losses = discontinuities(start, end)
    ranges = []
    for tp in sorted(end):
        first, until = earliest.get(tp), end[tp]
        if first is None:
            losses.append(f"{tp} is gone")
            continue
        begin = start.get(tp)
        if begin is None:
            begin = first
            if first > 0:
                losses.append(f"{tp} is new here and starts at offset {first}: 0 to {first - 1} are gone")
        elif begin < first and begin < until:
            losses.append(f"{tp} starts at offset {first}: {begin} to {min(first, until) - 1} are gone")
        begin = max(begin, first)
        if begin < until:
            ranges.append(OffsetRange(tp.topic, tp.partition, begin, until))
    refuse_losses(losses, fail_on_data_loss=fail_on_data_loss)
    return ranges


def discontinuities(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[str]:
    """Return reasons why `end` cannot follow `start`: partitions that disappeared, or lower offsets."""
    losses = []
    gone = sorted(set(start) - set(end))
    if gone:
        losses.append(f"{', '.join(map(str, gone))} of the checkpoint are gone or no longer selected")
    losses += [
        f"{tp} went back from offset {start[tp]} to {end[tp]}: was the topic created anew?"
        for tp in sorted(end)
        if tp in start and end[tp] < start[tp]
    ]
    return losses


def refuse_losses(losses: Sequence[str], *, fail_on_data_loss: bool) -> None:
    """Raise an error if `losses`, descriptions of lost records, is not empty and failOnDataLoss is on.

    Raises:
        DataLossError: `losses` is not empty, and `fail_on_data_loss` is set.
    """
    if losses and fail_on_data_loss:
        raise DataLossError(f"{'; '.join(losses)}; {DATA_LOSS_ADVICE}")


def limit_rows(
    start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], rows_max: int
) -> Offsets:
    """Return the end offsets of a micro-batch of about `rows_max` records.

    Every partition gets a share in proportion to its backlog, and at least one record, so that small
    partitions do not starve. Shares are rounded as Spark's Kafka source rounds them, in floating point: a
    query that switches sources keeps its micro-batches. `start` must have every partition of `latest`.
    """
    backlog = {tp: max(0, latest[tp] - start[tp]) for tp in latest}
    total = sum(backlog.values())
    if total == 0:
        return dict(latest)
    ends = {}
    for tp, size in backlog.items():
        share = rows_max * (size / total)
        rows = math.ceil(share) if share < 1 else math.floor(share)
        ends[tp] = start[tp] + min(size, rows) if size else latest[tp]
    return ends


def backlog_rows(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> int:
    """Return the number of offsets between `start` and `latest`, in partitions that both of them have."""
    return sum(max(0, latest[tp] - start[tp]) for tp in latest if tp in start)


def split_ranges(
    ranges: Iterable[OffsetRange], *, min_partitions: int | None = None, max_records: int | None = None
) -> list[OffsetRange]:
    """Divide ranges for tasks: no range longer than `max_records`, at least `min_partitions` ranges.

    Parts of one partition stay in order; their sizes differ by at most one record. There are fewer ranges
    than `min_partitions` only if there are fewer records.
    """
    whole = [each for each in ranges if each.size > 0]
    parts = [max(1, -(-each.size // max_records)) if max_records else 1 for each in whole]
    wanted = min(min_partitions or 0, sum(each.size for each in whole))
    while sum(parts) < wanted:
        # The range with the longest pieces is cut once more: large ranges split, small ones stay whole.
        longest = max(range(len(whole)), key=lambda i: (whole[i].size / parts[i], -i))
        parts[longest] += 1
    return [piece for each, count in zip(whole, parts, strict=True) for piece in _pieces(each, count)]


def pack_ranges(pieces: Iterable[OffsetRange], rows_max: int) -> list[tuple[OffsetRange, ...]]:
    """Combine consecutive ranges in one task, as long as the task has at most `rows_max` records.

    Starting a task takes some milliseconds, which would be most of the time of small micro-batches with many
    partitions.
    """
    tasks: list[tuple[OffsetRange, ...]] = []
    room = 0
    for piece in pieces:
        if piece.size <= room:
            tasks[-1] = (*tasks[-1], piece)
            room -= piece.size
        else:
            tasks.append((piece,))
            room = rows_max - piece.size
    return tasks


def _pieces(whole: OffsetRange, count: int) -> list[OffsetRange]:
    edges = [whole.start + whole.size * i // count for i in range(count + 1)]
    return [OffsetRange(whole.topic, whole.partition, begin, until) for begin, until in pairwise(edges)]


def known_offsets(answers: Mapping[TopicPartition, int | None]) -> Offsets:
    """Return a copy of `answers` without the partitions whose offset is None."""
    return {tp: offset for tp, offset in answers.items() if offset is not None}
