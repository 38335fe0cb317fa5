"""Tests of the demo's accounts: figures that must add up; an error names the two that differ."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.demo.accounts import AccountsError, Replayed, WrittenCounts, draw_up, sum_of_batches, worst
from penstock.demo.events import delay_events
from penstock.demo.picture import draw_year
from penstock.demo.pipeline import LateEventsError, dead_letters, refuse_late_events
from penstock.demo.screen import WORDS

HOUR = datetime(2013, 1, 1, 10, tzinfo=UTC)

CELLS = pa.table(
    {
        "origin": ["EWR", "EWR", "JFK"],
        "carrier": ["UA", "B6", "UA"],
        "hour": pa.array([HOUR] * 3, pa.timestamp("us", tz="UTC")),
        "scheduled": [3, 1, 2],
        "departed": [2, 0, 2],
        "mean_dep_delay": [4.5, None, 12.0],
        "temp": [39.02, 39.02, None],
        "wind_speed": [10.357019999999999, 10.357019999999999, None],
        "precip": [0.0, 0.0, None],
        "visib": [10.0, 10.0, None],
    }
)
REPLAYED = Replayed(departures=6, structured=1, departed=4, malformed=2, observations=9)
TRIAGE = {
    "flights.decoded": 6,
    "flights.structured": 1,
    "flights.malformed": 2,
    "weather.decoded": 9,
    "weather.malformed": 0,
}
WRITTEN = WrittenCounts(dead_letters=2, delay_events=3)


def test_every_account_has_words() -> None:
    assert WORDS.keys() == draw_up(REPLAYED, TRIAGE, WRITTEN, CELLS).keys()


def test_accounts_that_add_up() -> None:
    assert draw_up(REPLAYED, TRIAGE, WRITTEN, CELLS) == {
        "flights.replayed": 6,
        "flights.malformed": 2,
        "flights.decoded": 6,
        "flights.structured": 1,
        "weather.replayed": 9,
        "weather.malformed": 0,
        "weather.decoded": 9,
        "dead_lettered": 2,
        "delays.rows": 3,
        "delays.scheduled": 6,
        "delays.departed": 4,
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"replayed": replace(REPLAYED, departures=7)}, "departures decoded and replayed: 6 against 7"),
        ({"replayed": replace(REPLAYED, structured=2)}, "structured mode, read and replayed: 1 against 2"),
        ({"replayed": replace(REPLAYED, departed=5)}, "flights that left"),
        ({"replayed": replace(REPLAYED, malformed=3)}, "malformed records found and planted: 2 against 3"),
        ({"replayed": replace(REPLAYED, observations=8)}, "observations decoded and replayed: 9 against 8"),
        ({"triage": TRIAGE | {"weather.malformed": 1}}, "malformed observations: 1 against 0"),
        ({"written": WrittenCounts(1, 3)}, "dead letters and malformed records: 1 against 2"),
        ({"written": WrittenCounts(2, 4)}, "delay events and rows of the table: 4 against 3"),
        ({"cells": pa.concat_tables([CELLS, CELLS.slice(0, 1)])}, "cells and rows of the table: 3 against 4"),
    ],
    ids=str,
)
def test_accounts_that_do_not(change: dict[str, object], told: str) -> None:
    good = {"replayed": REPLAYED, "triage": TRIAGE, "written": WRITTEN, "cells": CELLS}
    with pytest.raises(AccountsError, match=r"^the accounts do not add up: ") as caught:
        draw_up(**{**good, **change})
    assert told in str(caught.value)


def test_batches_are_added_up(tmp_path: Path) -> None:
    for number, counts in enumerate([{"a": 1, "b": 2}, {"a": 3}]):
        (tmp_path / f"{number:012d}.json").write_text(json.dumps(counts))
    (tmp_path / ".000000000002.json.7.unfinished").write_text('{"a":')
    assert sum_of_batches(tmp_path) == {"a": 4, "b": 2}


def test_the_worst_cells_come_first_and_those_without_a_departure_not_at_all() -> None:
    assert worst(CELLS, 5)["mean_dep_delay"].to_pylist() == [12.0, 4.5]
    assert worst(CELLS, 1)["origin"].to_pylist() == ["JFK"]


def test_a_cell_is_an_event_whose_id_names_it() -> None:
    events = delay_events(CELLS)
    assert events["id"].to_pylist()[0] == "EWR-UA-2013-01-01T10:00Z"
    assert json.loads(events["data"][0].as_py()) == {
        "origin": "EWR",
        "carrier": "UA",
        "scheduled": 3,
        "departed": 2,
        "mean_dep_delay": 4.5,
        "temp": 39.02,
        "wind_speed": 10.357019999999999,
        "precip": 0.0,
        "visib": 10.0,
    }
    assert json.loads(events["data"][2].as_py())["temp"] is None


def test_a_dead_letter_keeps_what_it_was_and_says_why() -> None:
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    records = pa.table(
        {
            "key": pa.array([b"UA", None], pa.binary()),
            "value": pa.array([None, b"x"], pa.binary()),
            "topic": ["flights", "flights"],
            "partition": [1, 2],
            "offset": [70, 80],
            "timestamp": pa.array([HOUR, HOUR], pa.timestamp("us", tz="UTC")),
            "headers": pa.array([None, [{"key": "a", "value": None}]], pa.list_(pa.field("element", header))),
            "reason": ["no event", "é"],
        }
    )
    first, second = dead_letters(records).to_pylist()
    assert (first["key"], first["value"], first["timestamp"]) == (b"UA", None, HOUR)
    assert first["headers"] == [
        {"key": "penstock_topic", "value": b"flights"},
        {"key": "penstock_partition", "value": b"1"},
        {"key": "penstock_offset", "value": b"70"},
        {"key": "penstock_reason", "value": b"no event"},
    ]
    assert second["headers"][0] == {"key": "a", "value": None}
    assert second["headers"][-1]["value"] == "é".encode()
    assert dead_letters(records.slice(0, 0)).num_rows == 0


def test_events_that_came_too_late_are_an_error() -> None:
    report = {"stateOperators": [{"numRowsDroppedByWatermark": 0}]}
    refuse_late_events("delays", report)
    refuse_late_events("triage", {"stateOperators": []})
    report["stateOperators"].append({"numRowsDroppedByWatermark": 3})
    with pytest.raises(LateEventsError, match="left out 3 events as late"):
        refuse_late_events("delays", report)


def test_a_picture_of_a_year_and_of_an_hour(tmp_path: Path) -> None:
    year = pa.table(
        {**{n: CELLS[n] for n in CELLS.column_names}, "hour": hours("2013-01-01", "2013-07-01", "2014-01-01")}
    )
    for cells in (CELLS, year.select(CELLS.column_names)):
        draw_year(cells, tmp_path / "year.png")
        assert (tmp_path / "year.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert [path.name for path in tmp_path.iterdir()] == ["year.png"]


def hours(*days: str) -> pa.Array:
    return pa.array(
        [datetime.fromisoformat(f"{day}T13:00:00+00:00") for day in days], pa.timestamp("us", tz="UTC")
    )
