"""A correct client in a process of its own, which the attacks must not harm: it produces and consumes.

    python good_client.py TOPIC OUTPUT

Its settings are a JSON object in the environment variable ``GOOD_CLIENT_SETTINGS``. With SASL settings, it
also logs in over a new connection several times a second.

The program writes one JSON array per line to OUTPUT. ``["produced", time, seconds, number]`` stands for an
acknowledged record, ``["consumed", time, seconds, number]`` for a consumed one. `time` is the monotonic
clock, which all processes share; `seconds` is the time since the record was passed to the producer.
``["late", time, seconds, null]`` says by how much a pause exceeded the requested time, which shows how busy
the machine is. ``["logged in", time, seconds, null]`` says how long a login and one request after it took.
``["failed", time, 0, text]`` reports an error. The program ends at the end of its standard input.
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
"""The pause between two records, in seconds.

A hundred records a second are enough to notice delays of the broker, and no noticeable load.
"""


class Diary:
    """A file to which the client writes one JSON line for each event, such as a consumed record."""

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
