"""Tests of the purgatory: keys, amounts, deadlines, cancellation; completed requests free their memory."""

from __future__ import annotations

import random

from penstock.broker.requests.purgatory import Purgatory, Wait


class Lot:
    """A purgatory that records the names of the requests that it resumes."""

    def __init__(self) -> None:
        self.purgatory = Purgatory()
        self.resumed: list[str] = []

    def park(self, name: str, keys: list[str], deadline: float = 100.0, amount: int = 1):
        return self.purgatory.park(Wait(keys, deadline, amount), lambda: self.resumed.append(name))

    def run(self, now: float = 0.0) -> list[str]:
        self.resumed.clear()
        for resume in self.purgatory.take_due(now):
            resume()
        return list(self.resumed)


def test_a_notified_key_makes_its_waiters_due() -> None:
    lot = Lot()
    lot.park("a", ["x", "y"])
    lot.park("b", ["y"])
    lot.park("c", ["z"])
    assert not lot.purgatory.has_due
    lot.purgatory.notify("y")
    assert lot.purgatory.has_due
    assert lot.run() == ["a", "b"]
    assert len(lot.purgatory) == 1
    lot.purgatory.notify("x")
    assert lot.run() == []


def test_a_wait_for_an_amount_takes_as_many_notifications_as_it_needs() -> None:
    lot = Lot()
    lot.park("a", ["x", "y"], amount=10)
    lot.purgatory.notify("x", 4)
    lot.purgatory.notify("y", 5)
    assert lot.run() == []
    lot.purgatory.notify("x", 1)
    assert lot.run() == ["a"]


def test_deadlines() -> None:
    lot = Lot()
    lot.park("late", ["x"], deadline=9)
    lot.park("soon", ["x"], deadline=3)
    lot.park("bare", [], deadline=5)
    assert lot.purgatory.next_deadline() == 3
    assert lot.run(2.9) == []
    assert lot.run(5) == ["soon", "bare"]
    assert lot.purgatory.next_deadline() == 9
    lot.purgatory.notify("x")
    assert lot.run(5) == ["late"]
    assert lot.purgatory.next_deadline() is None


def test_cancelled_requests_are_not_resumed() -> None:
    lot = Lot()
    first, second = lot.park("a", ["x"]), lot.park("b", ["x"])
    lot.purgatory.cancel(first)
    lot.purgatory.notify("x")
    lot.purgatory.cancel(second)
    lot.purgatory.cancel(second)
    assert lot.run(1000) == []
    assert len(lot.purgatory) == 0


def test_nothing_is_kept_of_what_has_left() -> None:
    """Completed requests with distant deadlines must not accumulate in the list of deadlines."""
    lot = Lot()
    for _ in range(5000):
        lot.park("a", ["x"], deadline=1e9)
        lot.purgatory.notify("x")
        lot.run()
    assert len(lot.purgatory._deadlines) < 200
    assert not lot.purgatory.waiting


def test_whoever_parks_is_resumed_exactly_once() -> None:
    """Random waits, notifications, cancellations and deadlines are compared with a simple model."""
    rng = random.Random(5)
    lot, alive, now, resumed = Lot(), {}, 0.0, []
    for step in range(3000):
        action = rng.randrange(4)
        if action == 0:
            keys = rng.sample("abcde", rng.randint(0, 3))
            deadline = now + rng.randint(1, 20)
            alive[str(step)] = (keys, deadline, lot.park(str(step), keys, deadline))
        elif action == 1:
            key = rng.choice("abcde")
            lot.purgatory.notify(key)
            due = {name for name, (keys, _, _) in alive.items() if key in keys}
            got = lot.run(now)
            assert set(got) == due
            resumed += got
            for name in due:
                del alive[name]
        elif action == 2 and alive:
            name = rng.choice(list(alive))
            lot.purgatory.cancel(alive.pop(name)[2])
        else:
            now += rng.randint(0, 3)
            due = {name for name, (_, deadline, _) in alive.items() if deadline <= now}
            got = lot.run(now)
            assert set(got) == due
            resumed += got
            for name in due:
                del alive[name]
        assert len(lot.purgatory) == len(alive)
    assert len(resumed) == len(set(resumed)) > 100


def test_what_has_left_keeps_no_keys_though_its_deadline_is_far() -> None:
    lot = Lot()
    parked = lot.park("a", ["x"] * 1000, deadline=1e9)
    lot.purgatory.cancel(parked)
    assert not parked.keys
