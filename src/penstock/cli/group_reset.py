"""The targets of `reset` of groups and share groups: parse the options, and compute the new offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from penstock.cli.times import parse_duration, parse_time
from penstock.clock import SystemClock
from penstock.errors import ConfigError
from penstock.model import TopicPartition

Offsets = Mapping[TopicPartition, int]


class To(Enum):
    """The kinds of targets of an offset reset; the value of each is the command's option that selects it."""

    EARLIEST = "--to-earliest"
    LATEST = "--to-latest"
    OFFSET = "--to-offset"
    TIME = "--to-time"
    AGE = "--by-duration"
    SHIFT = "--shift-by"


@dataclass(frozen=True, slots=True)
class ResetTarget:
    """The target of an offset reset; `number` is an offset, an offset difference, or a time in ms."""

    to: To
    number: int = 0

    @property
    def time_ms(self) -> int | None:
        return self.number if self.to in (To.TIME, To.AGE) else None


def parse_target(options: Mapping[To, bool | int | str | None]) -> ResetTarget:
    """Return the target that exactly one of a command's options gives.

    `options` has the value of each option of the command, None or False for an option that was not given.

    Raises:
        ConfigError: no option or several are given, or the value is malformed.
    """
    chosen = [(to, value) for to, value in options.items() if value is not None and value is not False]
    if len(chosen) != 1:
        raise ConfigError(f"give exactly one of {', '.join(to.value for to in options)}")
    ((to, value),) = chosen
    if to is To.TIME:
        return ResetTarget(to, parse_time(str(value), to.value))
    if to is To.AGE:
        duration_ms = parse_duration(str(value), to.value)
        now_ms = SystemClock().now_ms()
        if duration_ms > now_ms:
            raise ConfigError(
                f"{to.value} {value!r}: that is before 1970; --to-earliest goes to the first record"
            )
        return ResetTarget(to, now_ms - duration_ms)
    return ResetTarget(to) if value is True else ResetTarget(to, int(value))


def parse_topics(words: Iterable[str]) -> dict[str, list[int] | None]:
    """Parse words ``TOPIC`` or ``TOPIC:0,1``; return each topic's partitions, or None for all.

    Raises:
        ConfigError: the part after a colon is not a list of numbers.
    """
    tps: dict[str, list[int] | None] = {}
    for word in words:
        topic, colon, numbers = word.partition(":")
        if not topic or (colon and not re.fullmatch(r"\d+(,\d+)*", numbers, flags=re.ASCII)):
            raise ConfigError(f"--topic {word!r}: give TOPIC, or TOPIC:0,1 for some of its partitions")
        before = tps.get(topic, [])
        if not colon or before is None:
            tps[topic] = None
        else:
            tps[topic] = sorted({*before, *map(int, numbers.split(","))})
    return tps


def planned(
    target: ResetTarget,
    tps: Iterable[TopicPartition],
    committed: Offsets,
    first: Offsets,
    last: Offsets,
    at_time: Mapping[TopicPartition, int | None],
) -> dict[TopicPartition, int]:
    """Return a dict from partition to the new offset that a reset sets, limited to the partition's log.

    Raises:
        ConfigError: a shift is requested for a partition without a committed offset.
    """
    plan = {}
    for tp in tps:
        if target.to is To.SHIFT and tp not in committed:
            raise ConfigError(f"nothing was committed for {tp}: there is nothing to shift")
        young = at_time.get(tp)
        wanted = {
            To.EARLIEST: first[tp],
            To.LATEST: last[tp],
            To.OFFSET: target.number,
            To.TIME: last[tp] if young is None else young,
            To.AGE: last[tp] if young is None else young,
            To.SHIFT: committed.get(tp, 0) + target.number,
        }[target.to]
        plan[tp] = min(max(wanted, first[tp]), last[tp])
    return plan
