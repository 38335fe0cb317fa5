"""Tests of the search for anomalies: it finds none in a good history, and each error put into a copy."""

from __future__ import annotations

from broker.transactions.history import Fate, History, Read, anomalies
from for_each import for_each


def good() -> History:
    """Return a history of three transactions: committed, aborted, and of unknown outcome.

    The last one turns out to be committed.
    """
    history = History()
    for name, fate in (("x", Fate.COMMITTED), ("y", Fate.ABORTED), ("z", Fate.UNKNOWN)):
        unit = history.begin(name)
        unit.fate = fate
        for partition in ("p", "q"):
            for number in (1, 2):
                unit.write(partition, f"{name}{number}{partition}")
    for partition in ("p", "q"):
        rows = [(3 * at + n, f"{name}{n}{partition}") for at, name in enumerate("xyz") for n in (1, 2)]
        seen = tuple(row for row in rows if not row[1].startswith("y"))
        history.reads += [
            Read(partition, False, tuple(rows), is_complete=True),
            Read(partition, True, seen[:2]),
            Read(partition, True, seen, is_complete=True),
        ]
    return history


def test_a_good_history_has_no_anomalies() -> None:
    assert anomalies(good()) == []


def test_a_transaction_of_unknown_fate_may_be_missing() -> None:
    history = good()
    history.reads = [
        read._replace(rows=tuple(row for row in read.rows if row[1][0] != "z" or not read.committed_only))
        for read in history.reads
    ]
    assert anomalies(history) == []


def replaced(history: History, index: int, rows: list[tuple[int, str]]) -> History:
    history.reads[index] = history.reads[index]._replace(rows=tuple(rows))
    return history


LAST_P = 2
"""The index of the complete read of partition ``p`` in the good history."""


@for_each(
    [
        ([(1, "x1p"), (2, "x2p"), (4, "y1p"), (7, "z1p"), (8, "z2p")], "aborted read"),
        ([(1, "x1p"), (7, "z1p"), (8, "z2p")], "lost write"),
        ([(1, "x1p"), (2, "x2p"), (7, "z1p")], "torn transaction"),
        ([(1, "x1p"), (2, "x2p")], "torn transaction"),
        ([(1, "x1p"), (2, "x2p"), (7, "z1p"), (8, "z2p"), (9, "w")], "phantom"),
        ([(1, "x1p"), (2, "x2p"), (7, "z1q"), (8, "z2p")], "phantom"),
        ([(1, "x1p"), (2, "x2p"), (7, "z1p"), (8, "z2p"), (9, "x1p")], "duplicate"),
        ([(1, "x1p"), (2, "z1p"), (7, "x2p"), (8, "z2p")], "inconsistent offsets"),
        ([(2, "x2p"), (1, "x1p"), (7, "z1p"), (8, "z2p")], "non-monotonic poll"),
        ([(1, "x2p"), (2, "x1p"), (7, "z1p"), (8, "z2p")], "non-monotonic send"),
        ([(7, "z1p"), (8, "z2p")], "vanished"),
    ]
)
def test_what_was_put_wrong_is_found(rows: list[tuple[int, str]], expected: str) -> None:
    found = anomalies(replaced(good(), LAST_P, rows))
    assert any(line.startswith(expected) for line in found), found
