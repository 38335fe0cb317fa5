"""Tests that the demo's replay writes the same records however often it is interrupted."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest

from penstock.client.produce.partitioner import murmur2
from penstock.cloudevents import InvalidEvent, NotAnEvent, from_record
from penstock.cloudevents.read_record import content_mode
from penstock.demo import malformed, plan
from penstock.demo.dataset import read_departures, read_observations

Row = tuple[object, ...]


@pytest.fixture(scope="module")
def departures() -> pa.Table:
    return read_departures(3)


@pytest.fixture
def flights(departures: pa.Table, monkeypatch: pytest.MonkeyPatch) -> plan.ReplayPlan:
    # Small chunks, so that malformed records fall on their edges, too.
    monkeypatch.setattr(plan, "CHUNK_ROWS", 61)
    return plan.flights_plan("flights", departures)


def by_partition(flights: plan.ReplayPlan, written: list[int]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for batch in flights.missing(written):
        for row in batch.to_pylist():
            partition = row.pop("partition")
            found[partition].append((row["key"], row["value"], str(row["headers"]), row["timestamp"]))
    return found


def test_a_replay_resumed_anywhere_writes_what_was_missing(flights: plan.ReplayPlan) -> None:
    whole = by_partition(flights, [0] * 6)
    assert [len(whole[p]) for p in range(6)] == flights.lengths
    dice = random.Random(7)
    for _ in range(3):
        written = [dice.randint(0, length) for length in flights.lengths]
        rest = by_partition(flights, written)
        assert {p: whole[p][written[p] :] for p in range(6) if whole[p][written[p] :]} == rest
    assert list(flights.missing(flights.lengths)) == []


def test_departures_go_where_their_carrier_says_in_order_of_time(
    departures: pa.Table, flights: plan.ReplayPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(malformed, "MALFORMED_COUNT", 0)
    good = plan.flights_plan("flights", departures)
    assert len(good) == departures.num_rows == flights.events
    seen: Counter[bytes] = Counter()
    for partition, rows in by_partition(good, [0] * 6).items():
        times = [row[3] for row in rows]
        assert times == sorted(times)
        for key, value, _, _ in rows:
            row = json.loads(value)
            assert row.get("data", row)["carrier"].encode() == key
            assert (murmur2(key) & 0x7FFFFFFF) % 6 == partition
            seen[key] += 1
    assert seen == Counter(carrier.encode() for carrier in departures["carrier"].to_pylist())


def test_exactly_the_planted_records_are_malformed(flights: plan.ReplayPlan, departures: pa.Table) -> None:
    good = bad = 0
    for batch in flights.missing([0] * 6):
        for row in batch.to_pylist():
            headers = [(header["key"], header["value"]) for header in row["headers"] or []]
            outcome = from_record(row["key"], row["value"], headers)
            if isinstance(outcome, InvalidEvent | NotAnEvent):
                bad += 1
            else:
                try:
                    json.loads(outcome.data or b"")
                    good += 1
                except ValueError:
                    bad += 1
    assert good == departures.num_rows
    assert bad == malformed.MALFORMED_COUNT == 200


def test_malformed_records_are_of_nine_kinds_and_the_same_every_time(flights: plan.ReplayPlan) -> None:
    kinds = Counter(record.kind for record in flights.planted)
    assert len(kinds) == 9
    assert min(kinds.values()) >= 22
    again = plan.flights_plan("flights", read_departures(3))
    assert again.planted == flights.planted


def test_every_tenth_departure_is_a_structured_event(
    departures: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The choice depends only on the sequence of departures, whatever is already written."""
    monkeypatch.setattr(malformed, "MALFORMED_COUNT", 0)
    good = plan.flights_plan("flights", departures)
    modes: Counter[str] = Counter()
    for batch in good.missing([0] * 6):
        for headers in batch["headers"].to_pylist():
            modes[content_mode([(each["key"], each["value"]) for each in headers])] += 1
    structured = plan.structured_departures(departures.num_rows)
    assert modes == {"structured": structured, "binary": departures.num_rows - structured}


def test_observations_are_structured_events() -> None:
    weather = plan.weather_plan("weather", read_observations(2))
    (batch,) = weather.missing([0])
    row = batch.to_pylist()[0]
    headers = [(header["key"], header["value"]) for header in row["headers"]]
    event = from_record(row["key"], row["value"], headers)
    assert row["key"] == b"EWR"
    assert event.id == "EWR-2013-01-01T06:00Z"
    assert json.loads(row["value"])["data"]["wind_speed"] == 10.357019999999999
    assert np.all(batch["partition"].to_numpy() == 0)
