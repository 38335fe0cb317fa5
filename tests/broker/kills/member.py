"""A group member for a test to kill: ``python member.py KIND SERVERS GROUP TOPIC SEED FILE``.

KIND is ``share`` or ``consumer``. The program appends a line to FILE for each record, request and answer,
with times of the monotonic clock, which all processes of a machine share. The line of a request is written
before the request, and the line of an event after the event, so that a SIGKILL leaves no request out:

    D BEGAN NOW PARTITION OFFSET COUNT    a poll that began at BEGAN has returned this record
    S NOW PARTITION OFFSET TYPE COUNT     the member is about to acknowledge this record
    A NOW PARTITION FIRST LAST            the broker has confirmed acknowledgements
    O NOW PARTITION                       the member owns the partition from now on
    L NOW PARTITION                       the member has had the partition revoked
    X NOW PARTITION                       the member has lost the partition: it was fenced
    T NOW PARTITION OFFSET                the member is about to commit this offset
    C NOW PARTITION OFFSET                the broker has confirmed the commit
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from penstock import Consumer, ShareConsumer, TopicPartition
from penstock.errors import NetworkError, PenstockError

TYPES = ("accept",) * 16 + ("release",) * 3 + ("reject",)


class Diary:
    """A file to which a member appends its events; a written line survives a SIGKILL of the process."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(self, lines: Iterable[tuple[object, ...]]) -> None:
        text = "".join(" ".join(map(str, each)) + "\n" for each in lines)
        if text:
            os.write(self._descriptor, text.encode())


def share(servers: str, group: str, topic: str, dice: Random, diary: Diary) -> None:
    options: dict[str, Any] = {
        "group.id": group,
        "share.acknowledgement.mode": "explicit",
        "max.poll.records": 5_000,
        "retry.backoff.ms": 20,
        "retry.backoff.max.ms": 200,
    }

    def taken(offsets: Mapping[Any, list[range]], error: PenstockError | None) -> None:
        if error is None:
            now = time.monotonic()
            diary.say(
                ("A", now, tp.partition, each.start, each.stop - 1)
                for tp, ranges in offsets.items()
                for each in ranges
            )

    with ShareConsumer(servers, options) as consumer:
        consumer.subscribe(topic, on_acknowledged=taken)
        while True:
            began = time.monotonic()
            records = consumer.poll(200)
            now = time.monotonic()
            diary.say(("D", began, now, each.partition, each.offset, each.delivery_count) for each in records)
            said = [(each, dice.choice(TYPES)) for each in records]
            time.sleep(dice.uniform(0, 0.02))
            now = time.monotonic()
            diary.say(
                ("S", now, each.partition, each.offset, type_, each.delivery_count) for each, type_ in said
            )
            for each, type_ in said:
                consumer.acknowledge(each, type_)
            if dice.random() < 0.5:
                consumer.commit()  # else they go with the next poll


def consume(servers: str, group: str, topic: str, dice: Random, diary: Diary) -> None:
    options: dict[str, Any] = {
        "group.id": group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "max.poll.records": 20,
        "retry.backoff.ms": 20,
        "retry.backoff.max.ms": 200,
    }

    def told(word: str, partitions: Iterable[Any]) -> None:
        now = time.monotonic()
        diary.say((word, now, each.partition) for each in partitions)

    def given_up(word: str, partitions: Iterable[Any]) -> None:
        told(word, partitions)
        for each in partitions:
            ends.pop(each, None)

    ends: dict[Any, int] = {}
    with Consumer(servers, options) as consumer:
        consumer.subscribe(
            topic,
            on_assigned=lambda partitions: told("O", partitions),
            on_revoked=lambda partitions: given_up("L", partitions),
            on_lost=lambda partitions: given_up("X", partitions),
        )
        while True:
            began = time.monotonic()
            records = consumer.poll(200)
            now = time.monotonic()
            diary.say(("D", began, now, each.partition, each.offset, 1) for each in records)
            time.sleep(dice.uniform(0, 0.02))
            for each in records:
                ends[TopicPartition(each.topic, each.partition)] = each.offset + 1
            diary.say(("T", time.monotonic(), tp.partition, end) for tp, end in ends.items())
            try:
                consumer.commit(ends)
            except PenstockError:
                continue  # the group has gone on without this member
            diary.say(("C", time.monotonic(), tp.partition, end) for tp, end in ends.items())


def main() -> None:
    kind, servers, group, topic, seed, path = sys.argv[1:]
    run = {"share": share, "consumer": consume}[kind]
    dice, diary = Random(int(seed)), Diary(Path(path))
    while True:
        with suppress(NetworkError):  # it began while nothing served
            run(servers, group, topic, dice, diary)


if __name__ == "__main__":
    main()
