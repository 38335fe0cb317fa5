"""Where `penstock consume` starts and stops: the values of ``-o``, in kcat's syntax."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from penstock.cli.times import TIME_HELP, parse_time
from penstock.errors import ConfigError
from penstock.model import TopicPartition

Offsets = Mapping[TopicPartition, int]


class StartKind(Enum):
    """The kind of a start position, such as an offset or a time: the meaning of `ReadSpan.number`."""

    BEGINNING = "beginning"
    END = "end"
    OFFSET = "an offset"
    BEFORE_END = "so many records before the end"
    TIME = "the first record at or after a time, in milliseconds since 1970"


@dataclass(frozen=True, slots=True)
class ReadSpan:
    """The span of records to read: the start, and the time (exclusive) at which to stop, or None."""

    start: StartKind = StartKind.BEGINNING
    number: int = 0
    stop_ms: int | None = None


class Ends(Protocol):
    """The methods that `resolve` calls to look up offsets; `penstock.client.Consumer` has them."""

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets: ...

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets: ...

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]: ...


def parse_span(words: Iterable[str]) -> ReadSpan:
    """Return the span that ``-o`` values define: `beginning`, `end`, `N`, `-N`, TIME, `s@TIME`, `e@TIME`.

    Raises:
        ConfigError: a value has another form, or there are two starts.
    """
    span = ReadSpan()
    started = False
    for word in words:
        kind, number = _parse(word)
        if kind is None:
            span = ReadSpan(span.start, span.number, number)
            continue
        if started:
            raise ConfigError(
                f"-o {word}: there is a start already; a second -o may only be e@TIME, where to stop"
            )
        span, started = ReadSpan(kind, number, span.stop_ms), True
    return span


def _parse(word: str) -> tuple[StartKind | None, int]:
    if word in ("beginning", "earliest"):
        return StartKind.BEGINNING, 0
    if word in ("end", "latest"):
        return StartKind.END, 0
    match = re.fullmatch(r"(-|)(\d{1,18})", word, flags=re.ASCII)
    if match is not None:
        return (StartKind.BEFORE_END if match[1] else StartKind.OFFSET), int(match[2])
    prefix, at, time = word.partition("@") if word[:2] in ("s@", "e@") else ("s", "", word)
    try:
        moment_ms = parse_time(time, f"-o {word}")
    except ConfigError:
        if at:
            raise
        raise ConfigError(
            f"-o {word}: give beginning, end, an offset, -N (N before the end), s@TIME or e@TIME; "
            f"a TIME is {TIME_HELP}"
        ) from None
    return (StartKind.TIME if prefix == "s" else None), moment_ms


def resolve(span: ReadSpan, partitions: list[TopicPartition], ends: Ends) -> dict[TopicPartition, int]:
    """Return the offset at which to start in each partition, limited to the range of its log."""
    first = ends.beginning_offsets(partitions)
    last = ends.end_offsets(partitions)
    if span.start is StartKind.BEGINNING:
        return dict(first)
    if span.start is StartKind.END:
        return dict(last)
    if span.start is StartKind.TIME:
        found = ends.offsets_for_times(dict.fromkeys(partitions, span.number))
        return {p: last[p] if (offset := found.get(p)) is None else offset for p in partitions}
    if span.start is StartKind.BEFORE_END:
        return {p: max(first[p], last[p] - span.number) for p in partitions}
    return {p: min(max(first[p], span.number), last[p]) for p in partitions}
