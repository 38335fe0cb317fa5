"""Plans of the replay: a fixed sequence of records for every partition.

The sequence follows from the data and one seed. So an interrupted replay needs no stored position: a
partition that holds 1,000 records holds the first 1,000 of its sequence, and the others are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.client.produce.partitioner import PARTITIONERS
from penstock.cloudevents import encode_events
from penstock.demo import malformed
from penstock.demo.events import JSON_TYPE, departure_events, hour_text, observation_events

IntArray = np.ndarray[Any, np.dtype[Any]]

CHUNK_ROWS = 8192

FLIGHTS_PARTITIONS = 6
WEATHER_PARTITIONS = 1

STRUCTURED_EVERY = 10
"""One in this many departures is sent in structured content mode, the others in binary content mode."""


class ReplayPlan:
    """The records of one topic in the order of the replay, and the partition of each.

    `encode(start, stop)` returns the records of the valid events from number `start` to `stop` (exclusive) as
    a batch with the columns key, value, headers and timestamp. `planted` are the malformed records, ordered
    by position.
    """

    def __init__(
        self,
        topic: str,
        partitions: int,
        homes: IntArray,
        encode: Callable[[int, int], pa.RecordBatch],
        planted: Sequence[malformed.Planted] = (),
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        self.events = len(homes)
        self.planted = planted
        self._encode = encode
        self._is_planted = np.zeros(len(homes) + len(planted), np.bool_)
        self._is_planted[[record.after + 1 + number for number, record in enumerate(planted)]] = True
        self._partition = np.empty(len(self._is_planted), np.int32)
        self._partition[~self._is_planted] = homes
        self._partition[self._is_planted] = [record.partition for record in planted]
        self._rank = np.empty(len(self._is_planted), np.int64)
        for partition in range(partitions):
            rows = np.flatnonzero(self._partition == partition)
            self._rank[rows] = np.arange(len(rows))

    def __len__(self) -> int:
        return len(self._is_planted)

    @property
    def lengths(self) -> list[int]:
        """Return how many records each partition will have."""
        return [int(count) for count in np.bincount(self._partition, minlength=self.partitions)]

    def missing(self, written: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Yield the records that follow the first `written` records of each partition, in order.

        Batches have the columns key, value, headers, timestamp and partition.
        """
        pending = self._rank >= np.asarray(written, np.int64)[self._partition]
        events_before = 0
        planted_before = 0
        for start in range(0, len(self), CHUNK_ROWS):
            is_planted = self._is_planted[start : start + CHUNK_ROWS]
            events = events_before + int(np.count_nonzero(~is_planted))
            planted = planted_before + int(np.count_nonzero(is_planted))
            chosen = np.flatnonzero(pending[start : start + CHUNK_ROWS])
            if len(chosen):
                batch = self._chunk(is_planted, events_before, events, planted_before, planted)
                partition = pa.array(self._partition[start : start + CHUNK_ROWS])
                yield batch.append_column("partition", partition).take(pa.array(chosen))
            events_before, planted_before = events, planted

    def _chunk(
        self, is_planted: IntArray, first_event: int, last_event: int, first_planted: int, last_planted: int
    ) -> pa.RecordBatch:
        """Return the records of a range of events, with the malformed records between them."""
        events = self._encode(first_event, last_event)
        if not is_planted.any():
            return events
        spoilt = _records(self.planted[first_planted:last_planted], events.schema)
        return _woven(events, spoilt, is_planted)


def flights_plan(topic: str, departures: pa.Table) -> ReplayPlan:
    """Return the records to write for the departures, keyed by carrier, with malformed records between them.

    Every tenth departure is in structured content mode, the others in binary, so readers must detect the
    mode.
    """

    def encode(start: int, stop: int) -> pa.RecordBatch:
        events = departure_events(departures.slice(start, stop - start))
        is_structured = np.arange(start, stop) % STRUCTURED_EVERY == 0
        binary = encode_events(events.filter(pa.array(~is_structured)), mode="binary")
        structured = encode_events(events.filter(pa.array(is_structured)), mode="structured")
        return _woven(binary, structured, is_structured)

    def good(number: int) -> malformed.Good:
        row = departures.slice(number, 1)
        event = departure_events(row)
        attributes = {
            name: event[name][0].as_py() for name in ("specversion", "id", "source", "type", "subject")
        }
        attributes |= {
            "time": f"{hour_text(row['time_hour'])[0].as_py()[:-1]}:00Z",
            "datacontenttype": JSON_TYPE,
        }
        data = event["data"][0].as_py().decode()
        timestamp_ms = event["time"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())[0].as_py()
        return malformed.Good(row["carrier"][0].as_py().encode(), timestamp_ms, attributes, data)

    planted = malformed.plant(departures.num_rows, FLIGHTS_PARTITIONS, good)
    return ReplayPlan(
        topic, FLIGHTS_PARTITIONS, homes(departures["carrier"], FLIGHTS_PARTITIONS), encode, planted
    )


def weather_plan(topic: str, observations: pa.Table) -> ReplayPlan:
    """Return the records to write for the observations, in structured content mode, keyed by airport."""

    def encode(start: int, stop: int) -> pa.RecordBatch:
        rows = observations.slice(start, stop - start)
        return encode_events(observation_events(rows), mode="structured")

    return ReplayPlan(topic, WEATHER_PARTITIONS, homes(observations["origin"], WEATHER_PARTITIONS), encode)


def homes(keys: pa.ChunkedArray, partitions: int) -> IntArray:
    """Return the partition of each key in an array, as Kafka's producers choose it, from the key's hash."""
    choose = PARTITIONERS["murmur2"]
    encoded = keys.combine_chunks().dictionary_encode()
    chosen = [choose(key.encode(), partitions) for key in encoded.dictionary.to_pylist()]
    picked: IntArray = np.asarray(chosen, np.int32)[encoded.indices.to_numpy()]
    return picked


def structured_departures(departures: int) -> int:
    """Return how many of `departures` departures are in structured content mode."""
    return -(-departures // STRUCTURED_EVERY)


def _woven(some: pa.RecordBatch, others: pa.RecordBatch, is_other: IntArray) -> pa.RecordBatch:
    """Merge the rows of two batches: where `is_other` is True, the next row is from `others`."""
    woven = np.empty(len(is_other), np.int64)
    woven[~is_other] = np.arange(some.num_rows)
    woven[is_other] = np.arange(some.num_rows, len(is_other))
    return pa.concat_batches([some, others.cast(some.schema)]).take(pa.array(woven))


def _records(planted: Sequence[malformed.Planted], schema: pa.Schema) -> pa.RecordBatch:
    """Return malformed records in columns like those of valid records."""
    headers = [[{"key": name, "value": value} for name, value in record.headers] for record in planted]
    columns = {
        "key": [record.key for record in planted],
        "value": [record.value for record in planted],
        "headers": headers,
    }
    arrays = [pa.array(columns[name], schema.field(name).type) for name in columns]
    times = pa.array([record.timestamp_ms for record in planted], pa.timestamp("ms", tz="UTC"))
    return pa.RecordBatch.from_arrays([*arrays, times.cast(schema.field("timestamp").type)], schema=schema)
