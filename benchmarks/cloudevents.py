"""Convert CloudEvents to and from records, one by one and in tables, compared with the official SDK.

Both libraries convert the same events in one process, each in its fastest form. The SDK gets headers as a
dict, and its results remain SDK objects. For a table, Penstock's result is Arrow columns. There the SDK is
measured twice: with its objects only, and from Arrow table to Arrow table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

# The folder of this file, which shares its name with the SDK, must not be searched first.
sys.path.pop(0)
from cloudevents.core.bindings import kafka as sdk
from cloudevents.core.bindings.kafka import KafkaMessage
from cloudevents.core.v1.event import CloudEvent

sys.path.append(str(Path(__file__).parent))
from harness import Contestant, arguments, measure, report
from penstock.cloudevents import Event, decode_events, encode_events, from_record, to_record, to_sdk
from penstock.records.arrow import HEADERS_TYPE

RUN_SECONDS = 0.02
SDK_NAMES = ("id", "source", "type", "subject", "time", "datacontenttype")
WANTED = ("id", "source", "type", "subject", "time", "datacontenttype", "data", "error")


def events(count: int) -> list[Event]:
    return [
        Event(
            id=f"{index:08x}-5f2e-4c0b-9a57-000000000000",
            source=f"https://example.com/stations/{index % 97}",
            type="com.example.reading.taken",
            subject=f"sensor-{index % 977}",
            time=f"2018-04-05T{index % 24:02}:56:24.{index % 999 + 1:03}Z",
            datacontenttype="application/json",
            data=b'{"reading": %d, "unit": "mm", "valid": true}' % (index * 37),
        )
        for index in range(count)
    ]


def each(function: Callable[..., object], arguments: Iterable[tuple[object, ...]]) -> Callable[[], object]:
    calls = list(arguments)

    def run() -> None:
        for call in calls:
            function(*call)

    return run


def repeat(run: Callable[[], object], times: int) -> None:
    for _ in range(times):
        run()


def batch_of(records: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([key for key, _, _ in records], pa.binary()),
            pa.array([value for _, value, _ in records], pa.binary()),
            pa.array([headers for _, _, headers in records], HEADERS_TYPE),
        ],
        names=["key", "value", "headers"],
    )


def sdk_decode(batch: pa.RecordBatch, read: Callable[[KafkaMessage], Any]) -> pa.RecordBatch:
    """Convert records to an Arrow table of attributes through the SDK's event objects."""
    found = []
    for row in batch.to_pylist():
        headers = {header["key"]: header["value"] for header in row["headers"]}
        found.append(read(KafkaMessage(headers=headers, key=row["key"], value=row["value"])))
    columns = {
        name: [event.get_attributes().get(name) for event in found] for name in WANTED if name in SDK_NAMES
    }
    return pa.RecordBatch.from_pydict(columns | {"data": [str(event.get_data()) for event in found]})


def sdk_encode(batch: pa.RecordBatch, write: Callable[[Any], KafkaMessage]) -> pa.RecordBatch:
    """Convert an Arrow table of attributes to records through the SDK's event objects."""
    messages = []
    for row in batch.select([*SDK_NAMES, "data"]).to_pylist():
        data = row.pop("data")
        attributes = {name: value for name, value in row.items() if value is not None}
        messages.append(write(CloudEvent(attributes | {"specversion": "1.0"}, data)))
    return batch_of([(message.key, message.value, [*message.headers.items()]) for message in messages])


def compare(title: str, units: int, rounds: int, *runs: tuple[str, Callable[[], object]]) -> None:
    contestants = [Contestant(name, run, units=units) for name, run in runs]
    measure(contestants, rounds, least_seconds=RUN_SECONDS)
    report(title, contestants, unit="events")


def main() -> None:
    options = arguments("CloudEvents: this package against the official SDK", rounds=7)
    single, many = (2_000, 10_000) if options.quick else (10_000, 100_000)
    for mode in ("binary", "structured"):
        some = events(single)
        records = [to_record(event, mode=mode) for event in some]
        official = [to_sdk(event) for event in some]
        to_sdk_record = sdk.to_binary_event if mode == "binary" else sdk.to_structured_event
        from_sdk_record = sdk.from_binary_event if mode == "binary" else sdk.from_structured_event
        messages = [
            KafkaMessage(headers=dict(parts[2]), key=None, value=parts[1] or b"") for parts in records
        ]
        reading = each(from_sdk_record, ((message,) for message in messages))
        writing = each(to_sdk_record, ((event,) for event in official))
        compare(
            f"one event from a record, {mode}",
            single,
            options.rounds,
            ("official SDK", reading),
            ("penstock, from_record", each(from_record, records)),
        )
        compare(
            f"one event to a record, {mode}",
            single,
            options.rounds,
            ("official SDK", writing),
            ("penstock, to_record", each(partial(to_record, mode=mode), ((event,) for event in some))),
        )
        table = batch_of([to_record(event, mode=mode) for event in events(many)])
        decoded = decode_events(table).drop_columns(["value", "headers"])
        compare(
            f"a table of {many:,} events from records, {mode}",
            many,
            options.rounds,
            ("official SDK, objects only", partial(repeat, reading, many // single)),
            ("official SDK, table to table", partial(sdk_decode, table, from_sdk_record)),
            ("penstock, every column", partial(decode_events, table)),
            ("penstock, the columns that are set", partial(decode_events, table, columns=WANTED)),
        )
        compare(
            f"a table of {many:,} events to records, {mode}",
            many,
            options.rounds,
            ("official SDK, objects only", partial(repeat, writing, many // single)),
            ("official SDK, table to table", partial(sdk_encode, decoded, to_sdk_record)),
            ("penstock", partial(encode_events, decoded, mode=mode)),
        )


if __name__ == "__main__":
    main()
