"""Converts rows of the data to events: CloudEvents attributes in columns, the row itself as JSON data.

An event's time is the scheduled hour, its subject is the flight, and its `id` is unique within its source, so
that each replay makes the same events. The Kafka key of a departure is its carrier; the key of an observation
or a result is its airport.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

DEPARTURE_TYPE = "penstock.demo.departure"
OBSERVATION_TYPE = "penstock.demo.weather"
DELAYS_TYPE = "penstock.demo.delays"
FLIGHTS_SOURCE = "/nycflights13/flights"
WEATHER_SOURCE = "/nycflights13/weather"
DELAYS_SOURCE = "/penstock/demo/delays"
JSON_TYPE = "application/json"

HOUR_FORMAT = "%Y-%m-%dT%H:%MZ"
"""The `strftime` format of the hour in an event's `id`, as in ``EWR-UA-2013-01-01T10:00Z``."""

EVENT_TIME = pa.timestamp("us", tz="UTC")


def departure_events(departures: pa.Table) -> pa.RecordBatch:
    """Return one event per departure, `id` such as ``UA1545-2013-01-01T10:00Z``."""
    flight = pc.binary_join_element_wise(
        departures["carrier"], pc.cast(departures["flight"], pa.string()), ""
    )
    return attributes(
        ids=pc.binary_join_element_wise(flight, hour_text(departures["time_hour"]), "-"),
        source=FLIGHTS_SOURCE,
        kind=DEPARTURE_TYPE,
        subject=flight,
        time=departures["time_hour"],
        data=json_objects(departures.drop_columns(["time_hour"])),
        key=departures["carrier"],
    )


def observation_events(observations: pa.Table) -> pa.RecordBatch:
    """Return one event per observation, `id` such as ``EWR-2013-01-01T10:00Z``."""
    return attributes(
        ids=pc.binary_join_element_wise(observations["origin"], hour_text(observations["time_hour"]), "-"),
        source=WEATHER_SOURCE,
        kind=OBSERVATION_TYPE,
        subject=observations["origin"],
        time=observations["time_hour"],
        data=json_objects(observations.drop_columns(["time_hour"])),
        key=observations["origin"],
    )


def delay_events(cells: pa.Table) -> pa.RecordBatch:
    """Return one event per cell (airport, airline, hour), `id` such as ``EWR-UA-2013-01-01T10:00Z``."""
    route = pc.binary_join_element_wise(cells["origin"], cells["carrier"], "-")
    return attributes(
        ids=pc.binary_join_element_wise(route, hour_text(cells["hour"]), "-"),
        source=DELAYS_SOURCE,
        kind=DELAYS_TYPE,
        subject=route,
        time=cells["hour"],
        data=json_objects(cells.drop_columns(["hour"])),
        key=cells["origin"],
    )


def attributes(
    *, ids: Any, source: str, kind: str, subject: Any, time: Any, data: Any, key: Any
) -> pa.RecordBatch:
    """Return the input of `encode_events`: CloudEvents attributes, data, record keys and record timestamps.

    `kind` becomes the attribute ``type``. The timestamp of a record is the time of its event.
    """
    count = len(ids)
    columns = {
        "id": _flat(ids),
        "source": pa.repeat(source, count),
        "specversion": pa.repeat("1.0", count),
        "type": pa.repeat(kind, count),
        "subject": _flat(subject),
        "time": _flat(time).cast(EVENT_TIME),
        "datacontenttype": pa.repeat(JSON_TYPE, count),
        "data": _flat(data).cast(pa.binary()),
        "key": _flat(key).cast(pa.binary()),
        "timestamp": _flat(time).cast(EVENT_TIME),
    }
    return pa.RecordBatch.from_pydict(columns)


def hour_text(times: Any) -> Any:
    """Return times as text in `HOUR_FORMAT`. Each distinct hour is formatted once."""
    encoded = _flat(times).dictionary_encode()
    return pc.take(
        pc.strftime(encoded.dictionary.cast(pa.timestamp("s")), format=HOUR_FORMAT), encoded.indices
    )


def json_objects(table: pa.Table) -> Any:
    """Return each row as the text of a JSON object. Numbers are written without loss of precision."""
    pieces: list[Any] = []
    for name in table.column_names:
        lead = "{" if not pieces else ","
        pieces += [f"{lead}{json.dumps(name)}:", _json_values(_flat(table[name]))]
    if not pieces:
        return pa.repeat("{}", table.num_rows)
    return _flat(pc.binary_join_element_wise(*pieces, "}", ""))


def _json_values(values: pa.Array) -> Any:
    if pa.types.is_string(values.type):
        encoded = values.dictionary_encode()
        quoted = pa.array([json.dumps(text) for text in encoded.dictionary.to_pylist()], pa.string())
        texts = pc.take(quoted, encoded.indices)
    else:
        texts = values.cast(pa.string())
    return pc.fill_null(texts, "null")


def _flat(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
