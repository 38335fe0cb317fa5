"""The order of tests for several processes, under `pytest -n 7 --dist worksteal`.

xdist gives every process an equal part of the list of tests. A process whose part is done takes tests from
the end of the longest remaining part. So the tests at the start of a part run early, in one process, and in
their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

HEADS: tuple[tuple[str, ...], ...] = (
    (),
    ("tests/test_documents.py",),
    ("tests/documents/", "tests/test_house.py"),
    ("tests/gateway/test_gateway.py", "tests/cli/test_waiting.py"),
    ("tests/client/test_lies.py", "tests/broker/test_unpacking.py"),
    ("tests/lake/",),
    ("tests/testing/chaos/", "tests/broker/test_barriers.py"),
)
"""The path prefixes of the tests that each pytest-xdist process runs first: one entry for a process.

The tests of Spark come before those of the first entry.
"""


class Item(Protocol):
    """The attributes of a collected test that the ordering uses."""

    @property
    def nodeid(self) -> str: ...

    @property
    def path(self) -> Path: ...


T = TypeVar("T", bound=Item)


def in_parts(items: Sequence[T], processes: int) -> list[T]:
    """Return the tests in an order in which each process begins with the tests of one entry of `HEADS`.

    All tests of one Spark session run in one process: a session costs ten seconds to start, and ten more
    until its code is compiled. Documentation pages run one after the other, since they show the same ports.
    """
    of_spark = {item.path for item in items if "spark" in getattr(item, "fixturenames", ())}
    spark: list[T] = []
    firsts: list[list[T]] = [[] for _ in HEADS]
    rest: list[T] = []
    for item in items:
        if item.path in of_spark:
            spark.append(item)
            continue
        number = next((n for n, beginnings in enumerate(HEADS) if item.nodeid.startswith(beginnings)), None)
        (rest if number is None else firsts[number]).append(item)
    heads = [spark, *([] for _ in range(processes - 1))]
    for number, first in enumerate(firsts):
        heads[number % processes] += first
    parts: list[T] = []
    for number, head in enumerate(heads):
        room = max(0, (len(items) - len(parts)) // (processes - number) - len(head))
        parts += [*head, *rest[:room]]
        del rest[:room]
    return [*parts, *rest]
