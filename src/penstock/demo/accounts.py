"""The accounts of a demo run: counts of its inputs and outputs, and checks that these counts agree.

The names of the counts are the keys of ``accounts.json``. Each check compares two figures from different
sources: the CSV data, the pipeline's own counts, the topics, the Parquet table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from penstock.demo.output import read_json
from penstock.errors import PenstockError

Accounts = dict[str, int]

CELL = ("origin", "carrier", "hour")


class AccountsError(PenstockError):
    """Raised if two figures of the accounts differ: events were lost, duplicated or invented."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Counts of the replayed events, from the CSV data. `departed` counts flights with a departure delay.

    `structured` departures were sent in structured content mode, the others in binary.
    """

    departures: int
    structured: int
    departed: int
    malformed: int
    observations: int


@dataclass(frozen=True, slots=True)
class WrittenCounts:
    """The numbers of records that the pipeline has written to its topics of dead letters and of delays."""

    dead_letters: int
    delay_events: int


def draw_up(
    replayed: Replayed, triage: Mapping[str, int], written: WrittenCounts, cells: pa.Table
) -> Accounts:
    """Compute the counts of a finished run, check that they agree, and return a dict of all counts.

    Raises:
        AccountsError: two figures that must be equal differ.
    """
    accounts = {
        "flights.replayed": replayed.departures,
        "flights.malformed": triage["flights.malformed"],
        "flights.decoded": triage["flights.decoded"],
        "flights.structured": triage["flights.structured"],
        "weather.replayed": replayed.observations,
        "weather.malformed": triage["weather.malformed"],
        "weather.decoded": triage["weather.decoded"],
        "dead_lettered": written.dead_letters,
        "delays.rows": cells.num_rows,
        "delays.scheduled": _sum(cells, "scheduled"),
        "delays.departed": _sum(cells, "departed"),
    }
    wrong = [
        f"{what}: {left:,} against {right:,}"
        for what, left, right in _pairs(accounts, replayed, written, cells)
        if left != right
    ]
    if wrong:
        raise AccountsError(f"the accounts do not add up: {'; '.join(wrong)}")
    return accounts


def _pairs(
    accounts: Accounts, replayed: Replayed, written: WrittenCounts, cells: pa.Table
) -> Iterator[tuple[str, int, int]]:
    """Yield each check: its name, and the two figures that must be equal."""
    yield "departures decoded and replayed", accounts["flights.decoded"], replayed.departures
    yield (
        "departures in structured mode, read and replayed",
        accounts["flights.structured"],
        replayed.structured,
    )
    yield "malformed records found and planted", accounts["flights.malformed"], replayed.malformed
    yield "observations decoded and replayed", accounts["weather.decoded"], replayed.observations
    yield "malformed observations", accounts["weather.malformed"], 0
    malformed = accounts["flights.malformed"] + accounts["weather.malformed"]
    yield "dead letters and malformed records", accounts["dead_lettered"], malformed
    yield "departures in the table and in the data", accounts["delays.scheduled"], replayed.departures
    yield "flights that left, in the table and in the data", accounts["delays.departed"], replayed.departed
    yield "cells and rows of the table", cells.group_by(list(CELL)).aggregate([]).num_rows, cells.num_rows
    yield "delay events and rows of the table", written.delay_events, cells.num_rows


def sum_of_batches(directory: Path) -> Accounts:
    """Return each count, summed over all micro-batches; `directory` has one JSON file per micro-batch."""
    total: Accounts = {}
    for path in sorted(directory.glob("*.json")):
        for name, count in read_json(path).items():
            total[name] = total.get(name, 0) + count
    return total


def worst(cells: pa.Table, count: int = 10) -> pa.Table:
    """Return the `count` cells (airport, airline and hour) with the longest mean delay, the worst first."""
    order = [
        ("mean_dep_delay", "descending"),
        *((name, "ascending") for name in ("hour", "origin", "carrier")),
    ]
    return cells.filter(pc.is_valid(cells["mean_dep_delay"])).sort_by(order).slice(0, count)


def _sum(cells: pa.Table, name: str) -> int:
    return int(pc.sum(cells[name]).as_py() or 0)
