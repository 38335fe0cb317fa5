"""A client that does everything right, as a process of its own: it produces, and consumes in a group.

    python good_client.py TOPIC OUTPUT

Its settings are a JSON object in the environment, ``GOOD_CLIENT_SETTINGS``. Where it has to log in, it also
does so anew several times a second.

Writes to OUTPUT, one JSON array in a line: ``["produced", time, seconds, number]`` for each record that was
acknowledged, ``["consumed", time, seconds, number]`` for each that arrived, both with the time of the
monotonic clock (which all processes share) and how long it took since it was handed over; and
``["late", time, seconds, null]`` by how much a pause took longer than asked for, which tells how busy the
machine is; ``["logged in", time, seconds, null]`` for each login, up to an answer to a request behind it;
``["failed", time, 0, text]`` for what went wrong. Ends at the end of its standard input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import IO

from penstock import Admin, Consumer, Producer
from penstock.errors import PenstockError

PAUSE_S = 0.01
"""About a hundred records a second: enough to notice what holds the broker up, and no load."""


class Diary:
    """What has happened, a line each."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._lock = threading.Lock()

    def note(self, what: str, seconds: float, detail: object) -> None:
        with self._lock:
            self._file.write(json.dumps([what, time.monotonic(), seconds, detail]) + "\n")
            self._file.flush()


def produce(settings: dict[str, str], topic: str, diary: Diary, stopping: threading.Event) -> None:
    number = 0
    with Producer(config={**settings, "acks": "all", "linger.ms": 0}) as producer:
        paused = time.monotonic()
        while not stopping.wait(PAUSE_S):
            began = time.monotonic()
            diary.note("late", began - paused - PAUSE_S, None)
            try:
                producer.send(topic, json.dumps([number, began]).encode()).result()
            except PenstockError as error:
                diary.note("failed", 0, f"produce: {error}")
            else:
                diary.note("produced", time.monotonic() - began, number)
            number += 1
            paused = time.monotonic()


def consume(settings: dict[str, str], topic: str, diary: Diary, stopping: threading.Event) -> None:
    with Consumer(config={**settings, "group.id": "good-group", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(topic)
        while not stopping.is_set():
            try:
                records = consumer.poll(timeout_ms=200)
            except PenstockError as error:
                diary.note("failed", 0, f"consume: {error}")
                continue
            now = time.monotonic()
            for record in records:
                number, began = json.loads(bytes(record.value or b""))
                diary.note("consumed", now - began, number)


def log_in(settings: dict[str, str], topic: str, diary: Diary, stopping: threading.Event) -> None:
    while not stopping.wait(20 * PAUSE_S):
        began = time.monotonic()
        try:
            with Admin(config=settings) as admin:
                admin.list_topics()
        except PenstockError as error:
            diary.note("failed", 0, f"log in: {error}")
        else:
            diary.note("logged in", time.monotonic() - began, None)


def main(topic: str, output: str) -> None:
    settings = json.loads(os.environ["GOOD_CLIENT_SETTINGS"])
    stopping = threading.Event()
    with open(output, "w", encoding="utf-8") as file:
        diary = Diary(file)
        threads = [
            threading.Thread(target=work, args=(settings, topic, diary, stopping))
            for work in (produce, consume, *([log_in] if "sasl.username" in settings else []))
        ]
        for thread in threads:
            thread.start()
        sys.stdin.read()
        stopping.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
