"""Tests of the checker of histories: it accepts a correct history, and finds each error put into a copy."""

from __future__ import annotations

import random
from collections.abc import Callable

from broker.histories.checker import History, Read, Write, violations
from for_each import for_each

PLACE = ("t", 0)


def good(seed: int = 1) -> History:
    """Return a correct history of two producers, two readers and fifty records.

    Of the records without an acknowledgement some are in the log and some are not.
    """
    rng = random.Random(seed)
    history = History()
    log: list[tuple[int, bytes]] = []
    for number in range(50):
        write = Write(rng.choice("ab"), PLACE, b"value %d" % number)
        history.writes.append(write)
        fate = rng.random()
        if fate < 0.9:
            log.append((len(log), write.value))
            write.offset = len(log) - 1 if fate < 0.8 else None
        else:
            write.refused = fate > 0.95
    history.logs[PLACE] = log
    for reader in ("x", "y"):
        history.reads += [Read(reader, PLACE, offset, value) for offset, value in log[rng.randrange(5) :]]
    # A reader that begins again.
    history.reads += [Read("x", PLACE, offset, value) for offset, value in log[3:9]]
    return history


@for_each(range(20))
def test_what_is_right_passes(seed: int) -> None:
    assert violations(good(seed)) == []


def lose_the_last(history: History) -> None:
    log = history.logs[PLACE]
    last = max(write.offset for write in history.writes if write.offset is not None)
    del log[last:]


def lose_one_in_the_middle(history: History) -> None:
    log = history.logs[PLACE]
    history.logs[PLACE] = [(n, value) for n, (_, value) in enumerate(log[:10] + log[11:])]


def read_another_value(history: History) -> None:
    read = history.reads[7]
    history.reads[7] = Read(read.reader, read.place, read.offset, b"value 49 and a half")


def two_readers_differ_beyond_the_end(history: History) -> None:
    history.reads += [Read("z", PLACE, 1000, b"value 1"), Read("w", PLACE, 1000, b"value 2")]


def write_twice(history: History) -> None:
    log = history.logs[PLACE]
    log.append((len(log), log[4][1]))


def leave_a_gap(history: History) -> None:
    history.logs[PLACE] = [(offset + (offset > 30), value) for offset, value in history.logs[PLACE]]


def a_reader_skips_one(history: History) -> None:
    del history.reads[12]


def make_something_up(history: History) -> None:
    log = history.logs[PLACE]
    log.append((len(log), b"nobody's"))


def keep_what_was_refused(history: History) -> None:
    history.writes.append(Write("a", PLACE, b"refused", refused=True))
    log = history.logs[PLACE]
    log.append((len(log), b"refused"))


def swap_two_of_one_producer(history: History) -> None:
    log = history.logs[PLACE]
    of_a = {write.value for write in history.writes if write.producer == "a"}
    first, second = [n for n, (_, value) in enumerate(log) if value in of_a][:2]
    log[first], log[second] = (first, log[second][1]), (second, log[first][1])


@for_each(
    [
        (doctor, caught, seed)
        for seed in range(5)
        for doctor, caught in [
            (lose_the_last, "lost write"),
            (lose_one_in_the_middle, "lost write"),
            (read_another_value, "diverging offset"),
            (two_readers_differ_beyond_the_end, "diverging offset"),
            (write_twice, "duplicate"),
            (leave_a_gap, "gap"),
            (a_reader_skips_one, "gap"),
            (make_something_up, "never written"),
            (keep_what_was_refused, "never written"),
            (swap_two_of_one_producer, "out of order"),
        ]
    ]
)
def test_what_is_doctored_is_caught(doctor: Callable[[History], None], caught: str, seed: int) -> None:
    history = good(seed)
    doctor(history)
    assert any(each.startswith(caught) for each in violations(history)), violations(history)


def test_producers_that_try_again_may_write_twice() -> None:
    history = good()
    write_twice(history)
    assert violations(history, once=False) == []
